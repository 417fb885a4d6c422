//! GGUF model files: our own check of a file's header, before any other code believes what it says.
//!
//! Every count, length and offset is checked against the bytes that are really there before
//! anything is allocated for it, with arithmetic that cannot overflow. What comes out is the
//! metadata and the place of every tensor; the weights themselves are not read.
//!
//! - [`problem`]: what can be wrong with a file, in words for a person.
//! - [`value`]: metadata values.
//! - [`tensor`]: tensor types and where a tensor lies.
//! - [`reader`]: the bounded reader.

mod problem;
mod reader;
mod tensor;
mod value;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

pub use problem::{InspectError, Problem};
pub use tensor::{TensorInfo, TensorType};
pub use value::Value;

use reader::HeaderReader;

/// The most metadata entries and tensors that a header may declare.
const MOST_ENTRIES: u64 = 1 << 17;

/// The header of a GGUF file that passed every check.
#[derive(Debug, Clone)]
pub struct Gguf {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub file_bytes: u64,
    /// The metadata by key.
    pub metadata: HashMap<String, Value>,
    /// The tensors by name.
    pub tensors: HashMap<String, TensorInfo>,
}

impl Gguf {
    /// The architecture's name, for example `llama`.
    pub fn architecture(&self) -> Option<&str> {
        self.text("general.architecture")
    }

    /// A text of the metadata.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).and_then(Value::as_str)
    }

    /// A whole number of the metadata that is not negative.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.metadata.get(key).and_then(Value::as_u64)
    }

    /// A number of the metadata.
    pub fn float(&self, key: &str) -> Option<f64> {
        self.metadata.get(key).and_then(Value::as_f64)
    }

    /// A truth value of the metadata.
    pub fn flag(&self, key: &str) -> Option<bool> {
        self.metadata.get(key).and_then(Value::as_bool)
    }

    /// The number of weights.
    pub fn parameters(&self) -> u64 {
        self.tensors.values().map(TensorInfo::elements).sum()
    }

    /// The type that most weights of the matrices have, for example `Q4_1`.
    pub fn quantization(&self) -> Option<TensorType> {
        let mut counts: HashMap<TensorType, usize> = HashMap::new();
        for tensor in self.tensors.values().filter(|tensor| tensor.shape.len() > 1) {
            *counts.entry(tensor.kind).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(kind, count)| (*count, *kind as u32)).map(|(kind, _)| kind)
    }
}

/// Reads and checks the header of the GGUF file at `path`.
pub fn inspect(path: &Path) -> Result<Gguf, InspectError> {
    inspect_file(path).map_err(|problem| InspectError { path: path.to_owned(), problem })
}

fn inspect_file(path: &Path) -> Result<Gguf, Problem> {
    let file = File::open(path).map_err(Problem::from_io)?;
    let about = file.metadata().map_err(Problem::from_io)?;
    if !about.is_file() {
        return Err(Problem::NotAFile);
    }
    let (metadata, tensors) = read_header(BufReader::new(file), about.len())?;
    Ok(Gguf { path: path.to_owned(), file_bytes: about.len(), metadata, tensors })
}

type Header = (HashMap<String, Value>, HashMap<String, TensorInfo>);

/// Reads a header from `source`, which holds `size` bytes in all.
fn read_header(mut source: impl Read + Seek, size: u64) -> Result<Header, Problem> {
    problem::recognize(&mut source, size)?;
    let mut reader = HeaderReader::after_version(source, size)?;
    let tensor_count = reader.u64()?;
    let entry_count = reader.u64()?;
    if tensor_count > MOST_ENTRIES || entry_count > MOST_ENTRIES {
        return Err(Problem::Malformed(format!(
            "it declares {tensor_count} tensors and {entry_count} metadata entries"
        )));
    }
    let mut metadata = HashMap::new();
    for _ in 0..entry_count {
        let key = reader.key()?;
        let value = value::read(&mut reader)?;
        if metadata.insert(key.clone(), value).is_some() {
            return Err(Problem::Malformed(format!("the metadata has `{key}` twice")));
        }
    }
    let alignment = match metadata.get("general.alignment") {
        None => 32,
        Some(value) => value.as_u64().unwrap_or(0),
    };
    if !alignment.is_power_of_two() || !(8..=1 << 20).contains(&alignment) {
        return Err(Problem::Alignment(
            metadata.get("general.alignment").map(Value::to_string).unwrap_or_default(),
        ));
    }
    let mut tensors = HashMap::new();
    for _ in 0..tensor_count {
        let name = reader.key()?;
        let tensor = tensor::read(&mut reader, &name, alignment)?;
        if tensors.insert(name.clone(), tensor).is_some() {
            return Err(Problem::Malformed(format!("it holds the tensor `{name}` twice")));
        }
    }
    // An empty data section needs no padding after the header.
    let data_start = reader
        .position()
        .checked_next_multiple_of(alignment)
        .ok_or_else(|| Problem::Malformed("its header is too large".into()))?;
    for tensor in tensors.values_mut() {
        let end = tensor
            .offset
            .checked_add(data_start)
            .and_then(|start| {
                tensor.offset = start;
                start.checked_add(tensor.bytes)
            })
            .ok_or_else(|| Problem::Malformed("a tensor lies beyond any file".into()))?;
        if end > size {
            return Err(Problem::Truncated { size, needed: end });
        }
    }
    Ok((metadata, tensors))
}

#[cfg(test)]
mod tests;
