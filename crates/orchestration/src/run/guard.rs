//! Which operation a run's state allows.

use correx_events::{PauseReason, StageId};
use correx_sessions::{RunState, StageRecord, WorkflowStatus};

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
        _ => Err(wrong(state, "run it again from one of its stages, or make a new session")),
    }
}

/// Whether an ended run can begin again from `stage`, and the stages that run anew then: that one,
/// those that need it, and those that are not done, in order.
pub(super) fn can_rerun(
    state: &RunState,
    stage: &StageId,
) -> Result<Vec<StageId>, RunControlError> {
    match state.status {
        _ if state.workflow.is_none() => return Err(RunControlError::NoWorkflow),
        WorkflowStatus::Completed | WorkflowStatus::Failed => {}
        WorkflowStatus::Idle => return Err(wrong(state, "start it instead")),
        WorkflowStatus::Paused if state.pause == Some(PauseReason::Approval) => {
            return Err(wrong(state, "approve or deny it, or cancel the run first"));
        }
        WorkflowStatus::Paused => return Err(wrong(state, "resume it, or cancel it first")),
        WorkflowStatus::Running => {
            return Err(wrong(state, "wait for its end, or cancel it first"));
        }
    }
    if state.stage(stage).is_none() {
        let known: Vec<&str> = state.stages.iter().map(|record| record.plan.id.as_str()).collect();
        return Err(RunControlError::UnknownStage {
            stage: stage.clone(),
            known: known.join(", "),
        });
    }
    let mut anew: Vec<StageId> = Vec::new();
    let mut before: Option<&StageRecord> = None;
    // Every stage stands behind all that it needs.
    for record in &state.stages {
        let id = &record.plan.id;
        let needs_one = match &record.plan.needs {
            Some(needs) => needs.iter().any(|need| anew.contains(need)),
            None => before.is_some_and(|before| anew.contains(&before.plan.id)),
        };
        if id == stage || needs_one || !record.status.is_over() {
            anew.push(id.clone());
        }
        before = Some(record);
    }
    Ok(anew)
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
        _ => Err(wrong(state, "run it again from one of its stages, or make a new session")),
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
