//! The in-process provider.
//!
//! # Layout
//! - [`inspect`]: a sound check of a GGUF file's header, before anything believes it.
//! - [`tokenizer`]: [`Vocabulary`], text to ids and back.

#[allow(missing_docs)]
pub mod inspect;
#[cfg(test)]
mod testing;
pub mod tokenizer;

pub use tokenizer::{Vocabulary, VocabularyError};
