//! Tensor types and places.

use std::fmt;
use std::io::Read;

use crate::Problem;
use crate::reader::HeaderReader;

/// How a tensor's elements are stored. Only types that Correx can compute with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum TensorType {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q2K = 10,
    Q3K = 11,
    Q4K = 12,
    Q5K = 13,
    Q6K = 14,
    BF16 = 30,
}

impl TensorType {
    /// Elements of a block.
    pub fn block_size(self) -> usize {
        self.block().0
    }

    /// Bytes of a block.
    pub fn block_bytes(self) -> usize {
        self.block().1
    }

    /// Elements and bytes of a block.
    fn block(self) -> (usize, usize) {
        match self {
            TensorType::F32 => (1, 4),
            TensorType::F16 | TensorType::BF16 => (1, 2),
            TensorType::Q4_0 => (32, 18),
            TensorType::Q4_1 => (32, 20),
            TensorType::Q5_0 => (32, 22),
            TensorType::Q5_1 => (32, 24),
            TensorType::Q8_0 => (32, 34),
            TensorType::Q2K => (256, 84),
            TensorType::Q3K => (256, 110),
            TensorType::Q4K => (256, 144),
            TensorType::Q5K => (256, 176),
            TensorType::Q6K => (256, 210),
        }
    }

    fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => TensorType::F32,
            1 => TensorType::F16,
            2 => TensorType::Q4_0,
            3 => TensorType::Q4_1,
            6 => TensorType::Q5_0,
            7 => TensorType::Q5_1,
            8 => TensorType::Q8_0,
            10 => TensorType::Q2K,
            11 => TensorType::Q3K,
            12 => TensorType::Q4K,
            13 => TensorType::Q5K,
            14 => TensorType::Q6K,
            30 => TensorType::BF16,
            _ => return None,
        })
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            TensorType::Q2K => "Q2_K",
            TensorType::Q3K => "Q3_K",
            TensorType::Q4K => "Q4_K",
            TensorType::Q5K => "Q5_K",
            TensorType::Q6K => "Q6_K",
            other => return fmt::Debug::fmt(other, f),
        };
        f.write_str(name)
    }
}

/// Where a tensor lies and what form it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// How its elements are stored.
    pub kind: TensorType,
    /// Its shape, the longest-stride dimension first (a matrix: rows, columns).
    pub shape: Vec<usize>,
    /// Where it begins, in bytes from the start of the file.
    pub offset: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

impl TensorInfo {
    /// The number of its elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().map(|dim| *dim as u64).product()
    }
}

/// Reads a tensor's entry behind its name. The offset still counts from the data section.
pub(crate) fn read<R: Read>(
    reader: &mut HeaderReader<R>,
    name: &str,
    alignment: u64,
) -> Result<TensorInfo, Problem> {
    let malformed = |what: &str| Problem::Malformed(format!("the tensor `{name}` {what}"));
    let rank = reader.u32()?;
    if !(1..=4).contains(&rank) {
        return Err(malformed(&format!("has {rank} dimensions")));
    }
    let mut elements = 1u64;
    let mut shape = Vec::new();
    for _ in 0..rank {
        let dim = reader.u64()?;
        elements = elements
            .checked_mul(dim)
            .filter(|count| (1..=i64::MAX.unsigned_abs()).contains(count))
            .ok_or_else(|| malformed("has an impossible shape"))?;
        shape.push(usize::try_from(dim).map_err(|_| malformed("is too large for this machine"))?);
    }
    let number = reader.u32()?;
    let kind = TensorType::from_number(number)
        .ok_or_else(|| Problem::TensorType { tensor: name.to_owned(), kind: type_name(number) })?;
    let block = kind.block_size();
    if !shape[0].is_multiple_of(block) {
        return Err(malformed(&format!("has rows of {} elements in blocks of {block}", shape[0])));
    }
    let bytes = (elements / block as u64)
        .checked_mul(kind.block_bytes() as u64)
        .filter(|bytes| usize::try_from(*bytes).is_ok())
        .ok_or_else(|| malformed("is too large"))?;
    let offset = reader.u64()?;
    if !offset.is_multiple_of(alignment) {
        return Err(malformed("does not begin where the alignment asks for"));
    }
    // GGUF lists the dimension that lies closest together first.
    shape.reverse();
    Ok(TensorInfo { kind, shape, offset, bytes })
}

/// Names of types that are not run, so that a refusal can say which one it was.
fn type_name(number: u32) -> String {
    match number {
        9 => "Q8_1",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        39 => "MXFP4",
        other => return format!("type {other}"),
    }
    .to_owned()
}
