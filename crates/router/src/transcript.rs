//! Where conversations are kept: beside the event log, never in it.

use async_trait::async_trait;
use correx_context::{ContextLayer, SourceType};
use correx_events::{NoteId, SessionId, Timestamp, TurnId};
pub use correx_inference::Thinking;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::TurnRole;

/// One turn as it is kept. Turns form a tree: an edited message is a sibling of the first one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TranscriptTurn {
    /// Its name.
    pub turn_id: TurnId,
    /// The session.
    pub session_id: SessionId,
    /// The turn that it follows; `None` for the first.
    pub parent: Option<TurnId>,
    /// Who speaks.
    pub role: TurnRole,
    /// The text; of an answer being written, what is there so far.
    pub content: String,
    /// What the model thought before its answer: shown to people, never to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// Of a person's turn: whether it was meant to change the run.
    #[serde(default)]
    pub steering: bool,
    /// The note that it became.
    #[serde(default)]
    pub note_id: Option<NoteId>,
    /// How far it is.
    pub status: TurnStatus,
    /// When it was said.
    pub timestamp: Timestamp,
    /// How an answer was made.
    #[serde(default)]
    pub report: Option<ReplyReport>,
}

/// How far a turn is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TurnStatus {
    /// An answer being written, or a message whose answer is not finished.
    Pending,
    /// Whole.
    Complete,
    /// Stopped by a person, or by the end of the process; what is there was kept.
    Stopped,
    /// Failed.
    Failed {
        /// Why.
        message: String,
    },
}

/// How an answer was made: the router's model calls are no events, so this stands beside the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplyReport {
    /// What the model was shown, in layer order, kept and dropped.
    pub entries: Vec<ReportedEntry>,
    /// Tokens of the chat template itself.
    pub template_tokens: usize,
    /// All tokens of the prompt.
    pub prompt_tokens: usize,
    /// The most it might have had.
    pub budget_limit: usize,
    /// Tokens kept free for the reply.
    pub reply_reserve: usize,
    /// Whether the counts are the model's own tokenizer's.
    pub exact: bool,
    /// Prompt tokens that were not evaluated again.
    pub reused_tokens: usize,
    /// Tokens generated.
    pub output_tokens: usize,
    /// Time to the first token in milliseconds.
    pub prompt_ms: u64,
    /// Time from the first token to the last in milliseconds.
    pub reply_ms: u64,
    /// The device that ran it.
    pub device: String,
}

/// One entry of a router prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedEntry {
    /// What may happen to it.
    pub layer: ContextLayer,
    /// Where it comes from.
    pub source: SourceType,
    /// Its text.
    pub content: String,
    /// Its tokens.
    pub tokens: usize,
    /// Why it was left out; `None` when it was in the prompt.
    pub dropped: Option<String>,
}

/// Why a conversation could not be kept or read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the conversation could not be kept or read: {0}")]
pub struct TranscriptError(pub String);

/// Keeps conversations. Every call is durable when it returns.
#[async_trait]
pub trait TranscriptStore: Send + Sync {
    /// Adds turns (each with its parent already there, or earlier in the same call) and makes
    /// the last one the end of the session's current branch.
    async fn append(&self, turns: Vec<TranscriptTurn>) -> Result<(), TranscriptError>;

    /// Writes a turn again (same id, session and parent) with its new text and status.
    async fn update(&self, turn: TranscriptTurn) -> Result<(), TranscriptError>;

    /// The current branch from its first turn to its last; empty for an unknown session. A turn
    /// that cannot be read ends the branch there: what comes after it is still shown.
    async fn branch(&self, session: &SessionId) -> Result<Vec<TranscriptTurn>, TranscriptError>;

    /// Makes `turn` (or, with `None`, nothing) the end of the session's current branch.
    async fn set_head(
        &self,
        session: &SessionId,
        turn: Option<&TurnId>,
    ) -> Result<(), TranscriptError>;
}
