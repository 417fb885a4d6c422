//! Errors as people meet them.

use correx_events::SessionId;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What happened, what was kept, what to do. Programs match the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, thiserror::Error)]
#[error("{message}")]
pub struct ProtocolError {
    /// The class of the error.
    pub code: ErrorCode,
    /// What happened.
    pub message: String,
    /// What was kept or is unchanged.
    #[serde(default)]
    pub kept: Option<String>,
    /// What to do.
    #[serde(default)]
    pub hint: Option<String>,
    /// The session that it is about, when nobody asked: a run that cannot go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "string")]
    pub session_id: Option<SessionId>,
}

impl ProtocolError {
    /// An error with nothing more to say than what happened.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), kept: None, hint: None, session_id: None }
    }

    /// Says what was kept.
    pub fn kept(mut self, kept: impl Into<String>) -> Self {
        self.kept = Some(kept.into());
        self
    }

    /// Says which session it is about.
    pub fn about(mut self, session: SessionId) -> Self {
        self.session_id = Some(session);
        self
    }

    /// Says what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Classes of errors; stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The message is not one of ours or not well-formed.
    BadMessage,
    /// There is no such session, stage, note or blob.
    NotFound,
    /// The text is empty.
    EmptyInput,
    /// The text is too long; the message says by how much.
    InputTooLong,
    /// The note cannot act: the run has ended, or there is none.
    CannotSteer,
    /// The run is not in a state for this.
    WrongState,
    /// The workflow file has mistakes.
    BadWorkflow,
    /// An input is missing, empty, binary or not UTF-8.
    BadInput,
    /// The model is missing, broken or not supported.
    Model,
    /// The model failed while answering.
    Inference,
    /// Another machine could not be reached, or did not answer as it should.
    Network,
    /// Something could not be written or read.
    Storage,
    /// Anything else.
    Internal,
}
