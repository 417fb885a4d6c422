//! Whether a model can be run, from its header alone.

use std::fmt;

use correx_gguf::Gguf;
use thiserror::Error;

use crate::decoder::{ConfigError, Decoder, DecoderConfig, WeightsError};
use crate::tokenizer::{Vocabulary, VocabularyError};

/// Why a model cannot be run. The text says what to do.
#[derive(Debug, Error)]
pub enum Reason {
    /// The family is not run, or its numbers make no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The vocabulary cannot be used.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    /// The vocabulary and the weights do not belong together.
    #[error(
        "the model file is damaged: it has {tokens} tokens and weights for {rows}. Download it again"
    )]
    Mismatch {
        /// Tokens of the vocabulary.
        tokens: usize,
        /// Rows of the embedding.
        rows: usize,
    },
    /// Weights are missing or cannot be computed with.
    #[error("{problem}{}", More(*others))]
    Weights {
        /// The first problem of its kind.
        #[source]
        problem: WeightsError,
        /// How many others there are of that kind.
        others: usize,
    },
}

/// Looks for everything that would keep the model from being loaded. The weights are not read.
/// Loading refuses for the same reasons, before it reads them.
pub fn support(gguf: &Gguf) -> Result<(), Vec<Reason>> {
    let mut reasons = Vec::new();
    let config = DecoderConfig::from_gguf(gguf);
    let vocabulary = Vocabulary::from_gguf(gguf);
    if let (Ok(config), Ok(vocabulary)) = (&config, &vocabulary) {
        reasons.extend(mismatch(config, vocabulary));
    }
    let problems = grouped(Decoder::problems(gguf, config.as_ref().ok()));
    reasons.extend(config.err().map(Reason::from));
    reasons.extend(problems);
    reasons.extend(vocabulary.err().map(Reason::from));
    if reasons.is_empty() { Ok(()) } else { Err(reasons) }
}

/// Some files pad the embedding; tokens without a row would be a mistake.
fn mismatch(config: &DecoderConfig, vocabulary: &Vocabulary) -> Option<Reason> {
    let (tokens, rows) = (vocabulary.len(), config.vocabulary);
    (tokens > rows).then_some(Reason::Mismatch { tokens, rows })
}

/// The first problem of every kind, with the number of the others.
fn grouped(problems: Vec<WeightsError>) -> Vec<Reason> {
    let mut groups: Vec<(WeightsError, usize)> = Vec::new();
    for problem in problems {
        match groups.iter_mut().find(|(first, _)| alike(first, &problem)) {
            Some((_, others)) => *others += 1,
            None => groups.push((problem, 0)),
        }
    }
    groups.into_iter().map(|(problem, others)| Reason::Weights { problem, others }).collect()
}

fn alike(one: &WeightsError, other: &WeightsError) -> bool {
    match (one, other) {
        (WeightsError::TensorType { kind, .. }, WeightsError::TensorType { kind: other, .. }) => {
            kind == other
        }
        (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

/// Says how many others there are.
struct More(usize);

impl fmt::Display for More {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => f.write_str(" (one other is like it)"),
            others => write!(f, " ({others} others are like it)"),
        }
    }
}

#[cfg(test)]
mod tests;
