//! What the tests start from: payloads by short names, states folded from them, arbitrary logs.

use correx_events::testing::{samples, stored};
use correx_events::{
    EventPayload, NoteScope, OrchestrationPaused, OrchestrationResumed, PauseReason,
    StageCancelled, StageCompleted, StageFailed, StageKind, StagePlan, StageStarted,
    SteeringNoteAdded, SteeringNoteApplied, SteeringNoteWithdrawn, StoredEvent, WorkflowCompleted,
    WorkflowFailed, WorkflowStarted,
};
use correx_sessions::{Reducer, RunReducer, RunState};
use proptest::prelude::*;

/// The payloads as session `s`'s log: number and second of the first are 1.
pub(crate) fn log(payloads: Vec<EventPayload>) -> Vec<StoredEvent> {
    (1..).zip(payloads).map(|(sequence, payload)| stored("s", sequence, payload)).collect()
}

/// The run that session `s`'s log tells.
pub(crate) fn run(payloads: Vec<EventPayload>) -> RunState {
    let reducer = RunReducer;
    log(payloads).iter().fold(reducer.initial(), |state, event| reducer.reduce(state, event))
}

/// A run of these stages; the first is current.
pub(crate) fn started(stages: &[&str]) -> EventPayload {
    let plan = |id: &&str| StagePlan {
        id: (*id).into(),
        title: String::new(),
        kind: StageKind::Generate,
        needs: None,
    };
    WorkflowStarted {
        workflow: "w".into(),
        stages: stages.iter().map(plan).collect(),
        first_stage: stages.first().map(|id| (*id).into()),
    }
    .into()
}

pub(crate) fn completed_run() -> EventPayload {
    WorkflowCompleted { duration_ms: 1 }.into()
}

pub(crate) fn failed_run() -> EventPayload {
    WorkflowFailed { reason: correx_events::FailureReason::Cancelled, message: "cancelled".into() }
        .into()
}

pub(crate) fn paused(reason: PauseReason) -> EventPayload {
    OrchestrationPaused { reason }.into()
}

pub(crate) fn resumed() -> EventPayload {
    OrchestrationResumed {}.into()
}

pub(crate) fn begin(stage: &str, attempt: u32) -> EventPayload {
    StageStarted { stage_id: stage.into(), attempt }.into()
}

pub(crate) fn complete(stage: &str, next: Option<&str>) -> EventPayload {
    StageCompleted {
        stage_id: stage.into(),
        attempt: 1,
        next_stage: next.map(Into::into),
        words: Some(10),
        output_tokens: Some(20),
        duration_ms: 30,
    }
    .into()
}

pub(crate) fn fail(stage: &str) -> EventPayload {
    StageFailed { stage_id: stage.into(), attempt: 1, reason: "too long".into() }.into()
}

pub(crate) fn cancel(stage: &str) -> EventPayload {
    StageCancelled { stage_id: stage.into(), attempt: 1 }.into()
}

pub(crate) fn note(name: &str, stage: Option<&str>, scope: NoteScope) -> EventPayload {
    SteeringNoteAdded {
        session_id: "s".into(),
        note_id: name.into(),
        content: format!("words of {name}"),
        stage_id: stage.map(Into::into),
        scope,
        replaces: None,
    }
    .into()
}

pub(crate) fn withdraw(note: &str) -> EventPayload {
    SteeringNoteWithdrawn { note_id: note.into() }.into()
}

pub(crate) fn apply(note: &str, stage: &str, attempt: u32) -> EventPayload {
    SteeringNoteApplied { note_id: note.into(), stage_id: stage.into(), attempt }.into()
}

/// Any payload over few stages and notes, so that events meet each other's.
pub(crate) fn any_payload() -> impl Strategy<Value = EventPayload> {
    let stage = || prop::sample::select(vec!["a", "b", "c"]);
    let name = || prop::sample::select(vec!["n1", "n2", "n3"]);
    let scope = prop::sample::select(vec![NoteScope::Stage, NoteScope::Onward, NoteScope::Run]);
    prop_oneof![
        2 => Just(started(&["a", "b", "c"])),
        4 => (stage(), 1..4_u32).prop_map(|(stage, attempt)| begin(stage, attempt)),
        2 => (stage(), prop::option::of(stage())).prop_map(|(stage, next)| complete(stage, next)),
        1 => stage().prop_map(fail),
        1 => stage().prop_map(cancel),
        3 => (name(), prop::option::of(stage()), scope)
            .prop_map(|(name, stage, scope)| note(name, stage, scope)),
        1 => name().prop_map(withdraw),
        2 => (name(), stage(), 1..4_u32)
            .prop_map(|(name, stage, attempt)| apply(name, stage, attempt)),
        4 => prop::sample::select(samples()),
    ]
}
