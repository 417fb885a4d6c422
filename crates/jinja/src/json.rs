//! `tojson`, as Hugging Face's tools define it: Python's `json.dumps`, nothing escaped for HTML,
//! letters of all scripts as they are.

use std::rc::Rc;

use crate::error::Error;
use crate::expression::Given;
use crate::fuel::Fuel;
use crate::operators;
use crate::show;
use crate::text::Text;
use crate::value::Value;

struct Style {
    ascii: bool,
    indent: Option<String>,
    between: Rc<Text>,
    colon: Rc<Text>,
    sorted: bool,
}

/// The filter. Arguments: `ensure_ascii`, `indent`, `separators`, `sort_keys`.
pub(crate) fn to_json(value: &Value, given: &Given, fuel: &Fuel) -> Result<Value, Error> {
    let indent = match given.get(1, "indent") {
        None | Some(Value::None) => None,
        Some(Value::Text(text)) => Some(text.as_str().to_owned()),
        Some(_) => {
            let width = usize::try_from(given.int(1, "indent")?.unwrap_or(0)).unwrap_or(0);
            fuel.text(width)?;
            Some(" ".repeat(width))
        }
    };
    let plain = |text: &str| Rc::new(Text::from(text));
    let (between, colon) = match given.get(2, "separators") {
        None | Some(Value::None) => (plain(if indent.is_some() { "," } else { ", " }), plain(": ")),
        Some(value) => match value.elements(fuel)?.items.as_slice() {
            [Value::Text(between), Value::Text(colon)] => (between.clone(), colon.clone()),
            _ => return Err(Error::failed("separators that are not two strings")),
        },
    };
    let style = Style {
        ascii: given.flag(0, "ensure_ascii", false),
        indent,
        between,
        colon,
        sorted: given.flag(3, "sort_keys", false),
    };
    let mut text = Text::new();
    style.write(value, 0, &mut text, fuel)?;
    Value::made(text, fuel)
}

impl Style {
    fn write(
        &self,
        value: &Value,
        level: usize,
        into: &mut Text,
        fuel: &Fuel,
    ) -> Result<(), Error> {
        fuel.burn(2)?;
        match value {
            Value::None => into.push("null", None),
            Value::Bool(value) => into.push(if *value { "true" } else { "false" }, None),
            Value::Int(number) => into.push(&number.to_string(), None),
            Value::Float(number) if number.is_nan() => into.push("NaN", None),
            Value::Float(number) if number.is_infinite() => {
                into.push(if *number > 0.0 { "Infinity" } else { "-Infinity" }, None);
            }
            Value::Float(number) => into.push(&show::float(*number), None),
            Value::Text(text) => self.string(text, into, fuel)?,
            Value::List(list) => {
                into.push("[", None);
                for (place, item) in list.items.iter().enumerate() {
                    self.begin(place, level + 1, into, fuel)?;
                    self.write(item, level + 1, into, fuel)?;
                }
                self.end(list.items.is_empty(), level, into, fuel)?;
                into.push("]", None);
            }
            Value::Dict(dict) => {
                let mut items: Vec<(Value, Value)> = dict.items.clone();
                fuel.items(items.len().saturating_mul(2))?;
                if self.sorted {
                    items = operators::sorted(items, fuel)?;
                }
                into.push("{", None);
                for (place, (key, value)) in items.iter().enumerate() {
                    self.begin(place, level + 1, into, fuel)?;
                    self.key(key, into, fuel)?;
                    into.append(&self.colon);
                    self.write(value, level + 1, into, fuel)?;
                }
                self.end(dict.items.is_empty(), level, into, fuel)?;
                into.push("}", None);
            }
            other => {
                return Err(Error::failed(format!("{} cannot be written as JSON", other.kind())));
            }
        }
        Ok(())
    }

    fn key(&self, key: &Value, into: &mut Text, fuel: &Fuel) -> Result<(), Error> {
        match key {
            Value::Text(text) => self.string(text, into, fuel),
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                into.push("\"", None);
                self.write(key, 0, into, fuel)?;
                into.push("\"", None);
                Ok(())
            }
            other => Err(Error::failed(format!("{} cannot be a key in JSON", other.kind()))),
        }
    }

    fn begin(&self, place: usize, level: usize, into: &mut Text, fuel: &Fuel) -> Result<(), Error> {
        if place > 0 {
            fuel.look(self.between.size())?;
            into.append(&self.between);
        }
        self.line(level, into, fuel)
    }

    fn end(&self, empty: bool, level: usize, into: &mut Text, fuel: &Fuel) -> Result<(), Error> {
        if empty { Ok(()) } else { self.line(level, into, fuel) }
    }

    fn line(&self, level: usize, into: &mut Text, fuel: &Fuel) -> Result<(), Error> {
        if let Some(indent) = &self.indent {
            fuel.look(indent.len() * level)?;
            into.push("\n", None);
            for _ in 0..level {
                into.push(indent, None);
            }
        }
        Ok(())
    }

    fn string(&self, text: &Text, into: &mut Text, fuel: &Fuel) -> Result<(), Error> {
        fuel.look(text.size() * 2)?;
        into.push("\"", None);
        for (_, character, origin) in text.chars() {
            match character {
                '"' => into.push("\\\"", origin),
                '\\' => into.push("\\\\", origin),
                '\n' => into.push("\\n", origin),
                '\r' => into.push("\\r", origin),
                '\t' => into.push("\\t", origin),
                '\u{8}' => into.push("\\b", origin),
                '\u{c}' => into.push("\\f", origin),
                other if other < ' ' || (self.ascii && !(' '..='~').contains(&other)) => {
                    for unit in other.encode_utf16(&mut [0; 2]) {
                        into.push(&format!("\\u{unit:04x}"), origin);
                    }
                }
                other => into.push_char(other, origin),
            }
        }
        into.push("\"", None);
        Ok(())
    }
}
