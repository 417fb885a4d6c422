//! Activations as small integers.

use crate::instructions::Instructions;
use crate::kind::BLOCK;
use crate::multiply::ShapeError;

/// Rows of activations, every 32 of them as integers of -127 to 127 with a scale. A row depends
/// on no other row.
pub struct QuantizedRows {
    pub(crate) codes: Vec<i8>,
    /// Per block: the scale, and the scale times the sum of the codes.
    pub(crate) scales: Vec<f32>,
    pub(crate) scaled_sums: Vec<f32>,
    /// Per block: the sum of the codes.
    pub(crate) sums: Vec<i32>,
    columns: usize,
    rows: usize,
}

/// A block of a quantized row.
pub(crate) struct QuantizedBlock {
    pub(crate) codes: [i8; BLOCK],
    pub(crate) scale: f32,
    pub(crate) sum: i32,
}

impl QuantizedRows {
    /// Quantizes `activations`, rows of `columns` numbers each. A row that is not finite makes
    /// every product with it not a number.
    ///
    /// # Errors
    /// `columns` is zero or no multiple of 32, or the last row is not complete.
    pub fn new(activations: &[f32], columns: usize) -> Result<Self, ShapeError> {
        Self::with(Instructions::detect(), activations, columns)
    }

    pub(crate) fn with(
        instructions: Instructions,
        activations: &[f32],
        columns: usize,
    ) -> Result<Self, ShapeError> {
        if columns == 0
            || !columns.is_multiple_of(BLOCK)
            || !activations.len().is_multiple_of(columns)
        {
            return Err(ShapeError::Activations { length: activations.len(), columns });
        }
        let blocks = activations.len() / BLOCK;
        let mut rows = Self {
            codes: Vec::with_capacity(activations.len()),
            scales: Vec::with_capacity(blocks),
            scaled_sums: Vec::with_capacity(blocks),
            sums: Vec::with_capacity(blocks),
            columns,
            rows: activations.len() / columns,
        };
        match instructions {
            Instructions::Portable => rows.extend(activations),
            // SAFETY: the processor has these instructions.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { rows.extend_avx2(activations) },
        }
        Ok(rows)
    }

    /// The same code, for wider registers.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn extend_avx2(&mut self, activations: &[f32]) {
        self.extend(activations);
    }

    #[inline(always)]
    fn extend(&mut self, activations: &[f32]) {
        for block in activations.as_chunks::<BLOCK>().0 {
            let block = quantize(block);
            self.codes.extend_from_slice(&block.codes);
            self.scales.push(block.scale);
            self.scaled_sums.push(block.scale * block.sum as f32);
            self.sums.push(block.sum);
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    pub(crate) fn blocks_per_row(&self) -> usize {
        self.columns / BLOCK
    }
}

/// Bits of an infinite number; those of what is not a number are greater.
const INFINITE: u32 = 0x7f80_0000;
/// Adding it and taking it away rounds a small number to the nearest integer, ties to even.
const ROUND: f32 = 12_582_912.0;

#[inline(always)]
fn quantize(block: &[f32; BLOCK]) -> QuantizedBlock {
    let most = block.iter().fold(0, |most, element| most.max(element.to_bits() & 0x7fff_ffff));
    let scale = f32::from_bits(most) / 127.0;
    let mut codes = [0; BLOCK];
    if most >= INFINITE {
        return QuantizedBlock { codes, scale: f32::NAN, sum: 0 };
    }
    // Below this the inverse is infinite, and the numbers are as good as zero.
    if scale < f32::MIN_POSITIVE {
        return QuantizedBlock { codes, scale: 0.0, sum: 0 };
    }
    let inverse = 1.0 / scale;
    let mut sum = 0;
    for (code, element) in codes.iter_mut().zip(block) {
        // The low bits of the rounded number are the integer in two's complement.
        let rounded = (element * inverse + ROUND).to_bits().wrapping_sub(ROUND.to_bits());
        sum += rounded.cast_signed();
        *code = rounded as i8;
    }
    QuantizedBlock { codes, scale, sum }
}
