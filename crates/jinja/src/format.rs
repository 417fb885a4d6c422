//! Python's two ways to put values into a text: `"%s" % value` and `"{}".format(value)`, as far as
//! templates use them.

use crate::error::Error;
use crate::expression::Given;
use crate::fuel::Fuel;
use crate::show;
use crate::text::{Origin, Text};
use crate::value::Value;

/// The widest field.
const WIDEST: usize = 1 << 10;

fn wrong(what: &str) -> Error {
    Error::failed(format!("a format string with {what}"))
}

/// How a field is written.
#[derive(Debug, Default)]
struct Field {
    left: bool,
    centre: bool,
    zero: bool,
    plus: bool,
    fill: Option<char>,
    align: bool,
    width: usize,
    precision: Option<usize>,
    kind: Option<char>,
    /// Where the format itself comes from.
    origin: Origin,
}

impl Field {
    fn write(&self, value: &Value, into: &mut Text, fuel: &Fuel) -> Result<(), Error> {
        let mut text = Text::new();
        let number = matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_));
        match self.kind {
            Some('d' | 'i' | 'u') => {
                let whole = match value {
                    Value::Float(number) => Some(number.trunc() as i64),
                    other => other.as_int(),
                };
                let whole = whole.ok_or_else(|| wrong("a number that is none"))?;
                text.push(&whole.to_string(), None);
            }
            Some(kind @ ('x' | 'X' | 'o' | 'b')) => {
                let whole = value.as_int().ok_or_else(|| wrong("a number that is none"))?;
                let (sign, size) = (if whole < 0 { "-" } else { "" }, whole.unsigned_abs());
                let digits = match kind {
                    'x' => format!("{sign}{size:x}"),
                    'X' => format!("{sign}{size:X}"),
                    'o' => format!("{sign}{size:o}"),
                    _ => format!("{sign}{size:b}"),
                };
                text.push(&digits, None);
            }
            Some('f' | 'F') => {
                let number = value.as_float().ok_or_else(|| wrong("a number that is none"))?;
                let precision = self.precision.unwrap_or(6);
                text.push(&format!("{number:.precision$}"), None);
            }
            Some('r' | 'a') => show::write(value, &mut text, fuel)?,
            None | Some('s') => {
                let shown = show::text(value, fuel)?;
                fuel.text(shown.size())?;
                match self.precision {
                    None => text.append(&shown),
                    Some(precision) => {
                        let end = shown.as_str().char_indices().nth(precision);
                        text.append_part(&shown, 0..end.map_or(shown.len(), |(place, _)| place));
                    }
                }
            }
            Some(other) => return Err(wrong(&format!("`{other}`"))),
        }
        if self.plus && number && !text.as_str().starts_with('-') {
            let mut signed = Text::from("+");
            signed.append(&text);
            text = signed;
        }
        self.pad(&text, number, into, fuel)
    }

    fn pad(&self, text: &Text, number: bool, into: &mut Text, fuel: &Fuel) -> Result<(), Error> {
        fuel.text(text.size() + self.width * 4)?;
        let missing = self.width.saturating_sub(text.as_str().chars().count());
        let fill = |into: &mut Text, count: usize, character: char| {
            for _ in 0..count {
                into.push_char(character, self.origin);
            }
        };
        if self.zero && !self.left && number {
            let sign = usize::from(text.as_str().starts_with(['-', '+']));
            into.append_part(text, 0..sign);
            fill(into, missing, '0');
            into.append_part(text, sign..text.len());
            return Ok(());
        }
        let character = self.fill.unwrap_or(' ');
        let before = match (self.left, self.centre) {
            (true, _) => 0,
            (_, true) => missing / 2,
            _ => missing,
        };
        fill(into, before, character);
        into.append(text);
        fill(into, missing - before, character);
        Ok(())
    }
}

fn digits(text: &str, place: &mut usize) -> Result<Option<usize>, Error> {
    let rest = &text[*place..];
    let length = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if length == 0 {
        return Ok(None);
    }
    *place += length;
    match rest[..length].parse() {
        Ok(number) if number <= WIDEST => Ok(Some(number)),
        _ => Err(wrong("a field that is too wide")),
    }
}

/// `template % values`.
pub(crate) fn percent(template: &Text, values: &Value, fuel: &Fuel) -> Result<Value, Error> {
    fuel.text(template.size())?;
    let source = template.as_str();
    let one = [values.clone()];
    let mut rest = match values {
        Value::List(list) if list.tuple => list.items.iter(),
        _ => one.iter(),
    };
    let mut text = Text::new();
    let mut place = 0;
    while let Some(found) = source[place..].find('%') {
        text.append_part(template, place..place + found);
        place += found + 1;
        let mut value = None;
        if source[place..].starts_with('(') {
            let end = source[place..].find(')').ok_or_else(|| wrong("an open bracket"))?;
            let key = Value::text(&source[place + 1..place + end], None);
            let Value::Dict(dict) = values else { return Err(wrong("names, and no dictionary")) };
            value = Some(dict.get(&key, fuel)?.ok_or_else(|| wrong("a name that is not there"))?);
            place += end + 1;
        }
        let mut field = Field::default();
        while let Some(flag) = source[place..].chars().next() {
            match flag {
                '-' => field.left = true,
                '0' => field.zero = true,
                '+' => field.plus = true,
                ' ' | '#' => {}
                _ => break,
            }
            place += 1;
        }
        field.width = digits(source, &mut place)?.unwrap_or(0);
        if source[place..].starts_with('.') {
            place += 1;
            field.precision = Some(digits(source, &mut place)?.unwrap_or(0));
        }
        let kind = source[place..].chars().next().ok_or_else(|| wrong("`%` at its end"))?;
        place += kind.len_utf8();
        if kind == '%' {
            text.push("%", template.origin(place - 1));
            continue;
        }
        field.kind = Some(kind);
        field.origin = template.origin(place - 1);
        let value = match value {
            Some(value) => value,
            None => rest.next().cloned().ok_or_else(|| wrong("more fields than values"))?,
        };
        field.write(&value, &mut text, fuel)?;
    }
    text.append_part(template, place..template.len());
    let tuple = matches!(values, Value::List(list) if list.tuple);
    if rest.next().is_some() && (tuple || !matches!(values, Value::Dict(_))) {
        return Err(wrong("fewer fields than values"));
    }
    Value::made(text, fuel)
}

/// `template.format(…)`.
pub(crate) fn braces(template: &Text, given: &Given, fuel: &Fuel) -> Result<Value, Error> {
    fuel.text(template.size())?;
    let source = template.as_str();
    let mut text = Text::new();
    let mut place = 0;
    let mut automatic = 0;
    while let Some(found) = source[place..].find(['{', '}']) {
        text.append_part(template, place..place + found);
        place += found;
        let brace = &source[place..=place];
        if source[place + 1..].starts_with(brace) {
            text.push(brace, template.origin(place));
            place += 2;
            continue;
        }
        if brace == "}" {
            return Err(wrong("a `}` that closes nothing"));
        }
        let end = source[place..].find('}').ok_or_else(|| wrong("a `{` without end"))?;
        let inner = &source[place + 1..place + end];
        place += end + 1;
        let (inner, spec) = inner.split_once(':').unwrap_or((inner, ""));
        let (name, conversion) = inner.split_once('!').unwrap_or((inner, ""));
        let value = if name.is_empty() {
            automatic += 1;
            given.positional.get(automatic - 1)
        } else if let Ok(number) = name.parse::<usize>() {
            given.positional.get(number)
        } else {
            given.by_name(name)
        };
        let value = value.ok_or_else(|| wrong("a field that has no value"))?;
        let mut field = parse_spec(spec)?;
        field.origin = template.origin(place - 1);
        if conversion == "r" {
            field.kind = Some('r');
        }
        if !field.align {
            field.left = !matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_));
        }
        field.write(value, &mut text, fuel)?;
    }
    text.append_part(template, place..template.len());
    Value::made(text, fuel)
}

/// `[[fill]align][sign][0][width][.precision][type]`.
fn parse_spec(spec: &str) -> Result<Field, Error> {
    let mut field = Field::default();
    let mut characters = spec.chars();
    let (first, second) = (characters.next(), characters.next());
    let mut place = 0;
    let mut align = |character| {
        match character {
            '<' => field.left = true,
            '^' => field.centre = true,
            _ => {}
        }
        field.align = true;
    };
    match (first, second) {
        (Some(fill), Some(sign @ ('<' | '>' | '^'))) => {
            align(sign);
            field.fill = Some(fill);
            place += fill.len_utf8() + 1;
        }
        (Some(sign @ ('<' | '>' | '^')), _) => {
            align(sign);
            place += 1;
        }
        _ => {}
    }
    if spec[place..].starts_with(['+', '-', ' ']) {
        field.plus = spec[place..].starts_with('+');
        place += 1;
    }
    if spec[place..].starts_with('0') {
        field.zero = true;
        place += 1;
    }
    field.width = digits(spec, &mut place)?.unwrap_or(0);
    if spec[place..].starts_with(',') {
        return Err(wrong("`,`"));
    }
    if spec[place..].starts_with('.') {
        place += 1;
        field.precision = Some(digits(spec, &mut place)?.unwrap_or(0));
    }
    let mut rest = spec[place..].chars();
    field.kind = rest.next();
    match rest.next() {
        None => Ok(field),
        Some(_) => Err(wrong("something behind its type")),
    }
}
