//! A run as its events tell it.

use correx_events::{
    ApprovalRequested, ArtifactProduced, BlobHash, CapturedInput, ContextAssembled, EffectIntended,
    EffectOutcome, InferenceCompleted, MapPieceCompleted, NoteId, PauseReason, PieceRef,
    PolicyDecided, SessionId, StageId, StageKind, StagePlan, Timestamp, WorkflowFailed,
    WorkflowRef,
};
use serde::{Deserialize, Serialize};

use crate::Notes;

/// The status of a run. IDLE → RUNNING ⇄ PAUSED → COMPLETED or FAILED.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WorkflowStatus {
    /// No run yet.
    #[default]
    Idle,
    /// Stages are running.
    Running,
    /// It waits.
    Paused,
    /// Every stage is done.
    Completed,
    /// It ended without finishing.
    Failed,
}

impl WorkflowStatus {
    /// As the specification writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            WorkflowStatus::Idle => "IDLE",
            WorkflowStatus::Running => "RUNNING",
            WorkflowStatus::Paused => "PAUSED",
            WorkflowStatus::Completed => "COMPLETED",
            WorkflowStatus::Failed => "FAILED",
        }
    }

    /// Whether nothing more can happen to the run.
    pub fn has_ended(self) -> bool {
        matches!(self, WorkflowStatus::Completed | WorkflowStatus::Failed)
    }
}

impl std::fmt::Display for WorkflowStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Everything about a session's run that its log holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// The session, once it has an event.
    pub session_id: Option<SessionId>,
    /// The title it was created with.
    pub title: String,
    /// The workflow it can run.
    pub workflow: Option<WorkflowRef>,
    /// What the run reads.
    pub inputs: Vec<CapturedInput>,
    /// Its status.
    pub status: WorkflowStatus,
    /// Why it waits, while it is paused.
    pub pause: Option<PauseReason>,
    /// Why it ended, when it failed.
    pub failure: Option<WorkflowFailed>,
    /// The last started stage that is still active, or the next to run.
    pub current_stage: Option<StageId>,
    /// The stages in order; empty before the start.
    pub stages: Vec<StageRecord>,
    /// The steering notes.
    pub notes: Notes,
    /// The sequence number of the last event: the version for optimistic concurrency.
    pub version: u64,
    /// When the run started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When the last event was appended.
    pub updated_at: Option<Timestamp>,
}

impl RunState {
    /// A stage by id.
    pub fn stage(&self, stage: &StageId) -> Option<&StageRecord> {
        self.stages.iter().find(|record| record.plan.id == *stage)
    }

    /// The stages' ids in order.
    pub fn order(&self) -> Vec<StageId> {
        self.stages.iter().map(|record| record.plan.id.clone()).collect()
    }

    /// The stage that runs next: the first in order that is not over and whose needs are. A person
    /// is asked last, so that what does not wait for the answer is done by then.
    pub fn next_unfinished(&self) -> Option<&StageRecord> {
        self.next_when_over(None)
    }

    /// The stage that runs next once `ending` is over as well.
    pub fn next_when_over(&self, ending: Option<&StageId>) -> Option<&StageRecord> {
        let is_over = |id: &StageId| {
            Some(id) == ending || self.stage(id).is_none_or(|record| record.status.is_over())
        };
        let left = || {
            let records = self.stages.iter().enumerate();
            records.filter(|(_, record)| !is_over(&record.plan.id))
        };
        let is_ready = |index: usize, record: &StageRecord| match &record.plan.needs {
            Some(needs) => needs.iter().all(is_over),
            None => self.stages[..index].last().is_none_or(|before| is_over(&before.plan.id)),
        };
        let ready = || left().filter(|(index, record)| is_ready(*index, record));
        let found = ready()
            .find(|(_, record)| record.plan.kind != StageKind::Approve)
            .or_else(|| ready().next())
            // Needs that go in a circle: no file with one is accepted.
            .or_else(|| left().next());
        found.map(|(_, record)| record)
    }
}

/// The status of a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Begun and not ended.
    Running,
    /// Waits for a person.
    Waiting,
    /// Done.
    Done,
    /// Gave up.
    Failed,
    /// Cancelled with its run.
    Cancelled,
    /// Passed over: its condition did not hold.
    Skipped,
}

impl StageStatus {
    /// Whether stages that need this one may begin.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Skipped)
    }
}

/// One stage as its events tell it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// As planned.
    pub plan: StagePlan,
    /// Its status.
    pub status: StageStatus,
    /// The latest attempt; 0 before the first.
    pub attempt: u32,
    /// The last attempt of before the run was begun again from this stage or one that it needs; 0:
    /// it never was. What those attempts made is kept, and counts no more.
    #[serde(default)]
    pub earlier: u32,
    /// When the first attempt began.
    pub started_at: Option<Timestamp>,
    /// From start to end in milliseconds, once it is done.
    pub duration_ms: Option<u64>,
    /// Words in what it produced.
    pub words: Option<u64>,
    /// Tokens in what it produced.
    pub output_tokens: Option<u64>,
    /// What it produced.
    pub artifacts: Vec<ArtifactRecord>,
    /// Finished pieces of a `map` or `reduce`, in the order in which they were done.
    #[serde(default)]
    pub pieces: Vec<MapPieceCompleted>,
    /// Attempts that were put aside or refused.
    pub drafts: Vec<DraftRecord>,
    /// What a person was asked, while the answer is open.
    pub question: Option<ApprovalRequested>,
    /// What a person said yes to, until it is begun.
    #[serde(default)]
    pub approved: Option<ApprovalRequested>,
    /// What policy said of what it wants to do, in its latest attempt.
    #[serde(default)]
    pub policy: Vec<PolicyDecided>,
    /// What it did outside of Correx, or began to do.
    #[serde(default)]
    pub effects: Vec<EffectRecord>,
    /// Why it failed.
    pub error: Option<String>,
    /// What the model was shown for the latest attempt.
    pub context: Option<ContextAssembled>,
    /// How the latest model call went.
    pub inference: Option<InferenceCompleted>,
}

impl StageRecord {
    /// What the model thought in `attempt`, when that is the one whose call went last.
    pub fn thought_in(&self, attempt: u32) -> Option<Thought> {
        let inference = self.inference.as_ref().filter(|call| call.attempt == attempt)?;
        Some(Thought {
            text: inference.thinking.clone()?,
            tokens: inference.thinking_tokens.unwrap_or_default(),
        })
    }

    /// What it has produced that counts: not what it made before the run was begun again from it.
    pub fn produced(&self) -> impl DoubleEndedIterator<Item = &ArtifactRecord> {
        self.artifacts.iter().filter(|artifact| artifact.attempt > self.earlier)
    }

    /// The effect that was begun and of which nobody knows whether it happened.
    pub fn half_done(&self) -> Option<&EffectRecord> {
        self.effects.last().filter(|effect| effect.outcome.is_none())
    }

    /// A stage that has not begun.
    pub fn new(plan: StagePlan) -> Self {
        Self {
            plan,
            status: StageStatus::Pending,
            attempt: 0,
            earlier: 0,
            started_at: None,
            duration_ms: None,
            words: None,
            output_tokens: None,
            artifacts: Vec::new(),
            pieces: Vec::new(),
            drafts: Vec::new(),
            question: None,
            approved: None,
            policy: Vec::new(),
            effects: Vec::new(),
            error: None,
            context: None,
            inference: None,
        }
    }
}

/// What a stage produced.
pub type ArtifactRecord = ArtifactProduced;

/// A write or a command: intended, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectRecord {
    /// What was to be done.
    pub intended: EffectIntended,
    /// How it ended, if that is known.
    pub outcome: Option<EffectOutcome>,
    /// What a command wrote to its standard output.
    pub output: Option<BlobHash>,
}

/// An attempt that did not become the artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftRecord {
    /// Which attempt.
    pub attempt: u32,
    /// Why.
    pub reason: DraftReason,
    /// What it had written.
    pub draft: Option<BlobHash>,
    /// What the model had thought before that.
    pub thinking: Option<Thought>,
    /// Of a stage that goes piece by piece: the one it was about.
    #[serde(default)]
    pub piece: Option<PieceRef>,
}

/// What a model thought in an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thought {
    /// Its text, in the blob store.
    pub text: BlobHash,
    /// Its tokens.
    pub tokens: u64,
}

/// Why an attempt did not become the artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DraftReason {
    /// Steering notes arrived.
    Steered {
        /// The notes.
        notes: Vec<NoteId>,
    },
    /// A validator refused it.
    Refused {
        /// Which validator.
        validator: String,
        /// What it said.
        message: String,
    },
}
