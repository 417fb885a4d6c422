//! Facts about a stage's model calls. Texts and ids lie in the blob store under their hashes.

use serde::{Deserialize, Serialize};

use crate::{BlobHash, PieceRef, StageId};

/// The prompt of a stage's model call was put together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextAssembled {
    /// The stage.
    pub stage_id: StageId,
    /// The attempt.
    pub attempt: u32,
    /// Every entry that was considered, kept or dropped.
    pub entries: Vec<ContextEntryRecord>,
    /// Tokens of the chat template itself.
    pub template_tokens: u64,
    /// All tokens of the prompt.
    pub prompt_tokens: u64,
    /// The most that the prompt might have had.
    pub budget_limit: u64,
    /// The token ids as fed, little-endian u32, in the blob store.
    pub prompt_ids: BlobHash,
    /// Of a stage that goes piece by piece: the one it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece: Option<PieceRef>,
    /// What the model is asked about an answer that is there already (a judge), not for one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judges: bool,
}

/// One entry of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextEntryRecord {
    /// `L0`, `L1` or `L2`.
    pub layer: String,
    /// Where it comes from, for example `input:notes` or `steeringNote`.
    pub source: String,
    /// Its tokens on the rendered prompt; of a dropped entry, by itself.
    pub tokens: u64,
    /// Its text, in the blob store.
    pub text: BlobHash,
    /// Kept, or dropped and why.
    pub fate: EntryFate,
}

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum EntryFate {
    /// It is in the prompt.
    Kept,
    /// It is not.
    Dropped {
        /// Why, for people.
        reason: String,
    },
}

/// A stage's model call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InferenceCompleted {
    /// The stage.
    pub stage_id: StageId,
    /// The attempt.
    pub attempt: u32,
    /// The model's name.
    pub model: String,
    /// SHA-256 of the model file, when known.
    pub model_sha256: Option<String>,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens generated, those of the thinking included.
    pub output_tokens: u64,
    /// Of those, the tokens of what the model thought before its answer; `None`: it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u64>,
    /// What it thought, in the blob store. Shown to people, never to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<BlobHash>,
    /// Prompt tokens that were not evaluated again.
    pub reused_tokens: u64,
    /// Time to the first token in milliseconds.
    pub prompt_ms: u64,
    /// Time from the first token to the last in milliseconds.
    pub reply_ms: u64,
    /// Sampling temperature.
    pub temperature: f64,
    /// Nucleus share.
    pub top_p: f64,
    /// How many likeliest tokens were kept.
    pub top_k: u64,
    /// Least share of the likeliest token's probability.
    pub min_p: f64,
    /// Repetition penalty.
    pub repetition_penalty: f64,
    /// Random seed.
    pub seed: u64,
    /// The device that ran it.
    pub device: String,
    /// `stop`, `length` or `cancelled`.
    pub finish_reason: String,
    /// Of a stage that goes piece by piece: the one it was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece: Option<PieceRef>,
    /// A judge's call about an answer that was there already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judges: bool,
}
