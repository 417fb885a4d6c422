//! Messages, the provenance of their parts, and the tokens that a model really gets.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Who says a message, in the chat template's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Standing instructions.
    System,
    /// The person, or a stage's task.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name that chat templates use.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// A piece of a message whose tokens are counted as one entry's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePart {
    /// The entry that owns this text: an index into [`EncodedPrompt::entry_tokens`].
    pub entry: usize,
    /// Plain text. What looks like a control token in it stays text.
    pub text: String,
}

/// One message of a prompt. Its content is the parts' texts, one after another, nothing added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who says it.
    pub role: Role,
    /// What is said, by provenance. Separators belong to the part that they precede.
    pub parts: Vec<MessagePart>,
}

impl ChatMessage {
    /// A message of one part.
    pub fn new(role: Role, entry: usize, text: impl Into<String>) -> Self {
        Self { role, parts: vec![MessagePart { entry, text: text.into() }] }
    }

    /// The whole content.
    pub fn content(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect()
    }
}

/// A rendered and encoded prompt: the ids that the decoder is fed, and who owns them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncodedPrompt {
    /// Token ids in order, the generation prompt included. Empty when the provider counts only
    /// (a remote one); then `total` is an estimate.
    pub ids: Vec<u32>,
    /// Tokens that begin inside each entry's text, by entry index.
    pub entry_tokens: Vec<usize>,
    /// Tokens of the chat template itself: role marks, special tokens, generation prompt.
    pub template_tokens: usize,
    /// Where the reply begins.
    #[serde(default, skip_serializing_if = "ReplyStart::is_open")]
    pub reply_start: ReplyStart,
}

/// Where a prompt leaves a model that can think before it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyStart {
    /// The model decides: it may open its thinking, or answer at once.
    #[default]
    Open,
    /// Inside its thinking, which the chat template has opened.
    Thinking,
    /// In its answer: the chat template has closed the thinking.
    Answer,
}

impl ReplyStart {
    fn is_open(&self) -> bool {
        *self == Self::Open
    }
}

impl EncodedPrompt {
    /// All tokens: the sum of the entries' and the template's.
    pub fn total(&self) -> usize {
        self.entry_tokens.iter().sum::<usize>() + self.template_tokens
    }
}

/// Why a prompt could not be encoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The chat template refused the messages or failed.
    #[error("the model's chat template could not be applied: {0}")]
    Template(String),
    /// The tokenizer failed.
    #[error("the text could not be turned into tokens: {0}")]
    Tokenizer(String),
}

/// Counts the tokens of a text by itself, without a template.
pub trait TokenCounter: Send + Sync {
    /// The number of tokens of `text`; what looks like a control token counts as plain text.
    fn count(&self, text: &str) -> Result<usize, EncodeError>;
}

/// Renders messages through a model's chat template and encodes them.
///
/// Implementations encode text by where it came from: only the template's own text can become
/// control tokens.
pub trait PromptEncoder: TokenCounter {
    /// The prompt for `messages`, ending with the mark after which the assistant speaks.
    ///
    /// `entries` is the number of entries; every [`MessagePart::entry`] is below it.
    fn encode(
        &self,
        messages: &[ChatMessage],
        entries: usize,
    ) -> Result<EncodedPrompt, EncodeError>;

    /// Whether counts are a tokenizer's (exact) or a guess (a remote model without one).
    fn is_exact(&self) -> bool {
        true
    }
}
