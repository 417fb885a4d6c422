//! Facts about steering notes.

use serde::{Deserialize, Serialize};

use crate::{NoteId, SessionId, StageId};

/// A person gave the run an instruction. The only fact that the router writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteeringNoteAdded {
    /// The session whose run it changes.
    pub session_id: SessionId,
    /// The note's name.
    pub note_id: NoteId,
    /// The person's words.
    pub content: String,
    /// The stage it is for; `None`: the stage that is current here in the log, or the next to run.
    #[serde(default)]
    pub stage_id: Option<StageId>,
    /// How far it reaches from that stage.
    #[serde(default)]
    pub scope: NoteScope,
    /// The note whose place it takes: that one acts on nothing that starts later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<NoteId>,
}

/// How far a note reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteScope {
    /// Its stage only.
    #[default]
    Stage,
    /// Its stage and all that run after it.
    Onward,
    /// Every stage that is still to run.
    Run,
}

/// A note was shown to a stage's attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteeringNoteApplied {
    /// The note.
    pub note_id: NoteId,
    /// The stage.
    pub stage_id: StageId,
    /// The attempt.
    pub attempt: u32,
}

/// A note was taken back: it acts on nothing that starts later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteeringNoteWithdrawn {
    /// The note.
    pub note_id: NoteId,
}
