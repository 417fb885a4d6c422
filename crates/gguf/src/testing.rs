//! GGUF files for tests: sound ones, and such that lie.

use std::io;
use std::path::{Path, PathBuf};

use crate::{TensorType, Value};

/// Writes a small GGUF file.
///
/// ```
/// use correx_gguf::TensorType;
/// use correx_gguf::testing::Writer;
///
/// let bytes = Writer::new()
///     .entry("general.architecture", "llama")
///     .entry("llama.block_count", 2u32)
///     .f32("output_norm.weight", &[2], &[1.0, 1.0])
///     .tensor("token_embd.weight", TensorType::Q8_0, &[3, 32], vec![0; 3 * 34])
///     .to_bytes();
/// # assert!(bytes.starts_with(b"GGUF"));
/// ```
#[derive(Debug, Clone)]
pub struct Writer {
    version: u32,
    alignment: usize,
    entries: Vec<(String, u32, Vec<u8>)>,
    tensors: Vec<Tensor>,
    spare: usize,
}

#[derive(Debug, Clone)]
struct Tensor {
    name: String,
    kind: u32,
    /// As in the file: the dimension that lies closest together first.
    dims: Vec<u64>,
    data: Data,
}

#[derive(Debug, Clone)]
enum Data {
    Bytes(Vec<u8>),
    /// Only an entry, which says that it begins here.
    Claimed(u64),
}

impl Default for Writer {
    fn default() -> Self {
        Self { version: 3, alignment: 32, entries: Vec::new(), tensors: Vec::new(), spare: 0 }
    }
}

impl Writer {
    /// A file of version 3 with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes another version (1 has counts and lengths of 32 bits).
    pub fn version(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// Begins every tensor at a multiple of `alignment`, and says so in the metadata.
    pub fn alignment(self, alignment: u32) -> Self {
        Self { alignment: alignment as usize, ..self }.entry("general.alignment", alignment)
    }

    /// Adds a metadata entry. Whole numbers are stored in 32 bits when they fit, else in 64; so
    /// are other numbers when that loses nothing; lists as they are in memory.
    pub fn entry(self, key: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        let (kind, bytes) = self.encoded(&value);
        self.raw_entry(key, kind, &bytes)
    }

    /// Adds a metadata entry of GGUF's type `kind` whose value is stored as `bytes`.
    pub fn raw_entry(mut self, key: &str, kind: u32, bytes: &[u8]) -> Self {
        self.entries.push((key.to_owned(), kind, bytes.to_vec()));
        self
    }

    /// Adds a tensor of `shape`, the outermost dimension first (a matrix: rows, columns), stored
    /// as `bytes`.
    pub fn tensor(
        mut self,
        name: &str,
        kind: TensorType,
        shape: &[usize],
        bytes: impl Into<Vec<u8>>,
    ) -> Self {
        self.tensors.push(Tensor {
            name: name.to_owned(),
            kind: kind.number(),
            dims: shape.iter().rev().map(|dim| *dim as u64).collect(),
            data: Data::Bytes(bytes.into()),
        });
        self
    }

    /// Adds a tensor of 32-bit numbers.
    pub fn f32(self, name: &str, shape: &[usize], numbers: &[f32]) -> Self {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.tensor(name, TensorType::F32, shape, bytes)
    }

    /// Adds a tensor that is all zeros.
    pub fn zeros(self, name: &str, kind: TensorType, shape: &[usize]) -> Self {
        let elements: usize = shape.iter().product();
        let bytes = elements.div_ceil(kind.block_size()) * kind.block_bytes();
        self.tensor(name, kind, shape, vec![0; bytes])
    }

    /// Adds only an entry for a tensor; it may lie. `dims` as in the file: the innermost first.
    pub fn raw_tensor(mut self, name: &str, kind: u32, dims: &[u64], offset: u64) -> Self {
        let data = Data::Claimed(offset);
        self.tensors.push(Tensor { name: name.to_owned(), kind, dims: dims.to_vec(), data });
        self
    }

    /// Adds `bytes` of zeros behind all tensors.
    pub fn spare(self, bytes: usize) -> Self {
        Self { spare: bytes, ..self }
    }

    /// The file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(self.version.to_le_bytes());
        file.extend(self.length(self.tensors.len() as u64));
        file.extend(self.length(self.entries.len() as u64));
        for (key, kind, bytes) in &self.entries {
            file.extend(self.text(key));
            file.extend(kind.to_le_bytes());
            file.extend(bytes);
        }
        let mut data = Vec::new();
        for tensor in &self.tensors {
            file.extend(self.text(&tensor.name));
            file.extend((tensor.dims.len() as u32).to_le_bytes());
            for dim in &tensor.dims {
                file.extend(self.length(*dim));
            }
            file.extend(tensor.kind.to_le_bytes());
            let offset = match &tensor.data {
                Data::Claimed(offset) => *offset,
                Data::Bytes(bytes) => {
                    data.resize(data.len().next_multiple_of(self.alignment.max(1)), 0);
                    let offset = data.len() as u64;
                    data.extend(bytes);
                    offset
                }
            };
            file.extend(offset.to_le_bytes());
        }
        data.resize(data.len() + self.spare, 0);
        if !data.is_empty() {
            file.resize(file.len().next_multiple_of(self.alignment.max(1)), 0);
            file.extend(data);
        }
        file
    }

    /// Writes the file to `path`.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        std::fs::write(path, self.to_bytes())
    }

    /// The parts of the file when the first `counts[0]` tensors go into the first, and so on: the
    /// metadata is in the first part.
    pub fn split(&self, counts: &[usize]) -> Vec<Writer> {
        let all = self.tensors.len();
        let mut tensors = self.tensors.iter().cloned();
        let part = |(number, count): (usize, &usize)| {
            let mut part = Writer { tensors: Vec::new(), spare: 0, ..self.clone() };
            if number > 0 {
                part.entries.retain(|(key, ..)| key == "general.alignment");
            }
            part.tensors = tensors.by_ref().take(*count).collect();
            part.raw_entry("split.no", 2, &(number as u16).to_le_bytes())
                .raw_entry("split.count", 2, &(counts.len() as u16).to_le_bytes())
                .raw_entry("split.tensors.count", 5, &(all as i32).to_le_bytes())
        };
        counts.iter().enumerate().map(part).collect()
    }

    /// Writes the parts into `folder`, named as split models are. Returns their paths.
    pub fn write_split(
        &self,
        folder: &Path,
        name: &str,
        counts: &[usize],
    ) -> io::Result<Vec<PathBuf>> {
        let write = |(number, part): (usize, Writer)| {
            let file = format!("{name}-{:05}-of-{:05}.gguf", number + 1, counts.len());
            let path = folder.join(file);
            part.write(&path)?;
            Ok(path)
        };
        self.split(counts).into_iter().enumerate().map(write).collect()
    }

    /// A count, a length or a dimension as this version stores it.
    fn length(&self, length: u64) -> Vec<u8> {
        match self.version {
            1 => (length as u32).to_le_bytes().to_vec(),
            _ => length.to_le_bytes().to_vec(),
        }
    }

    fn text(&self, text: &str) -> Vec<u8> {
        [&self.length(text.len() as u64)[..], text.as_bytes()].concat()
    }

    /// The type and the bytes of a value.
    fn encoded(&self, value: &Value) -> (u32, Vec<u8>) {
        let list = |kind: u32, count: usize, elements: &[u8]| {
            [&kind.to_le_bytes()[..], &self.length(count as u64), elements].concat()
        };
        match value {
            Value::Unsigned(number) => match u32::try_from(*number) {
                Ok(number) => (4, number.to_le_bytes().to_vec()),
                Err(_) => (10, number.to_le_bytes().to_vec()),
            },
            Value::Signed(number) => match i32::try_from(*number) {
                Ok(number) => (5, number.to_le_bytes().to_vec()),
                Err(_) => (11, number.to_le_bytes().to_vec()),
            },
            Value::Float(number) if f64::from(*number as f32) == *number => {
                (6, (*number as f32).to_le_bytes().to_vec())
            }
            Value::Float(number) => (12, number.to_le_bytes().to_vec()),
            Value::Bool(flag) => (7, vec![u8::from(*flag)]),
            Value::Text(text) => (8, self.text(text)),
            Value::Texts(texts) => {
                let elements: Vec<u8> = texts.iter().flat_map(|text| self.text(text)).collect();
                (9, list(8, texts.len(), &elements))
            }
            Value::Numbers(numbers) => {
                (9, list(numbers.kind().number(), numbers.len(), numbers.bytes()))
            }
            Value::Floats(numbers) => {
                (9, list(numbers.kind().number(), numbers.len(), numbers.bytes()))
            }
        }
    }
}
