//! Metadata values.

use std::fmt;
use std::io::{Read, Seek};

use crate::list::{FloatKind, Floats, NumberKind, Numbers, Texts};
use crate::problem::Problem;
use crate::reader::HeaderReader;

/// The most elements of one list. Vocabularies have a few hundred thousand.
const MOST_ELEMENTS: u64 = 1 << 24;

/// A value of the metadata. Whole numbers of every width are kept as 64 bits.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number without a sign.
    Unsigned(u64),
    /// A whole number with a sign.
    Signed(i64),
    /// A number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// A list of texts.
    Texts(Texts),
    /// A list of whole numbers or truth values.
    Numbers(Numbers),
    /// A list of numbers.
    Floats(Floats),
}

impl Value {
    /// The text, when it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, when it is whole and not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Unsigned(number) => Some(*number),
            Value::Signed(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The number, whole or not.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Float(number) => Some(*number),
            Value::Unsigned(number) => Some(*number as f64),
            Value::Signed(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// The truth value, when it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// The texts, when it is a list of them.
    pub fn as_texts(&self) -> Option<&Texts> {
        match self {
            Value::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    /// The whole numbers, when it is a list of them.
    pub fn as_numbers(&self) -> Option<&Numbers> {
        match self {
            Value::Numbers(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// The numbers, when it is a list of numbers that need not be whole.
    pub fn as_floats(&self) -> Option<&Floats> {
        match self {
            Value::Floats(numbers) => Some(numbers),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unsigned(number) => number.fmt(f),
            Value::Signed(number) => number.fmt(f),
            Value::Float(number) => number.fmt(f),
            Value::Bool(flag) => flag.fmt(f),
            Value::Text(text) => text.fmt(f),
            Value::Texts(list) => write!(f, "{} texts", list.len()),
            Value::Numbers(list) => write!(f, "{} numbers", list.len()),
            Value::Floats(list) => write!(f, "{} numbers", list.len()),
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Unsigned(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::Unsigned(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Signed(number)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Value::Signed(number.into())
    }
}

impl From<f32> for Value {
    fn from(number: f32) -> Self {
        Value::Float(number.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Float(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<Texts> for Value {
    fn from(list: Texts) -> Self {
        Value::Texts(list)
    }
}

impl From<Numbers> for Value {
    fn from(list: Numbers) -> Self {
        Value::Numbers(list)
    }
}

impl From<Floats> for Value {
    fn from(list: Floats) -> Self {
        Value::Floats(list)
    }
}

/// Reads a type and a value of it.
pub(crate) fn read<R: Read + Seek>(reader: &mut HeaderReader<R>) -> Result<Value, Problem> {
    let kind = reader.u32()?;
    Ok(match kind {
        0 => Value::Unsigned(u8::from_le_bytes(reader.array()?).into()),
        1 => Value::Signed(i8::from_le_bytes(reader.array()?).into()),
        2 => Value::Unsigned(u16::from_le_bytes(reader.array()?).into()),
        3 => Value::Signed(i16::from_le_bytes(reader.array()?).into()),
        4 => Value::Unsigned(reader.u32()?.into()),
        5 => Value::Signed(i32::from_le_bytes(reader.array()?).into()),
        6 => Value::Float(f32::from_le_bytes(reader.array()?).into()),
        7 => Value::Bool(match reader.array()? {
            [0] => false,
            [1] => true,
            [other] => return Err(Problem::malformed(format!("a truth value in it is {other}"))),
        }),
        8 => Value::Text(reader.text()?),
        9 => return read_list(reader),
        10 => Value::Unsigned(reader.u64()?),
        11 => Value::Signed(i64::from_le_bytes(reader.array()?)),
        12 => Value::Float(f64::from_le_bytes(reader.array()?)),
        other => return Err(unknown(other)),
    })
}

fn read_list<R: Read + Seek>(reader: &mut HeaderReader<R>) -> Result<Value, Problem> {
    let kind = reader.u32()?;
    let count = reader.length()?;
    if count > MOST_ELEMENTS {
        return Err(Problem::malformed(format!("it declares a list of {count} elements")));
    }
    if let Some(kind) = NumberKind::from_number(kind) {
        let bytes = reader.bytes(count * kind.width() as u64)?;
        return Numbers::new(kind, bytes)
            .map(Value::Numbers)
            .ok_or_else(|| Problem::malformed("a list in it has an impossible number"));
    }
    let floats = |kind: FloatKind, reader: &mut HeaderReader<R>| {
        let bytes = reader.bytes(count * kind.width() as u64)?;
        Floats::new(kind, bytes)
            .map(Value::Floats)
            .ok_or_else(|| Problem::malformed("a list in it ends within a number"))
    };
    match kind {
        6 => floats(FloatKind::F32, reader),
        8 => reader.texts(count).map(Value::Texts),
        9 => Err(Problem::malformed("it nests lists in its metadata")),
        12 => floats(FloatKind::F64, reader),
        other => Err(unknown(other)),
    }
}

fn unknown(kind: u32) -> Problem {
    Problem::malformed(format!("a value in its metadata has the unknown type {kind}"))
}
