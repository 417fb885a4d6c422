//! The exponential function in a form that fills wide registers.

use crate::arithmetic::Arithmetic;

/// Adding it and taking it away rounds a small number to the nearest integer.
const ROUND: f32 = 12_582_912.0;
/// Beyond these the result is no normal number.
const LEAST: f32 = -87.3;
const MOST: f32 = 88.3;

/// e to the power of `x`, right to two units in the last place. Results that would be below the
/// smallest normal number or above the largest number are about those; what is no number stays so.
///
/// # Safety
/// The processor has the instructions of `A`.
#[inline(always)]
pub(crate) unsafe fn exp<A: Arithmetic>(x: f32) -> f32 {
    // SAFETY: the caller's promise.
    let multiply_add = |a, b, c| unsafe { A::multiply_add_one(a, b, c) };
    // Not `clamp` with `max` and `min`, which lose what is no number.
    let x = if x < LEAST { LEAST } else { x };
    let x = if x > MOST { MOST } else { x };
    let shifted = multiply_add(x, std::f32::consts::LOG2_E, ROUND);
    let whole = shifted - ROUND;
    // The logarithm of two in two parts, the first with few digits, so that the product is exact.
    let rest = multiply_add(whole, -0.693_359_4, x);
    let rest = multiply_add(whole, 2.121_944_4e-4, rest);
    // Taylor's series, as the rest is at most half a logarithm of two.
    let mut sum = 1.0 / 5040.0;
    for factor in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = multiply_add(sum, rest, factor);
    }
    // The low bits of the shifted number are the integer; they become the exponent.
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    sum * f32::from_bits(exponent)
}

/// The hyperbolic tangent of `x`, right to about 1e-7; what is no number stays so.
///
/// # Safety
/// The processor has the instructions of `A`.
#[inline(always)]
pub(crate) unsafe fn tanh<A: Arithmetic>(x: f32) -> f32 {
    // SAFETY: the caller's promise.
    1.0 - 2.0 / (1.0 + unsafe { exp::<A>(2.0 * x) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::Plain;

    #[test]
    fn it_is_near_the_exact_value_everywhere() {
        // SAFETY: plain code needs nothing.
        let exp = |x| unsafe { exp::<Plain>(x) };
        for step in -87_300..88_300 {
            let x = step as f32 / 1000.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 3e-7, "{} for e^{x} = {exact}", exp(x));
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::NEG_INFINITY) < 1.3e-38 && exp(f32::INFINITY) > 2e38);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn a_tangent_is_near_the_exact_value_everywhere() {
        // SAFETY: plain code needs nothing.
        let tanh = |x| unsafe { tanh::<Plain>(x) };
        for step in -20_000..20_000 {
            let x = step as f32 / 1000.0;
            let exact = f64::from(x).tanh();
            assert!((f64::from(tanh(x)) - exact).abs() < 2e-7, "{} for {x}", tanh(x));
        }
        assert_eq!((tanh(-1000.0), tanh(1000.0)), (-1.0, 1.0));
        assert!(tanh(f32::NAN).is_nan());
    }
}
