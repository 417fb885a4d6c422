//! Quantized matrix products, attention and what lies between them, on the CPU.
//!
//! # Layout
//! - [`kind`]: [`BlockKind`], how the weights of a file are stored in blocks.
//! - [`packed`]: [`PackedMatrix`], weights in the order in which they are multiplied.
//! - [`quantized`]: [`QuantizedRows`], activations as small integers.
//! - [`multiply`](mod@multiply): [`multiply_many`], several matrices with the same activations.
//! - [`attention`]: [`attend`], queries against keys and values.
//! - [`gate`]: [`swiglu`], what stands between the feed-forward products.
//! - `arithmetic`, `exponential`: eight numbers at a time; the exponential function in a form that fills wide registers.
//! - [`threads`]: [`Threads`], who computes.
//! - `instructions`: what this processor can do; `portable` and `avx2`: the same sums, twice.
//! - `storage`, `columns`: memory that is aligned, and output that several threads fill.
//!
//! # Invariant
//! Every output is the sum of its own row's blocks in ascending order, each block an exact integer
//! product scaled in single precision. Threads, neighbouring rows and the kind of processor change
//! no bit of it.

mod arithmetic;
pub mod attention;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod columns;
mod exponential;
pub mod gate;
mod instructions;
pub mod kind;
pub mod multiply;
pub mod packed;
mod portable;
pub mod quantized;
mod storage;
pub mod threads;

pub use attention::{Heads, attend};
pub use gate::swiglu;
pub use kind::BlockKind;
pub use multiply::{Product, ShapeError, multiply_many};
pub use packed::{PackError, PackedMatrix};
pub use quantized::QuantizedRows;
pub use threads::{Threads, ThreadsError};
