//! What each token is for and what it says.

use std::sync::Arc;

use correx_gguf::{Gguf, Texts};

use super::pieces::Pieces;
use super::{VocabularyError, bytes, marks};

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A piece of text.
    Normal,
    /// Steers the model, or stands for what is unknown; never made from plain text, never part of
    /// a reply's text.
    Control,
    /// A text that is always one token, also in plain text.
    UserDefined,
    /// One byte.
    Byte,
    /// Not used: says nothing.
    Unused,
}

/// How a vocabulary writes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// In the byte alphabet.
    Bytes,
    /// As it is.
    Plain,
    /// As it is, with `▁` for spaces.
    Spaced,
}

/// The tokens of a file.
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) kinds: Vec<TokenKind>,
    /// What each token says; for control tokens, the text that templates write.
    pub(super) pieces: Arc<Pieces>,
}

impl Tokens {
    pub(super) fn new(
        gguf: &Gguf,
        texts: &Texts,
        writing: Writing,
    ) -> Result<Self, VocabularyError> {
        let mut kinds = kinds(gguf, texts.len())?;
        marks::correct(texts, &mut kinds);
        let mut pieces = Pieces::default();
        for (text, kind) in texts.iter().zip(&kinds) {
            match kind {
                TokenKind::Normal => match writing {
                    Writing::Bytes => {
                        match text.chars().map(bytes::byte).collect::<Option<Vec<u8>>>() {
                            Some(decoded) => pieces.push(decoded),
                            None => pieces.push(text.bytes()),
                        }
                    }
                    Writing::Plain => pieces.push(text.bytes()),
                    Writing::Spaced => pieces.push(text.replace('▁', " ").bytes()),
                },
                TokenKind::Byte => pieces.push(byte_of(text)),
                TokenKind::Control | TokenKind::UserDefined => pieces.push(text.bytes()),
                TokenKind::Unused => pieces.push([]),
            }
        }
        Ok(Self { kinds, pieces: Arc::new(pieces) })
    }
}

/// The byte that `<0x..>` names.
fn byte_of(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    u8::from_str_radix(digits, 16).ok()
}

/// The texts as the file has them.
pub(super) fn texts(gguf: &Gguf) -> Result<&Texts, VocabularyError> {
    let texts = gguf
        .texts("tokenizer.ggml.tokens")
        .ok_or_else(|| VocabularyError::Damaged("`tokenizer.ggml.tokens` is missing".into()))?;
    if texts.is_empty() || texts.len() > (u32::MAX / 2) as usize {
        return Err(VocabularyError::Damaged(format!("it has {} tokens", texts.len())));
    }
    Ok(texts)
}

fn kinds(gguf: &Gguf, count: usize) -> Result<Vec<TokenKind>, VocabularyError> {
    let Some(value) = gguf.metadata.get("tokenizer.ggml.token_type") else {
        return Ok(vec![TokenKind::Normal; count]);
    };
    let numbers = value.as_numbers().filter(|numbers| numbers.len() >= count).ok_or_else(|| {
        VocabularyError::Damaged(format!("it has {count} tokens and {value} of their types"))
    })?;
    Ok(numbers
        .iter()
        .take(count)
        .map(|number| match number {
            1 => TokenKind::Normal,
            2 | 3 => TokenKind::Control,
            4 => TokenKind::UserDefined,
            6 => TokenKind::Byte,
            _ => TokenKind::Unused,
        })
        .collect())
}
