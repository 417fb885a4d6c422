//! What each event does to the router's state.

mod common;

use common::*;
use correx_events::*;
use correx_router::*;
use correx_sessions::Reducer;

#[test]
fn nothing_is_known_before_the_first_event() {
    let state = DefaultRouterReducer.initial();
    assert_eq!(state.session_id, None);
    assert_eq!(state.workflow_status, WorkflowStatus::Idle);
    assert_eq!(state.current_stage_id, None);
    assert!(state.l2_memory.is_empty() && state.conversation_history.is_empty());
}

#[test]
fn a_started_workflow_runs_in_its_session_at_its_first_stage() {
    let state = given([started(&["draft", "check"])]);
    assert_eq!(state.workflow_status, WorkflowStatus::Running);
    assert_eq!(state.session_id, Some(session()));
    assert_eq!(state.current_stage_id, Some("draft".into()));
    assert_eq!(state.plan.len(), 2);
}

#[test]
fn a_completed_workflow_is_completed_and_has_no_current_stage() {
    let state = given([started(&["draft"]), completed()]);
    assert_eq!(state.workflow_status, WorkflowStatus::Completed);
    assert_eq!(state.current_stage_id, None);
}

#[test]
fn a_failed_workflow_is_failed_and_has_no_current_stage() {
    let state = given([started(&["draft"]), failed()]);
    assert_eq!(state.workflow_status, WorkflowStatus::Failed);
    assert_eq!(state.current_stage_id, None);
}

#[test]
fn pausing_and_resuming_change_the_status_and_keep_the_stage() {
    let pause = |reason| EventPayload::from(OrchestrationPaused { reason });
    let mut events = vec![started(&["draft"]), pause(PauseReason::Person)];
    let paused = given(events.clone());
    assert_eq!(paused.workflow_status, WorkflowStatus::Paused);
    assert_eq!(paused.current_stage_id, Some("draft".into()));
    events.push(OrchestrationResumed {}.into());
    let resumed = given(events);
    assert_eq!(resumed.workflow_status, WorkflowStatus::Running);
    assert_eq!(resumed.current_stage_id, Some("draft".into()));
}

#[test]
fn a_completed_stage_is_remembered_and_hands_over_to_the_next() {
    let state = given([started(&["draft", "check"]), stage_completed("draft", Some("check"))]);
    assert_eq!(
        state.l2_memory,
        vec![RouterL2Entry {
            stage_id: "draft".into(),
            summary: "finished on attempt 1: 214 words, 301 tokens, 4.1 s".into(),
            outcome: StageOutcomeKind::Success,
            timestamp: at(2),
        }]
    );
    assert_eq!(state.current_stage_id, Some("check".into()));
}

#[test]
fn the_last_completed_stage_leaves_no_current_stage() {
    let state = given([started(&["draft"]), stage_completed("draft", None)]);
    assert_eq!(state.current_stage_id, None);
    assert_eq!(state.workflow_status, WorkflowStatus::Running);
}

#[test]
fn a_failed_stage_is_remembered_as_a_failure_and_is_no_longer_current() {
    let state = given([started(&["draft"]), stage_failed("draft")]);
    assert_eq!(state.l2_memory.len(), 1);
    assert_eq!(state.l2_memory[0].outcome, StageOutcomeKind::Failure);
    assert_eq!(state.l2_memory[0].summary, "failed on attempt 3: too short");
    assert_eq!(state.current_stage_id, None);
}

#[test]
fn a_cancelled_stage_is_remembered_as_cancelled_and_is_no_longer_current() {
    let cancelled = StageCancelled { stage_id: "draft".into(), attempt: 2 };
    let state = given([started(&["draft"]), cancelled.into()]);
    assert_eq!(state.l2_memory[0].outcome, StageOutcomeKind::Cancelled);
    assert_eq!(state.l2_memory[0].summary, "cancelled during attempt 2");
    assert_eq!(state.current_stage_id, None);
}

#[test]
fn a_started_stage_becomes_the_current_one() {
    let state = given([started(&["a", "b", "c"]), stage_started("c", 1)]);
    assert_eq!(state.current_stage_id, Some("c".into()));
}

#[test]
fn memory_is_ordered_from_the_oldest_stage_to_the_newest() {
    let state = given([
        started(&["a", "b", "c"]),
        stage_completed("a", Some("b")),
        stage_completed("b", Some("c")),
        stage_failed("c"),
    ]);
    let stages: Vec<&str> = state.l2_memory.iter().map(|entry| entry.stage_id.as_str()).collect();
    assert_eq!(stages, ["a", "b", "c"]);
}

#[test]
fn unrelated_events_pass_through_unchanged() {
    let before = given([created(true), started(&["draft"]), stage_started("draft", 1)]);
    let unrelated: Vec<EventPayload> = vec![
        ArtifactProduced {
            stage_id: "draft".into(),
            attempt: 1,
            name: "draft".into(),
            hash: BlobHash::of(b"secret"),
            bytes: 6,
            media_type: "text/plain".into(),
        }
        .into(),
        StageAttemptRefused {
            stage_id: "draft".into(),
            attempt: 1,
            validator: "min_words".into(),
            message: "too short".into(),
            draft: BlobHash::of(b"secret"),
            piece: None,
        }
        .into(),
        ApprovalRequested {
            stage_id: "draft".into(),
            prompt: "ok?".into(),
            artifact: None,
            cause: correx_events::ApprovalCause::Workflow,
            action: None,
            before: None,
        }
        .into(),
        InputsCaptured { inputs: vec![] }.into(),
        EventPayload::Unknown(UnknownPayload {
            kind: "later".into(),
            json: r#"{"type":"later"}"#.into(),
            reason: UnknownReason::NewKind,
        }),
    ];
    for payload in unrelated {
        let after = DefaultRouterReducer.reduce(before.clone(), &stored(9, payload));
        assert_eq!(after, before);
    }
}

#[test]
fn the_reducer_never_touches_the_conversation() {
    let mut state = given([started(&["draft"])]);
    state.conversation_history = vec![turn(TurnRole::User, "hello")];
    for payload in [stage_completed("draft", None), completed(), failed(), started(&["x"])] {
        let after = DefaultRouterReducer.reduce(state.clone(), &stored(5, payload));
        assert_eq!(after.conversation_history, state.conversation_history);
    }
}

#[test]
fn notes_are_known_with_their_stage_and_every_use() {
    let applied =
        SteeringNoteApplied { note_id: "n1".into(), stage_id: "draft".into(), attempt: 2 };
    let state = given([
        started(&["draft"]),
        note("n1", "Be brief.", None, NoteScope::Onward),
        applied.into(),
    ]);
    let record = &state.notes.all()[0];
    assert_eq!(record.target, Some("draft".into()));
    assert!(record.is_applied_to(&"draft".into(), 2));
    assert!(!record.is_applied_to(&"draft".into(), 1));
}

#[test]
fn a_session_is_known_as_a_plain_chat_or_one_with_a_workflow() {
    use correx_router::state::Steerable;
    assert_eq!(given([]).steerable, Steerable::Unknown);
    assert_eq!(given([created(false)]).steerable, Steerable::PlainChat);
    assert_eq!(given([created(true)]).steerable, Steerable::Workflow);
    assert_eq!(given([started(&["a"])]).steerable, Steerable::Workflow);
}

#[test]
fn a_summary_counts_in_the_singular_and_leaves_out_what_is_not_known() {
    let completed = |words, output_tokens, duration_ms| {
        correx_router::summary::completed(&StageCompleted {
            stage_id: "a".into(),
            attempt: 2,
            next_stage: None,
            words,
            output_tokens,
            duration_ms,
        })
    };
    assert_eq!(completed(Some(1), Some(1), 950), "finished on attempt 2: 1 word, 1 token, 0.9 s");
    assert_eq!(completed(None, None, 61_005), "finished on attempt 2: 61.0 s");
}
