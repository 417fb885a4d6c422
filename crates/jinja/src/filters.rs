//! `value | filter`.

use std::rc::Rc;

use crate::checks;
use crate::error::Error;
use crate::expression::Given;
use crate::format;
use crate::fuel::Fuel;
use crate::interpreter::Interpreter;
use crate::json;
use crate::methods;
use crate::operators;
use crate::show;
use crate::text::Text;
use crate::value::Value;

const NAMES: &[&str] = &[
    "abs",
    "attr",
    "batch",
    "capitalize",
    "center",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "format",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "sort",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
    "wordcount",
];

pub(crate) fn is_known(name: &str) -> bool {
    NAMES.contains(&name)
}

pub(crate) fn apply(
    interpreter: &Interpreter<'_>,
    name: &str,
    value: Value,
    given: &Given,
) -> Result<Value, Error> {
    let fuel = interpreter.fuel;
    let text = |value: &Value| show::text(value, fuel);
    match name {
        "tojson" => json::to_json(&value, given, fuel),
        "trim" => {
            let characters = given.text(0, "chars")?.map(|text| text.as_str());
            methods::strip(&*text(&value)?, characters, true, true, fuel)
        }
        "length" | "count" => length(&value, fuel),
        "default" | "d" => {
            let replaced = match given.flag(1, "boolean", false) {
                true => !value.is_true(),
                false => matches!(value, Value::Undefined),
            };
            match (replaced, given.get(0, "default_value")) {
                (false, _) => Ok(value),
                (true, Some(default)) => Ok(default.clone()),
                (true, None) => Ok(Value::text("", None)),
            }
        }
        "string" | "safe" => Ok(Value::Text(text(&value)?)),
        "upper" | "lower" | "capitalize" => methods::change_case(&*text(&value)?, name, fuel),
        "title" => title(&*text(&value)?, fuel),
        "replace" => {
            let (Some(old), Some(new)) = (given.get(0, "old"), given.get(1, "new")) else {
                return Err(Error::failed("a replacement of nothing"));
            };
            let (old, new) = (text(old)?, text(new)?);
            methods::replace(&*text(&value)?, &old, &new, given.int(2, "count")?, fuel)
        }
        "join" => join(interpreter, &value, given),
        "items" => items(&value, fuel),
        "list" => match &value {
            Value::List(list) if !list.tuple => Ok(value),
            _ => Value::list(value.elements(fuel)?.items.clone(), fuel),
        },
        "first" => Ok(value.elements(fuel)?.items.first().cloned().unwrap_or(Value::Undefined)),
        "last" => Ok(value.elements(fuel)?.items.last().cloned().unwrap_or(Value::Undefined)),
        "reverse" => reverse(&value, fuel),
        "map" => map(interpreter, &value, given),
        "select" | "reject" => choose(interpreter, &value, None, given, name == "select"),
        "selectattr" | "rejectattr" => {
            let Some(attribute) = given.positional.first() else {
                return Err(Error::failed("no attribute to choose by"));
            };
            let rest =
                Given { positional: given.positional[1..].to_vec(), named: given.named.clone() };
            choose(interpreter, &value, Some(attribute), &rest, name == "selectattr")
        }
        "sort" => {
            let keys = Keys::of(given.get(2, "attribute"), given.flag(1, "case_sensitive", false));
            let items = keys.with(interpreter, &value)?;
            let mut sorted: Vec<Value> = ordered(items, given.flag(0, "reverse", false), fuel)?;
            sorted.shrink_to_fit();
            Value::list(sorted, fuel)
        }
        "unique" => {
            let keys = Keys::of(given.get(1, "attribute"), given.flag(0, "case_sensitive", false));
            let mut seen: Vec<Value> = Vec::new();
            let mut kept = Vec::new();
            for (key, item) in keys.with(interpreter, &value)? {
                let key = Value::list(vec![key], fuel)?;
                let mut known = false;
                for old in &seen {
                    if old.equals(&key, fuel)? {
                        known = true;
                        break;
                    }
                }
                if !known {
                    seen.push(key);
                    kept.push(item);
                }
            }
            Value::list(kept, fuel)
        }
        "min" | "max" => {
            let keys = Keys::of(given.get(1, "attribute"), given.flag(0, "case_sensitive", false));
            let items = ordered(keys.with(interpreter, &value)?, name == "max", fuel)?;
            Ok(items.into_iter().next().unwrap_or(Value::Undefined))
        }
        "dictsort" => dict_sort(&value, given, fuel),
        "sum" => {
            let mut sum = given.get(1, "start").cloned().unwrap_or(Value::Int(0));
            for item in &value.elements(fuel)?.items {
                let item = match given.get(0, "attribute") {
                    Some(path) => attribute(interpreter, item, path, None)?,
                    None => item.clone(),
                };
                sum = operators::apply(crate::ast::Operator::Add, &sum, &item, fuel)?;
            }
            Ok(sum)
        }
        "batch" => batch(&value, given, fuel),
        "indent" => indent(&*text(&value)?, given, fuel),
        "int" => int(&value, given),
        "float" => Ok(match &value {
            Value::Text(text) => {
                let default = given.get(0, "default").cloned().unwrap_or(Value::Float(0.0));
                text.as_str().trim().parse().map_or(default, Value::Float)
            }
            other => other.as_float().map_or(Value::Float(0.0), Value::Float),
        }),
        "abs" => match &value {
            Value::Float(number) => Ok(Value::Float(number.abs())),
            other => match other.as_int().and_then(i64::checked_abs) {
                Some(number) => Ok(Value::Int(number)),
                None => Err(Error::failed(format!("the size of {}", other.kind()))),
            },
        },
        "round" => round(&value, given),
        "format" => {
            let values = match given.named.is_empty() {
                true => Value::sequence(given.positional.clone(), true, fuel)?,
                false => {
                    let named = given.named.iter().cloned();
                    Value::dict(named.map(|(k, v)| (Value::text(k, None), v)).collect(), fuel)?
                }
            };
            format::percent(&*text(&value)?, &values, fuel)
        }
        "center" => {
            let width = given.int(0, "width")?.unwrap_or(80);
            let given = Given { positional: vec![Value::Int(width)], named: vec![] };
            methods::pad(&*text(&value)?, name, &given, fuel)
        }
        "wordcount" => {
            let text = text(&value)?;
            fuel.look(text.len())?;
            let mut words = 0;
            let mut inside = false;
            for character in text.as_str().chars() {
                let word = character.is_alphanumeric() || character == '_';
                words += i64::from(word && !inside);
                inside = word;
            }
            Ok(Value::Int(words))
        }
        "attr" => match given.positional.first() {
            Some(Value::Text(name)) => interpreter.attribute(&value, name.as_str()),
            _ => Err(Error::failed("no attribute")),
        },
        "pprint" => {
            let mut shown = Text::new();
            show::write(&value, &mut shown, fuel)?;
            Value::made(shown, fuel)
        }
        "e" | "escape" => escape(&*text(&value)?, fuel),
        other => Err(Error::failed(format!("there is no filter `{other}`"))),
    }
}

fn length(value: &Value, fuel: &Fuel) -> Result<Value, Error> {
    let length = match value {
        Value::Text(text) => {
            fuel.look(text.len())?;
            text.as_str().chars().count()
        }
        Value::List(list) => list.items.len(),
        Value::Dict(dict) => dict.items.len(),
        Value::Undefined => 0,
        other => return Err(Error::failed(format!("the length of {}", other.kind()))),
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

/// Key and value of each item, as tuples.
pub(crate) fn items(value: &Value, fuel: &Fuel) -> Result<Value, Error> {
    match value {
        Value::Dict(dict) => {
            let mut pairs = Vec::new();
            for (key, value) in &dict.items {
                pairs.push(Value::sequence(vec![key.clone(), value.clone()], true, fuel)?);
            }
            Value::list(pairs, fuel)
        }
        Value::Undefined => Value::list(Vec::new(), fuel),
        other => Err(Error::failed(format!("the items of {}", other.kind()))),
    }
}

/// `item.a.b`, by a path with dots; numbers are places. `default` stands for what is not there.
fn attribute(
    interpreter: &Interpreter<'_>,
    item: &Value,
    path: &Value,
    default: Option<&Value>,
) -> Result<Value, Error> {
    let path = show::text(path, interpreter.fuel)?;
    interpreter.fuel.look(path.len() * 4)?;
    let mut value = item.clone();
    for name in path.as_str().split('.') {
        let key = match name.parse() {
            Ok(number) => Value::Int(number),
            Err(_) => Value::text(name, None),
        };
        value = interpreter.item(&value, &key)?;
        if let (Value::Undefined, Some(default)) = (&value, default) {
            value = default.clone();
        }
    }
    Ok(value)
}

fn join(interpreter: &Interpreter<'_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let fuel = interpreter.fuel;
    let between = match given.get(0, "d") {
        Some(between) => show::text(between, fuel)?,
        None => Rc::new(Text::new()),
    };
    let mut joined = Text::new();
    for (place, item) in value.elements(fuel)?.items.iter().enumerate() {
        let item = match given.get(1, "attribute") {
            Some(path) => attribute(interpreter, item, path, None)?,
            None => item.clone(),
        };
        let item = show::text(&item, fuel)?;
        fuel.look(item.size() + between.size())?;
        if place > 0 {
            joined.append(&between);
        }
        joined.append(&item);
    }
    Value::made(joined, fuel)
}

fn reverse(value: &Value, fuel: &Fuel) -> Result<Value, Error> {
    match value {
        Value::Text(_) => operators::slice(value, [None, None, Some(-1)], fuel),
        other => {
            let items: Vec<Value> = other.elements(fuel)?.items.iter().rev().cloned().collect();
            Value::list(items, fuel)
        }
    }
}

fn map(interpreter: &Interpreter<'_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let fuel = interpreter.fuel;
    // Nothing of nothing, `none` included; so says Jinja.
    if !value.is_true() {
        return Value::list(Vec::new(), fuel);
    }
    let elements = value.elements(fuel)?;
    fuel.items(elements.items.len())?;
    let mut mapped = Vec::with_capacity(elements.items.len());
    if let Some(path) = given.by_name("attribute") {
        for item in &elements.items {
            mapped.push(attribute(interpreter, item, path, given.by_name("default"))?);
        }
        return Value::list(mapped, fuel);
    }
    let Some(Value::Text(name)) = given.positional.first() else {
        return Err(Error::failed("a map by nothing"));
    };
    let rest = Given { positional: given.positional[1..].to_vec(), named: given.named.clone() };
    for item in &elements.items {
        fuel.burn(1)?;
        let item = item.clone();
        mapped.push(fuel.deeper(|| apply(interpreter, name.as_str(), item, &rest))?);
    }
    Value::list(mapped, fuel)
}

/// The items for which a test holds (or does not), on themselves or on an attribute.
fn choose(
    interpreter: &Interpreter<'_>,
    value: &Value,
    path: Option<&Value>,
    given: &Given,
    wanted: bool,
) -> Result<Value, Error> {
    let fuel = interpreter.fuel;
    if !value.is_true() {
        return Value::list(Vec::new(), fuel);
    }
    let rest = Given {
        positional: given.positional.iter().skip(1).cloned().collect(),
        named: given.named.clone(),
    };
    let mut kept = Vec::new();
    for item in &value.elements(fuel)?.items {
        fuel.items(1)?;
        let subject = match path {
            Some(path) => attribute(interpreter, item, path, None)?,
            None => item.clone(),
        };
        let holds = match given.positional.first() {
            Some(Value::Text(test)) => checks::holds(interpreter, test.as_str(), &subject, &rest)?,
            _ => subject.is_true(),
        };
        if holds == wanted {
            kept.push(item.clone());
        }
    }
    Value::list(kept, fuel)
}

/// What items are ordered by.
struct Keys {
    path: Option<Value>,
    exact: bool,
}

impl Keys {
    fn of(path: Option<&Value>, exact: bool) -> Self {
        Self { path: path.filter(|path| !matches!(path, Value::None)).cloned(), exact }
    }

    fn with(
        &self,
        interpreter: &Interpreter<'_>,
        value: &Value,
    ) -> Result<Vec<(Value, Value)>, Error> {
        let fuel = interpreter.fuel;
        let mut items = Vec::new();
        for item in &value.elements(fuel)?.items {
            fuel.items(2)?;
            let key = match &self.path {
                Some(path) => attribute(interpreter, item, path, None)?,
                None => item.clone(),
            };
            items.push((folded(key, self.exact, fuel)?, item.clone()));
        }
        Ok(items)
    }
}

fn folded(key: Value, exact: bool, fuel: &Fuel) -> Result<Value, Error> {
    match &key {
        Value::Text(text) if !exact => methods::change_case(text, "lower", fuel),
        _ => Ok(key),
    }
}

fn ordered(
    mut items: Vec<(Value, Value)>,
    reverse: bool,
    fuel: &Fuel,
) -> Result<Vec<Value>, Error> {
    // Turned round before and after, so that what is equal stays in its order.
    if reverse {
        items.reverse();
    }
    let mut sorted: Vec<Value> =
        operators::sorted(items, fuel)?.into_iter().map(|(_, item)| item).collect();
    if reverse {
        sorted.reverse();
    }
    Ok(sorted)
}

fn dict_sort(value: &Value, given: &Given, fuel: &Fuel) -> Result<Value, Error> {
    let Value::Dict(dict) = value else {
        return Err(Error::failed(format!("the items of {}", value.kind())));
    };
    let by_value = match given.text(1, "by")?.map(|by| by.as_str()) {
        None | Some("key") => false,
        Some("value") => true,
        Some(_) => return Err(Error::failed("an order by neither key nor value")),
    };
    let exact = given.flag(0, "case_sensitive", false);
    let mut items = Vec::new();
    for (key, value) in &dict.items {
        let by = if by_value { value } else { key };
        let pair = Value::sequence(vec![key.clone(), value.clone()], true, fuel)?;
        items.push((folded(by.clone(), exact, fuel)?, pair));
    }
    Value::list(ordered(items, given.flag(2, "reverse", false), fuel)?, fuel)
}

fn batch(value: &Value, given: &Given, fuel: &Fuel) -> Result<Value, Error> {
    let size = given.int(0, "linecount")?.and_then(|size| usize::try_from(size).ok());
    let Some(size) = size.filter(|size| *size > 0) else {
        return Err(Error::failed("batches of no size"));
    };
    let mut batches = Vec::new();
    for items in value.elements(fuel)?.items.chunks(size) {
        let mut items = items.to_vec();
        if let Some(fill) = given.get(1, "fill_with").filter(|fill| !matches!(fill, Value::None)) {
            fuel.items(size)?;
            items.resize(size, fill.clone());
        }
        batches.push(Value::list(items, fuel)?);
    }
    Value::list(batches, fuel)
}

/// Every line but the first (unless `first`) gets blanks in front; empty ones only if `blank`.
fn indent(text: &Text, given: &Given, fuel: &Fuel) -> Result<Value, Error> {
    let space = match given.get(0, "width") {
        Some(Value::Text(space)) => space.clone(),
        _ => {
            let width = usize::try_from(given.int(0, "width")?.unwrap_or(4)).unwrap_or(0);
            fuel.text(width)?;
            Rc::new(Text::from(&*" ".repeat(width)))
        }
    };
    let (first, blank) = (given.flag(1, "first", false), given.flag(2, "blank", false));
    let mut indented = Text::new();
    let mut start = 0;
    for (number, line) in text.as_str().split('\n').enumerate() {
        fuel.look(line.len() + space.size() + 8)?;
        if number > 0 {
            indented.append_part(text, start - 1..start);
        }
        if (number > 0 || first) && (blank || !line.is_empty() || number == 0) {
            indented.append(&space);
        }
        indented.append_part(text, start..start + line.len());
        start += line.len() + 1;
    }
    Value::made(indented, fuel)
}

fn int(value: &Value, given: &Given) -> Result<Value, Error> {
    let default = given.get(0, "default").cloned().unwrap_or(Value::Int(0));
    let base = given.int(1, "base")?.unwrap_or(10);
    Ok(match value {
        Value::Float(number) => Value::Int(number.trunc() as i64),
        Value::Text(text) => {
            let text = text.as_str().trim();
            let digits = match base {
                16 => text.strip_prefix("0x").or(text.strip_prefix("0X")),
                8 => text.strip_prefix("0o").or(text.strip_prefix("0O")),
                2 => text.strip_prefix("0b").or(text.strip_prefix("0B")),
                _ => None,
            };
            let parsed = match u32::try_from(base) {
                Ok(base @ 2..=36) => i64::from_str_radix(digits.unwrap_or(text), base).ok(),
                _ => None,
            };
            let parsed = parsed.or_else(|| text.parse::<f64>().ok().map(|n| n.trunc() as i64));
            parsed.map_or(default, Value::Int)
        }
        other => other.as_int().map_or(default, Value::Int),
    })
}

fn round(value: &Value, given: &Given) -> Result<Value, Error> {
    let Some(number) = value.as_float() else {
        return Err(Error::failed(format!("{} is rounded", value.kind())));
    };
    let precision = given.int(0, "precision")?.unwrap_or(0).clamp(-300, 300) as i32;
    let method = given.text(1, "method")?.map_or("common", |method| method.as_str());
    if let (Some(whole), "common", 0..) = (value.as_int(), method, precision) {
        return Ok(Value::Int(whole));
    }
    let scale = 10f64.powi(precision);
    let scaled = number * scale;
    let rounded = match method {
        "ceil" => scaled.ceil(),
        "floor" => scaled.floor(),
        _ => scaled.round_ties_even(),
    };
    Ok(Value::Float(rounded / scale))
}

fn title(text: &Text, fuel: &Fuel) -> Result<Value, Error> {
    fuel.look(text.size() * 4)?;
    let mut changed = Text::new();
    let mut begins = true;
    for (_, character, origin) in text.chars() {
        match begins {
            true => character.to_uppercase().for_each(|c| changed.push_char(c, origin)),
            false => character.to_lowercase().for_each(|c| changed.push_char(c, origin)),
        }
        begins = matches!(character, '-' | '(' | '{' | '[' | '<') || character.is_whitespace();
    }
    Value::made(changed, fuel)
}

fn escape(text: &Text, fuel: &Fuel) -> Result<Value, Error> {
    fuel.look(text.size() * 6)?;
    let mut escaped = Text::new();
    for (_, character, origin) in text.chars() {
        match character {
            '&' => escaped.push("&amp;", origin),
            '<' => escaped.push("&lt;", origin),
            '>' => escaped.push("&gt;", origin),
            '\'' => escaped.push("&#39;", origin),
            '"' => escaped.push("&#34;", origin),
            other => escaped.push_char(other, origin),
        }
    }
    Value::made(escaped, fuel)
}
