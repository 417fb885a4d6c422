//! A person's instruction to the workflow.

use correx_events::{NoteId, NoteScope, SessionId, StageId, Timestamp};
use serde::{Deserialize, Serialize};

/// An instruction that the stages it acts on must follow. Durable; never compressed away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteeringNote {
    /// Its name.
    pub note_id: NoteId,
    /// The session whose run it changes.
    pub session_id: SessionId,
    /// The person's words.
    pub content: String,
    /// The stage it is for; `None` means the current stage, or the next to run.
    #[serde(default)]
    pub stage_id: Option<StageId>,
    /// How far it reaches from that stage.
    #[serde(default)]
    pub scope: NoteScope,
    /// When the person said it.
    pub created_at: Timestamp,
}
