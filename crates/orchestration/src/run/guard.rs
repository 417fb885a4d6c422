//! Which operation a run's state allows.

use correx_events::{PauseReason, StageId};
use correx_sessions::{RunState, WorkflowStatus};

use super::error::RunControlError;

/// Refuses an operation, with what can be done instead.
pub(super) fn wrong(state: &RunState, instead: &'static str) -> RunControlError {
    RunControlError::WrongState { status: state.status, pause: state.pause, instead }
}

/// Whether a run can begin.
pub(super) fn can_start(state: &RunState) -> Result<(), RunControlError> {
    match state.status {
        _ if state.workflow.is_none() => Err(RunControlError::NoWorkflow),
        WorkflowStatus::Idle => Ok(()),
        WorkflowStatus::Paused if state.pause == Some(PauseReason::Approval) => {
            Err(wrong(state, "approve or deny it"))
        }
        WorkflowStatus::Paused => Err(wrong(state, "resume it instead")),
        WorkflowStatus::Running => Err(wrong(state, "it is already started")),
        _ => Err(wrong(state, "make a new session to run the workflow again")),
    }
}

/// Whether a run can go on. `is_live`: a task is at work on it.
pub(super) fn can_resume(state: &RunState, is_live: bool) -> Result<(), RunControlError> {
    match (state.status, state.pause) {
        (WorkflowStatus::Paused, Some(PauseReason::Approval)) => {
            Err(wrong(state, "approve or deny it"))
        }
        (WorkflowStatus::Paused, _) => Ok(()),
        (WorkflowStatus::Running, _) if !is_live => Ok(()),
        (WorkflowStatus::Running, _) => Err(wrong(state, "it is not paused")),
        (WorkflowStatus::Idle, _) => Err(wrong(state, "start it instead")),
        _ => Err(wrong(state, "make a new session to run the workflow again")),
    }
}

/// The attempt of a stage that waits for an answer.
pub(super) fn is_asking(state: &RunState, stage: &StageId) -> Result<u32, RunControlError> {
    let asking =
        state.status == WorkflowStatus::Paused && state.pause == Some(PauseReason::Approval);
    state
        .stage(stage)
        .filter(|record| asking && record.question.is_some())
        .map(|record| record.attempt)
        .ok_or_else(|| RunControlError::NotAsking(stage.clone()))
}
