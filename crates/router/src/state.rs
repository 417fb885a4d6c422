//! What the router knows.

use std::collections::BTreeSet;

use correx_events::{SessionId, StageId, StagePlan, Timestamp};
use correx_sessions::Notes;
pub use correx_sessions::WorkflowStatus;
use serde::{Deserialize, Serialize};

/// Rebuilt from the log, never persisted by itself. It holds no event payload but the plan, no
/// artifact, no tool output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterState {
    /// The session, once its run started.
    pub session_id: Option<SessionId>,
    /// The run's status.
    pub workflow_status: WorkflowStatus,
    /// The last started stage that is still active, or the next to run.
    pub current_stage_id: Option<StageId>,
    /// What the finished stages did, oldest first.
    pub l2_memory: Vec<RouterL2Entry>,
    /// The conversation. The reducer leaves it empty: the facade fills it from its own history.
    pub conversation_history: Vec<RouterTurn>,
    /// Whether the session has a workflow that a note could change.
    pub steerable: Steerable,
    /// The run's stages in order; empty before the start.
    pub plan: Vec<StagePlan>,
    /// Stages that were passed over because their condition did not hold.
    #[serde(default)]
    pub skipped: BTreeSet<StageId>,
    /// The steering notes and where each was applied.
    pub notes: Notes,
}

impl RouterState {
    /// A stage's title, or its id when it is not in the plan.
    pub fn stage_title<'a>(&'a self, stage: &'a StageId) -> &'a str {
        self.plan
            .iter()
            .find(|planned| planned.id == *stage)
            .map_or(stage.as_str(), |planned| planned.title.as_str())
    }

    /// Whether nothing is left to do for `stage`: it ended or was passed over.
    pub fn is_over(&self, stage: &StageId) -> bool {
        self.outcome(stage).is_some() || self.skipped.contains(stage)
    }

    /// How `stage` ended, if it did.
    pub fn outcome(&self, stage: &StageId) -> Option<StageOutcomeKind> {
        self.l2_memory
            .iter()
            .rev()
            .find(|entry| entry.stage_id == *stage)
            .map(|entry| entry.outcome)
    }
}

/// Whether there is a run that a note could change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Steerable {
    /// The log does not say (yet).
    #[default]
    Unknown,
    /// The session has a workflow.
    Workflow,
    /// The session is a plain chat.
    PlainChat,
}

/// A finished stage, as the router remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterL2Entry {
    /// The stage.
    pub stage_id: StageId,
    /// What it did, in words made from its events' metadata.
    pub summary: String,
    /// How it ended.
    pub outcome: StageOutcomeKind,
    /// When it ended.
    pub timestamp: Timestamp,
}

/// How a stage ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StageOutcomeKind {
    /// Its output was accepted.
    Success,
    /// It gave up.
    Failure,
    /// It was cancelled with its run.
    Cancelled,
}

impl std::fmt::Display for StageOutcomeKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StageOutcomeKind::Success => "SUCCESS",
            StageOutcomeKind::Failure => "FAILURE",
            StageOutcomeKind::Cancelled => "CANCELLED",
        })
    }
}

/// One turn of the conversation, as it goes into a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterTurn {
    /// Who speaks.
    pub role: TurnRole,
    /// The raw text.
    pub content: String,
    /// When it was said.
    pub timestamp: Timestamp,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TurnRole {
    /// The person.
    User,
    /// The router.
    Router,
}
