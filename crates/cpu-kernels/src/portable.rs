//! The sums in plain code: what the other implementations have to agree with, bit by bit.

use crate::kind::{BLOCK, BlockKind, LANES};
use crate::quantized::QuantizedRows;

/// Eight rows of weights times the `T` rows of activations from `first` on.
pub(crate) fn tile<const T: usize>(
    kind: BlockKind,
    strip: &[u8],
    input: &QuantizedRows,
    first: usize,
) -> [[f32; LANES]; T] {
    let mut sums = [[0.0; LANES]; T];
    let blocks = input.blocks_per_row();
    for (number, packed) in strip.chunks_exact(kind.strip_bytes()).enumerate() {
        let mut weights = [[0; LANES]; BLOCK];
        for (place, weights) in weights.iter_mut().enumerate() {
            for (lane, weight) in weights.iter_mut().enumerate() {
                *weight = kind.code(packed, lane, place);
            }
        }
        let scales: [(f32, f32); LANES] =
            std::array::from_fn(|lane| kind.scale_and_minimum(packed, lane));
        for (token, sums) in sums.iter_mut().enumerate() {
            let block = (first + token) * blocks + number;
            let mut products = [0i32; LANES];
            for (weights, code) in weights.iter().zip(&input.codes[block * BLOCK..][..BLOCK]) {
                for (product, weight) in products.iter_mut().zip(weights) {
                    *product += weight * i32::from(*code);
                }
            }
            let (scale, scaled_sum) = (input.scales[block], input.scaled_sums[block]);
            for lane in 0..LANES {
                let (weight_scale, minimum) = scales[lane];
                let scale = weight_scale * scale;
                sums[lane] = scale.mul_add(products[lane] as f32, sums[lane]);
                if kind == BlockKind::Q4_1 {
                    sums[lane] = minimum.mul_add(scaled_sum, sums[lane]);
                }
            }
        }
    }
    sums
}
