//! Facts about what people and policy allow.

use serde::{Deserialize, Serialize};

use crate::{BlobHash, StageId};

/// A person is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequested {
    /// The stage that waits.
    pub stage_id: StageId,
    /// The question.
    pub prompt: String,
    /// What is to be approved, if it is an artifact.
    pub artifact: Option<BlobHash>,
    /// Why a person is asked.
    #[serde(default, skip_serializing_if = "ApprovalCause::is_default")]
    pub cause: ApprovalCause,
    /// What is to be done, as policy names it; an approval lets exactly this be done. `None` when the
    /// workflow itself asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// What the file holds that would be replaced, in the blob store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<BlobHash>,
}

/// Why a person is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalCause {
    /// The workflow says so.
    #[default]
    Workflow,
    /// Policy says so.
    Policy,
    /// A file would be replaced.
    Existing,
    /// It was begun when the process ended, and nobody knows how far it came.
    HalfDone,
}

impl ApprovalCause {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Policy was asked, and what it said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyDecided {
    /// The stage that wants it.
    pub stage_id: StageId,
    /// What it wants, for people.
    pub action: String,
    /// What policy says.
    pub verdict: PolicyVerdict,
    /// The rule that says it.
    pub rule: String,
}

/// What policy says about an action. A denial has its own event, [`PolicyDenied`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyVerdict {
    /// It may happen.
    Allowed,
    /// A person is asked.
    NeedsApproval,
}

/// The person agreed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalGranted {
    /// The stage that waited.
    pub stage_id: StageId,
    /// The person's remark.
    pub comment: Option<String>,
}

/// The person refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalDenied {
    /// The stage that waited.
    pub stage_id: StageId,
    /// The person's reason.
    pub reason: Option<String>,
}

/// Policy forbade something. No approval lifts it; the run fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyDenied {
    /// The stage that wanted it.
    pub stage_id: StageId,
    /// What it wanted, for people.
    pub action: String,
    /// The rule that forbade it.
    pub rule: String,
}
