//! Expressions.

use std::rc::Rc;

use crate::ast::{Arguments, Comparison, Expression, Literal, Step};
use crate::checks;
use crate::error::Error;
use crate::filters;
use crate::functions;
use crate::interpreter::{Interpreter, Scope};
use crate::methods;
use crate::operators;
use crate::text::Text;
use crate::value::{Kind, Object, Value};

/// What comparing a name with a key costs at most, names being short.
const LOOKUP: u64 = 4;

/// Evaluated arguments of a call.
#[derive(Debug, Default, Clone)]
pub(crate) struct Given {
    pub(crate) positional: Vec<Value>,
    pub(crate) named: Vec<(Box<str>, Value)>,
}

impl Given {
    /// The argument at `place` or called `name`.
    pub(crate) fn get(&self, place: usize, name: &str) -> Option<&Value> {
        self.positional.get(place).or_else(|| self.by_name(name))
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<&Value> {
        self.named.iter().find(|(own, _)| **own == *name).map(|(_, value)| value)
    }

    /// The same, taken as true or false.
    pub(crate) fn flag(&self, place: usize, name: &str, default: bool) -> bool {
        self.get(place, name).map_or(default, Value::is_true)
    }

    /// The same as a whole number.
    pub(crate) fn int(&self, place: usize, name: &str) -> Result<Option<i64>, Error> {
        match self.get(place, name) {
            None | Some(Value::None) => Ok(None),
            Some(value) => match value.as_int() {
                Some(number) => Ok(Some(number)),
                None => Err(Error::failed(format!("{} where a number belongs", value.kind()))),
            },
        }
    }

    /// The same as text; `None` stands for nothing.
    pub(crate) fn text(&self, place: usize, name: &str) -> Result<Option<&Rc<Text>>, Error> {
        match self.get(place, name) {
            None | Some(Value::None) => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(value) => Err(Error::failed(format!("{} where a string belongs", value.kind()))),
        }
    }
}

impl Interpreter<'_> {
    pub(crate) fn expression(
        &self,
        expression: &Expression,
        scope: &Rc<Scope>,
    ) -> Result<Value, Error> {
        match expression {
            Expression::Literal(literal) => self.literal(literal),
            Expression::Name(name) => Ok(scope.get(name).unwrap_or(Value::Undefined)),
            Expression::Steps(value, steps) => {
                let mut value = self.evaluate(value, scope)?;
                for step in steps {
                    self.fuel.burn(1)?;
                    value = self.step(value, step, scope)?;
                }
                Ok(value)
            }
            Expression::And(all) => {
                let mut value = Value::Undefined;
                for each in all {
                    value = self.evaluate(each, scope)?;
                    if !value.is_true() {
                        break;
                    }
                }
                Ok(value)
            }
            Expression::Or(all) => {
                let mut value = Value::Undefined;
                for each in all {
                    value = self.evaluate(each, scope)?;
                    if value.is_true() {
                        break;
                    }
                }
                Ok(value)
            }
            Expression::Not(value) => Ok(Value::Bool(!self.evaluate(value, scope)?.is_true())),
            Expression::Compare(first, rest) => self.compare(first, rest, scope),
            Expression::Chain(first, rest) => {
                let mut value = self.evaluate(first, scope)?;
                for (operator, other) in rest {
                    let other = self.evaluate(other, scope)?;
                    value = operators::apply(*operator, &value, &other, self.fuel)?;
                }
                Ok(value)
            }
            Expression::Choice(choice) => {
                if self.evaluate(&choice.condition, scope)?.is_true() {
                    return self.evaluate(&choice.yes, scope);
                }
                match &choice.no {
                    Some(no) => self.evaluate(no, scope),
                    None => Ok(Value::Undefined),
                }
            }
            Expression::Negative(value) => operators::negative(&self.evaluate(value, scope)?),
            Expression::Positive(value) => self.evaluate(value, scope),
            Expression::List(items) => Value::list(self.all(items, scope)?, self.fuel),
            Expression::Tuple(items) => Value::sequence(self.all(items, scope)?, true, self.fuel),
            Expression::Dict(items) => {
                let mut values = Vec::with_capacity(items.len());
                for (key, value) in items {
                    values.push((self.evaluate(key, scope)?, self.evaluate(value, scope)?));
                }
                Value::dict(values, self.fuel)
            }
        }
    }

    fn literal(&self, literal: &Literal) -> Result<Value, Error> {
        Ok(match literal {
            Literal::None => Value::None,
            Literal::Bool(value) => Value::Bool(*value),
            Literal::Int(value) => Value::Int(*value),
            Literal::Float(value) => Value::Float(*value),
            Literal::Text(text) => Value::made(Text::from(&**text), self.fuel)?,
        })
    }

    fn all(&self, items: &[Expression], scope: &Rc<Scope>) -> Result<Vec<Value>, Error> {
        items.iter().map(|item| self.evaluate(item, scope)).collect()
    }

    fn compare(
        &self,
        first: &Expression,
        rest: &[(Comparison, Expression)],
        scope: &Rc<Scope>,
    ) -> Result<Value, Error> {
        let mut left = self.evaluate(first, scope)?;
        for (comparison, right) in rest {
            let right = self.evaluate(right, scope)?;
            if !operators::compare(*comparison, &left, &right, self.fuel)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    pub(crate) fn step(
        &self,
        value: Value,
        step: &Step,
        scope: &Rc<Scope>,
    ) -> Result<Value, Error> {
        match step {
            Step::Attribute(name) => self.attribute(&value, name),
            Step::Item(key) => {
                let key = self.evaluate(key, scope)?;
                self.item(&value, &key)
            }
            Step::Slice(bounds) => self.slice(&value, bounds, scope),
            Step::Call(arguments) => self.call_step(&value, arguments, scope),
            Step::Filter(name, arguments) => {
                let given = self.arguments(arguments, scope)?;
                filters::apply(self, name, value, &given)
            }
            Step::Test { name, arguments, negated } => {
                let given = self.arguments(arguments, scope)?;
                Ok(Value::Bool(checks::holds(self, name, &value, &given)? != *negated))
            }
        }
    }

    fn slice(
        &self,
        value: &Value,
        bounds: &[Option<Expression>; 3],
        scope: &Rc<Scope>,
    ) -> Result<Value, Error> {
        let mut numbers = [None; 3];
        for (number, bound) in numbers.iter_mut().zip(bounds) {
            if let Some(bound) = bound {
                *number = match self.evaluate(bound, scope)? {
                    Value::None => None,
                    value => Some(value.as_int().ok_or_else(|| {
                        Error::failed(format!("{} where a number belongs", value.kind()))
                    })?),
                };
            }
        }
        operators::slice(value, numbers, self.fuel)
    }

    fn call_step(
        &self,
        value: &Value,
        arguments: &Arguments,
        scope: &Rc<Scope>,
    ) -> Result<Value, Error> {
        let given = self.arguments(arguments, scope)?;
        let caller = self.caller(scope);
        self.call(value, given, caller)
    }

    /// Calls whatever can be called.
    pub(crate) fn call(
        &self,
        value: &Value,
        given: Given,
        caller: Option<Value>,
    ) -> Result<Value, Error> {
        match value {
            Value::Object(Object(Kind::Macro(called))) => {
                self.call_macro(called, given.positional, given.named, caller)
            }
            Value::Object(Object(Kind::Function(name))) => functions::call(self, name, given),
            Value::Object(Object(Kind::Method(method))) => {
                methods::call(self, &method.0, method.1, &given)
            }
            Value::Undefined => Err(Error::failed("something undefined is called")),
            other => Err(Error::failed(format!("{} is called", other.kind()))),
        }
    }

    fn arguments(&self, arguments: &Arguments, scope: &Rc<Scope>) -> Result<Given, Error> {
        let mut given =
            Given { positional: self.all(&arguments.positional, scope)?, named: vec![] };
        for (name, value) in &arguments.named {
            given.named.push((name.clone(), self.evaluate(value, scope)?));
        }
        if let Some(spread) = &arguments.spread {
            let elements = self.evaluate(spread, scope)?.elements(self.fuel)?;
            self.fuel.items(elements.items.len())?;
            given.positional.extend(elements.items.iter().cloned());
        }
        if let Some(spread) = &arguments.spread_named {
            let Value::Dict(dict) = self.evaluate(spread, scope)? else {
                return Err(Error::failed("only a dictionary can be spread into names"));
            };
            self.fuel.items(dict.items.len())?;
            for (key, value) in &dict.items {
                let Some(key) = key.as_text() else {
                    return Err(Error::failed("a name that is no string"));
                };
                given.named.push((key.as_str().into(), value.clone()));
            }
        }
        Ok(given)
    }

    /// `value.name`: a method or attribute, else an item.
    pub(crate) fn attribute(&self, value: &Value, name: &str) -> Result<Value, Error> {
        let found = match value {
            Value::Undefined => {
                return Err(Error::failed(format!("`{name}` of something undefined")));
            }
            Value::Object(Object(Kind::Namespace(namespace))) => {
                self.fuel.burn(namespace.items.borrow().len() as u64 * LOOKUP)?;
                namespace.get(name)
            }
            Value::Object(Object(Kind::Loop(place))) => {
                functions::loop_attribute(self, place, name)?
            }
            Value::Object(Object(Kind::Macro(called))) if name == "name" => {
                Some(Value::text(&*called.code.name, None))
            }
            value => match methods::named(value, name) {
                Some(method) => {
                    self.fuel.items(1)?;
                    Some(Value::object(Kind::Method(Rc::new((value.clone(), method)))))
                }
                None => match value {
                    Value::Dict(dict) => {
                        self.fuel.burn(dict.items.len() as u64 * LOOKUP)?;
                        dict.named(name)
                    }
                    _ => None,
                },
            },
        };
        Ok(found.unwrap_or(Value::Undefined))
    }

    /// `value[key]`: an item, else an attribute.
    pub(crate) fn item(&self, value: &Value, key: &Value) -> Result<Value, Error> {
        if matches!(value, Value::Undefined) {
            return Err(Error::failed("an item of something undefined"));
        }
        if let Some(item) = operators::item(value, key, self.fuel)? {
            return Ok(item);
        }
        match key {
            Value::Text(name) => self.attribute(value, name.as_str()),
            _ => Ok(Value::Undefined),
        }
    }
}
