//! What stands between the products of the feed-forward part.

use std::sync::LazyLock;

use half::f16;

#[cfg(target_arch = "x86_64")]
use crate::arithmetic::Avx2;
use crate::arithmetic::{Arithmetic, Plain};
use crate::exponential::exp;
use crate::instructions::Instructions;
use crate::multiply::ShapeError;
use crate::threads::Threads;

/// Elements that are worth a piece of work of their own.
const PIECE: usize = 1 << 13;

/// `silu(gate) * up`, element by element, over `gate`.
///
/// # Errors
/// The lengths differ; nothing is changed then.
pub fn swiglu(gate: &mut [f32], up: &[f32], threads: &Threads) -> Result<(), ShapeError> {
    swiglu_with(Instructions::detect(), gate, up, threads)
}

fn swiglu_with(
    instructions: Instructions,
    gate: &mut [f32],
    up: &[f32],
    threads: &Threads,
) -> Result<(), ShapeError> {
    if gate.len() != up.len() {
        return Err(ShapeError::Output { expected: up.len(), found: gate.len() });
    }
    threads.each_part(gate, PIECE, |number, gate| {
        let up = &up[number * PIECE..][..gate.len()];
        match instructions {
            // SAFETY: plain code needs nothing.
            Instructions::Portable => unsafe { part::<Plain>(gate, up) },
            // SAFETY: the processor has these instructions.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { part_avx2(gate, up) },
        }
    });
    Ok(())
}

/// `gelu(gate) * up`, element by element, over `gate`; `gelu` by the hyperbolic tangent.
///
/// Between -10 and 10 `gelu` and what it is of are rounded to half precision, as llama.cpp does:
/// its results are what people compare with, and a finer one would differ from them.
///
/// # Errors
/// The lengths differ; nothing is changed then.
pub fn geglu(gate: &mut [f32], up: &[f32], threads: &Threads) -> Result<(), ShapeError> {
    if gate.len() != up.len() {
        return Err(ShapeError::Output { expected: up.len(), found: gate.len() });
    }
    let table = &*GELU;
    threads.each_part(gate, PIECE, |number, gate| {
        for (gate, up) in gate.iter_mut().zip(&up[number * PIECE..]) {
            let gelu = match *gate {
                gate if gate <= -10.0 => 0.0,
                gate if gate >= 10.0 => gate,
                gate => table[usize::from(f16::from_f32(gate).to_bits())],
            };
            *gate = gelu * up;
        }
    });
    Ok(())
}

/// `gelu` of every number of half precision, by its bits.
static GELU: LazyLock<Vec<f32>> = LazyLock::new(|| {
    let gelu = |x: f64| {
        let inner = (2.0 / std::f64::consts::PI).sqrt() * x * (1.0 + 0.044_715 * x * x);
        0.5 * x * (1.0 + inner.tanh())
    };
    let half = |bits| f16::from_f64(gelu(f16::from_bits(bits).to_f64())).to_f32();
    (0..=u16::MAX).map(half).collect()
});

/// The same code, for wider registers.
///
/// # Safety
/// The processor has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn part_avx2(gate: &mut [f32], up: &[f32]) {
    // SAFETY: the caller's promise.
    unsafe { part::<Avx2>(gate, up) };
}

/// # Safety
/// The processor has the instructions of `A`.
#[inline(always)]
unsafe fn part<A: Arithmetic>(gate: &mut [f32], up: &[f32]) {
    for (gate, up) in gate.iter_mut().zip(up) {
        // SAFETY: the caller's promise.
        *gate = *gate / (1.0 + unsafe { exp::<A>(-*gate) }) * up;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_of_zero_closes_and_a_large_one_opens() {
        let mut gate = [0f32, 20.0, -20.0, -200.0, 200.0, f32::NAN];
        swiglu(&mut gate, &[5.0, 2.0, 2.0, 3.0, 3.0, 1.0], &Threads::single()).unwrap();
        for (found, expected) in gate.iter().zip([0.0, 40.0, 0.0, 0.0, 600.0]) {
            assert!((found - expected).abs() < 1e-5, "{gate:?}");
        }
        assert!(gate[5].is_nan());
        assert!(swiglu(&mut gate, &[1.0], &Threads::single()).is_err());
    }

    #[test]
    fn a_gate_by_the_tangent_is_rounded_to_half_precision() {
        let mut gate = [0f32, 1.0, -1.0, 1.0002, 20.0, -20.0, 3.0, f32::NAN];
        geglu(&mut gate, &[5.0, 1.0, 1.0, 1.0, 2.0, 3.0, 2.0, 1.0], &Threads::single()).unwrap();
        let expected = [0.0, 0.841_192, -0.158_808, 0.841_192, 40.0, 0.0, 2.0 * 2.996_363];
        for (found, expected) in gate.iter().zip(expected) {
            assert!((found - expected).abs() <= 5e-4 * expected.abs(), "{gate:?}");
        }
        assert_eq!(gate[1], gate[3]);
        assert!(gate[7].is_nan());
        assert!(geglu(&mut gate, &[1.0], &Threads::single()).is_err());
        let up = vec![1.5f32; 2 * PIECE + 3];
        let mut one: Vec<f32> = (0..up.len()).map(|place| place as f32 / 900.0 - 9.0).collect();
        let mut two = one.clone();
        geglu(&mut one, &up, &Threads::single()).unwrap();
        geglu(&mut two, &up, &Threads::new(2).unwrap()).unwrap();
        assert_eq!(one, two);
    }

    #[test]
    fn threads_change_nothing_and_plain_code_little() {
        let up: Vec<f32> = (0..3 * PIECE + 5).map(|place| (place % 100) as f32).collect();
        let mut one: Vec<f32> = up.iter().map(|up| up / 7.0 - 5.0).collect();
        let mut two = one.clone();
        swiglu(&mut one, &up, &Threads::single()).unwrap();
        swiglu(&mut two, &up, &Threads::new(2).unwrap()).unwrap();
        assert_eq!(one, two);
        let mut plain: Vec<f32> = up.iter().map(|up| up / 7.0 - 5.0).collect();
        swiglu_with(Instructions::Portable, &mut plain, &up, &Threads::single()).unwrap();
        for (one, plain) in one.iter().zip(plain) {
            assert!((one - plain).abs() <= 1e-6 * (1.0 + one.abs()), "{one} for {plain}");
        }
        let exact = |gate: f64, up: f64| gate / (1.0 + (-gate).exp()) * up;
        for (place, found) in one.iter().enumerate() {
            let up = (place % 100) as f32;
            let exact = exact(f64::from(up / 7.0 - 5.0), f64::from(up));
            assert!((f64::from(*found) - exact).abs() <= 1e-6 * (1.0 + exact.abs()));
        }
    }
}
