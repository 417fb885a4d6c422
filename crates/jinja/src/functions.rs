//! The functions that every template can call, and what `loop` knows.

use crate::error::Error;
use crate::expression::Given;
use crate::interpreter::Interpreter;
use crate::value::{Kind, Loop, Value};
use std::rc::Rc;

/// Their names.
pub(crate) const NAMES: &[&str] =
    &["raise_exception", "strftime_now", "namespace", "dict", "range"];

/// The longest range, as Jinja's sandbox has it.
const LONGEST_RANGE: u64 = 100_000;

pub(crate) fn call(
    interpreter: &Interpreter<'_>,
    name: &str,
    given: Given,
) -> Result<Value, Error> {
    let fuel = interpreter.fuel;
    match name {
        "raise_exception" => {
            let message = match given.get(0, "message") {
                Some(message) => crate::show::text(message, fuel)?.as_str().to_owned(),
                None => "the template refuses".to_owned(),
            };
            Err(Error::refused(message))
        }
        "strftime_now" => {
            let format = given.text(0, "format")?.ok_or_else(|| Error::failed("no date format"))?;
            let text = (interpreter.calendar)(format.as_str()).map_err(Error::failed)?;
            fuel.text(text.len())?;
            // The format may be anybody's.
            Ok(Value::text(text, format.origin(0)))
        }
        "namespace" => {
            let mut items = Vec::new();
            if let Some(Value::Dict(dict)) = given.positional.first() {
                for (key, value) in &dict.items {
                    let Some(key) = key.as_text() else {
                        return Err(Error::failed("a name that is no string"));
                    };
                    items.push((key.as_str().into(), value.clone()));
                }
            }
            items.extend(given.named);
            // Each is looked for among those before it.
            fuel.burn((items.len() as u64).saturating_mul(items.len() as u64))?;
            interpreter.make_namespace(items)
        }
        "dict" => {
            let mut items = match given.positional.first() {
                Some(Value::Dict(dict)) => dict.items.clone(),
                _ => Vec::new(),
            };
            items.extend(
                given.named.into_iter().map(|(name, value)| (Value::text(name, None), value)),
            );
            Value::dict(items, fuel)
        }
        "range" => range(interpreter, &given),
        "cycle" | "changed" => Err(Error::failed("a method of no loop")),
        other => Err(Error::failed(format!("there is no function `{other}`"))),
    }
}

fn range(interpreter: &Interpreter<'_>, given: &Given) -> Result<Value, Error> {
    let number = |place: usize| -> Result<Option<i64>, Error> { given.int(place, "") };
    let first = number(0)?.ok_or_else(|| Error::failed("a range without end"))?;
    let (start, stop) = match number(1)? {
        Some(stop) => (first, stop),
        None => (0, first),
    };
    let step = number(2)?.unwrap_or(1);
    if step == 0 {
        return Err(Error::failed("a range with the step 0"));
    }
    let distance = match step > 0 {
        true => i128::from(stop) - i128::from(start),
        false => i128::from(start) - i128::from(stop),
    };
    let size = i128::from(step).abs();
    let length = u64::try_from((distance + size - 1).max(0) / size).unwrap_or(u64::MAX);
    if length > LONGEST_RANGE {
        return Err(Error::limit(format!("a range of {length} numbers")));
    }
    interpreter.fuel.items(length as usize)?;
    let items = (0..length as i64).map(|place| Value::Int(start + place * step)).collect();
    Value::list(items, interpreter.fuel)
}

/// `loop.name`.
pub(crate) fn loop_attribute(
    interpreter: &Interpreter<'_>,
    place: &Rc<Loop>,
    name: &str,
) -> Result<Option<Value>, Error> {
    let length = place.items.items.len();
    let number = |number: usize| Some(Value::Int(i64::try_from(number).unwrap_or(i64::MAX)));
    let neighbour = |index: Option<usize>| {
        Some(
            index
                .and_then(|index| place.items.items.get(index))
                .cloned()
                .unwrap_or(Value::Undefined),
        )
    };
    Ok(match name {
        "index" => number(place.index + 1),
        "index0" => number(place.index),
        "revindex" => number(length - place.index),
        "revindex0" => number(length - place.index - 1),
        "first" => Some(Value::Bool(place.index == 0)),
        "last" => Some(Value::Bool(place.index + 1 == length)),
        "length" => number(length),
        // Only recursive loops are deeper.
        "depth" => number(1),
        "depth0" => number(0),
        "previtem" => neighbour(place.index.checked_sub(1)),
        "nextitem" => neighbour(Some(place.index + 1)),
        "cycle" | "changed" => {
            interpreter.fuel.items(1)?;
            let own = if name == "cycle" { "cycle" } else { "changed" };
            let owner = Value::object(Kind::Loop(place.clone()));
            Some(Value::object(Kind::Method(Rc::new((owner, own)))))
        }
        _ => None,
    })
}
