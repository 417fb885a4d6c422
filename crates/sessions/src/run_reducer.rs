//! Folds a run's events into a [`RunState`].

use correx_events::{EventPayload, StageId, StoredEvent, Timestamp};

use crate::{
    DraftReason, DraftRecord, EffectRecord, Projection, Reducer, RunState, StageRecord,
    StageStatus, WorkflowStatus,
};

/// Folds every kind of event that changes what a run is; passes the others through.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunReducer;

impl Projection for RunReducer {
    type State = RunState;

    fn initial(&self) -> RunState {
        Reducer::initial(self)
    }

    fn apply(&self, state: RunState, event: &StoredEvent) -> RunState {
        self.reduce(state, event)
    }
}

impl Reducer for RunReducer {
    type State = RunState;

    fn initial(&self) -> RunState {
        RunState::default()
    }

    fn reduce(&self, mut state: RunState, event: &StoredEvent) -> RunState {
        let at = event.metadata.timestamp;
        let current = state.current_stage.clone();
        state.notes.fold(event, current.as_ref());
        state.session_id.get_or_insert_with(|| event.metadata.session_id.clone());
        state.version = event.metadata.sequence;
        state.updated_at = Some(at);
        match &event.payload {
            EventPayload::SessionCreated(created) => {
                state.title.clone_from(&created.title);
                state.workflow.clone_from(&created.workflow);
            }
            EventPayload::InputsCaptured(captured) => state.inputs.clone_from(&captured.inputs),
            EventPayload::WorkflowStarted(started) => {
                state.status = WorkflowStatus::Running;
                state.stages = started.stages.iter().cloned().map(StageRecord::new).collect();
                state.current_stage.clone_from(&started.first_stage);
                state.started_at = Some(at);
                state.ended_at = None;
                state.failure = None;
                state.pause = None;
            }
            EventPayload::WorkflowCompleted(_) => end(&mut state, WorkflowStatus::Completed, at),
            EventPayload::WorkflowFailed(failed) => {
                state.failure = Some(failed.clone());
                end(&mut state, WorkflowStatus::Failed, at);
            }
            EventPayload::OrchestrationPaused(paused) => {
                state.status = WorkflowStatus::Paused;
                state.pause = Some(paused.reason);
            }
            EventPayload::OrchestrationResumed(_) => {
                state.status = WorkflowStatus::Running;
                state.pause = None;
            }
            EventPayload::WorkflowRerun(rerun) => {
                state.status = WorkflowStatus::Running;
                state.current_stage = Some(rerun.from_stage.clone());
                state.ended_at = None;
                state.failure = None;
                state.pause = None;
                for id in &rerun.stages {
                    on(&mut state, id, |stage| {
                        stage.status = StageStatus::Pending;
                        stage.started_at = None;
                        stage.duration_ms = None;
                        stage.pieces.clear();
                        stage.error = None;
                        stage.question = None;
                        stage.approved = None;
                        stage.policy.clear();
                        stage.earlier = stage.attempt;
                    });
                }
            }
            payload => reduce_stage(&mut state, payload, at),
        }
        state
    }
}

fn end(state: &mut RunState, status: WorkflowStatus, at: Timestamp) {
    state.status = status;
    state.pause = None;
    state.current_stage = None;
    state.ended_at = Some(at);
    for stage in &mut state.stages {
        stage.question = None;
    }
}

fn reduce_stage(state: &mut RunState, payload: &EventPayload, at: Timestamp) {
    match payload {
        EventPayload::StageStarted(started) => {
            state.current_stage = Some(started.stage_id.clone());
            on(state, &started.stage_id, |stage| {
                stage.status = StageStatus::Running;
                stage.attempt = started.attempt;
                stage.started_at.get_or_insert(at);
                stage.question = None;
                stage.policy.clear();
                stage.context = None;
                stage.inference = None;
            });
        }
        EventPayload::StageCompleted(completed) => {
            state.current_stage.clone_from(&completed.next_stage);
            on(state, &completed.stage_id, |stage| {
                stage.status = StageStatus::Done;
                stage.attempt = completed.attempt;
                stage.duration_ms = Some(completed.duration_ms);
                stage.words = completed.words;
                stage.output_tokens = completed.output_tokens;
                stage.question = None;
            });
        }
        EventPayload::StageFailed(failed) => {
            state.current_stage = None;
            on(state, &failed.stage_id, |stage| {
                stage.status = StageStatus::Failed;
                stage.error = Some(failed.reason.clone());
                stage.question = None;
            });
        }
        EventPayload::StageCancelled(cancelled) => {
            state.current_stage = None;
            on(state, &cancelled.stage_id, |stage| {
                stage.status = StageStatus::Cancelled;
                stage.question = None;
            });
        }
        EventPayload::StageRestarted(restarted) => on(state, &restarted.stage_id, |stage| {
            stage.drafts.push(DraftRecord {
                attempt: restarted.attempt,
                reason: DraftReason::Steered { notes: restarted.notes.clone() },
                draft: restarted.draft.clone(),
                piece: None,
                thinking: stage.thought_in(restarted.attempt),
            });
        }),
        EventPayload::StageAttemptRefused(refused) => on(state, &refused.stage_id, |stage| {
            stage.drafts.push(DraftRecord {
                attempt: refused.attempt,
                reason: DraftReason::Refused {
                    validator: refused.validator.clone(),
                    message: refused.message.clone(),
                },
                draft: Some(refused.draft.clone()),
                piece: refused.piece,
                thinking: stage.thought_in(refused.attempt),
            });
        }),
        EventPayload::StageSkipped(skipped) => {
            state.current_stage.clone_from(&skipped.next_stage);
            on(state, &skipped.stage_id, |stage| {
                stage.status = StageStatus::Skipped;
                stage.error = None;
            });
        }
        EventPayload::MapPieceCompleted(piece) => on(state, &piece.stage_id, |stage| {
            stage.pieces.push(piece.clone());
        }),
        EventPayload::ArtifactProduced(artifact) => on(state, &artifact.stage_id, |stage| {
            stage.artifacts.push(artifact.clone());
        }),
        // What a judge was asked is not how the stage's answer came about.
        EventPayload::ContextAssembled(assembled) if assembled.judges => {}
        EventPayload::InferenceCompleted(completed) if completed.judges => {}
        EventPayload::ContextAssembled(assembled) => on(state, &assembled.stage_id, |stage| {
            stage.context = Some(assembled.clone());
        }),
        EventPayload::InferenceCompleted(completed) => on(state, &completed.stage_id, |stage| {
            stage.inference = Some(completed.clone());
        }),
        EventPayload::PolicyDecided(decided) => on(state, &decided.stage_id, |stage| {
            stage.policy.push(decided.clone());
        }),
        EventPayload::EffectIntended(intended) => on(state, &intended.stage_id, |stage| {
            // An approval is for one time.
            stage.approved = None;
            let intended = intended.clone();
            stage.effects.push(EffectRecord { intended, outcome: None, output: None });
        }),
        EventPayload::EffectDone(done) => on(state, &done.stage_id, |stage| {
            let effect = stage
                .effects
                .iter_mut()
                .rfind(|record| record.intended.effect_id == done.effect_id);
            if let Some(record) = effect {
                record.outcome = Some(done.outcome.clone());
                record.output.clone_from(&done.output);
            }
        }),
        EventPayload::ApprovalRequested(request) => on(state, &request.stage_id, |stage| {
            stage.status = StageStatus::Waiting;
            stage.question = Some(request.clone());
        }),
        EventPayload::ApprovalGranted(granted) => on(state, &granted.stage_id, |stage| {
            stage.status = StageStatus::Running;
            stage.approved = stage.question.take().filter(|question| question.action.is_some());
        }),
        EventPayload::ApprovalDenied(denied) => on(state, &denied.stage_id, |stage| {
            stage.question = None;
        }),
        _ => {}
    }
}

fn on(state: &mut RunState, stage: &StageId, change: impl FnOnce(&mut StageRecord)) {
    if let Some(record) = state.stages.iter_mut().find(|record| record.plan.id == *stage) {
        change(record);
    }
}
