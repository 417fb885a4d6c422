//! Matrices times the same activations.

use std::ops::Range;

use thiserror::Error;

use crate::columns::Columns;
use crate::instructions::Instructions;
use crate::kind::LANES;
use crate::packed::PackedMatrix;
use crate::quantized::QuantizedRows;
use crate::threads::Threads;

/// Products of one weight and one activation that are worth a piece of work of their own: a few
/// microseconds.
const PIECE: usize = 1 << 17;
/// Pieces per thread at most, so that one that is held up delays little.
const PIECES_PER_THREAD: usize = 4;
/// Rows of activations that stay in the nearest cache while weights pass by.
const ROWS_AT_ONCE: usize = 64;

/// Lengths that do not belong together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// The numbers are not the whole rows that were expected (of whole blocks, where weights
    /// are).
    #[error("{length} numbers came that are not the rows of {columns} which were expected")]
    Activations {
        /// Numbers that came.
        length: usize,
        /// Numbers of a row.
        columns: usize,
    },
    /// The output has no room, or too much.
    #[error("an output of {found} numbers came where {expected} are computed")]
    Output {
        /// Numbers that are computed.
        expected: usize,
        /// Numbers that there is room for.
        found: usize,
    },
    /// A row that is not there, or does not fit its output.
    #[error("row {index} of {rows} was asked for, or for an output of another width")]
    Row {
        /// The row.
        index: usize,
        /// How many there are.
        rows: usize,
    },
}

/// A matrix, and where its product goes: as many rows as the activations have, of as many numbers
/// as the matrix has rows.
pub struct Product<'a> {
    /// The weights.
    pub matrix: &'a PackedMatrix,
    /// The output.
    pub output: &'a mut [f32],
}

/// A product that is being computed.
struct Target<'a> {
    matrix: &'a PackedMatrix,
    output: Columns<'a>,
}

/// Part of a product: some strips of a matrix.
struct Piece {
    target: usize,
    strips: Range<usize>,
}

/// Multiplies every matrix with `input`, all in one go.
///
/// # Errors
/// A matrix or an output has another shape; then nothing is written.
pub fn multiply_many(
    input: &QuantizedRows,
    products: Vec<Product<'_>>,
    threads: &Threads,
) -> Result<(), ShapeError> {
    multiply_with(Instructions::detect(), input, products, threads)
}

pub(crate) fn multiply_with(
    instructions: Instructions,
    input: &QuantizedRows,
    products: Vec<Product<'_>>,
    threads: &Threads,
) -> Result<(), ShapeError> {
    for Product { matrix, output } in &products {
        if matrix.columns() != input.columns() {
            let length = input.rows() * input.columns();
            return Err(ShapeError::Activations { length, columns: matrix.columns() });
        }
        let expected = input.rows() * matrix.rows();
        if output.len() != expected {
            return Err(ShapeError::Output { expected, found: output.len() });
        }
    }
    let targets: Vec<Target<'_>> = products
        .into_iter()
        .map(|Product { matrix, output }| Target {
            matrix,
            output: Columns::new(output, matrix.rows()),
        })
        .collect();
    let pieces = pieces(&targets, input, threads);
    threads.each(pieces.len(), |number| {
        let piece = &pieces[number];
        let target = &targets[piece.target];
        // SAFETY: no strip is in two pieces, and the processor was asked for its instructions.
        unsafe { strips(instructions, input, target, piece.strips.clone()) };
    });
    Ok(())
}

/// Cuts the products into parts of about the same work.
fn pieces(targets: &[Target<'_>], input: &QuantizedRows, threads: &Threads) -> Vec<Piece> {
    let strip_work = LANES * input.columns() * input.rows();
    let strips: usize = targets.iter().map(|target| target.matrix.strips()).sum();
    let most = match threads.count() {
        1 => 1,
        count => count * PIECES_PER_THREAD,
    };
    let size = strips.div_ceil(most).max(PIECE.div_ceil(strip_work.max(1)));
    let mut pieces = Vec::with_capacity(most + targets.len());
    for (number, target) in targets.iter().enumerate() {
        let strips = target.matrix.strips();
        let parts = ((strips + size / 2) / size).max(1);
        pieces.extend((0..parts).map(|part| Piece {
            target: number,
            strips: strips * part / parts..strips * (part + 1) / parts,
        }));
    }
    pieces
}

/// Computes `range` of a product's strips.
///
/// # Safety
/// The processor has the instructions, and no other thread computes the same strips.
unsafe fn strips(
    instructions: Instructions,
    input: &QuantizedRows,
    target: &Target<'_>,
    range: Range<usize>,
) {
    let mut begin = 0;
    while begin < input.rows() {
        let end = (begin + ROWS_AT_ONCE).min(input.rows());
        for strip in range.clone() {
            let mut row = begin;
            // SAFETY: the caller's promise.
            unsafe {
                while row + 4 <= end {
                    tile::<4>(instructions, input, target, strip, row);
                    row += 4;
                }
                while row < end {
                    tile::<1>(instructions, input, target, strip, row);
                    row += 1;
                }
            }
        }
        begin = end;
    }
}

/// Computes eight columns of `T` rows of the output.
///
/// # Safety
/// As for [`strips`].
#[inline(always)]
unsafe fn tile<const T: usize>(
    instructions: Instructions,
    input: &QuantizedRows,
    target: &Target<'_>,
    strip: usize,
    row: usize,
) {
    let kind = target.matrix.kind();
    let weights = target.matrix.strip(strip);
    let sums: [[f32; LANES]; T] = match instructions {
        Instructions::Portable => crate::portable::tile(kind, weights, input, row),
        // SAFETY: the caller's promise.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => unsafe { crate::avx2::tile(kind, weights, input, row) },
    };
    let column = strip * LANES;
    let valid = LANES.min(target.output.width() - column);
    for (number, sums) in sums.iter().enumerate() {
        // SAFETY: these columns are this strip's alone.
        unsafe { target.output.write(row + number, column, &sums[..valid]) };
    }
}

#[cfg(test)]
mod tests;
