//! What the tests of this crate share: the real default model, small vocabularies.

mod vocabularies;

use std::path::PathBuf;

use tokenizers::models::bpe::BPE;
use tokenizers::{AddedToken, PreTokenizerWrapper, Tokenizer};

use correx_events::{Clock, Timestamp};
use correx_gguf::{Gguf, inspect};

pub(crate) use vocabularies::{CONTROL, small_pieces, small_vocabulary, small_vocabulary_with};

/// A clock that stands still: on 4 July 2025, unless it is set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FixedClock(pub(crate) Timestamp);

impl Default for FixedClock {
    fn default() -> Self {
        Self(Timestamp::from_second(1_751_630_400).unwrap())
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// The default model's file.
pub(crate) fn default_model() -> PathBuf {
    let path = std::env::var_os("CORREX_MODEL").map(PathBuf::from).unwrap_or_else(|| {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../models/SmolLM2-135M-Instruct.Q4_1.gguf")
    });
    assert!(path.exists(), "{} is missing: run `cargo xtask setup`", path.display());
    path
}

/// The default model's header.
pub(crate) fn default_gguf() -> Gguf {
    inspect(&default_model()).unwrap()
}

/// The file's tokenizer as its publisher defines it, control tokens parsed.
pub(crate) fn reference_tokenizer(
    gguf: &Gguf,
    pre_tokenizer: impl Into<PreTokenizerWrapper>,
) -> Tokenizer {
    let texts = gguf.metadata["tokenizer.ggml.tokens"].as_texts().unwrap();
    let kinds = gguf.metadata["tokenizer.ggml.token_type"].as_numbers().unwrap();
    let merges = gguf.metadata["tokenizer.ggml.merges"].as_texts().unwrap();
    let vocabulary: tokenizers::models::bpe::Vocab =
        texts.iter().map(str::to_owned).zip(0u32..).collect();
    let merges = merges
        .iter()
        .map(|merge| merge.split_once(' ').unwrap())
        .map(|(left, right)| (left.to_owned(), right.to_owned()))
        .collect();
    let model = BPE::builder().vocab_and_merges(vocabulary, merges).build().unwrap();
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_pre_tokenizer(Some(pre_tokenizer.into()));
    let special: Vec<AddedToken> = texts
        .iter()
        .zip(kinds.iter())
        .filter(|(_, kind)| *kind == 3)
        .map(|(text, _)| AddedToken::from(text.to_owned(), true).normalized(false))
        .collect();
    tokenizer.add_special_tokens(special).unwrap();
    tokenizer
}
