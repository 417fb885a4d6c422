//! Tensor types and places.

use std::fmt;
use std::io::{Read, Seek};

use crate::problem::{Problem, shown};
use crate::reader::HeaderReader;

/// Everything about the tensor types, in one place.
macro_rules! tensor_types {
    ($($(#[$about:meta])* $kind:ident = $number:literal, $name:literal, $size:literal, $bytes:literal;)*) => {
        /// How a tensor's elements are stored: every type that ggml has or once had. Not all of
        /// them can be computed with.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, non_camel_case_types)]
        #[repr(u32)]
        pub enum TensorType {
            $($(#[$about])* $kind = $number,)*
        }

        impl TensorType {
            /// All of them.
            pub const ALL: &[TensorType] = &[$(TensorType::$kind),*];

            /// The name that people know it by.
            pub fn name(self) -> &'static str {
                match self { $(TensorType::$kind => $name,)* }
            }

            /// Elements and bytes of a block.
            fn block(self) -> (usize, usize) {
                match self { $(TensorType::$kind => ($size, $bytes),)* }
            }
        }
    };
}

// Numbers and block forms: ggml.h and ggml-common.h of llama.cpp; those that files no longer have:
// the versions that had them.
tensor_types! {
    F32 = 0, "F32", 1, 4;
    F16 = 1, "F16", 1, 2;
    Q4_0 = 2, "Q4_0", 32, 18;
    Q4_1 = 3, "Q4_1", 32, 20;
    /// Given up before GGUF.
    Q4_2 = 4, "Q4_2", 16, 10;
    /// Given up before GGUF.
    Q4_3 = 5, "Q4_3", 16, 12;
    Q5_0 = 6, "Q5_0", 32, 22;
    Q5_1 = 7, "Q5_1", 32, 24;
    Q8_0 = 8, "Q8_0", 32, 34;
    Q8_1 = 9, "Q8_1", 32, 36;
    Q2K = 10, "Q2_K", 256, 84;
    Q3K = 11, "Q3_K", 256, 110;
    Q4K = 12, "Q4_K", 256, 144;
    Q5K = 13, "Q5_K", 256, 176;
    Q6K = 14, "Q6_K", 256, 210;
    Q8K = 15, "Q8_K", 256, 292;
    IQ2_XXS = 16, "IQ2_XXS", 256, 66;
    IQ2_XS = 17, "IQ2_XS", 256, 74;
    IQ3_XXS = 18, "IQ3_XXS", 256, 98;
    IQ1_S = 19, "IQ1_S", 256, 50;
    IQ4_NL = 20, "IQ4_NL", 32, 18;
    IQ3_S = 21, "IQ3_S", 256, 110;
    IQ2_S = 22, "IQ2_S", 256, 82;
    IQ4_XS = 23, "IQ4_XS", 256, 136;
    I8 = 24, "I8", 1, 1;
    I16 = 25, "I16", 1, 2;
    I32 = 26, "I32", 1, 4;
    I64 = 27, "I64", 1, 8;
    F64 = 28, "F64", 1, 8;
    IQ1_M = 29, "IQ1_M", 256, 56;
    BF16 = 30, "BF16", 1, 2;
    /// Q4_0 in another order; files no longer have it.
    Q4_0_4_4 = 31, "Q4_0_4_4", 32, 18;
    /// Q4_0 in another order; files no longer have it.
    Q4_0_4_8 = 32, "Q4_0_4_8", 32, 18;
    /// Q4_0 in another order; files no longer have it.
    Q4_0_8_8 = 33, "Q4_0_8_8", 32, 18;
    TQ1_0 = 34, "TQ1_0", 256, 54;
    TQ2_0 = 35, "TQ2_0", 256, 66;
    /// IQ4_NL in another order; files no longer have it.
    IQ4_NL_4_4 = 36, "IQ4_NL_4_4", 32, 18;
    /// IQ4_NL in another order; files no longer have it.
    IQ4_NL_4_8 = 37, "IQ4_NL_4_8", 32, 18;
    /// IQ4_NL in another order; files no longer have it.
    IQ4_NL_8_8 = 38, "IQ4_NL_8_8", 32, 18;
    MXFP4 = 39, "MXFP4", 32, 17;
    NVFP4 = 40, "NVFP4", 64, 36;
    Q1_0 = 41, "Q1_0", 128, 18;
    Q2_0 = 42, "Q2_0", 64, 18;
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

    /// The number that files have for it.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The type that files call `number`.
    pub fn from_number(number: u32) -> Option<Self> {
        TensorType::ALL.iter().copied().find(|kind| kind.number() == number)
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where a tensor lies and what form it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// How its elements are stored.
    pub kind: TensorType,
    /// Its shape, the longest-stride dimension first (a matrix: rows, columns).
    pub shape: Vec<usize>,
    /// Which of the model's files it is in: its place in [`Gguf::parts`](crate::Gguf::parts).
    pub part: usize,
    /// Where it begins, in bytes from the start of that file.
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
pub(crate) fn read<R: Read + Seek>(
    reader: &mut HeaderReader<R>,
    name: &str,
    alignment: u64,
) -> Result<TensorInfo, Problem> {
    let malformed = |what: &str| Problem::malformed(format!("the tensor `{}` {what}", shown(name)));
    let rank = reader.u32()?;
    if !(1..=4).contains(&rank) {
        return Err(malformed(&format!("has {rank} dimensions")));
    }
    let mut elements = 1u64;
    let mut shape = Vec::with_capacity(rank as usize);
    for _ in 0..rank {
        let dim = reader.length()?;
        elements = elements
            .checked_mul(dim)
            .filter(|count| (1..=i64::MAX.unsigned_abs()).contains(count))
            .ok_or_else(|| malformed("has an impossible shape"))?;
        shape.push(usize::try_from(dim).map_err(|_| malformed("is too large for this machine"))?);
    }
    let number = reader.u32()?;
    let kind = TensorType::from_number(number)
        .ok_or_else(|| Problem::TensorType { tensor: shown(name).into_owned(), number })?;
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
    Ok(TensorInfo { kind, shape, part: 0, offset, bytes })
}
