//! The sums with AVX2, FMA and F16C: a lane per row of weights.

#![allow(clippy::needless_range_loop, reason = "the same row is meant in several arrays")]

use std::arch::x86_64::*;

use crate::kind::{BLOCK, BlockKind, LANES};
use crate::quantized::QuantizedRows;

/// Eight rows of weights times the `T` rows of activations from `first` on.
///
/// # Safety
/// The processor has AVX2, FMA and F16C.
pub(crate) unsafe fn tile<const T: usize>(
    kind: BlockKind,
    strip: &[u8],
    input: &QuantizedRows,
    first: usize,
) -> [[f32; LANES]; T] {
    let blocks = input.blocks_per_row();
    // What the loops below rely on.
    assert!(strip.len() == blocks * kind.strip_bytes() && first + T <= input.rows());
    // SAFETY: the processor has the instructions; the lengths were checked.
    unsafe {
        match kind {
            BlockKind::Q4_1 => tile_q4_1::<T>(strip, input, first),
            BlockKind::Q5_0 => tile_q5_0::<T>(strip, input, first),
            BlockKind::Q8_0 => tile_q8_0::<T>(strip, input, first),
        }
    }
}

/// Where the activations of a tile lie.
struct Inputs<const T: usize> {
    codes: [*const i8; T],
    /// The first block of every row.
    blocks: [usize; T],
}

impl<const T: usize> Inputs<T> {
    #[inline(always)]
    fn new(input: &QuantizedRows, first: usize) -> Self {
        let blocks = std::array::from_fn(|token| (first + token) * input.blocks_per_row());
        let codes = blocks.map(|block| input.codes[block * BLOCK..].as_ptr());
        Self { codes, blocks }
    }

    /// Four activations of a row, from `place` on, in every lane.
    ///
    /// # Safety
    /// The row has them; the processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn four(&self, token: usize, place: usize) -> __m256i {
        // SAFETY: the caller's promise.
        _mm256_set1_epi32(unsafe { self.codes[token].add(place).cast::<i32>().read_unaligned() })
    }
}

/// Eight numbers in half precision.
///
/// # Safety
/// They are there; the processor has F16C.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn halves(at: *const u8) -> __m256 {
    // SAFETY: the caller's promise.
    _mm256_cvtph_ps(unsafe { _mm_loadu_si128(at.cast()) })
}

/// A register as numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn stored<const T: usize>(sums: [__m256; T]) -> [[f32; LANES]; T] {
    let mut output = [[0.0; LANES]; T];
    for (output, sum) in output.iter_mut().zip(sums) {
        // SAFETY: eight numbers have room.
        unsafe { _mm256_storeu_ps(output.as_mut_ptr(), sum) };
    }
    output
}

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn tile_q4_1<const T: usize>(
    strip: &[u8],
    input: &QuantizedRows,
    first: usize,
) -> [[f32; LANES]; T] {
    const KIND: BlockKind = BlockKind::Q4_1;
    let (mask, ones) = (_mm256_set1_epi8(15), _mm256_set1_epi16(1));
    let inputs = Inputs::<T>::new(input, first);
    let mut sums = [_mm256_setzero_ps(); T];
    for number in 0..input.blocks_per_row() {
        // SAFETY: the strip and every row of the input have this block (checked by the caller).
        unsafe {
            let packed = strip.as_ptr().add(number * KIND.strip_bytes());
            // Eight products of at most 2·15·127 stay below 2¹⁵.
            let mut products = [_mm256_setzero_si256(); T];
            for group in 0..4 {
                let weights = _mm256_load_si256(packed.add(group * 32).cast());
                let low = _mm256_and_si256(weights, mask);
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(weights), mask);
                for token in 0..T {
                    let place = number * BLOCK + group * 8;
                    let (a, b) = (inputs.four(token, place), inputs.four(token, place + 4));
                    products[token] =
                        _mm256_add_epi16(products[token], _mm256_maddubs_epi16(low, a));
                    products[token] =
                        _mm256_add_epi16(products[token], _mm256_maddubs_epi16(high, b));
                }
            }
            let scale = halves(packed.add(KIND.scales_at()));
            let minimum = halves(packed.add(KIND.scales_at() + 16));
            for token in 0..T {
                let block = inputs.blocks[token] + number;
                let product = _mm256_cvtepi32_ps(_mm256_madd_epi16(products[token], ones));
                let both = _mm256_mul_ps(scale, _mm256_set1_ps(*input.scales.get_unchecked(block)));
                let sum = _mm256_set1_ps(*input.scaled_sums.get_unchecked(block));
                sums[token] = _mm256_fmadd_ps(both, product, sums[token]);
                sums[token] = _mm256_fmadd_ps(minimum, sum, sums[token]);
            }
        }
    }
    stored(sums)
}

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn tile_q5_0<const T: usize>(
    strip: &[u8],
    input: &QuantizedRows,
    first: usize,
) -> [[f32; LANES]; T] {
    const KIND: BlockKind = BlockKind::Q5_0;
    let (mask, ones) = (_mm256_set1_epi8(15), _mm256_set1_epi16(1));
    let fifth = _mm256_set1_epi8(16);
    let inputs = Inputs::<T>::new(input, first);
    let mut sums = [_mm256_setzero_ps(); T];
    for number in 0..input.blocks_per_row() {
        // SAFETY: the strip and every row of the input have this block (checked by the caller).
        unsafe {
            let packed = strip.as_ptr().add(number * KIND.strip_bytes());
            let mut bits = _mm256_loadu_si256(packed.add(128).cast());
            let mut products = [_mm256_setzero_si256(); T];
            for group in 0..4 {
                let weights = _mm256_loadu_si256(packed.add(group * 32).cast());
                let low = _mm256_or_si256(
                    _mm256_and_si256(weights, mask),
                    _mm256_and_si256(_mm256_slli_epi16::<4>(bits), fifth),
                );
                let high = _mm256_or_si256(
                    _mm256_and_si256(_mm256_srli_epi16::<4>(weights), mask),
                    _mm256_and_si256(_mm256_slli_epi16::<3>(bits), fifth),
                );
                bits = _mm256_srli_epi16::<2>(bits);
                for token in 0..T {
                    let place = number * BLOCK + group * 8;
                    let (a, b) = (inputs.four(token, place), inputs.four(token, place + 4));
                    // Two products of at most 2·31·127 stay below 2¹⁵.
                    let both = _mm256_add_epi16(
                        _mm256_maddubs_epi16(low, a),
                        _mm256_maddubs_epi16(high, b),
                    );
                    products[token] =
                        _mm256_add_epi32(products[token], _mm256_madd_epi16(both, ones));
                }
            }
            let scale = halves(packed.add(KIND.scales_at()));
            for token in 0..T {
                let block = inputs.blocks[token] + number;
                let offset = _mm256_set1_epi32(KIND.offset() * *input.sums.get_unchecked(block));
                let product = _mm256_cvtepi32_ps(_mm256_sub_epi32(products[token], offset));
                let both = _mm256_mul_ps(scale, _mm256_set1_ps(*input.scales.get_unchecked(block)));
                sums[token] = _mm256_fmadd_ps(both, product, sums[token]);
            }
        }
    }
    stored(sums)
}

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn tile_q8_0<const T: usize>(
    strip: &[u8],
    input: &QuantizedRows,
    first: usize,
) -> [[f32; LANES]; T] {
    const KIND: BlockKind = BlockKind::Q8_0;
    let ones = _mm256_set1_epi16(1);
    let inputs = Inputs::<T>::new(input, first);
    let mut sums = [_mm256_setzero_ps(); T];
    for number in 0..input.blocks_per_row() {
        // SAFETY: the strip and every row of the input have this block (checked by the caller).
        unsafe {
            let packed = strip.as_ptr().add(number * KIND.strip_bytes());
            let mut products = [_mm256_setzero_si256(); T];
            for group in 0..8 {
                let weights = _mm256_loadu_si256(packed.add(group * 32).cast());
                let size = _mm256_abs_epi8(weights);
                for token in 0..T {
                    // The sign goes to the activation, which is never -128, so that it has one.
                    let place = number * BLOCK + group * 4;
                    let signed = _mm256_sign_epi8(inputs.four(token, place), weights);
                    // At most 2·128·127, below 2¹⁵.
                    let pairs = _mm256_maddubs_epi16(size, signed);
                    products[token] =
                        _mm256_add_epi32(products[token], _mm256_madd_epi16(pairs, ones));
                }
            }
            let scale = halves(packed.add(KIND.scales_at()));
            for token in 0..T {
                let block = inputs.blocks[token] + number;
                let product = _mm256_cvtepi32_ps(products[token]);
                let both = _mm256_mul_ps(scale, _mm256_set1_ps(*input.scales.get_unchecked(block)));
                sums[token] = _mm256_fmadd_ps(both, product, sums[token]);
            }
        }
    }
    stored(sums)
}
