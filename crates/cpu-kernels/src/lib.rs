//! Quantized matrix products, attention and what lies between them, on the CPU.
//!
//! # Layout
//! - [`kind`]: [`BlockKind`], how the weights of a file are stored in blocks.
//! - [`packed`]: [`PackedMatrix`], weights in the order in which they are multiplied.
//! - [`quantized`]: [`QuantizedRows`], activations as small integers.
//! - [`multiply`](mod@multiply): [`multiply_many`], several matrices with the same activations.
//! - [`attention`]: [`attend`], queries against keys and values.
//! - [`remembered`]: [`Remembered`], keys and values in the order in which they are used.
//! - [`gate`]: [`swiglu`] and [`geglu`], what stands between the feed-forward products.
//! - `arithmetic`, `exponential`: eight numbers at a time; the exponential function in a form that fills wide registers.
//! - [`threads`]: [`Threads`], who computes.
//! - `instructions`: what this processor can do; `portable` and `avx2`: the same sums, twice.
//! - [`storage`]: memory that is aligned, and free again when it is dropped; `columns`: output that
//!   several threads fill.
//!
//! # Invariants
//! - Every output is one row's affair, summed in one fixed order: neither the number of threads nor
//!   the rows beside it change a bit.
//! - Products with weights do not even depend on the processor: each block is an exact integer,
//!   and what follows is rounded alike everywhere. (Attention and the gate round once or twice per
//!   step, as the processor can.)
//! - Whatever is unsafe is in here, behind functions that check their lengths.

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
pub mod remembered;
pub mod storage;
pub mod threads;

pub use attention::{Heads, View, attend};
pub use gate::{geglu, swiglu};
pub use kind::BlockKind;
pub use multiply::{Product, ShapeError, multiply_many};
pub use packed::{PackError, PackedMatrix};
pub use quantized::QuantizedRows;
pub use remembered::Remembered;
pub use storage::{AlignedBytes, NoMemory};
pub use threads::{Threads, ThreadsError};
