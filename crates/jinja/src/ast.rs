//! A template as a tree. Chains are lists, so that no tree is deeper than its source is nested.

use std::sync::Arc;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Box<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Join,
    Multiply,
    Divide,
    DivideWhole,
    Remainder,
    Power,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Literal(Literal),
    Name(Box<str>),
    List(Vec<Expression>),
    Tuple(Vec<Expression>),
    Dict(Vec<(Expression, Expression)>),
    Not(Box<Expression>),
    Negative(Box<Expression>),
    Positive(Box<Expression>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Compare(Box<Expression>, Vec<(Comparison, Expression)>),
    /// Operators of one precedence, from left to right.
    Chain(Box<Expression>, Vec<(Operator, Expression)>),
    Choice(Box<Choice>),
    /// Attributes, items, calls, filters and tests behind one another.
    Steps(Box<Expression>, Vec<Step>),
}

/// `yes if condition else no`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) condition: Expression,
    pub(crate) yes: Expression,
    pub(crate) no: Option<Expression>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Attribute(Box<str>),
    Item(Expression),
    Slice(Box<[Option<Expression>; 3]>),
    Call(Arguments),
    Filter(Box<str>, Arguments),
    Test { name: Box<str>, arguments: Arguments, negated: bool },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Arguments {
    pub(crate) positional: Vec<Expression>,
    pub(crate) named: Vec<(Box<str>, Expression)>,
    pub(crate) spread: Option<Box<Expression>>,
    pub(crate) spread_named: Option<Box<Expression>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Target {
    Name(Box<str>),
    Tuple(Vec<Target>),
    /// An attribute of a namespace.
    Attribute(Box<str>, Box<str>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement {
    pub(crate) line: u32,
    pub(crate) kind: StatementKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StatementKind {
    Data(Box<str>),
    Print(Expression),
    For(Box<For>),
    If {
        branches: Vec<(Expression, Vec<Statement>)>,
        otherwise: Vec<Statement>,
    },
    Set(Target, Expression),
    SetBlock {
        target: Target,
        filters: Vec<Step>,
        body: Vec<Statement>,
    },
    With(Vec<(Target, Expression)>, Vec<Statement>),
    Macro(Arc<Macro>),
    Call {
        call: Expression,
        caller: Arc<Macro>,
    },
    Filtered(Vec<Step>, Vec<Statement>),
    /// Statements with variables of their own.
    Scope(Vec<Statement>),
    Break,
    Continue,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct For {
    pub(crate) target: Target,
    pub(crate) over: Expression,
    pub(crate) only_if: Option<Expression>,
    pub(crate) body: Vec<Statement>,
    pub(crate) otherwise: Vec<Statement>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Macro {
    pub(crate) name: Box<str>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Vec<Statement>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) name: Box<str>,
    pub(crate) default: Option<Expression>,
}
