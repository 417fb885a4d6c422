//! What operators do, as Python does it.

use std::cmp::Ordering;

use crate::ast::{Comparison, Operator};
use crate::error::Error;
use crate::format;
use crate::fuel::Fuel;
use crate::show;
use crate::text::Text;
use crate::value::Value;

fn impossible(what: &str, left: &Value, right: &Value) -> Error {
    Error::failed(format!("{what} of {} and {}", left.kind(), right.kind()))
}

pub(crate) fn apply(
    operator: Operator,
    left: &Value,
    right: &Value,
    fuel: &Fuel,
) -> Result<Value, Error> {
    match operator {
        Operator::Join => {
            let (left, right) = (show::text(left, fuel)?, show::text(right, fuel)?);
            joined(&left, &right, fuel)
        }
        Operator::Add => match (left, right) {
            (Value::Text(left), Value::Text(right)) => joined(left, right, fuel),
            (Value::List(a), Value::List(b)) if a.tuple == b.tuple => {
                fuel.items(a.items.len() + b.items.len())?;
                let items = a.items.iter().chain(&b.items).cloned().collect();
                Value::sequence(items, a.tuple, fuel)
            }
            _ => number(operator, left, right),
        },
        Operator::Multiply => match (left, right) {
            (Value::Text(text), count) | (count, Value::Text(text)) => {
                let count = times(count, text.size(), fuel)?;
                let mut repeated = Text::new();
                for _ in 0..count {
                    repeated.append(text);
                }
                Value::made(repeated, fuel)
            }
            (Value::List(list), count) | (count, Value::List(list)) => {
                let count = times(count, list.items.len().saturating_mul(64), fuel)?;
                let mut items = Vec::new();
                for _ in 0..count {
                    items.extend(list.items.iter().cloned());
                }
                Value::sequence(items, list.tuple, fuel)
            }
            _ => number(operator, left, right),
        },
        Operator::Remainder => match left {
            Value::Text(template) => format::percent(template, right, fuel),
            _ => number(operator, left, right),
        },
        _ => number(operator, left, right),
    }
}

/// How often something of `size` bytes is to be repeated, when that can be paid for.
fn times(count: &Value, size: usize, fuel: &Fuel) -> Result<usize, Error> {
    let Some(count) = count.as_int() else {
        return Err(Error::failed(format!("a string times {}", count.kind())));
    };
    let count = usize::try_from(count).unwrap_or(0);
    if size == 0 {
        return Ok(0);
    }
    fuel.look(count.saturating_mul(size))?;
    Ok(count)
}

fn joined(left: &Text, right: &Text, fuel: &Fuel) -> Result<Value, Error> {
    fuel.text(left.size() + right.size())?;
    let mut text = left.clone();
    text.append(right);
    Value::made(text, fuel)
}

fn number(operator: Operator, left: &Value, right: &Value) -> Result<Value, Error> {
    let large = || Error::failed("a number that is too large");
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        let zero = || Error::failed("a division by zero");
        let whole = match operator {
            Operator::Add => a.checked_add(b),
            Operator::Subtract => a.checked_sub(b),
            Operator::Multiply => a.checked_mul(b),
            Operator::DivideWhole | Operator::Remainder if b == 0 => return Err(zero()),
            Operator::DivideWhole => floor_divide(a, b),
            Operator::Remainder => floor_divide(a, b)
                .and_then(|quotient| quotient.checked_mul(b))
                .and_then(|product| a.checked_sub(product)),
            Operator::Divide if b == 0 => return Err(zero()),
            Operator::Divide => return Ok(Value::Float(a as f64 / b as f64)),
            Operator::Power if b < 0 => return Ok(Value::Float((a as f64).powf(b as f64))),
            Operator::Power => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
            Operator::Join => None,
        };
        return whole.map(Value::Int).ok_or_else(large);
    }
    let (Some(a), Some(b)) = (left.as_float(), right.as_float()) else {
        return Err(impossible("arithmetic", left, right));
    };
    Ok(Value::Float(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Power => a.powf(b),
        _ if b == 0.0 => return Err(Error::failed("a division by zero")),
        Operator::Divide => a / b,
        Operator::DivideWhole => (a / b).floor(),
        _ => a - b * (a / b).floor(),
    }))
}

fn floor_divide(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    let inexact = a.checked_rem(b)? != 0;
    Some(if inexact && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

pub(crate) fn negative(value: &Value) -> Result<Value, Error> {
    match value {
        Value::Float(number) => Ok(Value::Float(-number)),
        other => other
            .as_int()
            .and_then(i64::checked_neg)
            .map(Value::Int)
            .ok_or_else(|| Error::failed(format!("minus {}", other.kind()))),
    }
}

pub(crate) fn compare(
    comparison: Comparison,
    left: &Value,
    right: &Value,
    fuel: &Fuel,
) -> Result<bool, Error> {
    Ok(match comparison {
        Comparison::Equal => left.equals(right, fuel)?,
        Comparison::NotEqual => !left.equals(right, fuel)?,
        Comparison::In => contains(right, left, fuel)?,
        Comparison::NotIn => !contains(right, left, fuel)?,
        Comparison::Less => order(left, right, fuel)? == Some(Ordering::Less),
        Comparison::LessOrEqual => {
            matches!(order(left, right, fuel)?, Some(Ordering::Less | Ordering::Equal))
        }
        Comparison::Greater => order(left, right, fuel)? == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => {
            matches!(order(left, right, fuel)?, Some(Ordering::Greater | Ordering::Equal))
        }
    })
}

/// Which of two values comes first; `None` beside what is not a number.
pub(crate) fn order(left: &Value, right: &Value, fuel: &Fuel) -> Result<Option<Ordering>, Error> {
    fuel.burn(1)?;
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            fuel.look(left.len().min(right.len()))?;
            Ok(Some(left.as_str().cmp(right.as_str())))
        }
        (Value::List(left), Value::List(right)) if left.tuple == right.tuple => {
            for (a, b) in left.items.iter().zip(&right.items) {
                if !a.equals(b, fuel)? {
                    return order(a, b, fuel);
                }
            }
            Ok(Some(left.items.len().cmp(&right.items.len())))
        }
        _ => match (left.as_int(), right.as_int()) {
            (Some(left), Some(right)) => Ok(Some(left.cmp(&right))),
            _ => match (left.as_float(), right.as_float()) {
                (Some(left), Some(right)) => Ok(left.partial_cmp(&right)),
                _ => Err(impossible("the order", left, right)),
            },
        },
    }
}

/// `items` in the order of their keys; what is equal stays in its order. (The standard library's
/// sort may panic over keys that have no order.)
pub(crate) fn sorted<T>(mut items: Vec<(Value, T)>, fuel: &Fuel) -> Result<Vec<(Value, T)>, Error> {
    if items.len() < 2 {
        return Ok(items);
    }
    fuel.items(items.len().saturating_mul(2))?;
    let right = items.split_off(items.len() / 2);
    let (left, right) = (sorted(items, fuel)?, sorted(right, fuel)?);
    let mut all = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some((a, _)), Some((b, _))) = (left.peek(), right.peek()) {
        let later = order(a, b, fuel)? == Some(Ordering::Greater);
        all.extend(if later { right.next() } else { left.next() });
    }
    all.extend(left);
    all.extend(right);
    Ok(all)
}

/// `item in holder`.
pub(crate) fn contains(holder: &Value, item: &Value, fuel: &Fuel) -> Result<bool, Error> {
    match holder {
        Value::Text(text) => match item {
            Value::Text(part) => {
                fuel.look(text.len() + part.len())?;
                Ok(text.as_str().contains(part.as_str()))
            }
            other => Err(impossible("`in`", other, holder)),
        },
        Value::Dict(dict) => Ok(dict.get(item, fuel)?.is_some()),
        other => {
            for each in &other.elements(fuel)?.items {
                if each.equals(item, fuel)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

/// `value[key]`, when there is such an item.
pub(crate) fn item(value: &Value, key: &Value, fuel: &Fuel) -> Result<Option<Value>, Error> {
    let place = |length: usize, key: i64| {
        let place = if key < 0 { key + length as i64 } else { key };
        usize::try_from(place).ok().filter(|place| *place < length)
    };
    match value {
        Value::Dict(dict) => dict.get(key, fuel),
        Value::List(list) => Ok(key
            .as_int()
            .and_then(|key| place(list.items.len(), key))
            .map(|place| list.items[place].clone())),
        Value::Text(text) => {
            let Some(key) = key.as_int() else { return Ok(None) };
            fuel.look(text.len())?;
            let length = text.as_str().chars().count();
            let Some(place) = place(length, key) else { return Ok(None) };
            let found = text.as_str().char_indices().nth(place);
            Ok(found.map(|(start, c)| Value::text(c.to_string(), text.origin(start))))
        }
        _ => Ok(None),
    }
}

/// `value[start:stop:step]`.
pub(crate) fn slice(
    value: &Value,
    [start, stop, step]: [Option<i64>; 3],
    fuel: &Fuel,
) -> Result<Value, Error> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(Error::failed("a slice with the step 0"));
    }
    match value {
        Value::List(list) => {
            let places = places(list.items.len(), start, stop, step);
            fuel.items(places.len())?;
            let items = places.iter().map(|place| list.items[*place].clone()).collect();
            Value::sequence(items, list.tuple, fuel)
        }
        Value::Text(text) => {
            // A place for every character.
            fuel.look(text.len().saturating_mul(16))?;
            let mut starts: Vec<usize> =
                text.as_str().char_indices().map(|(place, _)| place).collect();
            let places = places(starts.len(), start, stop, step);
            starts.push(text.len());
            let mut part = Text::new();
            if step == 1 {
                if let (Some(first), Some(last)) = (places.first(), places.last()) {
                    part.append_part(text, starts[*first]..starts[*last + 1]);
                }
            } else {
                for place in places {
                    part.append_part(text, starts[place]..starts[place + 1]);
                }
            }
            Value::made(part, fuel)
        }
        Value::Undefined => Err(Error::failed("a slice of something undefined")),
        other => Err(Error::failed(format!("a slice of {}", other.kind()))),
    }
}

fn places(length: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<usize> {
    let length = length as i64;
    let bound = |bound: i64| if bound < 0 { bound.saturating_add(length) } else { bound };
    let mut all = Vec::new();
    if step > 0 {
        let mut place = start.map_or(0, bound).clamp(0, length);
        let stop = stop.map_or(length, bound).clamp(0, length);
        while place < stop {
            all.push(place as usize);
            place = place.saturating_add(step);
        }
    } else {
        let mut place = start.map_or(length - 1, bound).clamp(-1, length - 1);
        let stop = stop.map_or(-1, bound).clamp(-1, length - 1);
        while place > stop {
            all.push(place as usize);
            place = place.saturating_add(step);
        }
    }
    all
}
