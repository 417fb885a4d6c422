//! `is …`.

use crate::ast::Comparison;
use crate::error::Error;
use crate::expression::Given;
use crate::filters;
use crate::interpreter::Interpreter;
use crate::operators;
use crate::value::{Kind, Object, Value};

/// The comparison that a name stands for.
fn comparison(name: &str) -> Option<Comparison> {
    Some(match name {
        "eq" | "equalto" | "==" => Comparison::Equal,
        "ne" | "!=" => Comparison::NotEqual,
        "lt" | "lessthan" | "<" => Comparison::Less,
        "le" | "<=" => Comparison::LessOrEqual,
        "gt" | "greaterthan" | ">" => Comparison::Greater,
        "ge" | ">=" => Comparison::GreaterOrEqual,
        "in" => Comparison::In,
        _ => return None,
    })
}

/// Whether `value is name(given…)`.
pub(crate) fn holds(
    interpreter: &Interpreter<'_>,
    name: &str,
    value: &Value,
    given: &Given,
) -> Result<bool, Error> {
    let fuel = interpreter.fuel;
    if let Some(comparison) = comparison(name) {
        let other = given.positional.first().cloned().unwrap_or(Value::Undefined);
        return operators::compare(comparison, value, &other, fuel);
    }
    let cased = |wanted: fn(char) -> bool, other: fn(char) -> bool| match value {
        Value::Text(text) => {
            fuel.look(text.len())?;
            let text = text.as_str();
            Ok(text.chars().any(wanted) && !text.chars().any(other))
        }
        _ => Ok(false),
    };
    Ok(match name {
        "defined" => !matches!(value, Value::Undefined),
        "undefined" => matches!(value, Value::Undefined),
        "none" => matches!(value, Value::None),
        "string" => matches!(value, Value::Text(_)),
        "mapping" => matches!(value, Value::Dict(_)),
        "sequence" => {
            matches!(value, Value::Text(_) | Value::List(_) | Value::Dict(_) | Value::Undefined)
        }
        "iterable" => {
            matches!(value, Value::Text(_) | Value::List(_) | Value::Dict(_) | Value::Undefined)
        }
        "number" => matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "boolean" => matches!(value, Value::Bool(_)),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "callable" => matches!(
            value,
            Value::Object(Object(Kind::Macro(_) | Kind::Function(_) | Kind::Method(_)))
        ),
        "odd" | "even" => match value.as_int() {
            Some(number) => (number % 2 != 0) == (name == "odd"),
            None => return Err(Error::failed(format!("{} is neither odd nor even", value.kind()))),
        },
        "divisibleby" => match (value.as_int(), given.int(0, "num")?) {
            (Some(number), Some(by)) if by != 0 => number.checked_rem(by).unwrap_or(0) == 0,
            _ => return Err(Error::failed("a division by nothing")),
        },
        "sameas" => match (value, given.positional.first()) {
            (Value::Undefined | Value::None | Value::Bool(_) | Value::Int(_), Some(other)) => {
                value.kind() == other.kind() && value.equals(other, fuel)?
            }
            _ => false,
        },
        "lower" => cased(char::is_lowercase, char::is_uppercase)?,
        "upper" => cased(char::is_uppercase, char::is_lowercase)?,
        "escaped" => false,
        "filter" => value.as_text().is_some_and(|name| filters::is_known(name.as_str())),
        other => return Err(Error::failed(format!("there is no test `{other}`"))),
    })
}
