//! Folds events into a [`RouterState`].

use correx_events::{EventPayload, StageId, StoredEvent};
use correx_sessions::Reducer;

use crate::state::Steerable;
use crate::{RouterL2Entry, RouterState, StageOutcomeKind, WorkflowStatus, summary};

/// The reducer of the router's state.
pub trait RouterReducer: Reducer<State = RouterState> {}

/// Reacts to what changes the run's status, its stages and its notes; passes everything else
/// through unchanged. It never touches the conversation, which is not in the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultRouterReducer;

impl RouterReducer for DefaultRouterReducer {}

impl Reducer for DefaultRouterReducer {
    type State = RouterState;

    fn initial(&self) -> RouterState {
        RouterState::default()
    }

    fn reduce(&self, mut state: RouterState, event: &StoredEvent) -> RouterState {
        let current = state.current_stage_id.clone();
        state.notes.fold(event, current.as_ref());
        match &event.payload {
            EventPayload::SessionCreated(created) => {
                state.steerable = match created.workflow {
                    Some(_) => Steerable::Workflow,
                    None => Steerable::PlainChat,
                };
            }
            EventPayload::WorkflowStarted(started) => {
                state.session_id = Some(event.metadata.session_id.clone());
                state.workflow_status = WorkflowStatus::Running;
                state.current_stage_id.clone_from(&started.first_stage);
                state.steerable = Steerable::Workflow;
                state.plan.clone_from(&started.stages);
            }
            EventPayload::WorkflowCompleted(_) => end(&mut state, WorkflowStatus::Completed),
            EventPayload::WorkflowFailed(_) => end(&mut state, WorkflowStatus::Failed),
            EventPayload::OrchestrationPaused(_) => state.workflow_status = WorkflowStatus::Paused,
            EventPayload::OrchestrationResumed(_) => {
                state.workflow_status = WorkflowStatus::Running
            }
            EventPayload::StageStarted(started) => {
                state.current_stage_id = Some(started.stage_id.clone());
            }
            EventPayload::StageCompleted(stage) => {
                let words = summary::completed(stage);
                remember(&mut state, event, &stage.stage_id, StageOutcomeKind::Success, words);
                state.current_stage_id.clone_from(&stage.next_stage);
            }
            EventPayload::StageSkipped(stage) => {
                state.skipped.insert(stage.stage_id.clone());
                state.current_stage_id.clone_from(&stage.next_stage);
            }
            EventPayload::WorkflowRerun(rerun) => {
                state.workflow_status = WorkflowStatus::Running;
                state.current_stage_id = Some(rerun.from_stage.clone());
                // They are still to run; what they did before no longer tells how they ended.
                state.l2_memory.retain(|entry| !rerun.stages.contains(&entry.stage_id));
                state.skipped.retain(|stage| !rerun.stages.contains(stage));
            }
            EventPayload::StageFailed(stage) => {
                let words = summary::failed(stage);
                remember(&mut state, event, &stage.stage_id, StageOutcomeKind::Failure, words);
                state.current_stage_id = None;
            }
            EventPayload::StageCancelled(stage) => {
                let words = summary::cancelled(stage);
                remember(&mut state, event, &stage.stage_id, StageOutcomeKind::Cancelled, words);
                state.current_stage_id = None;
            }
            _ => {}
        }
        state
    }
}

fn end(state: &mut RouterState, status: WorkflowStatus) {
    state.workflow_status = status;
    state.current_stage_id = None;
}

fn remember(
    state: &mut RouterState,
    event: &StoredEvent,
    stage: &StageId,
    outcome: StageOutcomeKind,
    summary: String,
) {
    state.l2_memory.push(RouterL2Entry {
        stage_id: stage.clone(),
        summary,
        outcome,
        timestamp: event.metadata.timestamp,
    });
}
