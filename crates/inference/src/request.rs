//! One inference: what goes in, what comes out, what streams between.

use std::sync::Arc;

use correx_context::{ContextPack, EncodeError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{FinishReason, FormatError, GenerationConfig};

/// A prompt and how to answer it.
#[derive(Debug, Clone)]
pub struct InferenceRequest {
    /// What the model is shown: entries, the messages in their rendered order, and the encoded
    /// ids. A local provider is fed `context_pack.prompt.ids`, nothing else.
    pub context_pack: ContextPack,
    /// How to answer.
    pub generation: GenerationConfig,
    /// Prompts with the same key probably share a prefix (a conversation, a stage).
    pub cache_key: String,
}

/// A finished (or stopped) inference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InferenceResponse {
    /// The answer, without any stop token and without the thinking before it.
    pub text: String,
    /// What the model thought before its answer; `None` when it did not.
    pub thinking: Option<Thinking>,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// The ids that the decoder was really fed as the prompt.
    pub prompt_ids: Vec<u32>,
    /// Of those, how many were already in the key/value cache.
    pub reused_tokens: usize,
    /// Tokens generated, those of the thinking included, a final stop token not counted.
    pub output_tokens: usize,
    /// Time from the request to the first token, in milliseconds.
    pub prompt_ms: u64,
    /// Time from the first token to the last, in milliseconds.
    pub reply_ms: u64,
    /// The device that ran it.
    pub device: String,
}

/// What a model thought before its answer. Never shown to a model again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinking {
    /// The text between the tags; never empty.
    pub text: String,
    /// Tokens from the reply's beginning to the end of the thinking.
    pub tokens: usize,
}

impl InferenceResponse {
    /// Whether the model thought and then said nothing: no answer, however the reply ended.
    pub fn only_thought(&self) -> bool {
        self.thinking.is_some() && self.text.trim().is_empty()
    }

    /// Tokens of the thinking.
    pub fn thinking_tokens(&self) -> usize {
        self.thinking.as_ref().map_or(0, |thinking| thinking.tokens)
    }
}

/// Progress of an inference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// So much of the prompt has been evaluated.
    Prompt {
        /// Tokens evaluated or reused.
        done: usize,
        /// All tokens of the prompt.
        total: usize,
    },
    /// More of the thinking before the answer: whole characters only. The pieces add up to the
    /// response's thinking.
    Thinking {
        /// The new text.
        text: String,
        /// Tokens generated so far.
        tokens: usize,
    },
    /// More of the answer: whole characters only. The pieces add up to the response's text.
    Text {
        /// The new text.
        text: String,
        /// Tokens generated so far.
        tokens: usize,
    },
}

/// Receives progress; called on the engine's thread, so it must not block.
#[derive(Clone)]
pub struct StreamSink(Arc<dyn Fn(StreamEvent) + Send + Sync>);

impl StreamSink {
    /// Calls `f` for every event.
    pub fn new(f: impl Fn(StreamEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }

    /// Ignores everything.
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    /// Hands `event` on.
    pub fn send(&self, event: StreamEvent) {
        (self.0)(event);
    }
}

impl std::fmt::Debug for StreamSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamSink")
    }
}

/// Why an inference failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InferenceError {
    /// The prompt leaves no room for a reply. Found before anything is evaluated.
    #[error("the prompt has {prompt} tokens; the model's window holds {window}")]
    TooLong {
        /// Tokens of the prompt.
        prompt: usize,
        /// The window.
        window: usize,
    },
    /// The prompt could not be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The reply cannot be held to the form that was asked for. Found before anything is evaluated.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The engine failed.
    #[error("the model failed: {0}")]
    Engine(String),
    /// The engine is gone (the process is ending, or its thread died).
    #[error("the model is not running")]
    Gone,
}
