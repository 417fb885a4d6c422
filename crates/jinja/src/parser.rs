//! Tokens to a tree, with Jinja's grammar and precedence.

use std::sync::Arc;

use crate::ast::{
    Arguments, Choice, Comparison, Expression, For, Literal, Macro, Operator, Parameter, Statement,
    StatementKind, Step, Target,
};
use crate::error::Error;
use crate::lexer::{Token, tokens};

/// How deeply a source may nest.
const DEPTH: u32 = 100;

pub(crate) fn parse(source: &str) -> Result<Vec<Statement>, Error> {
    let mut parser = Parser { tokens: tokens(source)?, place: 0, depth: 0, loops: 0 };
    let (body, end) = parser.statements(&[])?;
    debug_assert!(end.is_none());
    Ok(body)
}

struct Parser {
    tokens: Vec<(Token, u32)>,
    place: usize,
    depth: u32,
    /// Loops around the current place, inside the current macro.
    loops: u32,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.place).map(|(token, _)| token)
    }

    fn line(&self) -> u32 {
        let place = self.place.min(self.tokens.len().saturating_sub(1));
        self.tokens.get(place).map_or(1, |(_, line)| *line)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get_mut(self.place)?;
        self.place += 1;
        // What was read is not read again.
        Some(std::mem::replace(&mut token.0, Token::BlockEnd))
    }

    fn unexpected<T>(&self, wanted: &str) -> Result<T, Error> {
        let found = match self.peek() {
            None => "the end of the template".to_owned(),
            Some(Token::Name(name)) => format!("`{name}`"),
            Some(Token::Sign(sign)) => format!("`{sign}`"),
            Some(Token::Text(_)) => "a string".to_owned(),
            Some(Token::Int(_) | Token::Float(_)) => "a number".to_owned(),
            Some(_) => "the end of the tag".to_owned(),
        };
        Err(Error::syntax(self.line(), format!("{found} where {wanted} belongs")))
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(found)) if found == name)
    }

    fn skip_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.place += usize::from(found);
        found
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        self.place += usize::from(found);
        found
    }

    fn sign(&mut self, sign: &str) -> Result<(), Error> {
        if self.skip_sign(sign) { Ok(()) } else { self.unexpected(&format!("`{sign}`")) }
    }

    fn keyword(&mut self, name: &str) -> Result<(), Error> {
        if self.skip_name(name) { Ok(()) } else { self.unexpected(&format!("`{name}`")) }
    }

    fn name(&mut self) -> Result<Box<str>, Error> {
        match self.peek() {
            Some(Token::Name(_)) => match self.next() {
                Some(Token::Name(name)) => Ok(name.into()),
                _ => self.unexpected("a name"),
            },
            _ => self.unexpected("a name"),
        }
    }

    fn block_end(&mut self) -> Result<(), Error> {
        match self.peek() {
            Some(Token::BlockEnd) => {
                self.place += 1;
                Ok(())
            }
            _ => self.unexpected("the end of the block"),
        }
    }

    /// Parses one level deeper.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth >= DEPTH {
            return Err(Error::syntax(self.line(), "it nests too deeply"));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Statements up to a block that begins with one of `ends`, whose name is passed and returned.
    fn statements(&mut self, ends: &[&str]) -> Result<(Vec<Statement>, Option<Box<str>>), Error> {
        let mut body = Vec::new();
        loop {
            let line = self.line();
            let kind = match self.next() {
                None if ends.is_empty() => return Ok((body, None)),
                None => {
                    let wanted = ends.last().copied().unwrap_or_default();
                    return self.unexpected(&format!("`{wanted}`"));
                }
                Some(Token::Data(data)) => StatementKind::Data(data.into()),
                Some(Token::PrintBegin) => {
                    let expression = self.tuple(true)?;
                    if self.peek() != Some(&Token::PrintEnd) {
                        return self.unexpected("`}}`");
                    }
                    self.place += 1;
                    StatementKind::Print(expression)
                }
                Some(_) => {
                    let name = self.name()?;
                    if ends.contains(&&*name) {
                        return Ok((body, Some(name)));
                    }
                    self.deeper(|parser| parser.statement(&name))?
                }
            };
            body.push(Statement { line, kind });
        }
    }

    /// The body of a block up to its `end`, with that block's end.
    fn body(&mut self, end: &str) -> Result<Vec<Statement>, Error> {
        self.block_end()?;
        let (body, _) = self.statements(&[end])?;
        self.block_end()?;
        Ok(body)
    }

    fn statement(&mut self, name: &str) -> Result<StatementKind, Error> {
        match name {
            "for" => self.for_loop(),
            "if" => self.condition(),
            "set" => self.set(),
            "with" => self.with(),
            "macro" => {
                let name = self.name()?;
                Ok(StatementKind::Macro(self.macro_with_body(name, "endmacro")?))
            }
            "call" => self.call(),
            "filter" => {
                let filters = self.filters()?;
                Ok(StatementKind::Filtered(filters, self.body("endfilter")?))
            }
            "generation" => Ok(StatementKind::Scope(self.body("endgeneration")?)),
            "autoescape" => {
                self.expression()?;
                Ok(StatementKind::Scope(self.body("endautoescape")?))
            }
            "break" | "continue" => {
                if self.loops == 0 {
                    return Err(Error::syntax(self.line(), format!("`{name}` outside of a loop")));
                }
                self.block_end()?;
                Ok(if name == "break" { StatementKind::Break } else { StatementKind::Continue })
            }
            other => Err(Error::syntax(self.line(), format!("`{other}` is no statement here"))),
        }
    }

    fn for_loop(&mut self) -> Result<StatementKind, Error> {
        let target = self.targets("in")?;
        self.keyword("in")?;
        let over = self.tuple(false)?;
        let only_if = match self.skip_name("if") {
            true => Some(self.expression()?),
            false => None,
        };
        if self.is_name("recursive") {
            return Err(Error::syntax(self.line(), "recursive loops are not supported"));
        }
        self.block_end()?;
        self.loops += 1;
        let (body, end) = self.statements(&["else", "endfor"])?;
        self.loops -= 1;
        let mut otherwise = Vec::new();
        if end.as_deref() == Some("else") {
            self.block_end()?;
            otherwise = self.statements(&["endfor"])?.0;
        }
        self.block_end()?;
        Ok(StatementKind::For(Box::new(For { target, over, only_if, body, otherwise })))
    }

    fn condition(&mut self) -> Result<StatementKind, Error> {
        let mut branches = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let condition = self.tuple(false)?;
            self.block_end()?;
            let (body, end) = self.statements(&["elif", "else", "endif"])?;
            branches.push((condition, body));
            match end.as_deref() {
                Some("elif") => {}
                Some("else") => {
                    self.block_end()?;
                    otherwise = self.statements(&["endif"])?.0;
                    break;
                }
                _ => break,
            }
        }
        self.block_end()?;
        Ok(StatementKind::If { branches, otherwise })
    }

    fn set(&mut self) -> Result<StatementKind, Error> {
        let target = self.targets("=")?;
        if self.skip_sign("=") {
            let value = self.tuple(true)?;
            self.block_end()?;
            return Ok(StatementKind::Set(target, value));
        }
        let filters = match self.skip_sign("|") {
            true => self.filters()?,
            false => Vec::new(),
        };
        let body = self.body("endset")?;
        Ok(StatementKind::SetBlock { target, filters, body })
    }

    fn with(&mut self) -> Result<StatementKind, Error> {
        let mut assignments = Vec::new();
        while !matches!(self.peek(), Some(Token::BlockEnd)) {
            if !assignments.is_empty() {
                self.sign(",")?;
            }
            let target = self.target()?;
            self.sign("=")?;
            assignments.push((target, self.expression()?));
        }
        let body = self.body("endwith")?;
        Ok(StatementKind::With(assignments, body))
    }

    fn call(&mut self) -> Result<StatementKind, Error> {
        let line = self.line();
        let parameters = match self.is_sign("(") {
            true => self.parameters()?,
            false => Vec::new(),
        };
        let call = self.expression()?;
        let is_call = matches!(&call, Expression::Steps(_, steps) if matches!(steps.last(), Some(Step::Call(_))));
        if !is_call {
            return Err(Error::syntax(line, "a call block calls nothing"));
        }
        let loops = std::mem::take(&mut self.loops);
        let body = self.body("endcall")?;
        self.loops = loops;
        let caller = Arc::new(Macro { name: "caller".into(), parameters, body });
        Ok(StatementKind::Call { call, caller })
    }

    fn macro_with_body(&mut self, name: Box<str>, end: &str) -> Result<Arc<Macro>, Error> {
        let parameters = self.parameters()?;
        let loops = std::mem::take(&mut self.loops);
        let body = self.body(end)?;
        self.loops = loops;
        Ok(Arc::new(Macro { name, parameters, body }))
    }

    fn parameters(&mut self) -> Result<Vec<Parameter>, Error> {
        self.sign("(")?;
        let mut parameters = Vec::new();
        while !self.skip_sign(")") {
            if !parameters.is_empty() {
                self.sign(",")?;
            }
            let name = self.name()?;
            let default = match self.skip_sign("=") {
                true => Some(self.expression()?),
                false => None,
            };
            parameters.push(Parameter { name, default });
        }
        Ok(parameters)
    }

    /// `name | name(…)`, without the value in front.
    fn filters(&mut self) -> Result<Vec<Step>, Error> {
        let mut filters = vec![self.filter()?];
        while self.skip_sign("|") {
            filters.push(self.filter()?);
        }
        Ok(filters)
    }

    fn filter(&mut self) -> Result<Step, Error> {
        let name = self.name()?;
        let arguments = match self.is_sign("(") {
            true => self.arguments()?,
            false => Arguments::default(),
        };
        Ok(Step::Filter(name, arguments))
    }

    fn targets(&mut self, end: &str) -> Result<Target, Error> {
        let first = self.target()?;
        if !self.is_sign(",") {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.skip_sign(",") {
            if self.is_sign(end) || self.is_name(end) {
                break;
            }
            all.push(self.target()?);
        }
        Ok(Target::Tuple(all))
    }

    fn target(&mut self) -> Result<Target, Error> {
        if self.skip_sign("(") {
            let inner = self.deeper(|parser| parser.targets(")"))?;
            self.sign(")")?;
            return Ok(inner);
        }
        let name = self.name()?;
        if self.skip_sign(".") {
            return Ok(Target::Attribute(name, self.name()?));
        }
        Ok(Target::Name(name))
    }

    /// An expression, or several with commas between them.
    fn tuple(&mut self, with_choice: bool) -> Result<Expression, Error> {
        let one = |parser: &mut Self| match with_choice {
            true => parser.expression(),
            false => parser.deeper(Self::or),
        };
        let first = one(self)?;
        if !self.is_sign(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.skip_sign(",") {
            let ends = matches!(self.peek(), Some(Token::BlockEnd | Token::PrintEnd) | None)
                || self.is_sign(")")
                || self.is_name("if");
            if ends {
                break;
            }
            items.push(one(self)?);
        }
        Ok(Expression::Tuple(items))
    }

    fn expression(&mut self) -> Result<Expression, Error> {
        self.deeper(|parser| {
            let mut expression = parser.or()?;
            let mut choices = 0;
            while parser.skip_name("if") {
                choices += 1;
                if choices > DEPTH {
                    return Err(Error::syntax(parser.line(), "it nests too deeply"));
                }
                let condition = parser.or()?;
                let no = match parser.skip_name("else") {
                    true => Some(parser.expression()?),
                    false => None,
                };
                expression =
                    Expression::Choice(Box::new(Choice { condition, yes: expression, no }));
            }
            Ok(expression)
        })
    }

    fn or(&mut self) -> Result<Expression, Error> {
        let first = self.and()?;
        if !self.is_name("or") {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.skip_name("or") {
            all.push(self.and()?);
        }
        Ok(Expression::Or(all))
    }

    fn and(&mut self) -> Result<Expression, Error> {
        let first = self.not()?;
        if !self.is_name("and") {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.skip_name("and") {
            all.push(self.not()?);
        }
        Ok(Expression::And(all))
    }

    fn not(&mut self) -> Result<Expression, Error> {
        match self.skip_name("not") {
            true => Ok(Expression::Not(Box::new(self.deeper(Self::not)?))),
            false => self.comparison(),
        }
    }

    fn comparison(&mut self) -> Result<Expression, Error> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        loop {
            let comparison = match self.peek() {
                Some(Token::Sign("==")) => Comparison::Equal,
                Some(Token::Sign("!=")) => Comparison::NotEqual,
                Some(Token::Sign("<")) => Comparison::Less,
                Some(Token::Sign("<=")) => Comparison::LessOrEqual,
                Some(Token::Sign(">")) => Comparison::Greater,
                Some(Token::Sign(">=")) => Comparison::GreaterOrEqual,
                Some(Token::Name(name)) if name == "in" => Comparison::In,
                Some(Token::Name(name)) if name == "not" => {
                    self.place += 1;
                    if !self.is_name("in") {
                        return self.unexpected("`in`");
                    }
                    Comparison::NotIn
                }
                _ => break,
            };
            self.place += 1;
            rest.push((comparison, self.sum()?));
        }
        Ok(if rest.is_empty() { first } else { Expression::Compare(Box::new(first), rest) })
    }

    fn chain(
        &mut self,
        operators: &[(&str, Operator)],
        inner: fn(&mut Self) -> Result<Expression, Error>,
    ) -> Result<Expression, Error> {
        let first = inner(self)?;
        let mut rest = Vec::new();
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.is_sign(sign)) {
            self.place += 1;
            rest.push((*operator, inner(self)?));
        }
        Ok(if rest.is_empty() { first } else { Expression::Chain(Box::new(first), rest) })
    }

    fn sum(&mut self) -> Result<Expression, Error> {
        self.chain(&[("+", Operator::Add), ("-", Operator::Subtract)], Self::joined)
    }

    fn joined(&mut self) -> Result<Expression, Error> {
        self.chain(&[("~", Operator::Join)], Self::product)
    }

    fn product(&mut self) -> Result<Expression, Error> {
        let operators = [
            ("*", Operator::Multiply),
            ("/", Operator::Divide),
            ("//", Operator::DivideWhole),
            ("%", Operator::Remainder),
        ];
        self.chain(&operators, Self::power)
    }

    fn power(&mut self) -> Result<Expression, Error> {
        self.chain(&[("**", Operator::Power)], Self::unary)
    }

    fn unary(&mut self) -> Result<Expression, Error> {
        let (value, mut steps) = self.signed()?;
        self.filters_and_tests(&mut steps)?;
        Ok(with_steps(value, steps))
    }

    /// A sign before a primary, or a primary with its postfixes.
    fn signed(&mut self) -> Result<(Expression, Vec<Step>), Error> {
        let value = if self.skip_sign("-") {
            let (value, steps) = self.deeper(Self::signed)?;
            Expression::Negative(Box::new(with_steps(value, steps)))
        } else if self.skip_sign("+") {
            let (value, steps) = self.deeper(Self::signed)?;
            Expression::Positive(Box::new(with_steps(value, steps)))
        } else {
            self.primary()?
        };
        let mut steps = Vec::new();
        self.postfixes(&mut steps)?;
        Ok((value, steps))
    }

    fn postfixes(&mut self, steps: &mut Vec<Step>) -> Result<(), Error> {
        loop {
            if self.skip_sign(".") {
                steps.push(match self.peek() {
                    Some(Token::Int(number)) => {
                        let number = *number;
                        self.place += 1;
                        Step::Item(Expression::Literal(Literal::Int(number)))
                    }
                    _ => Step::Attribute(self.name()?),
                });
            } else if self.skip_sign("[") {
                steps.push(self.subscript()?);
            } else if self.is_sign("(") {
                steps.push(Step::Call(self.arguments()?));
            } else {
                return Ok(());
            }
        }
    }

    fn subscript(&mut self) -> Result<Step, Error> {
        let mut bounds: [Option<Expression>; 3] = [None, None, None];
        let mut colons = 0;
        let mut items = Vec::new();
        loop {
            if self.skip_sign("]") {
                break;
            }
            if colons < 2 && self.skip_sign(":") {
                colons += 1;
            } else if self.skip_sign(",") {
                if colons > 0 || bounds[0].is_none() {
                    return self.unexpected("`]`");
                }
                items.extend(bounds[0].take());
            } else if bounds[colons].is_none() {
                bounds[colons] = Some(self.expression()?);
            } else {
                return self.unexpected("`]`");
            }
        }
        if colons > 0 {
            return Ok(Step::Slice(Box::new(bounds)));
        }
        let [item, _, _] = bounds;
        if items.is_empty() {
            return match item {
                Some(item) => Ok(Step::Item(item)),
                None => {
                    self.place -= 1;
                    self.unexpected("an index")
                }
            };
        }
        items.extend(item);
        Ok(Step::Item(Expression::Tuple(items)))
    }

    fn filters_and_tests(&mut self, steps: &mut Vec<Step>) -> Result<(), Error> {
        loop {
            if self.skip_sign("|") {
                steps.push(self.filter()?);
            } else if self.skip_name("is") {
                steps.push(self.test()?);
            } else if self.is_sign("(") {
                steps.push(Step::Call(self.arguments()?));
            } else {
                return Ok(());
            }
        }
    }

    fn test(&mut self) -> Result<Step, Error> {
        let negated = self.skip_name("not");
        let name = self.name()?;
        let takes_operand = match self.peek() {
            Some(Token::Name(name)) => {
                !matches!(&name[..], "else" | "or" | "and" | "is" | "if" | "in" | "not")
            }
            Some(Token::Text(_) | Token::Int(_) | Token::Float(_)) => true,
            Some(Token::Sign(sign)) => matches!(*sign, "[" | "{"),
            _ => false,
        };
        let arguments = if self.is_sign("(") {
            self.arguments()?
        } else if takes_operand {
            let value = self.primary()?;
            let mut steps = Vec::new();
            self.postfixes(&mut steps)?;
            Arguments { positional: vec![with_steps(value, steps)], ..Arguments::default() }
        } else {
            Arguments::default()
        };
        Ok(Step::Test { name, arguments, negated })
    }

    fn arguments(&mut self) -> Result<Arguments, Error> {
        self.sign("(")?;
        let mut arguments = Arguments::default();
        let mut first = true;
        while !self.skip_sign(")") {
            if !first {
                self.sign(",")?;
                if self.skip_sign(")") {
                    break;
                }
            }
            first = false;
            if self.skip_sign("**") {
                arguments.spread_named = Some(Box::new(self.expression()?));
            } else if self.skip_sign("*") {
                arguments.spread = Some(Box::new(self.expression()?));
            } else if matches!(self.peek(), Some(Token::Name(_)))
                && matches!(self.tokens.get(self.place + 1), Some((Token::Sign("="), _)))
            {
                let name = self.name()?;
                self.place += 1;
                arguments.named.push((name, self.expression()?));
            } else if arguments.named.is_empty() {
                arguments.positional.push(self.expression()?);
            } else {
                return self.unexpected("a named argument");
            }
        }
        Ok(arguments)
    }

    fn primary(&mut self) -> Result<Expression, Error> {
        let literal = match self.peek() {
            Some(Token::Name(_)) => {
                let name = self.name()?;
                return Ok(match &*name {
                    "true" | "True" => Expression::Literal(Literal::Bool(true)),
                    "false" | "False" => Expression::Literal(Literal::Bool(false)),
                    "none" | "None" => Expression::Literal(Literal::None),
                    _ => Expression::Name(name),
                });
            }
            Some(Token::Text(_)) => {
                let mut all = String::new();
                while let Some(Token::Text(_)) = self.peek() {
                    if let Some(Token::Text(text)) = self.next() {
                        all.push_str(&text);
                    }
                }
                return Ok(Expression::Literal(Literal::Text(all.into())));
            }
            Some(Token::Int(number)) => Literal::Int(*number),
            Some(Token::Float(number)) => Literal::Float(*number),
            Some(Token::Sign("(")) => {
                self.place += 1;
                return self.parenthesis();
            }
            Some(Token::Sign("[")) => {
                self.place += 1;
                return self.list();
            }
            Some(Token::Sign("{")) => {
                self.place += 1;
                return self.dict();
            }
            _ => return self.unexpected("a value"),
        };
        self.place += 1;
        Ok(Expression::Literal(literal))
    }

    fn parenthesis(&mut self) -> Result<Expression, Error> {
        if self.skip_sign(")") {
            return Ok(Expression::Tuple(Vec::new()));
        }
        let inner = self.tuple(true)?;
        self.sign(")")?;
        Ok(inner)
    }

    fn list(&mut self) -> Result<Expression, Error> {
        let mut items = Vec::new();
        while !self.skip_sign("]") {
            if !items.is_empty() {
                self.sign(",")?;
                if self.skip_sign("]") {
                    break;
                }
            }
            items.push(self.expression()?);
        }
        Ok(Expression::List(items))
    }

    fn dict(&mut self) -> Result<Expression, Error> {
        let mut items = Vec::new();
        while !self.skip_sign("}") {
            if !items.is_empty() {
                self.sign(",")?;
                if self.skip_sign("}") {
                    break;
                }
            }
            let key = self.expression()?;
            self.sign(":")?;
            items.push((key, self.expression()?));
        }
        Ok(Expression::Dict(items))
    }
}

fn with_steps(value: Expression, steps: Vec<Step>) -> Expression {
    if steps.is_empty() { value } else { Expression::Steps(Box::new(value), steps) }
}
