//! The ends: of a stage that is done, and of a run whose last stage that was.

use correx_events::{
    EventPayload, StageCompleted, StageId, StageSkipped, Timestamp, WorkflowCompleted,
};
use correx_sessions::RunState;

/// What a stage has to show for itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Produced {
    pub(super) words: Option<u64>,
    pub(super) output_tokens: Option<u64>,
}

/// The events that follow when `stage` is done; the run's end with them when it was the last, so
/// that nothing can come between.
pub(super) fn stage_done(
    state: &RunState,
    stage: &StageId,
    attempt: u32,
    produced: Produced,
    now: Timestamp,
) -> Vec<EventPayload> {
    let next_stage = following(state, stage);
    let is_last = next_stage.is_none();
    let began = state.stage(stage).and_then(|record| record.started_at);
    let done = StageCompleted {
        stage_id: stage.clone(),
        attempt,
        next_stage,
        words: produced.words,
        output_tokens: produced.output_tokens,
        duration_ms: began.map_or(0, |began| milliseconds(began, now)),
    };
    let end = is_last.then(|| completed(state, now));
    std::iter::once(done.into()).chain(end).collect()
}

/// The events that follow when `stage` is passed over because `condition` does not hold.
pub(super) fn stage_skipped(
    state: &RunState,
    stage: &StageId,
    condition: &str,
    now: Timestamp,
) -> Vec<EventPayload> {
    let next_stage = following(state, stage);
    let is_last = next_stage.is_none();
    let (stage_id, reason) = (stage.clone(), condition.to_owned());
    let skipped = StageSkipped { stage_id, reason, next_stage };
    let end = is_last.then(|| completed(state, now));
    std::iter::once(skipped.into()).chain(end).collect()
}

/// The stage that runs once `stage` is over.
fn following(state: &RunState, stage: &StageId) -> Option<StageId> {
    state.next_when_over(Some(stage)).map(|record| record.plan.id.clone())
}

/// The event that ends a run well.
pub(super) fn completed(state: &RunState, now: Timestamp) -> EventPayload {
    let duration_ms = state.started_at.map_or(0, |start| milliseconds(start, now));
    WorkflowCompleted { duration_ms }.into()
}

/// From `start` to `end`; 0 when the clock went back.
fn milliseconds(start: Timestamp, end: Timestamp) -> u64 {
    u64::try_from(end.as_millisecond() - start.as_millisecond()).unwrap_or(0)
}
