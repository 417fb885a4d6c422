//! Values as Python prints them. The origins of texts inside them stay.

use std::rc::Rc;

use crate::error::Error;
use crate::fuel::Fuel;
use crate::text::Text;
use crate::value::{Kind, Object, Value};

/// `str(value)`.
pub(crate) fn text(value: &Value, fuel: &Fuel) -> Result<Rc<Text>, Error> {
    if let Value::Text(text) = value {
        return Ok(text.clone());
    }
    let mut shown = Text::new();
    if !matches!(value, Value::Undefined) {
        write(value, &mut shown, fuel)?;
    }
    fuel.text(shown.size())?;
    Ok(Rc::new(shown))
}

/// `repr(value)`.
pub(crate) fn write(value: &Value, into: &mut Text, fuel: &Fuel) -> Result<(), Error> {
    fuel.burn(2)?;
    match value {
        Value::Undefined => into.push("Undefined", None),
        Value::None => into.push("None", None),
        Value::Bool(value) => into.push(if *value { "True" } else { "False" }, None),
        Value::Int(number) => into.push(&number.to_string(), None),
        Value::Float(number) => into.push(&float(*number), None),
        Value::Text(text) => quoted(text, into, fuel)?,
        Value::List(list) => {
            into.push(if list.tuple { "(" } else { "[" }, None);
            for (place, item) in list.items.iter().enumerate() {
                if place > 0 {
                    into.push(", ", None);
                }
                write(item, into, fuel)?;
            }
            if list.tuple && list.items.len() == 1 {
                into.push(",", None);
            }
            into.push(if list.tuple { ")" } else { "]" }, None);
        }
        Value::Dict(dict) => {
            into.push("{", None);
            for (place, (key, value)) in dict.items.iter().enumerate() {
                if place > 0 {
                    into.push(", ", None);
                }
                write(key, into, fuel)?;
                into.push(": ", None);
                write(value, into, fuel)?;
            }
            into.push("}", None);
        }
        Value::Object(Object(kind)) => {
            let name = match kind {
                Kind::Namespace(_) => "<Namespace>",
                Kind::Loop(_) => "<LoopContext>",
                Kind::Macro(_) => "<Macro>",
                Kind::Function(_) | Kind::Method(_) => "<function>",
            };
            into.push(name, None);
        }
    }
    Ok(())
}

/// A float with the fewest digits that tell it apart.
pub(crate) fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{number:?}")
}

/// Whether Python shows the character itself: not separators other than a space, not what steers
/// the layout.
fn is_printable(character: char) -> bool {
    let hidden = matches!(
        character,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}'
            | '\u{fdd0}'..='\u{fdef}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
            | '\u{fffe}'..='\u{ffff}' | '\u{e0000}'..='\u{e007f}' | '\u{f0000}'..
    );
    character == ' ' || !(hidden || character.is_control() || character.is_whitespace())
}

fn quoted(text: &Text, into: &mut Text, fuel: &Fuel) -> Result<(), Error> {
    fuel.look(text.size())?;
    let double = text.as_str().contains('\'') && !text.as_str().contains('"');
    let quote = if double { "\"" } else { "'" };
    into.push(quote, None);
    for (_, character, origin) in text.chars() {
        match character {
            '\\' => into.push("\\\\", origin),
            '\'' if !double => into.push("\\'", origin),
            '\n' => into.push("\\n", origin),
            '\r' => into.push("\\r", origin),
            '\t' => into.push("\\t", origin),
            other if !is_printable(other) => {
                let escaped = match u32::from(other) {
                    code @ ..0x100 => format!("\\x{code:02x}"),
                    code @ ..0x1_0000 => format!("\\u{code:04x}"),
                    code => format!("\\U{code:08x}"),
                };
                into.push(&escaped, origin);
            }
            other => into.push_char(other, origin),
        }
    }
    into.push(quote, None);
    Ok(())
}
