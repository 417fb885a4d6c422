//! GGUF model files: our own check of a file's header, before any other code believes what it says.
//!
//! Every count, length and offset is checked against the bytes that are really there before
//! anything is allocated for it, with arithmetic that cannot overflow. What comes out is the
//! metadata and the place of every tensor; the weights themselves are not read. Reading a header
//! takes no more memory than the file has bytes, plus 48 MiB.
//!
//! # Layout
//! - [`inspect`]: the header of a file, or of all files of a model that is split; [`Gguf`].
//! - [`info`]: [`ModelInfo`], what a header says about its model; [`label`]: names of mixes.
//! - [`problem`]: what can be wrong with a file, in words for a person.
//! - [`value`], [`list`]: metadata values.
//! - [`tensor`]: tensor types and where a tensor lies.
//! - [`reader`]: the bounded reader; [`split`]: models in several files.
//! - [`testing`]: a writer of files for tests (feature `testing`).

mod info;
mod label;
mod list;
mod problem;
mod reader;
mod split;
mod tensor;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod value;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

pub use info::{
    ChatTemplateInfo, Licence, ModelInfo, Quantization, TokenInfo, TokenizerInfo, TypeShare,
};
pub use list::{FloatKind, Floats, NumberKind, Numbers, Texts};
pub use problem::{InspectError, Problem, shown};
pub use tensor::{TensorInfo, TensorType};
pub use value::Value;

use reader::HeaderReader;
use split::Split;

/// The most metadata entries that a header may declare.
const MOST_ENTRIES: u64 = 1 << 14;
/// The most tensors that the headers of a model may declare.
const MOST_TENSORS: u64 = 1 << 16;

/// The header of a GGUF file, or of all files of a split model, that passed every check.
#[derive(Debug, Clone)]
pub struct Gguf {
    /// The file; of a split model the first.
    pub path: PathBuf,
    /// The size in bytes of all files.
    pub file_bytes: u64,
    /// The files; one, unless the model is split.
    pub parts: Vec<Part>,
    /// The version of the format.
    pub version: u32,
    /// The metadata by key.
    pub metadata: HashMap<String, Value>,
    /// The tensors by name.
    pub tensors: HashMap<String, TensorInfo>,
}

/// One file of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
}

impl Gguf {
    /// Reads and checks a header from `source`, which holds `size` bytes in all, from its start.
    /// A file of a split model is read by itself; paths are empty.
    pub fn read(source: impl Read + Seek, size: u64) -> Result<Self, Problem> {
        let header = read_header(source, size)?;
        Ok(Self::of(header, Part { path: PathBuf::new(), bytes: size }))
    }

    fn of(header: Header, part: Part) -> Self {
        let Header { version, metadata, tensors } = header;
        Self {
            path: part.path.clone(),
            file_bytes: part.bytes,
            parts: vec![part],
            version,
            metadata,
            tensors,
        }
    }

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

    /// A list of texts of the metadata.
    pub fn texts(&self, key: &str) -> Option<&Texts> {
        self.metadata.get(key).and_then(Value::as_texts)
    }

    /// The number of weights.
    pub fn parameters(&self) -> u64 {
        self.tensors.values().fold(0, |sum, tensor| sum.saturating_add(tensor.elements()))
    }

    /// The type that most weights of the matrices have, for example `Q4_1`.
    pub fn quantization(&self) -> Option<TensorType> {
        let mut counts: HashMap<TensorType, usize> = HashMap::new();
        for tensor in self.tensors.values().filter(|tensor| tensor.shape.len() > 1) {
            *counts.entry(tensor.kind).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(kind, count)| (*count, *kind)).map(|(kind, _)| kind)
    }
}

/// Reads and checks the header of the GGUF file at `path`. Of a model in several files, any of
/// them stands for all.
pub fn inspect(path: &Path) -> Result<Gguf, InspectError> {
    let refuse = |problem| InspectError { path: path.to_owned(), problem };
    let (header, bytes) = read_file(path).map_err(refuse)?;
    match Split::of(&header).map_err(refuse)? {
        None => Ok(Gguf::of(header, Part { path: path.to_owned(), bytes })),
        Some(split) => split::read_set(path, (header, bytes), split),
    }
}

/// The header of one file, and the file's size.
fn read_file(path: &Path) -> Result<(Header, u64), Problem> {
    // Asked first: opening a pipe would wait for whoever writes to it.
    let about = std::fs::metadata(path).map_err(Problem::from_io)?;
    if !about.is_file() {
        return Err(Problem::NotAFile);
    }
    let file = File::open(path).map_err(Problem::from_io)?;
    let size = file.metadata().map_err(Problem::from_io)?.len();
    Ok((read_header(BufReader::new(file), size)?, size))
}

/// What is in the header of one file.
#[derive(Debug)]
struct Header {
    version: u32,
    metadata: HashMap<String, Value>,
    tensors: HashMap<String, TensorInfo>,
}

/// Reads a header from `source`, which holds `size` bytes in all.
fn read_header(mut source: impl Read + Seek, size: u64) -> Result<Header, Problem> {
    let version = problem::recognize(&mut source, size)?;
    let mut reader = HeaderReader::after_version(source, version, size)?;
    let tensor_count = reader.length()?;
    let entry_count = reader.length()?;
    if tensor_count > MOST_TENSORS || entry_count > MOST_ENTRIES {
        return Err(Problem::malformed(format!(
            "it declares {tensor_count} tensors and {entry_count} metadata entries"
        )));
    }
    let mut metadata = HashMap::new();
    for _ in 0..entry_count {
        let key = reader.key()?;
        if metadata.contains_key(&key) {
            let key = shown(&key);
            return Err(Problem::malformed(format!("the metadata has `{key}` twice")));
        }
        let value = value::read(&mut reader)?;
        metadata.insert(key, value);
    }
    let alignment = alignment(&metadata)?;
    let mut tensors = HashMap::new();
    for _ in 0..tensor_count {
        let name = reader.key()?;
        let tensor = tensor::read(&mut reader, &name, alignment)?;
        if tensors.contains_key(&name) {
            let name = shown(&name);
            return Err(Problem::malformed(format!("it holds the tensor `{name}` twice")));
        }
        tensors.insert(name, tensor);
    }
    place(&mut tensors, reader.position(), alignment, size)?;
    Ok(Header { version, metadata, tensors })
}

/// What the offsets of tensors are multiples of.
fn alignment(metadata: &HashMap<String, Value>) -> Result<u64, Problem> {
    let Some(value) = metadata.get("general.alignment") else { return Ok(32) };
    match value.as_u64() {
        Some(number) if number.is_power_of_two() && (8..=1 << 20).contains(&number) => Ok(number),
        _ => Err(Problem::Alignment(shown(&value.to_string()).into_owned())),
    }
}

/// Makes the offsets count from the start of the file, and checks that the tensors are in the file
/// and apart from each other.
fn place(
    tensors: &mut HashMap<String, TensorInfo>,
    header_end: u64,
    alignment: u64,
    size: u64,
) -> Result<(), Problem> {
    // An empty data section needs no padding after the header.
    let data_start = header_end
        .checked_next_multiple_of(alignment)
        .ok_or_else(|| Problem::malformed("its header is too large"))?;
    let mut needed = 0;
    for tensor in tensors.values_mut() {
        let start = tensor.offset.checked_add(data_start);
        let end = start.and_then(|start| start.checked_add(tensor.bytes));
        let (Some(start), Some(end)) = (start, end) else {
            return Err(Problem::malformed("a tensor lies beyond any file"));
        };
        tensor.offset = start;
        needed = needed.max(end);
    }
    let mut places: Vec<(u64, u64, &str)> = tensors
        .iter()
        .map(|(name, tensor)| (tensor.offset, tensor.offset + tensor.bytes, name.as_str()))
        .collect();
    places.sort_unstable();
    for pair in places.windows(2) {
        let [(_, end, first), (start, _, second)] = pair else { continue };
        if end > start {
            return Err(Problem::malformed(format!(
                "the tensors `{}` and `{}` overlap",
                shown(first),
                shown(second)
            )));
        }
    }
    if needed > size {
        return Err(Problem::Truncated { size, needed });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
