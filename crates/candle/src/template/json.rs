//! `tojson` as chat templates expect it: Python's spacing, nothing escaped for HTML.

use std::io::{self, Write};

use minijinja::value::{Kwargs, Value};
use minijinja::{Error, ErrorKind};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// Writes `", "` and `": "` between things, as Python does.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        w.write_all(b": ")
    }
}

/// The filter. `indent` is a number of spaces.
pub(super) fn to_json(value: Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let bad = |error: serde_json::Error| Error::new(ErrorKind::BadSerialization, error.to_string());
    let mut bytes = Vec::new();
    match indent {
        None => {
            value.serialize(&mut Serializer::with_formatter(&mut bytes, Spaced)).map_err(bad)?
        }
        Some(indent) => {
            let spaces = vec![b' '; indent.min(16)];
            let formatter = PrettyFormatter::with_indent(&spaces);
            value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter)).map_err(bad)?;
        }
    }
    String::from_utf8(bytes)
        .map(Value::from)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}
