//! Methods of Python's strings, lists and dictionaries. What would change a list or a dictionary is
//! missing, as in Hugging Face's sandbox.

use crate::error::Error;
use crate::expression::Given;
use crate::filters;
use crate::format;
use crate::fuel::Fuel;
use crate::interpreter::Interpreter;
use crate::lexer::is_space;
use crate::text::Text;
use crate::value::{Kind, Object, Value};

const TEXT: &[&str] = &[
    "strip",
    "lstrip",
    "rstrip",
    "split",
    "rsplit",
    "splitlines",
    "startswith",
    "endswith",
    "replace",
    "upper",
    "lower",
    "title",
    "capitalize",
    "swapcase",
    "casefold",
    "find",
    "rfind",
    "index",
    "rindex",
    "count",
    "join",
    "format",
    "isdigit",
    "isdecimal",
    "isnumeric",
    "isalpha",
    "isalnum",
    "isspace",
    "islower",
    "isupper",
    "zfill",
    "center",
    "ljust",
    "rjust",
    "removeprefix",
    "removesuffix",
    "partition",
    "rpartition",
];
const DICT: &[&str] = &["get", "items", "keys", "values", "copy"];
const LIST: &[&str] = &["index", "count", "copy"];

/// The method of `value` with this name.
pub(crate) fn named(value: &Value, name: &str) -> Option<&'static str> {
    let methods = match value {
        Value::Text(_) => TEXT,
        Value::Dict(_) => DICT,
        Value::List(_) => LIST,
        _ => return None,
    };
    methods.iter().find(|own| **own == name).copied()
}

pub(crate) fn call(
    interpreter: &Interpreter<'_>,
    value: &Value,
    name: &'static str,
    given: &Given,
) -> Result<Value, Error> {
    let fuel = interpreter.fuel;
    match value {
        Value::Text(text) => call_text(text, name, given, fuel),
        Value::Dict(dict) => match name {
            "get" => {
                let key = given.positional.first().cloned().unwrap_or(Value::None);
                let found = dict.get(&key, fuel)?;
                Ok(found.unwrap_or_else(|| given.positional.get(1).cloned().unwrap_or(Value::None)))
            }
            "items" => filters::items(value, fuel),
            "keys" => Value::list(dict.items.iter().map(|(key, _)| key.clone()).collect(), fuel),
            "values" => Value::list(dict.items.iter().map(|(_, v)| v.clone()).collect(), fuel),
            _ => Ok(value.clone()),
        },
        Value::List(list) => {
            let wanted = given.positional.first().cloned().unwrap_or(Value::None);
            let mut count = 0;
            for (place, item) in list.items.iter().enumerate() {
                if name != "copy" && item.equals(&wanted, fuel)? {
                    if name == "index" {
                        return Ok(int(place));
                    }
                    count += 1;
                }
            }
            match name {
                "copy" => Ok(value.clone()),
                "count" => Ok(int(count)),
                _ => Err(Error::failed("a value that is not in the list")),
            }
        }
        Value::Object(Object(Kind::Loop(place))) => match name {
            "cycle" => match given.positional.len() {
                0 => Err(Error::failed("a cycle of nothing")),
                length => Ok(given.positional[place.index % length].clone()),
            },
            _ => {
                let new = Value::sequence(given.positional.clone(), true, fuel)?;
                let old = place.last.replace(Some(new.clone()));
                let same = match old {
                    Some(old) => old.equals(&new, fuel)?,
                    None => false,
                };
                Ok(Value::Bool(!same))
            }
        },
        other => Err(Error::failed(format!("{} has no `{name}`", other.kind()))),
    }
}

fn int(number: usize) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn needed<'a>(given: &'a Given, place: usize, name: &str) -> Result<&'a Text, Error> {
    match given.text(place, name)? {
        Some(text) => Ok(text),
        None => Err(Error::failed("a string is missing")),
    }
}

fn call_text(text: &Text, name: &str, given: &Given, fuel: &Fuel) -> Result<Value, Error> {
    fuel.look(text.size())?;
    let string = text.as_str();
    let all =
        |holds: fn(char) -> bool| Ok(Value::Bool(!string.is_empty() && string.chars().all(holds)));
    match name {
        "strip" | "lstrip" | "rstrip" => {
            let characters = given.text(0, "chars")?.map(|text| text.as_str());
            strip(text, characters, name != "rstrip", name != "lstrip", fuel)
        }
        "split" => split(text, given, fuel),
        "rsplit" => split_from_the_end(text, given, fuel),
        "splitlines" => split_lines(text, given.flag(0, "keepends", false), fuel),
        "startswith" | "endswith" => {
            let part = bounded(text, given, fuel)?;
            let holds = |affix: &Text| match name {
                "startswith" => part.starts_with(affix.as_str()),
                _ => part.ends_with(affix.as_str()),
            };
            match given.positional.first() {
                Some(Value::Text(affix)) => Ok(Value::Bool(holds(affix))),
                Some(Value::List(list)) => {
                    fuel.look(text.len().saturating_mul(list.items.len()))?;
                    Ok(Value::Bool(
                        list.items.iter().filter_map(Value::as_text).any(|affix| holds(affix)),
                    ))
                }
                _ => Err(Error::failed("a string is missing")),
            }
        }
        "replace" => {
            let (old, new) = (needed(given, 0, "old")?, needed(given, 1, "new")?);
            replace(text, old, new, given.int(2, "count")?, fuel)
        }
        "upper" | "lower" | "casefold" | "swapcase" | "capitalize" | "title" => {
            change_case(text, name, fuel)
        }
        "find" | "index" | "rfind" | "rindex" => {
            let part = needed(given, 0, "sub")?;
            fuel.look(text.len() + part.len())?;
            let place = match name.starts_with('r') {
                true => string.rfind(part.as_str()),
                false => string.find(part.as_str()),
            };
            match place {
                Some(place) => Ok(int(string[..place].chars().count())),
                None if name.ends_with("find") => Ok(Value::Int(-1)),
                None => Err(Error::failed("a string that is not there")),
            }
        }
        "count" => {
            let part = needed(given, 0, "sub")?;
            match part.is_empty() {
                true => Ok(int(string.chars().count() + 1)),
                false => Ok(int(string.matches(part.as_str()).count())),
            }
        }
        "join" => {
            let elements = given.positional.first().cloned().unwrap_or(Value::Undefined);
            let elements = elements.elements(fuel)?;
            let mut joined = Text::new();
            for (place, item) in elements.items.iter().enumerate() {
                let Value::Text(item) = item else {
                    return Err(Error::failed(format!("{} is joined as a string", item.kind())));
                };
                fuel.look(item.size() + text.size())?;
                if place > 0 {
                    joined.append(text);
                }
                joined.append(item);
            }
            Value::made(joined, fuel)
        }
        "format" => format::braces(text, given, fuel),
        "isdigit" | "isdecimal" | "isnumeric" => all(char::is_numeric),
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "isspace" => all(is_space),
        "islower" => Ok(Value::Bool(
            string.chars().any(char::is_lowercase) && !string.chars().any(char::is_uppercase),
        )),
        "isupper" => Ok(Value::Bool(
            string.chars().any(char::is_uppercase) && !string.chars().any(char::is_lowercase),
        )),
        "zfill" | "center" | "ljust" | "rjust" => pad(text, name, given, fuel),
        "removeprefix" | "removesuffix" => {
            let affix = needed(given, 0, "affix")?;
            let (start, end) = match name {
                "removeprefix" if string.starts_with(affix.as_str()) => (affix.len(), text.len()),
                "removesuffix" if string.ends_with(affix.as_str()) => (0, text.len() - affix.len()),
                _ => (0, text.len()),
            };
            Value::made(text.part(start..end), fuel)
        }
        "partition" | "rpartition" => {
            let by = needed(given, 0, "sep")?;
            if by.is_empty() {
                return Err(Error::failed("a split at nothing"));
            }
            let found = match name {
                "partition" => string.find(by.as_str()),
                _ => string.rfind(by.as_str()),
            };
            let parts = match found {
                Some(place) => [0..place, place..place + by.len(), place + by.len()..text.len()],
                None if name == "partition" => [0..text.len(), 0..0, 0..0],
                None => [0..0, 0..0, 0..text.len()],
            };
            let parts = parts.map(|part| Value::made(text.part(part), fuel));
            Value::sequence(parts.into_iter().collect::<Result<_, _>>()?, true, fuel)
        }
        other => Err(Error::failed(format!("a string has no `{other}`"))),
    }
}

/// The part between the second and third argument, which count characters.
fn bounded<'a>(text: &'a Text, given: &Given, fuel: &Fuel) -> Result<&'a str, Error> {
    let string = text.as_str();
    let (start, end) = (given.int(1, "start")?, given.int(2, "end")?);
    if start.is_none() && end.is_none() {
        return Ok(string);
    }
    fuel.look(text.len())?;
    let length = string.chars().count() as i64;
    let place = |number: i64| {
        let number = if number < 0 { number.saturating_add(length).max(0) } else { number };
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        string.char_indices().nth(number).map_or(string.len(), |(place, _)| place)
    };
    let (start, end) = (start.map_or(0, place), end.map_or(string.len(), place));
    Ok(string.get(start..end).unwrap_or_default())
}

/// Without the characters (white space when there are none) at its ends.
pub(crate) fn strip(
    text: &Text,
    characters: Option<&str>,
    left: bool,
    right: bool,
    fuel: &Fuel,
) -> Result<Value, Error> {
    let string = text.as_str();
    if let Some(characters) = characters {
        fuel.look(string.len().saturating_mul(characters.len()))?;
    }
    let goes = |character: char| match characters {
        Some(characters) => characters.contains(character),
        None => is_space(character),
    };
    let start = match left {
        true => string.len() - string.trim_start_matches(goes).len(),
        false => 0,
    };
    let end = match right {
        true => start + string[start..].trim_end_matches(goes).len(),
        false => string.len(),
    };
    Value::made(text.part(start..end), fuel)
}

fn limit(given: &Given) -> Result<usize, Error> {
    Ok(match given.int(1, "maxsplit")? {
        Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        None => usize::MAX,
    })
}

fn parts(text: &Text, ranges: Vec<std::ops::Range<usize>>, fuel: &Fuel) -> Result<Value, Error> {
    fuel.items(ranges.len())?;
    let mut parts = Vec::with_capacity(ranges.len());
    for range in ranges {
        parts.push(Value::made(text.part(range), fuel)?);
    }
    Value::list(parts, fuel)
}

fn split(text: &Text, given: &Given, fuel: &Fuel) -> Result<Value, Error> {
    let (string, most) = (text.as_str(), limit(given)?);
    let mut ranges = Vec::new();
    match given.text(0, "sep")? {
        Some(by) => {
            if by.is_empty() {
                return Err(Error::failed("a split at nothing"));
            }
            let mut start = 0;
            while ranges.len() < most {
                let Some(found) = string[start..].find(by.as_str()) else { break };
                fuel.items(1)?;
                ranges.push(start..start + found);
                start += found + by.len();
            }
            ranges.push(start..string.len());
        }
        None => {
            let mut start = string.len() - string.trim_start_matches(is_space).len();
            while start < string.len() {
                fuel.items(1)?;
                let rest = &string[start..];
                let end = if ranges.len() < most { rest.find(is_space) } else { None };
                let Some(end) = end else {
                    let kept =
                        if ranges.len() < most { rest } else { rest.trim_end_matches(is_space) };
                    ranges.push(start..start + kept.len());
                    break;
                };
                ranges.push(start..start + end);
                let after = &rest[end..];
                start += end + after.len() - after.trim_start_matches(is_space).len();
            }
        }
    }
    parts(text, ranges, fuel)
}

fn split_from_the_end(text: &Text, given: &Given, fuel: &Fuel) -> Result<Value, Error> {
    let (string, most) = (text.as_str(), limit(given)?);
    let Some(by) = given.text(0, "sep")? else {
        return match most {
            usize::MAX => split(text, given, fuel),
            _ => Err(Error::failed("rsplit at white space with a limit")),
        };
    };
    if by.is_empty() {
        return Err(Error::failed("a split at nothing"));
    }
    let mut ranges = Vec::new();
    let mut end = string.len();
    while ranges.len() < most {
        let Some(found) = string[..end].rfind(by.as_str()) else { break };
        fuel.items(1)?;
        ranges.push(found + by.len()..end);
        end = found;
    }
    ranges.push(0..end);
    ranges.reverse();
    parts(text, ranges, fuel)
}

fn split_lines(text: &Text, keep_ends: bool, fuel: &Fuel) -> Result<Value, Error> {
    let string = text.as_str();
    let ends = |character: char| {
        matches!(
            character,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut ranges = Vec::new();
    let mut start = 0;
    while start < string.len() {
        fuel.items(1)?;
        let rest = &string[start..];
        let Some(end) = rest.find(ends) else {
            ranges.push(start..string.len());
            break;
        };
        let mut length = rest[end..].chars().next().map_or(0, char::len_utf8);
        if rest[end..].starts_with("\r\n") {
            length = 2;
        }
        ranges.push(start..start + end + if keep_ends { length } else { 0 });
        start += end + length;
    }
    parts(text, ranges, fuel)
}

pub(crate) fn replace(
    text: &Text,
    old: &Text,
    new: &Text,
    count: Option<i64>,
    fuel: &Fuel,
) -> Result<Value, Error> {
    let string = text.as_str();
    let mut most = match count {
        Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
        None => usize::MAX,
    };
    let mut replaced = Text::new();
    let mut start = 0;
    for (place, found) in string.match_indices(old.as_str()) {
        if most == 0 {
            break;
        }
        most -= 1;
        fuel.look(place - start + new.size() + 8)?;
        replaced.append_part(text, start..place);
        replaced.append(new);
        start = place + found.len();
    }
    replaced.append_part(text, start..string.len());
    Value::made(replaced, fuel)
}

/// Letters in another case; each keeps its origin.
pub(crate) fn change_case(text: &Text, how: &str, fuel: &Fuel) -> Result<Value, Error> {
    fuel.look(text.size() * 4)?;
    let mut changed = Text::new();
    let mut inside_word = false;
    for (place, character, origin) in text.chars() {
        let upper = match how {
            "upper" => true,
            "swapcase" => character.is_lowercase(),
            "capitalize" => place == 0,
            "title" => !inside_word,
            _ => false,
        };
        inside_word = character.is_alphabetic();
        if how == "casefold" && character == 'ß' {
            changed.push("ss", origin);
            continue;
        }
        match upper {
            true => character.to_uppercase().for_each(|c| changed.push_char(c, origin)),
            false => character.to_lowercase().for_each(|c| changed.push_char(c, origin)),
        }
    }
    Value::made(changed, fuel)
}

pub(crate) fn pad(text: &Text, how: &str, given: &Given, fuel: &Fuel) -> Result<Value, Error> {
    let width = usize::try_from(given.int(0, "width")?.unwrap_or(0)).unwrap_or(0);
    let missing = width.saturating_sub(text.as_str().chars().count());
    fuel.text(text.size() + missing.saturating_mul(4))?;
    let space = Text::from(if how == "zfill" { "0" } else { " " });
    let fill = match how {
        "zfill" => &space,
        _ => given.text(1, "fillchar")?.map_or(&space, |fill| fill),
    };
    if fill.as_str().chars().count() != 1 {
        return Err(Error::failed("a fill that is not one character"));
    }
    let before = match how {
        "ljust" => 0,
        "center" => missing / 2 + (missing & width & 1),
        _ => missing,
    };
    let sign = match how {
        "zfill" if text.as_str().starts_with(['-', '+']) => 1,
        _ => 0,
    };
    let mut padded = text.part(0..sign);
    let repeat = |count: usize, padded: &mut Text| {
        for _ in 0..count {
            padded.append(fill);
        }
    };
    repeat(before, &mut padded);
    padded.append_part(text, sign..text.len());
    repeat(missing - before, &mut padded);
    Value::made(padded, fuel)
}
