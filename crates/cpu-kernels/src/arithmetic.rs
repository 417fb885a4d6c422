//! Single-precision arithmetic, eight numbers at a time: in plain code, and with AVX2 and FMA.
//!
//! A function that is generic over [`Arithmetic`] and inlined into one that is compiled for these
//! instructions uses them; the compiler alone does not find the wide form of larger loops.

/// Numbers in a register.
pub(crate) const LANES: usize = 8;

/// A way to calculate.
///
/// # Safety
/// All functions: the processor has the instructions of the implementation.
pub(crate) trait Arithmetic {
    /// Eight numbers.
    type Eight: Copy;

    /// `a * b + c`; whether it is rounded once or twice differs.
    unsafe fn multiply_add_one(a: f32, b: f32, c: f32) -> f32;
    unsafe fn splat(number: f32) -> Self::Eight;
    unsafe fn load(from: &[f32; LANES]) -> Self::Eight;
    unsafe fn store(numbers: Self::Eight, to: &mut [f32; LANES]);
    /// `a * b + c`, lane by lane, rounded as by [`multiply_add_one`](Self::multiply_add_one).
    unsafe fn multiply_add(a: Self::Eight, b: Self::Eight, c: Self::Eight) -> Self::Eight;
    unsafe fn add(a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// The greater in every lane, `b` if they cannot be compared.
    unsafe fn greater(a: Self::Eight, b: Self::Eight) -> Self::Eight;
}

/// Plain code.
pub(crate) struct Plain;

impl Arithmetic for Plain {
    type Eight = [f32; LANES];

    #[inline(always)]
    unsafe fn multiply_add_one(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }

    #[inline(always)]
    unsafe fn splat(number: f32) -> Self::Eight {
        [number; LANES]
    }

    #[inline(always)]
    unsafe fn load(from: &[f32; LANES]) -> Self::Eight {
        *from
    }

    #[inline(always)]
    unsafe fn store(numbers: Self::Eight, to: &mut [f32; LANES]) {
        *to = numbers;
    }

    #[inline(always)]
    unsafe fn multiply_add(a: Self::Eight, b: Self::Eight, c: Self::Eight) -> Self::Eight {
        std::array::from_fn(|lane| a[lane] * b[lane] + c[lane])
    }

    #[inline(always)]
    unsafe fn add(a: Self::Eight, b: Self::Eight) -> Self::Eight {
        std::array::from_fn(|lane| a[lane] + b[lane])
    }

    #[inline(always)]
    unsafe fn greater(a: Self::Eight, b: Self::Eight) -> Self::Eight {
        std::array::from_fn(|lane| if a[lane] > b[lane] { a[lane] } else { b[lane] })
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use wide::Avx2;

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;

    use super::{Arithmetic, LANES};

    /// AVX2 and FMA.
    pub(crate) struct Avx2;

    // SAFETY of every block: the caller's promise that the processor has the instructions; what is
    // loaded and stored are eight numbers.
    #[allow(clippy::undocumented_unsafe_blocks, reason = "one reason for all, above")]
    impl Arithmetic for Avx2 {
        type Eight = __m256;

        #[inline(always)]
        unsafe fn multiply_add_one(a: f32, b: f32, c: f32) -> f32 {
            a.mul_add(b, c)
        }

        #[inline(always)]
        unsafe fn splat(number: f32) -> __m256 {
            unsafe { _mm256_set1_ps(number) }
        }

        #[inline(always)]
        unsafe fn load(from: &[f32; LANES]) -> __m256 {
            unsafe { _mm256_loadu_ps(from.as_ptr()) }
        }

        #[inline(always)]
        unsafe fn store(numbers: __m256, to: &mut [f32; LANES]) {
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), numbers) }
        }

        #[inline(always)]
        unsafe fn multiply_add(a: __m256, b: __m256, c: __m256) -> __m256 {
            unsafe { _mm256_fmadd_ps(a, b, c) }
        }

        #[inline(always)]
        unsafe fn add(a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_add_ps(a, b) }
        }

        #[inline(always)]
        unsafe fn greater(a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_max_ps(a, b) }
        }
    }
}
