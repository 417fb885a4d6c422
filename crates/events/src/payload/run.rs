//! Facts about a run.

use serde::{Deserialize, Serialize};

use crate::{StageId, StageKind};

/// A run began: status RUNNING, `first_stage` is the current stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowStarted {
    /// The workflow's name.
    pub workflow: String,
    /// The stages in the order in which they will run.
    pub stages: Vec<StagePlan>,
    /// The stage that runs first.
    pub first_stage: Option<StageId>,
}

/// One stage as planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagePlan {
    /// Its id.
    pub id: StageId,
    /// For people.
    pub title: String,
    /// What kind of step it is.
    pub kind: StageKind,
    /// The stages that must be over before it; `None` (older logs): the one before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<Vec<StageId>>,
}

/// An ended run goes on again: some of its stages are to run anew. What they made before stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRerun {
    /// The stage that a person chose; it is the current stage now.
    pub from_stage: StageId,
    /// Every stage that runs anew: the chosen one and those that need it, in order.
    pub stages: Vec<StageId>,
}

/// Every stage is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowCompleted {
    /// From start to end in milliseconds, pauses included.
    pub duration_ms: u64,
}

/// The run ended without finishing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowFailed {
    /// The class of the failure.
    pub reason: FailureReason,
    /// What happened and what to do, for people.
    pub message: String,
}

/// Why a run ended without finishing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// A person cancelled it.
    Cancelled,
    /// A stage gave up.
    StageFailed,
    /// A person refused an approval.
    ApprovalDenied,
    /// Policy forbade a step.
    PolicyDenied,
}

/// The run waits; nothing is generated until it is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrchestrationPaused {
    /// For whom or what.
    pub reason: PauseReason,
}

/// Why a run waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// A person paused it.
    Person,
    /// A person is asked to approve something.
    Approval,
    /// The process ended while it ran.
    Interrupted,
}

/// The run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrchestrationResumed {}
