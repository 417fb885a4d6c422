//! Whether a note can act: decided before anything is stored.

use correx_context::TokenCounter;
use correx_events::StageId;

use crate::state::Steerable;
use crate::{NoteTarget, RouterState, SteeringRefusal, WorkflowStatus};

/// Checks a note against the run as it is, and against the allowance that the active notes share.
///
/// `counter` is `None` when there is no model to count with; then a token is taken to be at
/// least one byte, so what passes fits for certain.
pub fn check(
    state: &RouterState,
    text: &str,
    target: &NoteTarget,
    allowance: usize,
    counter: Option<&dyn TokenCounter>,
) -> Result<(), SteeringRefusal> {
    can_act(state, target.stage_id.as_ref())?;
    let count = |text: &str| match counter {
        Some(counter) => counter.count(text),
        None => Ok(text.len()),
    };
    let mut used = 0;
    for record in state.notes.active() {
        used += count(&record.note.content)?;
    }
    let tokens = count(text)?;
    if used + tokens > allowance {
        return Err(SteeringRefusal::NoRoom { tokens, used, allowance });
    }
    Ok(())
}

fn can_act(state: &RouterState, stage: Option<&StageId>) -> Result<(), SteeringRefusal> {
    if state.steerable == Steerable::PlainChat {
        return Err(SteeringRefusal::NoWorkflow);
    }
    match state.workflow_status {
        WorkflowStatus::Completed | WorkflowStatus::Failed => {
            return Err(SteeringRefusal::RunEnded(state.workflow_status.as_str()));
        }
        WorkflowStatus::Idle | WorkflowStatus::Running | WorkflowStatus::Paused => {}
    }
    let Some(stage) = stage else { return Ok(()) };
    if !state.plan.is_empty() && !state.plan.iter().any(|planned| planned.id == *stage) {
        return Err(SteeringRefusal::NoSuchStage(stage.to_string()));
    }
    if state.outcome(stage).is_some() {
        return Err(SteeringRefusal::StageEnded(state.stage_title(stage).to_owned()));
    }
    Ok(())
}
