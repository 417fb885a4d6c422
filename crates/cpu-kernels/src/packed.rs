//! Weights in the order in which they are multiplied.

use thiserror::Error;

use crate::kind::{BLOCK, BlockKind, LANES};
use crate::multiply::{Product, ShapeError, multiply_many};
use crate::quantized::QuantizedRows;
use crate::storage::{AlignedBytes, NoMemory};
use crate::threads::Threads;

/// Why a matrix could not be packed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PackError {
    /// Rows do not consist of whole blocks.
    #[error("a matrix of {rows} rows and {columns} columns does not consist of blocks of 32")]
    Shape {
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
    },
    /// There are more or fewer bytes than the shape needs.
    #[error("the matrix has {found} bytes, not the {expected} that its shape needs")]
    Length {
        /// Bytes that the shape needs.
        expected: usize,
        /// Bytes that are there.
        found: usize,
    },
    /// There is no memory for it.
    #[error(transparent)]
    Memory(#[from] NoMemory),
}

/// A matrix of weights: eight rows interleaved, so that one register holds the same columns of
/// all eight. As large as in the file, up to the rows that fill the last eight.
pub struct PackedMatrix {
    kind: BlockKind,
    rows: usize,
    columns: usize,
    bytes: AlignedBytes,
}

impl PackedMatrix {
    /// Packs `rows` rows of `columns` weights whose blocks are `bytes` as in a GGUF file.
    ///
    /// # Errors
    /// The columns are no multiple of 32, or there are not as many bytes as the shape says.
    pub fn pack(
        kind: BlockKind,
        rows: usize,
        columns: usize,
        bytes: &[u8],
    ) -> Result<Self, PackError> {
        let shape = || PackError::Shape { rows, columns };
        if rows == 0 || columns == 0 || !columns.is_multiple_of(BLOCK) {
            return Err(shape());
        }
        let blocks = columns / BLOCK;
        let row_bytes = blocks.checked_mul(kind.block_bytes()).ok_or_else(shape)?;
        let expected = row_bytes.checked_mul(rows).ok_or_else(shape)?;
        if bytes.len() != expected {
            return Err(PackError::Length { expected, found: bytes.len() });
        }
        let mut packed = AlignedBytes::zeroed(rows.div_ceil(LANES) * blocks * kind.strip_bytes())?;
        let strips = packed.as_mut_slice().chunks_exact_mut(blocks * kind.strip_bytes());
        for (strip, rows) in strips.zip(bytes.chunks(row_bytes * LANES)) {
            for (lane, row) in rows.chunks_exact(row_bytes).enumerate() {
                for (packed, block) in strip
                    .chunks_exact_mut(kind.strip_bytes())
                    .zip(row.chunks_exact(kind.block_bytes()))
                {
                    kind.pack(&kind.read(block), lane, packed);
                }
            }
        }
        Ok(Self { kind, rows, columns, bytes: packed })
    }

    /// How its weights are stored.
    pub fn kind(&self) -> BlockKind {
        self.kind
    }

    /// Its rows: numbers of an output.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Its columns: numbers of an input.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Bytes that it holds in memory.
    pub fn bytes(&self) -> usize {
        self.bytes.as_slice().len()
    }

    /// Multiplies rows of activations (`tokens` × columns) into rows of `output` (`tokens` × rows).
    ///
    /// # Errors
    /// The lengths do not fit the shape; `output` is left as it was.
    pub fn multiply(
        &self,
        activations: &[f32],
        tokens: usize,
        output: &mut [f32],
        threads: &Threads,
    ) -> Result<(), ShapeError> {
        let input = QuantizedRows::new(activations, self.columns)?;
        if input.rows() != tokens {
            return Err(ShapeError::Activations {
                length: activations.len(),
                columns: self.columns,
            });
        }
        multiply_many(&input, vec![Product { matrix: self, output }], threads)
    }

    /// Writes the weights of row `index` to `output`.
    ///
    /// # Errors
    /// There is no such row, or `output` is not as long as one.
    pub fn row(&self, index: usize, output: &mut [f32]) -> Result<(), ShapeError> {
        if index >= self.rows || output.len() != self.columns {
            return Err(ShapeError::Row { index, rows: self.rows });
        }
        let lane = index % LANES;
        let blocks = self.strip(index / LANES).chunks_exact(self.kind.strip_bytes());
        for (block, output) in blocks.zip(output.chunks_exact_mut(BLOCK)) {
            let (scale, minimum) = self.kind.scale_and_minimum(block, lane);
            for (place, weight) in output.iter_mut().enumerate() {
                *weight = scale * self.kind.code(block, lane, place) as f32 + minimum;
            }
        }
        Ok(())
    }

    /// Groups of eight rows.
    pub(crate) fn strips(&self) -> usize {
        self.rows.div_ceil(LANES)
    }

    /// The blocks of eight rows.
    pub(crate) fn strip(&self, number: usize) -> &[u8] {
        let length = self.columns / BLOCK * self.kind.strip_bytes();
        &self.bytes.as_slice()[number * length..(number + 1) * length]
    }
}
