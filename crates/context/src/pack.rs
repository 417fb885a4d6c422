//! The layered entries chosen for one inference.

use std::collections::BTreeMap;
use std::fmt;

use correx_events::{ArtifactName, NoteId, SessionId, StageId};
use serde::{Deserialize, Serialize};

use crate::{ChatMessage, EncodedPrompt, Role};

/// What may be dropped: L0 never, L2 before L1. It does not say where an entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ContextLayer {
    /// Never dropped.
    L0,
    /// Recent conversation.
    L1,
    /// Stage summaries.
    L2,
}

impl fmt::Display for ContextLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ContextLayer::L0 => "L0",
            ContextLayer::L1 => "L1",
            ContextLayer::L2 => "L2",
        })
    }
}

/// Where an entry's text comes from. There is no kind for event payloads, for tool outputs, or
/// (in the router) for artifacts: what has no kind cannot enter a pack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SourceType {
    /// Standing instructions.
    SystemPrompt,
    /// The run's status and current stage.
    WorkflowStatus,
    /// A person's instruction to the run.
    SteeringNote(NoteId),
    /// A turn of the conversation.
    Conversation,
    /// The message being answered.
    Message,
    /// What a finished stage did, from its events' metadata.
    StageSummary(StageId),
    /// A stage's own instructions.
    Task,
    /// A stage's input. Stages only.
    Input(String),
    /// An earlier stage's output. Stages only.
    Artifact(ArtifactName),
    /// A part of something long, or results put together. Stages only.
    Piece,
    /// Why the attempt before was refused. Stages only.
    Refusal,
}

impl fmt::Display for SourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceType::SystemPrompt => f.write_str("systemPrompt"),
            SourceType::WorkflowStatus => f.write_str("workflowStatus"),
            SourceType::SteeringNote(note) => write!(f, "steeringNote:{note}"),
            SourceType::Conversation => f.write_str("conversation"),
            SourceType::Message => f.write_str("message"),
            SourceType::StageSummary(stage) => write!(f, "stageSummary:{stage}"),
            SourceType::Task => f.write_str("task"),
            SourceType::Input(name) => write!(f, "input:{name}"),
            SourceType::Artifact(name) => write!(f, "artifact:{name}"),
            SourceType::Piece => f.write_str("piece"),
            SourceType::Refusal => f.write_str("refusal"),
        }
    }
}

/// Names an entry inside its pack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContextEntryId(pub String);

/// Names a pack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContextPackId(pub String);

/// One piece of what the model is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextEntry {
    /// Its name inside the pack.
    pub id: ContextEntryId,
    /// What may happen to it.
    pub layer: ContextLayer,
    /// Where it comes from.
    pub source: SourceType,
    /// Who says it.
    pub role: Role,
    /// The raw text, without separators or role marks.
    pub content: String,
    /// Tokens that begin inside it on the rendered prompt; of a dropped entry, by itself.
    pub tokens: usize,
}

/// How layers are kept within the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CompressionStrategy {
    /// L0 is never dropped.
    L0Immutable,
    /// Notes are never dropped.
    SteeringNote,
    /// Whole exchanges, oldest first.
    Conversation,
    /// Stage summaries, oldest first.
    StageSummary,
}

/// What was done to make the entries fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompressionMetadata {
    /// The strategies that governed this pack.
    pub applied_strategies: Vec<CompressionStrategy>,
    /// Layers that lost entries.
    pub truncated_layers: Vec<ContextLayer>,
    /// How many entries were dropped.
    pub entries_dropped: usize,
}

/// Why an entry is not in the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// It did not fit the budget.
    Budget,
    /// Only so many of the newest turns are shown.
    KeepLast(usize),
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DropReason::Budget => f.write_str("no room in the token budget, oldest first"),
            DropReason::KeepLast(turns) => write!(f, "older than the last {turns} turns"),
        }
    }
}

/// An entry that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedEntry {
    /// The entry; its `tokens` are counted by itself.
    pub entry: ContextEntry,
    /// Why.
    pub reason: DropReason,
}

/// What one inference is shown, and the proof that it fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextPack {
    /// Its name.
    pub id: ContextPackId,
    /// The session, if there is one yet.
    pub session_id: Option<SessionId>,
    /// The stage it is for (a stage's pack) or about (the router's).
    pub stage_id: Option<StageId>,
    /// The kept entries by layer, each layer in time order.
    pub layers: BTreeMap<ContextLayer, Vec<ContextEntry>>,
    /// The entries that were left out, oldest first.
    pub dropped: Vec<DroppedEntry>,
    /// Tokens of the rendered prompt, template included. Never above `budget_limit`.
    pub budget_used: usize,
    /// The most tokens it might have had.
    pub budget_limit: usize,
    /// What was done to make it fit.
    pub compression_metadata: CompressionMetadata,
    /// The messages in their rendered order.
    pub messages: Vec<ChatMessage>,
    /// The rendered prompt.
    pub prompt: EncodedPrompt,
}

impl ContextPack {
    /// The kept entries, layer by layer.
    pub fn entries(&self) -> impl Iterator<Item = &ContextEntry> {
        self.layers.values().flatten()
    }

    /// The kept entries of one layer, in time order.
    pub fn layer(&self, layer: ContextLayer) -> &[ContextEntry] {
        self.layers.get(&layer).map(Vec::as_slice).unwrap_or_default()
    }

    /// Tokens of a layer's kept entries.
    pub fn layer_tokens(&self, layer: ContextLayer) -> usize {
        self.layer(layer).iter().map(|entry| entry.tokens).sum()
    }
}
