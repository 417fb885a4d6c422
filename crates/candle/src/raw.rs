//! A model without chat, conversation or engine: ids in, ids out. For measuring from outside.

use std::path::Path;
use std::sync::Arc;

use correx_context::ReplyStart;
use correx_inference::{FormatError, GenerationConfig, InferenceCancellationToken};
use thiserror::Error;

use crate::constraint::{Forms, Held, Permitted, Progress, Stuck};
use crate::decoder::{Decoder, KvCache, Logits, Segment, Step, StepError};
use crate::provider::{LoadError, LoadProgress, Loaded};
use crate::reasoning::ReplyText;
use crate::sampler::{NoChoice, Sampler};
use crate::tokenizer::Vocabulary;
use correx_gguf::inspect;

/// Tokens of a prompt that are evaluated at once.
const CHUNK: usize = 64;

/// Why ids could not be generated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RawError {
    /// There is nothing to go on from.
    #[error("the prompt is empty. Give at least one token")]
    Empty,
    /// The prompt fills the window.
    #[error("the prompt has {prompt} tokens; the model's window holds {window}. Shorten it")]
    TooLong {
        /// Tokens of the prompt.
        prompt: usize,
        /// The window.
        window: usize,
    },
    /// The computation failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The result is not usable.
    #[error(transparent)]
    NoChoice(#[from] NoChoice),
    /// The reply cannot be held to the form that was asked for.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The reply cannot go on in its form.
    #[error("the reply could not be held to its form: {0}")]
    Stuck(String),
}

impl From<Stuck> for RawError {
    fn from(stuck: Stuck) -> Self {
        match stuck {
            Stuck::TooLarge(text) => Self::Format(FormatError::TooLarge(text)),
            Stuck::Other(text) => Self::Stuck(text),
        }
    }
}

/// How to load a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RawOptions<'a> {
    /// Threads that compute; `None`: [`compute_threads`](crate::compute_threads).
    pub threads: Option<usize>,
    /// The rule that splits text, whatever the file says; `None`: the file's.
    pub pre_tokenizer: Option<&'a str>,
}

/// A model that is stepped by its caller.
pub struct RawModel {
    decoder: Decoder,
    vocabulary: Arc<Vocabulary>,
    forms: Forms,
}

impl RawModel {
    /// Loads the GGUF file at `path`; `progress` hears how far it is.
    pub fn load(path: &Path, progress: impl Fn(LoadProgress)) -> Result<Self, LoadError> {
        Self::load_with(path, RawOptions::default(), progress)
    }

    /// The same, as `options` say.
    pub fn load_with(
        path: &Path,
        options: RawOptions<'_>,
        progress: impl Fn(LoadProgress),
    ) -> Result<Self, LoadError> {
        let cancel = InferenceCancellationToken::new();
        let RawOptions { threads, pre_tokenizer } = options;
        let loaded = Loaded::new(&inspect(path)?, threads, pre_tokenizer, &cancel, progress)?;
        let forms = Forms::new(loaded.vocabulary.clone());
        Ok(Self { decoder: loaded.decoder, vocabulary: loaded.vocabulary, forms })
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The model's window in tokens.
    pub fn context_window(&self) -> usize {
        self.decoder.config().context
    }

    /// Goes on from `prompt` until a stop token, the end of its form, `generation.max_tokens` or the
    /// end of the window. Every id goes to `on_token` as it comes; a stop token is not part of the result.
    pub fn generate_ids(
        &self,
        prompt: &[u32],
        generation: &GenerationConfig,
        mut on_token: impl FnMut(u32),
    ) -> Result<Vec<u32>, RawError> {
        let window = self.context_window();
        if prompt.len() >= window {
            return Err(RawError::TooLong { prompt: prompt.len(), window });
        }
        let vocabulary = &*self.vocabulary;
        let mut text = ReplyText::new(None, ReplyStart::Answer, None);
        let mut held = self
            .forms
            .compile(&generation.format)?
            .map(|constraint| Held::new(constraint, None, ReplyStart::Answer, vocabulary));
        let mut cache = self.new_cache();
        let mut sampler = Sampler::new(generation);
        let most = generation.max_tokens.min(window - prompt.len());
        let mut reply = Vec::new();
        let mut logits = self.evaluate(&mut cache, prompt)?;
        while reply.len() < most {
            // Padded rows of the output are no tokens.
            logits.truncate(vocabulary.len());
            let permitted = held.as_mut().map_or(Ok(Permitted::All), Held::permitted)?;
            let id = match (&held, permitted) {
                (Some(held), Permitted::Only(ids)) => {
                    sampler.choose_among(&ids, &mut logits, held.words(&ids))?
                }
                _ => sampler.choose(&mut logits, &reply)?,
            };
            if vocabulary.is_stop(id) {
                break;
            }
            reply.push(id);
            on_token(id);
            if let Some(held) = &mut held {
                text.push(id, vocabulary);
                if held.take(id, &text, vocabulary)? == Progress::Complete {
                    break;
                }
            }
            if reply.len() < most {
                logits = self.evaluate(&mut cache, &[id])?;
            }
        }
        Ok(reply)
    }

    /// Threads that compute.
    pub fn threads(&self) -> usize {
        self.decoder.threads()
    }

    pub(crate) fn new_cache(&self) -> KvCache {
        self.decoder.new_cache(self.context_window())
    }

    /// Adds `ids` to `cache` and returns the logits behind them.
    pub(crate) fn evaluate(&self, cache: &mut KvCache, ids: &[u32]) -> Result<Vec<f32>, RawError> {
        let mut behind = Err(RawError::Empty);
        let chunks = ids.len().div_ceil(CHUNK);
        for (number, ids) in ids.chunks(CHUNK).enumerate() {
            let last = number + 1 == chunks;
            let logits = if last { Logits::Last } else { Logits::Skip };
            let segment = Segment { cache: &mut *cache, ids, logits };
            if let Step::Done(mut logits) = self.decoder.step(&mut [segment], &|| false)?
                && let Some(logits) = logits.pop().flatten()
            {
                behind = Ok(logits);
            }
        }
        behind
    }
}
