//! The vocabulary of a GGUF file, as a real tokenizer.
//!
//! - [`tokens`]: what each token is for and says; [`pieces`]: their texts in one buffer;
//!   [`bytes`]: the byte alphabet of byte-level vocabularies; [`marks`]: tokens known by their texts.
//! - [`own`]: tokens that are cut out of plain text first.
//! - [`pre`]: how text is split before pieces are merged, by the name in the file;
//!   [`classes`]: the categories of characters.
//! - [`bpe`], [`spm`]: merging by pairs and by scores; [`model`]: both as `tokenizers` takes them.
//!
//! Ids are those of llama.cpp for the same file and text, with one exception: it may make a control
//! token of plain text that spells it, and we never do. The stock parts of `tokenizers` cannot be
//! exact in every case; where they are not used, the module that takes their place says why.

mod bpe;
mod bytes;
mod classes;
mod marks;
mod model;
mod own;
mod pieces;
mod pre;
mod spm;
mod tokens;

use std::path::Path;
use std::sync::Arc;

use correx_context::EncodeError;
use thiserror::Error;
use tokenizers::{DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, TokenizerImpl};

use correx_gguf::{Gguf, InspectError, inspect, shown};

use bpe::Bpe;
use model::{Merging, PieceModel};
use own::{OwnTokens, Part};
pub(crate) use own::{Strip, is_blank};
use pieces::Pieces;
pub use pre::names as pre_tokenizer_names;
use pre::{Begins, Splitter, Symbols};
use spm::{SpacePrefix, Spm};
use tokens::{TokenKind, Tokens, Writing};

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
        "the model uses the tokenizer `{0}`, which Correx does not know (it knows gpt2, llama and gemma4). Choose another model"
    )]
    Kind(String),
    /// The rule that splits text is not known; guessing one would give wrong tokens silently.
    #[error(
        "the model splits text by the rule `{name}`, which Correx does not know. Choose another model, or say by which rule it splits (`pre_tokenizer` in the settings, `--pre-tokenizer` on the command line), one of: {known}"
    )]
    PreTokenizer {
        /// The name in the file.
        name: String,
        /// The names that are known.
        known: String,
    },
}

type PieceTokenizer =
    TokenizerImpl<PieceModel, NormalizerWrapper, Splitter, PostProcessorWrapper, DecoderWrapper>;

/// Text to token ids and back, as the model was trained.
///
/// Plain text never becomes a control token here: the tokenizer does not know their texts.
pub struct Vocabulary {
    tokenizer: PieceTokenizer,
    own: OwnTokens,
    kinds: Vec<TokenKind>,
    /// What every token says.
    pieces: Arc<Pieces>,
    /// Tokens that take white space beside them away, in order.
    strips: Vec<(u32, Strip)>,
    bos: Option<u32>,
    eos: Option<u32>,
    begins_with_bos: bool,
    ends_with_eos: bool,
    stops: Vec<u32>,
}

/// What a file says about its tokenizer as a whole.
struct Kind {
    writing: Writing,
    /// How text is split; nothing for vocabularies that look at the whole text.
    rule: Option<&'static pre::Rule>,
    bos: Option<u32>,
    eos: Option<u32>,
    begins: Begins,
}

/// The key of the rule that splits text.
const PRE: &str = "tokenizer.ggml.pre";

impl Kind {
    fn of(gguf: &Gguf, pre_tokenizer: Option<&str>) -> Result<Self, VocabularyError> {
        let rule = match gguf.text("tokenizer.ggml.model").unwrap_or("(none)") {
            "llama" => {
                return Ok(Self {
                    writing: Writing::Spaced,
                    rule: None,
                    bos: Some(1),
                    eos: Some(2),
                    begins: Begins::UnlessTold,
                });
            }
            "gpt2" => {
                let named = gguf.text(PRE).filter(|name| !name.is_empty());
                let is_text = |value: &correx_gguf::Value| value.as_str().is_some();
                if pre_tokenizer.is_none() && !gguf.metadata.get(PRE).is_none_or(is_text) {
                    return Err(VocabularyError::Damaged(format!("`{PRE}` is no text")));
                }
                pre::rule(pre_tokenizer.or(named).unwrap_or("default"))?
            }
            "gemma4" => pre::rule(pre_tokenizer.unwrap_or("gemma4"))?,
            other => return Err(VocabularyError::Kind(shown(other).into_owned())),
        };
        let writing = match rule.symbols {
            Symbols::Bytes => Writing::Bytes,
            Symbols::Characters => Writing::Plain,
            Symbols::Spaced => Writing::Spaced,
        };
        let begins = rule.begins_with_bos;
        Ok(Self { writing, rule: Some(rule), bos: None, eos: None, begins })
    }
}

impl Vocabulary {
    /// The vocabulary of the GGUF file at `path`. Reads the header only.
    pub fn open(path: &Path) -> Result<Self, VocabularyError> {
        Self::open_with(path, None)
    }

    /// The same, with text split by the rule `pre_tokenizer` whatever the file says.
    pub fn open_with(path: &Path, pre_tokenizer: Option<&str>) -> Result<Self, VocabularyError> {
        Self::from_gguf_with(&inspect(path)?, pre_tokenizer)
    }

    /// The vocabulary in a file's metadata.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, VocabularyError> {
        Self::from_gguf_with(gguf, None)
    }

    /// The same, with text split by the rule `pre_tokenizer` (one of [`pre_tokenizer_names`])
    /// whatever the file says. Vocabularies that look at the whole text take no notice.
    pub fn from_gguf_with(
        gguf: &Gguf,
        pre_tokenizer: Option<&str>,
    ) -> Result<Self, VocabularyError> {
        let kind = Kind::of(gguf, pre_tokenizer)?;
        let texts = tokens::texts(gguf)?;
        let tokens = Tokens::new(gguf, texts, kind.writing)?;
        let merging = match kind.rule {
            Some(rule) => Merging::Pairs(Bpe::new(gguf, texts, &tokens, rule)?),
            None => {
                let prefix = match gguf.flag("tokenizer.ggml.add_space_prefix") {
                    Some(false) => SpacePrefix::None,
                    _ => SpacePrefix::Added,
                };
                Merging::Scores(Spm::new(gguf, texts, &tokens, prefix)?)
            }
        };
        let pieces = tokens.pieces.clone();
        let mut tokenizer = PieceTokenizer::new(PieceModel { merging, pieces: pieces.clone() });
        if let Some(rule) = kind.rule {
            tokenizer.with_pre_tokenizer(Some(Splitter::new(rule)?));
        }
        let named = |name: &str| {
            let id = gguf.number(&format!("tokenizer.ggml.{name}_token_id"))?;
            u32::try_from(id).ok().filter(|id| (*id as usize) < texts.len())
        };
        let known = |id: &u32| (*id as usize) < texts.len();
        let bos = named("bos").or(kind.bos.filter(known));
        let eos = named("eos").or(kind.eos.filter(known));
        let stops = marks::ends(texts, |name| if name == "eos" { eos } else { named(name) });
        let strips = own::strips(gguf, texts, &tokens.kinds);
        let own = OwnTokens::new((0u32..).zip(texts.iter().zip(&tokens.kinds)).filter_map(
            |(id, (text, kind))| {
                let strip = strip_of(&strips, id);
                (*kind == TokenKind::UserDefined).then(|| (id, text.to_owned(), strip))
            },
        ));
        let told = gguf.flag("tokenizer.ggml.add_bos_token");
        let begins = match kind.begins {
            Begins::IfTold => told.unwrap_or(false),
            Begins::UnlessTold => told.unwrap_or(true),
            Begins::Always => true,
        };
        let ends_with_eos = gguf.flag("tokenizer.ggml.add_eos_token").unwrap_or(false);
        Ok(Self {
            tokenizer,
            own,
            kinds: tokens.kinds,
            pieces,
            strips,
            bos,
            eos,
            begins_with_bos: begins && bos.is_some(),
            ends_with_eos: ends_with_eos && eos.is_some(),
            stops,
        })
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are no tokens. Never: such a file is refused.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The ids of `text`, with nothing added; what looks like a control token is plain text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, EncodeError> {
        Ok(self.encode_with_starts(text)?.0)
    }

    /// The same, with the tokens around it that the file asks for.
    pub fn encode_sequence(&self, text: &str) -> Result<Vec<u32>, EncodeError> {
        let mut ids: Vec<u32> = self.required_bos().into_iter().collect();
        ids.extend(self.encode(text)?);
        ids.extend(self.eos.filter(|_| self.ends_with_eos));
        Ok(ids)
    }

    /// The ids of `text`, and for each the byte of `text` at which it begins. A space that the
    /// vocabulary puts in front belongs to the first character; an id that is one byte of a
    /// character begins where the character does.
    pub(crate) fn encode_with_starts(
        &self,
        text: &str,
    ) -> Result<(Vec<u32>, Vec<usize>), EncodeError> {
        let (mut ids, mut starts) = (Vec::new(), Vec::new());
        for part in self.own.cut(text) {
            match part {
                Part::Token(id, start) => {
                    ids.push(id);
                    starts.push(start);
                }
                Part::Text(from, to) => {
                    let encoding = self
                        .tokenizer
                        .encode(&text[from..to], false)
                        .map_err(|error| EncodeError::Tokenizer(error.to_string()))?;
                    ids.extend_from_slice(encoding.get_ids());
                    starts.extend(encoding.get_offsets().iter().map(|(start, _)| from + start));
                }
            }
        }
        Ok((ids, starts))
    }

    /// The bytes that `id` adds to a reply: none for control tokens and ids out of range.
    pub fn reply_bytes(&self, id: u32) -> &[u8] {
        match self.kinds.get(id as usize) {
            None | Some(TokenKind::Control) => &[],
            Some(_) => self.pieces.get(id),
        }
    }

    /// The bytes of `id` where it is text and nothing else: none for control tokens, for tokens that
    /// end a turn, and for those that look like marks (`<tool_call>`). Their texts can be spelled.
    pub(crate) fn plain_bytes(&self, id: u32) -> &[u8] {
        let bytes = self.reply_bytes(id);
        let own = self.kinds.get(id as usize) == Some(&TokenKind::UserDefined);
        let is_mark = matches!(bytes, [b'<', .., b'>'] | [b'[', .., b']']);
        if self.is_stop(id) || own && is_mark { &[] } else { bytes }
    }

    /// Whether `id` ends the model's turn.
    pub fn is_stop(&self, id: u32) -> bool {
        self.stops.binary_search(&id).is_ok()
    }

    /// The tokens that end the model's turn, in order.
    pub fn stops(&self) -> &[u32] {
        &self.stops
    }

    /// The text of the token that begins a sequence, when the model has one.
    pub fn bos_text(&self) -> Option<&str> {
        self.bos.and_then(|id| self.text(id))
    }

    /// The text of the token that ends a sequence, when the model has one.
    pub fn eos_text(&self) -> Option<&str> {
        self.eos.and_then(|id| self.text(id))
    }

    fn text(&self, id: u32) -> Option<&str> {
        std::str::from_utf8(self.pieces.get(id)).ok()
    }

    /// The id that must stand at the front of every prompt, when the file asks for one.
    pub fn required_bos(&self) -> Option<u32> {
        self.bos.filter(|_| self.begins_with_bos)
    }

    /// The id that stands for "nothing yet" when a reply is made from an empty context.
    pub(crate) fn first_id(&self) -> u32 {
        self.bos.or(self.eos).unwrap_or(0)
    }

    /// Whether `text` is a token that is no piece of a word: a control token, or a text that is
    /// always one token.
    pub(crate) fn is_own_token(&self, text: &str) -> bool {
        (0u32..).zip(&self.kinds).any(|(id, kind)| {
            matches!(kind, TokenKind::Control | TokenKind::UserDefined)
                && self.text(id) == Some(text)
        })
    }

    /// The control tokens' texts and ids.
    pub fn control_tokens(&self) -> impl Iterator<Item = (&str, u32)> {
        (0u32..).zip(&self.kinds).filter_map(|(id, kind)| {
            let text = self.text(id).filter(|text| !text.is_empty())?;
            (*kind == TokenKind::Control).then_some((text, id))
        })
    }

    /// The white space beside `id` in a prompt that is taken away with it.
    pub(crate) fn strip(&self, id: u32) -> Strip {
        strip_of(&self.strips, id)
    }
}

fn strip_of(strips: &[(u32, Strip)], id: u32) -> Strip {
    match strips.binary_search_by_key(&id, |(id, _)| *id) {
        Ok(place) => strips[place].1,
        Err(_) => Strip::default(),
    }
}

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
