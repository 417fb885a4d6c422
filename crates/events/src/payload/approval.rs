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
