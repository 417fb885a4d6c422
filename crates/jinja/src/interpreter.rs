//! Statements.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::Calendar;
use crate::ast::{Expression, For, Macro, Parameter, Statement, StatementKind, Step, Target};
use crate::error::Error;
use crate::fuel::Fuel;
use crate::functions;
use crate::show;
use crate::text::Text;
use crate::value::{Kind, Loop, MacroValue, Namespace, Object, Value};

/// Variables that are visible together, and those around them.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    variables: RefCell<HashMap<Box<str>, Value>>,
    around: Option<Rc<Scope>>,
}

impl Scope {
    pub(crate) fn inside(around: &Rc<Self>) -> Rc<Self> {
        Rc::new(Self { variables: RefCell::default(), around: Some(around.clone()) })
    }

    pub(crate) fn set(&self, name: &str, value: Value) {
        let mut variables = self.variables.borrow_mut();
        let old = match variables.get_mut(name) {
            Some(own) => Some(std::mem::replace(own, value)),
            None => variables.insert(name.into(), value),
        };
        drop(variables);
        drop(old);
    }

    /// The variable in this scope itself.
    fn own(&self, name: &str) -> Option<Value> {
        self.variables.borrow().get(name).cloned()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        let mut scope = Some(self);
        while let Some(current) = scope {
            let found = current.own(name);
            if found.is_some() {
                return found;
            }
            scope = current.around.as_deref();
        }
        None
    }
}

/// How statements ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    On,
    Break,
    Continue,
}

/// One rendering.
pub(crate) struct Interpreter<'a> {
    pub(crate) fuel: &'a Fuel,
    pub(crate) calendar: Calendar<'a>,
    /// Whatever could hold itself, to be emptied at the end.
    scopes: RefCell<Vec<Rc<Scope>>>,
    namespaces: RefCell<Vec<Rc<Namespace>>>,
}

/// Renders `body`.
pub(crate) fn run(
    body: &[Statement],
    variables: Vec<(&str, Value)>,
    fuel: &Fuel,
    calendar: Calendar<'_>,
) -> Result<Text, Error> {
    let interpreter =
        Interpreter { fuel, calendar, scopes: RefCell::default(), namespaces: RefCell::default() };
    let globals = Rc::new(Scope::default());
    for name in functions::NAMES {
        globals.set(name, Value::object(Kind::Function(name)));
    }
    for (name, value) in variables {
        globals.set(name, value);
    }
    let mut output = Text::new();
    interpreter.statements(body, &Scope::inside(&globals), &mut output)?;
    Ok(output)
}

impl Drop for Interpreter<'_> {
    /// Macros hold scopes that hold macros, namespaces hold each other: all are emptied while
    /// each is still held here, so that nothing is left and nothing is dropped in a long chain.
    fn drop(&mut self) {
        for scope in self.scopes.borrow().iter() {
            let variables = std::mem::take(&mut *scope.variables.borrow_mut());
            drop(variables);
        }
        for namespace in self.namespaces.borrow().iter() {
            let items = std::mem::take(&mut *namespace.items.borrow_mut());
            drop(items);
        }
    }
}

impl Interpreter<'_> {
    pub(crate) fn statements(
        &self,
        body: &[Statement],
        scope: &Rc<Scope>,
        output: &mut Text,
    ) -> Result<Flow, Error> {
        for statement in body {
            let flow = self
                .statement(statement, scope, output)
                .map_err(|error| error.at(statement.line))?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn statement(
        &self,
        statement: &Statement,
        scope: &Rc<Scope>,
        output: &mut Text,
    ) -> Result<Flow, Error> {
        self.fuel.burn(1)?;
        match &statement.kind {
            StatementKind::Data(data) => {
                self.fuel.look(data.len())?;
                output.push(data, None);
            }
            StatementKind::Print(expression) => {
                let value = self.evaluate(expression, scope)?;
                self.print(&value, output)?;
            }
            StatementKind::If { branches, otherwise } => {
                return self.fuel.deeper(|| {
                    for (condition, body) in branches {
                        if self.evaluate(condition, scope)?.is_true() {
                            return self.statements(body, scope, output);
                        }
                    }
                    self.statements(otherwise, scope, output)
                });
            }
            StatementKind::For(code) => {
                return self.fuel.deeper(|| self.run_loop(code, scope, output));
            }
            StatementKind::Set(target, expression) => {
                let value = self.evaluate(expression, scope)?;
                self.assign(target, value, scope)?;
            }
            StatementKind::Break => return Ok(Flow::Break),
            StatementKind::Continue => return Ok(Flow::Continue),
            other => return self.fuel.deeper(|| self.rare(other, scope, output)),
        }
        Ok(Flow::On)
    }

    /// The statements that are rare, so that the common ones need little stack.
    fn rare(
        &self,
        statement: &StatementKind,
        scope: &Rc<Scope>,
        output: &mut Text,
    ) -> Result<Flow, Error> {
        match statement {
            StatementKind::SetBlock { target, filters, body } => {
                let value = self.filtered(body, filters, scope)?;
                self.assign(target, value, scope)?;
            }
            StatementKind::Filtered(filters, body) => {
                let value = self.filtered(body, filters, scope)?;
                self.print(&value, output)?;
            }
            StatementKind::With(assignments, body) => {
                let inside = Scope::inside(scope);
                for (target, expression) in assignments {
                    let value = self.evaluate(expression, &inside)?;
                    self.assign(target, value, &inside)?;
                }
                return self.statements(body, &inside, output);
            }
            StatementKind::Scope(body) => {
                return self.statements(body, &Scope::inside(scope), output);
            }
            StatementKind::Macro(code) => {
                let value = self.make_macro(code, scope)?;
                scope.set(&code.name, value);
            }
            StatementKind::Call { call, caller } => {
                let inside = Scope::inside(scope);
                let caller = self.make_macro(caller, scope)?;
                inside.set(CALLER, caller);
                let value = self.evaluate(call, &inside)?;
                self.print(&value, output)?;
            }
            _ => {}
        }
        Ok(Flow::On)
    }

    fn print(&self, value: &Value, output: &mut Text) -> Result<(), Error> {
        let text = show::text(value, self.fuel)?;
        self.fuel.look(text.size())?;
        output.append(&text);
        Ok(())
    }

    fn filtered(
        &self,
        body: &[Statement],
        filters: &[Step],
        scope: &Rc<Scope>,
    ) -> Result<Value, Error> {
        let mut text = Text::new();
        let inside = Scope::inside(scope);
        self.statements(body, &inside, &mut text)?;
        let mut value = Value::made(text, self.fuel)?;
        for step in filters {
            value = self.step(value, step, scope)?;
        }
        Ok(value)
    }

    fn assign(&self, target: &Target, value: Value, scope: &Rc<Scope>) -> Result<(), Error> {
        match target {
            Target::Name(name) => scope.set(name, value),
            Target::Tuple(targets) => {
                let elements = value.elements(self.fuel)?;
                if elements.items.len() != targets.len() {
                    return Err(Error::failed(format!(
                        "{} values for {} names",
                        elements.items.len(),
                        targets.len()
                    )));
                }
                for (target, value) in targets.iter().zip(&elements.items) {
                    self.assign(target, value.clone(), scope)?;
                }
            }
            Target::Attribute(name, attribute) => match scope.get(name) {
                Some(Value::Object(Object(Kind::Namespace(namespace)))) => {
                    self.fuel.items(1)?;
                    namespace.set(attribute, value);
                }
                _ => return Err(Error::failed(format!("`{name}` is no namespace"))),
            },
        }
        Ok(())
    }

    fn run_loop(&self, code: &For, scope: &Rc<Scope>, output: &mut Text) -> Result<Flow, Error> {
        let mut elements = self.evaluate(&code.over, scope)?.elements(self.fuel)?;
        if let Some(condition) = &code.only_if {
            let mut kept = Vec::new();
            for item in &elements.items {
                let inside = Scope::inside(scope);
                self.assign(&code.target, item.clone(), &inside)?;
                if self.evaluate(condition, &inside)?.is_true() {
                    kept.push(item.clone());
                }
            }
            elements = Value::list(kept, self.fuel)?.elements(self.fuel)?;
        }
        if elements.items.is_empty() {
            return self.statements(&code.otherwise, scope, output);
        }
        let last = Rc::new(RefCell::new(None));
        for (index, item) in elements.items.iter().enumerate() {
            self.fuel.items(1)?;
            let inside = Scope::inside(scope);
            let place = Loop { items: elements.clone(), index, last: last.clone() };
            inside.set(LOOP, Value::object(Kind::Loop(Rc::new(place))));
            self.assign(&code.target, item.clone(), &inside)?;
            if self.statements(&code.body, &inside, output)? == Flow::Break {
                break;
            }
        }
        Ok(Flow::On)
    }

    fn make_macro(&self, code: &Arc<Macro>, scope: &Rc<Scope>) -> Result<Value, Error> {
        self.fuel.items(2)?;
        self.scopes.borrow_mut().push(scope.clone());
        let value = MacroValue { code: code.clone(), scope: scope.clone() };
        Ok(Value::object(Kind::Macro(Rc::new(value))))
    }

    pub(crate) fn make_namespace(&self, items: Vec<(Box<str>, Value)>) -> Result<Value, Error> {
        self.fuel.items(items.len() + 2)?;
        let namespace = Rc::new(Namespace { items: RefCell::default() });
        for (name, value) in items {
            namespace.set(&name, value);
        }
        self.namespaces.borrow_mut().push(namespace.clone());
        Ok(Value::object(Kind::Namespace(namespace)))
    }

    /// Calls a macro: the text that it writes.
    pub(crate) fn call_macro(
        &self,
        called: &MacroValue,
        positional: Vec<Value>,
        named: Vec<(Box<str>, Value)>,
        caller: Option<Value>,
    ) -> Result<Value, Error> {
        let code = &called.code;
        let inside = Scope::inside(&called.scope);
        let (own, given) = (code.parameters.len(), positional.len() + named.len());
        self.fuel.items(own + given + 2)?;
        self.fuel.burn(own.saturating_mul(named.len()) as u64)?;
        let mut positional = positional.into_iter();
        let mut rest = named;
        for Parameter { name, default } in &code.parameters {
            let given = positional.next().or_else(|| {
                let place = rest.iter().position(|(own, _)| own == name)?;
                Some(rest.swap_remove(place).1)
            });
            let value = match (given, default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.evaluate(default, &inside)?,
                (None, None) => Value::Undefined,
            };
            inside.set(name, value);
        }
        if let Some(caller) = caller {
            inside.set(CALLER, caller);
        }
        inside.set("varargs", Value::sequence(positional.collect(), true, self.fuel)?);
        let rest = rest.into_iter().map(|(name, value)| (Value::text(name, None), value)).collect();
        inside.set("kwargs", Value::dict(rest, self.fuel)?);
        let mut text = Text::new();
        self.fuel.deeper(|| self.statements(&code.body, &inside, &mut text))?;
        Value::made(text, self.fuel)
    }

    /// What a call block around `scope` gives to the macro that is called.
    pub(crate) fn caller(&self, scope: &Scope) -> Option<Value> {
        scope.own(CALLER)
    }

    pub(crate) fn evaluate(
        &self,
        expression: &Expression,
        scope: &Rc<Scope>,
    ) -> Result<Value, Error> {
        self.fuel.burn(1)?;
        self.fuel.deeper(|| self.expression(expression, scope))
    }
}

const CALLER: &str = "caller";
const LOOP: &str = "loop";

impl Namespace {
    pub(crate) fn set(&self, name: &str, value: Value) {
        let mut items = self.items.borrow_mut();
        let old = match items.iter_mut().find(|(own, _)| **own == *name) {
            Some((_, own)) => Some(std::mem::replace(own, value)),
            None => {
                items.push((name.into(), value));
                None
            }
        };
        drop(items);
        drop(old);
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        self.items.borrow().iter().find(|(own, _)| **own == *name).map(|(_, value)| value.clone())
    }
}
