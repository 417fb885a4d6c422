//! The in-process provider: GGUF models on this machine.
//!
//! # Layout
//! - [`provider`]: [`CandleProvider`], a loaded model behind the provider trait.
//! - [`tokenizer`]: [`Vocabulary`], text to ids and back.
//! - [`template`]: the file's chat template, rendered where it can do no harm.
//! - [`prompt`]: [`ChatEncoder`], messages to ids by where their text came from.
//! - [`decoder`]: [`Decoder`], the model itself: tokens in, logits out.
//! - [`sampler`]: [`Sampler`], which token comes next.
//! - [`stream`]: [`TextStream`], tokens to text while they come.
//! - [`support`](mod@support): whether a file's model can be run, and every reason why not.
//! - [`reasoning`]: [`Reasoning`], how a model marks what it thinks before its answer.
//! - `constraint`: replies held to a form while they are generated.
//! - `engine`: the thread that owns the model and steps sequences.
//! - [`raw`]: [`RawModel`], ids in and ids out, without any of the above; [`bench`](mod@bench) measures it.
//! - [`memory`]: what a model needs, what there is, and which context fits.
//! - [`threads`], [`checksum`]: what is known about the process and the file.

pub mod bench;
pub mod checksum;
mod constraint;
pub mod decoder;
mod engine;
pub mod memory;
pub mod prompt;
pub mod provider;
pub mod raw;
pub mod reasoning;
pub mod sampler;
pub mod stream;
pub mod support;
pub mod template;
#[cfg(test)]
mod testing;
pub mod threads;
pub mod tokenizer;

pub use bench::{BenchError, BenchPlan, BenchReport, bench};
pub use decoder::Decoder;
pub use prompt::ChatEncoder;
pub use provider::{CandleProvider, LoadError, LoadOptions, LoadProgress, memory_plan};
pub use raw::{RawError, RawModel, RawOptions};
pub use reasoning::Reasoning;
pub use sampler::Sampler;
pub use stream::TextStream;
pub use support::{Reason, support};
pub use threads::{THREADS_VARIABLE, compute_threads};
pub use tokenizer::{Vocabulary, VocabularyError};
