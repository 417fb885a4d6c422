//! The vocabulary of a GGUF file, as a real tokenizer.
//!
//! - [`bytes`]: the byte alphabet of byte-level vocabularies.
//! - [`pre`]: how text is split before byte pairs are merged, by the name in the file.
//! - [`stops`]: which tokens end a turn.

mod bytes;
mod pre;
mod stops;

use std::collections::HashMap;
use std::path::Path;

use correx_context::EncodeError;
use thiserror::Error;
use tokenizers::models::bpe::BPE;
use tokenizers::{AddedToken, Tokenizer};

use correx_gguf::{Gguf, InspectError, Texts, inspect};

/// Why a file's vocabulary cannot be used.
#[derive(Debug, Error)]
pub enum VocabularyError {
    /// The file itself is unusable.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// The file lacks something, or holds it in a form that makes no sense.
    #[error("the model's vocabulary is damaged: {0}. Download the model again")]
    Damaged(String),
    /// The kind of tokenizer is not known.
    #[error(
        "the model uses the tokenizer `{0}`, which Correx does not know yet (it knows gpt2). Choose another model"
    )]
    Kind(String),
    /// The rule that splits text is not known; guessing one would give wrong tokens silently.
    #[error(
        "the model splits text by the rule `{name}`, which Correx does not know yet (it knows {known}). Choose another model"
    )]
    PreTokenizer {
        /// The name in the file.
        name: String,
        /// The names that are known.
        known: String,
    },
}

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    /// A piece of text in the byte alphabet.
    Normal,
    /// Steers the model; never made from plain text, never part of a reply's text.
    Control,
    /// A text that is always one token, also in plain text.
    UserDefined,
    /// Not used.
    Unused,
}

/// Text to token ids and back, as the model was trained.
///
/// Plain text never becomes a control token here: the tokenizer does not know their texts.
pub struct Vocabulary {
    tokenizer: Tokenizer,
    texts: Vec<String>,
    kinds: Vec<TokenKind>,
    /// Every token's bytes in a reply, one after another; token `i` ends at `ends[i]`.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    bos: Option<u32>,
    eos: Option<u32>,
    begins_with_bos: bool,
    stops: Vec<u32>,
}

impl Vocabulary {
    /// The vocabulary of the GGUF file at `path`. Reads the header only.
    pub fn open(path: &Path) -> Result<Self, VocabularyError> {
        Self::from_gguf(&inspect(path)?)
    }

    /// The vocabulary in a file's metadata.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, VocabularyError> {
        let kind = gguf.text("tokenizer.ggml.model").unwrap_or("(none)");
        if kind != "gpt2" {
            return Err(VocabularyError::Kind(kind.to_owned()));
        }
        let rule = pre::rule(gguf.text("tokenizer.ggml.pre").unwrap_or("default"))?;
        let texts = texts(gguf, "tokenizer.ggml.tokens")?;
        let texts: Vec<String> = texts.iter().map(str::to_owned).collect();
        if texts.is_empty() || u32::try_from(texts.len()).is_err() {
            return Err(VocabularyError::Damaged(format!("it has {} tokens", texts.len())));
        }
        let kinds = kinds(gguf, texts.len())?;
        let tokenizer = build(gguf, &texts, &kinds, rule)?;
        let (bytes, ends) = reply_bytes(&texts, &kinds);
        let token = |key: &str| -> Result<Option<u32>, VocabularyError> {
            let Some(id) = gguf.number(&format!("tokenizer.ggml.{key}_token_id")) else {
                return Ok(None);
            };
            match u32::try_from(id) {
                Ok(id) if (id as usize) < texts.len() => Ok(Some(id)),
                _ => Err(VocabularyError::Damaged(format!("its {key} token is {id}"))),
            }
        };
        let (bos, eos) = (token("bos")?, token("eos")?);
        let mut stops: Vec<u32> =
            [eos, token("eot")?, token("eom")?].into_iter().flatten().collect();
        stops.extend((0u32..).zip(texts.iter().zip(&kinds)).filter_map(|(id, (text, kind))| {
            (*kind != TokenKind::Normal && stops::ends_a_turn(text)).then_some(id)
        }));
        stops.sort_unstable();
        stops.dedup();
        let begins_with_bos = bos.is_some()
            && gguf.flag("tokenizer.ggml.add_bos_token").unwrap_or(rule.begins_with_bos);
        Ok(Self { tokenizer, texts, kinds, bytes, ends, bos, eos, begins_with_bos, stops })
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there are no tokens. Never: such a file is refused.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The ids of `text`, with nothing added; what looks like a control token is plain text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, EncodeError> {
        Ok(self.encode_with_starts(text)?.0)
    }

    /// The ids of `text`, and for each the byte of `text` at which it begins.
    pub(crate) fn encode_with_starts(
        &self,
        text: &str,
    ) -> Result<(Vec<u32>, Vec<usize>), EncodeError> {
        let encoding = self
            .tokenizer
            .encode(text, false)
            .map_err(|error| EncodeError::Tokenizer(error.to_string()))?;
        let starts = encoding.get_offsets().iter().map(|(start, _)| *start).collect();
        Ok((encoding.get_ids().to_vec(), starts))
    }

    /// The bytes that `id` adds to a reply: none for control tokens and ids out of range.
    pub fn reply_bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(end) = self.ends.get(id) else { return &[] };
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[start..*end]
    }

    /// Whether `id` ends the model's turn.
    pub fn is_stop(&self, id: u32) -> bool {
        self.stops.binary_search(&id).is_ok()
    }

    /// The text of the token that begins a sequence, when the model has one.
    pub fn bos_text(&self) -> Option<&str> {
        self.bos.map(|id| self.texts[id as usize].as_str())
    }

    /// The text of the token that ends a sequence, when the model has one.
    pub fn eos_text(&self) -> Option<&str> {
        self.eos.map(|id| self.texts[id as usize].as_str())
    }

    /// The id that must stand at the front of every prompt, when the file asks for one.
    pub fn required_bos(&self) -> Option<u32> {
        self.bos.filter(|_| self.begins_with_bos)
    }

    /// The id that stands for "nothing yet" when a reply is made from an empty context.
    pub(crate) fn first_id(&self) -> u32 {
        self.bos.or(self.eos).unwrap_or(0)
    }

    /// The control tokens' texts and ids.
    pub fn control_tokens(&self) -> impl Iterator<Item = (&str, u32)> {
        (0u32..).zip(self.texts.iter().zip(&self.kinds)).filter_map(|(id, (text, kind))| {
            (*kind == TokenKind::Control && !text.is_empty()).then_some((text.as_str(), id))
        })
    }
}

fn texts<'a>(gguf: &'a Gguf, key: &str) -> Result<&'a Texts, VocabularyError> {
    gguf.texts(key).ok_or_else(|| VocabularyError::Damaged(format!("`{key}` is missing")))
}

fn kinds(gguf: &Gguf, count: usize) -> Result<Vec<TokenKind>, VocabularyError> {
    let Some(value) = gguf.metadata.get("tokenizer.ggml.token_type") else {
        return Ok(vec![TokenKind::Normal; count]);
    };
    let numbers = value.as_numbers().filter(|numbers| numbers.len() == count).ok_or_else(|| {
        VocabularyError::Damaged(format!("it has {count} tokens and {value} of their types"))
    })?;
    Ok(numbers
        .iter()
        .map(|number| match number {
            1 => TokenKind::Normal,
            4 => TokenKind::UserDefined,
            2 | 3 => TokenKind::Control,
            _ => TokenKind::Unused,
        })
        .collect())
}

fn build(
    gguf: &Gguf,
    texts: &[String],
    kinds: &[TokenKind],
    rule: &pre::Rule,
) -> Result<Tokenizer, VocabularyError> {
    let damaged = |error: tokenizers::Error| VocabularyError::Damaged(error.to_string());
    // Control and unused tokens get names outside the byte alphabet, so that no text and no merge
    // can lead to them.
    let entries: HashMap<String, u32> = (0u32..)
        .zip(texts.iter().zip(kinds))
        .map(|(id, (text, kind))| match kind {
            TokenKind::Normal | TokenKind::UserDefined => (text.clone(), id),
            TokenKind::Control | TokenKind::Unused => (format!("\u{fdd0}{id}"), id),
        })
        .collect();
    let merges: Vec<(String, String)> = texts_of_merges(gguf)?
        .into_iter()
        .filter(|(left, right)| {
            entries.contains_key(left)
                && entries.contains_key(right)
                && entries.contains_key(&format!("{left}{right}"))
        })
        .collect();
    // Rare bytes are missing in some vocabularies; their models never saw them, and they vanish.
    for byte in [b' ', b'\n'].into_iter().chain(b'!'..=b'~') {
        if !entries.contains_key(&bytes::character(byte).to_string()) {
            return Err(VocabularyError::Damaged(format!("it has no token for byte {byte}")));
        }
    }
    let model = BPE::builder()
        .vocab_and_merges(entries.into_iter().collect::<tokenizers::models::bpe::Vocab>(), merges)
        .ignore_merges(rule.whole_words_first)
        .build()
        .map_err(damaged)?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_pre_tokenizer(Some(rule.pre_tokenizer().map_err(damaged)?));
    let own: Vec<AddedToken> = texts
        .iter()
        .zip(kinds)
        .filter(|(text, kind)| **kind == TokenKind::UserDefined && !text.is_empty())
        .map(|(text, _)| AddedToken::from(text.clone(), false).normalized(false))
        .collect();
    tokenizer.add_tokens(own).map_err(damaged)?;
    Ok(tokenizer)
}

fn texts_of_merges(gguf: &Gguf) -> Result<Vec<(String, String)>, VocabularyError> {
    texts(gguf, "tokenizer.ggml.merges")?
        .iter()
        .map(|merge| {
            merge
                .char_indices()
                .skip(1)
                .find(|(_, character)| *character == ' ')
                .map(|(place, _)| (merge[..place].to_owned(), merge[place + 1..].to_owned()))
                .ok_or_else(|| VocabularyError::Damaged(format!("`{merge}` is no merge")))
        })
        .collect()
}

fn reply_bytes(texts: &[String], kinds: &[TokenKind]) -> (Vec<u8>, Vec<usize>) {
    let mut all = Vec::new();
    let mut ends = Vec::with_capacity(texts.len());
    for (text, kind) in texts.iter().zip(kinds) {
        match kind {
            TokenKind::Normal => match text.chars().map(bytes::byte).collect::<Option<Vec<u8>>>() {
                Some(decoded) => all.extend(decoded),
                None => all.extend(text.bytes()),
            },
            TokenKind::UserDefined => all.extend(text.bytes()),
            TokenKind::Control | TokenKind::Unused => {}
        }
        ends.push(all.len());
    }
    (all, ends)
}

#[cfg(test)]
mod tests;
