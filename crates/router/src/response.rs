//! What goes into the facade and what comes out.

use std::sync::Arc;

use correx_context::{ContextPack, PackError};
use correx_events::{ClientMessageId, NoteId, NoteScope, SessionId, StageId};
use serde::{Deserialize, Serialize};

use crate::{SteeringRefusal, TranscriptTurn};

/// Only talk, or change the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ChatMode {
    /// Talks about the run.
    Chat,
    /// Becomes a steering note as well.
    Steering,
}

/// One message.
#[derive(Debug, Clone)]
pub struct UserInput {
    /// The session.
    pub session_id: SessionId,
    /// The person's words.
    pub text: String,
    /// Only talk, or change the run.
    pub mode: ChatMode,
    /// In STEERING mode: which stages the note acts on.
    pub target: NoteTarget,
    /// Makes sending twice act once.
    pub client_message_id: Option<ClientMessageId>,
}

/// Which stages a note acts on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoteTarget {
    /// The stage; `None`: the current one, or the next to run.
    pub stage_id: Option<StageId>,
    /// How far it reaches from there.
    pub scope: NoteScope,
}

/// The router's answer, as the specification has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterResponse {
    /// The answer's text.
    pub content: String,
    /// Whether a steering note was stored as well.
    pub steering_emitted: bool,
}

/// The answer with everything about it.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterAnswer {
    /// The answer.
    pub response: RouterResponse,
    /// The note that was stored.
    pub note_id: Option<NoteId>,
    /// The answer's turn, whole or stopped, with its report.
    pub turn: TranscriptTurn,
}

/// What happens while a message is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum RouterStreamEvent {
    /// A turn is new or different. The person's comes first, then the pending answer.
    Turn(Box<TranscriptTurn>),
    /// So much of the prompt has been read by the model.
    Prompt {
        /// The answer's turn.
        turn: correx_events::TurnId,
        /// Tokens read.
        done: usize,
        /// Tokens in all.
        total: usize,
    },
    /// More of what the model thinks before its answer.
    Thinking {
        /// The answer's turn.
        turn: correx_events::TurnId,
        /// The new text.
        text: String,
        /// Tokens so far.
        tokens: usize,
    },
    /// More of the answer.
    Text {
        /// The answer's turn.
        turn: correx_events::TurnId,
        /// The new text.
        text: String,
        /// Tokens so far.
        tokens: usize,
    },
}

/// Receives what happens while a message is answered. It must not block.
#[derive(Clone)]
pub struct RouterSink(Arc<dyn Fn(RouterStreamEvent) + Send + Sync>);

impl RouterSink {
    /// Calls `f` for every event.
    pub fn new(f: impl Fn(RouterStreamEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }

    /// Ignores everything.
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    /// Hands `event` on.
    pub fn send(&self, event: RouterStreamEvent) {
        (self.0)(event);
    }
}

/// What a message would cost.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The prompt that it would make, or why it cannot.
    pub pack: Result<ContextPack, PackError>,
    /// The prompt without the message, when `pack` is an error.
    pub without: Option<ContextPack>,
    /// Why the note could not act, in STEERING mode.
    pub refusal: Option<SteeringRefusal>,
    /// Tokens kept free for the reply.
    pub reply_reserve: usize,
    /// Whether the counts are the model's own tokenizer's.
    pub exact: bool,
}
