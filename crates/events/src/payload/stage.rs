//! Facts about a stage.

use serde::{Deserialize, Serialize};

use crate::{ArtifactName, BlobHash, NoteId, StageId};

/// What kind of step a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// A prompt answered by the model.
    Generate,
    /// A prompt over the pieces of something long.
    Map,
    /// A prompt over many results, until one is left.
    Reduce,
    /// The model picks one of a few answers.
    Choose,
    /// A person decides.
    Approve,
    /// A program runs.
    Command,
    /// An artifact goes into a file.
    Write,
    /// Files become an artifact.
    Read,
}

/// An attempt of a stage began; it is the current stage now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageStarted {
    /// The stage.
    pub stage_id: StageId,
    /// From 1; refused and restarted attempts count on.
    pub attempt: u32,
}

/// A stage is done. `next_stage` becomes the current stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageCompleted {
    /// The stage.
    pub stage_id: StageId,
    /// The attempt that was accepted.
    pub attempt: u32,
    /// The stage that runs next, if one is left.
    pub next_stage: Option<StageId>,
    /// Words in what it produced; `None` when it produced no text.
    pub words: Option<u64>,
    /// Tokens that it generated, over its accepted attempt.
    pub output_tokens: Option<u64>,
    /// From its first attempt's start, in milliseconds.
    pub duration_ms: u64,
}

/// A stage gave up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageFailed {
    /// The stage.
    pub stage_id: StageId,
    /// Its last attempt.
    pub attempt: u32,
    /// What was wrong, for people. Never an artifact's content.
    pub reason: String,
}

/// A running stage was cancelled with its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageCancelled {
    /// The stage.
    pub stage_id: StageId,
    /// The attempt that was cut short.
    pub attempt: u32,
}

/// Steering notes arrived while the stage ran: its draft was put aside and it begins again.
/// Uses up no retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageRestarted {
    /// The stage.
    pub stage_id: StageId,
    /// The attempt that was put aside.
    pub attempt: u32,
    /// The notes that caused it.
    pub notes: Vec<NoteId>,
    /// What had been generated, in the blob store.
    pub draft: Option<BlobHash>,
}

/// A validator refused what an attempt produced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageAttemptRefused {
    /// The stage.
    pub stage_id: StageId,
    /// The refused attempt.
    pub attempt: u32,
    /// The validator that refused, for example `max_words`.
    pub validator: String,
    /// What it said.
    pub message: String,
    /// What was refused, in the blob store.
    pub draft: BlobHash,
    /// Of a stage that goes piece by piece: the one it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece: Option<PieceRef>,
}

/// One of the pieces that a `map` or `reduce` stage works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PieceRef {
    /// The round of a `reduce`, from 0; 0 in a `map`.
    pub round: u32,
    /// From 0.
    pub piece: u32,
    /// How many there are in this round.
    pub pieces: u32,
}

/// A stage was passed over, because its condition did not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageSkipped {
    /// The stage.
    pub stage_id: StageId,
    /// The condition, for people.
    pub reason: String,
    /// The stage that runs next, if one is left.
    pub next_stage: Option<StageId>,
}

/// One piece of a `map` or `reduce` stage is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapPieceCompleted {
    /// The stage.
    pub stage_id: StageId,
    /// The attempt it belongs to.
    pub attempt: u32,
    /// From 0.
    pub piece: u32,
    /// How many there are.
    pub pieces: u32,
    /// The piece's result, in the blob store.
    pub result: BlobHash,
    /// The round of a `reduce`, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// The piece's own text, in the blob store: a result counts for this text only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<BlobHash>,
    /// Tokens that were generated for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

/// A stage's output was accepted. The content is in the blob store, never in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactProduced {
    /// The stage.
    pub stage_id: StageId,
    /// The accepted attempt.
    pub attempt: u32,
    /// The name by which later stages refer to it.
    pub name: ArtifactName,
    /// The address of its content.
    pub hash: BlobHash,
    /// Its size in bytes.
    pub bytes: u64,
    /// For example `text/markdown`.
    pub media_type: String,
}
