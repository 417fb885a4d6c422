//! Facts about changes outside Correx: intended before, recorded after, so that a resume neither
//! repeats a finished one nor skips a half-done one silently.

use serde::{Deserialize, Serialize};

use crate::{BlobHash, StageId};

/// A write or a command is about to happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectIntended {
    /// Names the effect inside the session.
    pub effect_id: String,
    /// The stage that does it.
    pub stage_id: StageId,
    /// A write or a command.
    pub kind: EffectKind,
    /// The file or the command line.
    pub target: String,
    /// The attempt that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Of a write: what the file will hold, in the blob store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<BlobHash>,
    /// Of a write: SHA-256 of what the file held before; `None`: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<BlobHash>,
}

/// What sort of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// A file is written.
    Write,
    /// A program runs.
    Command,
}

/// It happened, or failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectDone {
    /// The effect.
    pub effect_id: String,
    /// The stage that did it.
    pub stage_id: StageId,
    /// How it ended.
    pub outcome: EffectOutcome,
    /// Of a command: what it wrote to its standard output, in the blob store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<BlobHash>,
}

/// How an effect ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EffectOutcome {
    /// As intended.
    Succeeded,
    /// Not as intended.
    Failed {
        /// What happened.
        message: String,
    },
}
