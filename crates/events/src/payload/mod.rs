//! The facts that a log can hold.
//!
//! [`EventPayload`] is the registration that the specification asks for: a kind that is not a
//! variant here cannot be written, and the tests walk [`EventPayload::KINDS`] through the store.
//! One file per family; each payload is a plain struct.

mod approval;
mod effect;
mod inference;
mod run;
mod session;
mod stage;
mod steering;

pub use approval::{
    ApprovalCause, ApprovalDenied, ApprovalGranted, ApprovalRequested, PolicyDecided, PolicyDenied,
    PolicyVerdict,
};
pub use effect::{EffectDone, EffectIntended, EffectKind, EffectOutcome};
pub use inference::{ContextAssembled, ContextEntryRecord, EntryFate, InferenceCompleted};
pub use run::{
    FailureReason, OrchestrationPaused, OrchestrationResumed, PauseReason, StagePlan,
    WorkflowCompleted, WorkflowFailed, WorkflowRerun, WorkflowStarted,
};
pub use session::{CapturedInput, InputKind, InputsCaptured, SessionCreated, WorkflowRef};
pub use stage::{
    ArtifactProduced, MapPieceCompleted, PieceRef, StageAttemptRefused, StageCancelled,
    StageCompleted, StageFailed, StageKind, StageRestarted, StageSkipped, StageStarted,
};
pub use steering::{NoteScope, SteeringNoteAdded, SteeringNoteApplied, SteeringNoteWithdrawn};

use serde::{Deserialize, Serialize};

macro_rules! payloads {
    ($($(#[$doc:meta])* $kind:literal => $variant:ident,)*) => {
        /// An immutable fact. Stored as JSON with its kind under `type`.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type")]
        pub enum EventPayload {
            $($(#[$doc])* #[serde(rename = $kind)] $variant($variant),)*
            /// A record that this version cannot read; kept and exported verbatim.
            #[serde(skip)]
            Unknown(UnknownPayload),
        }

        impl EventPayload {
            /// Every kind that this version writes, in declaration order.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            /// The stable name of this payload's kind.
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                    Self::Unknown(unknown) => &unknown.kind,
                }
            }
        }

        $(impl From<$variant> for EventPayload {
            fn from(payload: $variant) -> Self {
                Self::$variant(payload)
            }
        })*
    };
}

payloads! {
    /// A session came into being.
    "session_created" => SessionCreated,
    /// The run's inputs were read and hashed.
    "inputs_captured" => InputsCaptured,
    /// A run began.
    "workflow_started" => WorkflowStarted,
    /// Every stage is done.
    "workflow_completed" => WorkflowCompleted,
    /// The run ended without finishing.
    "workflow_failed" => WorkflowFailed,
    /// The run waits.
    "orchestration_paused" => OrchestrationPaused,
    /// The run goes on.
    "orchestration_resumed" => OrchestrationResumed,
    /// A stage (or a further attempt of it) began.
    "stage_started" => StageStarted,
    /// A stage is done.
    "stage_completed" => StageCompleted,
    /// A stage gave up.
    "stage_failed" => StageFailed,
    /// A running stage was cancelled with its run.
    "stage_cancelled" => StageCancelled,
    /// A steering note arrived while the stage ran; its draft was put aside.
    "stage_restarted" => StageRestarted,
    /// A validator refused what an attempt produced.
    "stage_attempt_refused" => StageAttemptRefused,
    /// One piece of a `map` stage is done.
    "map_piece_completed" => MapPieceCompleted,
    /// A stage's output was accepted and stored.
    "artifact_produced" => ArtifactProduced,
    /// The prompt of a stage's model call was put together.
    "context_assembled" => ContextAssembled,
    /// A stage's model call ended.
    "inference_completed" => InferenceCompleted,
    /// A person is asked.
    "approval_requested" => ApprovalRequested,
    /// The person agreed.
    "approval_granted" => ApprovalGranted,
    /// The person refused.
    "approval_denied" => ApprovalDenied,
    /// Policy forbade something; final.
    "policy_denied" => PolicyDenied,
    /// A person gave the run an instruction.
    "steering_note_added" => SteeringNoteAdded,
    /// A note was shown to a stage's attempt.
    "steering_note_applied" => SteeringNoteApplied,
    /// A note was taken back.
    "steering_note_withdrawn" => SteeringNoteWithdrawn,
    /// A write or a command is about to happen.
    "effect_intended" => EffectIntended,
    /// It happened, or failed.
    "effect_done" => EffectDone,
    /// A stage was passed over.
    "stage_skipped" => StageSkipped,
    /// An ended run goes on again from a stage.
    "workflow_rerun" => WorkflowRerun,
    /// Policy was asked.
    "policy_decided" => PolicyDecided,
}

/// A stored record that this version cannot read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPayload {
    /// The `type` it was stored under; empty when there was none.
    pub kind: String,
    /// The stored text, byte for byte.
    pub json: String,
    /// Why it could not be read.
    pub reason: UnknownReason,
}

/// Why a record could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownReason {
    /// Its kind is not one of ours: a newer version wrote it.
    NewKind,
    /// Its kind is ours, its body is not as expected.
    Unreadable(String),
}
