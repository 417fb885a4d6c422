//! Metadata values.

use std::fmt;
use std::io::Read;

use crate::Problem;
use crate::reader::HeaderReader;

/// The most elements of one array. Vocabularies have a few hundred thousand.
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
    Texts(Vec<String>),
    /// A list of whole numbers or truth values.
    Numbers(Vec<i64>),
    /// A list of numbers.
    Floats(Vec<f32>),
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
    pub fn as_texts(&self) -> Option<&[String]> {
        match self {
            Value::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    /// The whole numbers, when it is a list of them.
    pub fn as_numbers(&self) -> Option<&[i64]> {
        match self {
            Value::Numbers(numbers) => Some(numbers),
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

/// Reads a type and a value of it.
pub(crate) fn read<R: Read>(reader: &mut HeaderReader<R>) -> Result<Value, Problem> {
    let kind = reader.u32()?;
    Ok(match kind {
        6 => Value::Float(f64::from(f32::from_le_bytes(reader.array()?))),
        7 => Value::Bool(boolean(reader)?),
        8 => Value::Text(reader.text()?),
        9 => return read_array(reader),
        10 => Value::Unsigned(reader.u64()?),
        12 => Value::Float(f64::from_le_bytes(reader.array()?)),
        0 | 2 | 4 => Value::Unsigned(whole(reader, kind)?.unsigned_abs()),
        1 | 3 | 5 | 11 => Value::Signed(whole(reader, kind)?),
        other => return Err(unknown(other)),
    })
}

fn read_array<R: Read>(reader: &mut HeaderReader<R>) -> Result<Value, Problem> {
    let kind = reader.u32()?;
    let count = reader.u64()?;
    let least = match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        8 | 10..=12 => 8,
        9 => return Err(Problem::Malformed("it nests lists in its metadata".into())),
        other => return Err(unknown(other)),
    };
    if count > MOST_ELEMENTS {
        return Err(Problem::Malformed(format!("it declares a list of {count} elements")));
    }
    // Known to be there, so the list that is allocated stays in proportion to the file.
    reader.require(count * least)?;
    let range = 0..count;
    Ok(match kind {
        8 => Value::Texts(range.map(|_| reader.text()).collect::<Result<_, _>>()?),
        6 => Value::Floats(
            range.map(|_| reader.array().map(f32::from_le_bytes)).collect::<Result<_, _>>()?,
        ),
        12 => Value::Floats(
            range
                .map(|_| reader.array().map(|bytes| f64::from_le_bytes(bytes) as f32))
                .collect::<Result<_, _>>()?,
        ),
        7 => {
            Value::Numbers(range.map(|_| boolean(reader).map(i64::from)).collect::<Result<_, _>>()?)
        }
        _ => Value::Numbers(range.map(|_| whole(reader, kind)).collect::<Result<_, _>>()?),
    })
}

fn boolean<R: Read>(reader: &mut HeaderReader<R>) -> Result<bool, Problem> {
    match reader.array::<1>()? {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => Err(Problem::Malformed(format!("a truth value in it is {other}"))),
    }
}

fn whole<R: Read>(reader: &mut HeaderReader<R>, kind: u32) -> Result<i64, Problem> {
    Ok(match kind {
        0 => i64::from(u8::from_le_bytes(reader.array()?)),
        1 => i64::from(i8::from_le_bytes(reader.array()?)),
        2 => i64::from(u16::from_le_bytes(reader.array()?)),
        3 => i64::from(i16::from_le_bytes(reader.array()?)),
        4 => i64::from(reader.u32()?),
        5 => i64::from(i32::from_le_bytes(reader.array()?)),
        10 => i64::try_from(reader.u64()?)
            .map_err(|_| Problem::Malformed("a number in it is too large".into()))?,
        11 => i64::from_le_bytes(reader.array()?),
        other => return Err(unknown(other)),
    })
}

fn unknown(kind: u32) -> Problem {
    Problem::Malformed(format!("a value in its metadata has the unknown type {kind}"))
}
