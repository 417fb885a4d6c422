//! A run as its events tell it.

use correx_events::testing::samples;
use correx_events::{
    ApprovalDenied, ApprovalGranted, ApprovalRequested, ArtifactProduced, BlobHash,
    ContextAssembled, EffectDone, EffectIntended, EffectKind, EffectOutcome, EventPayload,
    FailureReason, InferenceCompleted, NoteScope, PauseReason, SessionCreated, StageAttemptRefused,
    StageRestarted, Timestamp, UnknownPayload, UnknownReason, WorkflowRerun,
};
use correx_sessions::{
    DraftReason, DraftRecord, Projection, Reducer, ReducerProjection, RunReducer, RunState,
    StageRecord, StageStatus, Thought, WorkflowStatus,
};
use proptest::prelude::*;

use crate::given::{
    any_payload, begin, cancel, complete, completed_run, fail, failed_run, log, note, paused,
    resumed, run, started,
};

fn at(second: i64) -> Option<Timestamp> {
    Some(Timestamp::from_second(second).unwrap())
}

fn stage<'a>(state: &'a RunState, id: &str) -> &'a StageRecord {
    state.stage(&id.into()).unwrap()
}

fn current(state: &RunState) -> Option<&str> {
    state.current_stage.as_ref().map(|stage| stage.as_str())
}

fn with(mut payloads: Vec<EventPayload>, more: impl Into<EventPayload>) -> RunState {
    payloads.push(more.into());
    run(payloads)
}

fn sample<T>(pick: impl Fn(EventPayload) -> Option<T>) -> T {
    samples().into_iter().find_map(pick).unwrap()
}

fn question(stage: &str) -> ApprovalRequested {
    ApprovalRequested {
        stage_id: stage.into(),
        prompt: "Send it?".into(),
        artifact: None,
        cause: correx_events::ApprovalCause::Workflow,
        action: None,
        before: None,
    }
}

fn inference(stage: &str) -> InferenceCompleted {
    let sample = sample(|payload| match payload {
        EventPayload::InferenceCompleted(completed) => Some(completed),
        _ => None,
    });
    InferenceCompleted { stage_id: stage.into(), judges: false, ..sample }
}

fn context(stage: &str) -> ContextAssembled {
    let sample = sample(|payload| match payload {
        EventPayload::ContextAssembled(assembled) => Some(assembled),
        _ => None,
    });
    ContextAssembled { stage_id: stage.into(), judges: false, ..sample }
}

#[test]
fn an_empty_log_tells_an_idle_run() {
    let state = run(vec![]);
    assert_eq!(state, RunState::default());
    assert_eq!(state.status, WorkflowStatus::Idle);
    assert_eq!((state.version, state.session_id, state.current_stage), (0, None, None));
}

#[test]
fn a_created_session_has_its_title_and_workflow() {
    let created = sample(|payload| match payload {
        EventPayload::SessionCreated(created) => Some(created),
        _ => None,
    });
    let state = run(vec![created.clone().into()]);
    assert_eq!(state.title, created.title);
    assert_eq!(state.workflow, created.workflow);
    assert_eq!(state.session_id, Some("s".into()));
    assert_eq!(state.status, WorkflowStatus::Idle);

    let plain = run(vec![SessionCreated { title: "Chat".into(), workflow: None }.into()]);
    assert_eq!((plain.title.as_str(), plain.workflow), ("Chat", None));
}

#[test]
fn captured_inputs_are_what_the_run_reads() {
    let captured = sample(|payload| match payload {
        EventPayload::InputsCaptured(captured) => Some(captured),
        _ => None,
    });
    assert_eq!(run(vec![captured.clone().into()]).inputs, captured.inputs);
}

#[test]
fn a_started_run_is_running_at_its_first_stage_with_every_stage_pending() {
    let state = run(vec![resumed(), started(&["a", "b"])]);
    assert_eq!(state.status, WorkflowStatus::Running);
    assert_eq!(current(&state), Some("a"));
    assert_eq!(state.order(), ["a".into(), "b".into()]);
    assert!(state.stages.iter().all(|stage| *stage == StageRecord::new(stage.plan.clone())));
    assert_eq!(stage(&state, "a").status, StageStatus::Pending);
    assert_eq!((state.started_at, state.ended_at), (at(2), None));
}

#[test]
fn a_completed_run_has_no_current_stage() {
    let state = run(vec![started(&["a"]), begin("a", 1), completed_run()]);
    assert_eq!(state.status, WorkflowStatus::Completed);
    assert_eq!((current(&state), state.ended_at), (None, at(3)));
    assert_eq!((state.started_at, state.failure), (at(1), None));
}

#[test]
fn a_failed_run_says_why_and_has_no_current_stage() {
    let state =
        run(vec![started(&["a"]), begin("a", 1), paused(PauseReason::Person), failed_run()]);
    assert_eq!(state.status, WorkflowStatus::Failed);
    assert_eq!((current(&state), state.ended_at, state.pause), (None, at(4), None));
    let failure = state.failure.unwrap();
    assert_eq!((failure.reason, failure.message.as_str()), (FailureReason::Cancelled, "cancelled"));
}

#[test]
fn a_run_that_ends_leaves_no_question_open() {
    for end in [completed_run(), failed_run()] {
        let state = run(vec![started(&["a"]), begin("a", 1), question("a").into(), end]);
        assert_eq!(stage(&state, "a").question, None);
    }
}

#[test]
fn a_later_start_forgets_how_the_earlier_run_went() {
    let state = run(vec![
        started(&["a"]),
        begin("a", 3),
        fail("a"),
        failed_run(),
        paused(PauseReason::Person),
        started(&["a", "b"]),
    ]);
    let fresh = run(vec![started(&["a", "b"])]);
    assert_eq!(state.stages, fresh.stages);
    assert_eq!((state.status, state.pause), (WorkflowStatus::Running, None));
    assert_eq!((state.failure, state.ended_at, state.started_at), (None, None, at(6)));
}

#[test]
fn a_pause_keeps_its_reason_and_the_current_stage_until_the_run_goes_on() {
    for reason in [PauseReason::Person, PauseReason::Approval, PauseReason::Interrupted] {
        let state = run(vec![started(&["a"]), begin("a", 1), paused(reason)]);
        assert_eq!((state.status, state.pause), (WorkflowStatus::Paused, Some(reason)));
        assert_eq!(current(&state), Some("a"));
        let state = run(vec![started(&["a"]), begin("a", 1), paused(reason), resumed()]);
        assert_eq!((state.status, state.pause), (WorkflowStatus::Running, None));
        assert_eq!(current(&state), Some("a"));
    }
}

#[test]
fn a_started_stage_is_current_and_running() {
    let state = run(vec![started(&["a", "b"]), begin("b", 1)]);
    assert_eq!(current(&state), Some("b"));
    assert_eq!(stage(&state, "b").status, StageStatus::Running);
    assert_eq!((stage(&state, "b").attempt, stage(&state, "b").started_at), (1, at(2)));
    assert_eq!(stage(&state, "a").status, StageStatus::Pending);
}

#[test]
fn a_further_attempt_begins_afresh_but_keeps_when_the_first_began() {
    let state = run(vec![
        started(&["a"]),
        begin("a", 1),
        context("a").into(),
        inference("a").into(),
        question("a").into(),
        begin("a", 2),
    ]);
    let a = stage(&state, "a");
    assert_eq!((a.status, a.attempt, a.started_at), (StageStatus::Running, 2, at(2)));
    assert_eq!((&a.context, &a.inference, &a.question), (&None, &None, &None));
}

#[test]
fn a_completed_stage_hands_over_to_the_next() {
    let mut finished = vec![started(&["a", "b"]), begin("a", 2), question("a").into()];
    finished.push(complete("a", Some("b")));
    let state = run(finished);
    assert_eq!(current(&state), Some("b"));
    let a = stage(&state, "a");
    assert_eq!((a.status, a.attempt), (StageStatus::Done, 1));
    assert_eq!((a.words, a.output_tokens, a.duration_ms), (Some(10), Some(20), Some(30)));
    assert_eq!(a.question, None);
    assert_eq!(stage(&state, "b").status, StageStatus::Pending);

    let last = run(vec![started(&["a"]), begin("a", 1), complete("a", None)]);
    assert_eq!(current(&last), None);
    assert_eq!(last.status, WorkflowStatus::Running, "only the run's own event ends it");
}

#[test]
fn a_failed_stage_says_why_and_is_current_no_more() {
    let state = run(vec![started(&["a", "b"]), begin("a", 1), question("a").into(), fail("a")]);
    let a = stage(&state, "a");
    assert_eq!((a.status, a.error.as_deref()), (StageStatus::Failed, Some("too long")));
    assert_eq!((&a.question, current(&state)), (&None, None));
    assert_eq!(state.status, WorkflowStatus::Running);
}

#[test]
fn a_cancelled_stage_is_current_no_more() {
    let state = run(vec![started(&["a", "b"]), begin("a", 1), question("a").into(), cancel("a")]);
    let a = stage(&state, "a");
    assert_eq!((a.status, &a.error, &a.question), (StageStatus::Cancelled, &None, &None));
    assert_eq!(current(&state), None);
}

#[test]
fn drafts_put_aside_and_refused_are_kept_in_order() {
    let draft = BlobHash::of(b"draft");
    let state = run(vec![
        started(&["a"]),
        begin("a", 1),
        StageRestarted { stage_id: "a".into(), attempt: 1, notes: vec!["n".into()], draft: None }
            .into(),
        begin("a", 2),
        InferenceCompleted { attempt: 2, ..inference("a") }.into(),
        StageAttemptRefused {
            stage_id: "a".into(),
            attempt: 2,
            validator: "max_words".into(),
            message: "too many".into(),
            draft: draft.clone(),
            piece: None,
        }
        .into(),
    ]);
    assert_eq!(
        stage(&state, "a").drafts,
        [
            DraftRecord {
                attempt: 1,
                reason: DraftReason::Steered { notes: vec!["n".into()] },
                draft: None,
                thinking: None,
                piece: None,
            },
            DraftRecord {
                attempt: 2,
                reason: DraftReason::Refused {
                    validator: "max_words".into(),
                    message: "too many".into()
                },
                draft: Some(draft),
                thinking: Some(Thought { text: BlobHash::of(b"thinking"), tokens: 64 }),
                piece: None,
            },
        ]
    );
    assert_eq!(stage(&state, "a").status, StageStatus::Running);
    assert_eq!(current(&state), Some("a"));
}

#[test]
fn artifacts_context_and_inference_belong_to_their_stage() {
    let artifact = |name: &str| ArtifactProduced {
        stage_id: "b".into(),
        attempt: 1,
        name: name.into(),
        hash: BlobHash::of(name.as_bytes()),
        bytes: 3,
        media_type: "text/plain".into(),
    };
    let state = run(vec![
        started(&["a", "b"]),
        artifact("one").into(),
        artifact("two").into(),
        context("b").into(),
        inference("b").into(),
    ]);
    let b = stage(&state, "b");
    assert_eq!(b.artifacts, [artifact("one"), artifact("two")]);
    assert_eq!(b.context, Some(context("b")));
    assert_eq!(b.inference, Some(inference("b")));
    assert_eq!(*stage(&state, "a"), StageRecord::new(stage(&state, "a").plan.clone()));
}

#[test]
fn a_question_is_open_until_it_is_answered() {
    let asked = vec![started(&["a", "b"]), begin("a", 1), question("a").into()];
    let state = run(asked.clone());
    assert_eq!(stage(&state, "a").status, StageStatus::Waiting);
    assert_eq!(stage(&state, "a").question, Some(question("a")));
    assert_eq!(stage(&state, "b").question, None);

    let granted = with(asked.clone(), ApprovalGranted { stage_id: "a".into(), comment: None });
    assert_eq!(stage(&granted, "a").status, StageStatus::Running);
    assert_eq!(stage(&granted, "a").question, None);

    let denied = with(asked, ApprovalDenied { stage_id: "a".into(), reason: None });
    assert_eq!(stage(&denied, "a").question, None);
    assert_ne!(stage(&denied, "a").status, StageStatus::Running, "what was refused does not run");
}

fn effect(id: &str) -> EffectIntended {
    EffectIntended {
        effect_id: id.into(),
        stage_id: "a".into(),
        kind: EffectKind::Write,
        target: "a.txt".into(),
        attempt: Some(1),
        content: None,
        before: None,
    }
}

fn effect_done(id: &str) -> EffectDone {
    EffectDone {
        effect_id: id.into(),
        stage_id: "a".into(),
        outcome: EffectOutcome::Succeeded,
        output: Some(BlobHash::of(b"said")),
    }
}

#[test]
fn an_effect_is_half_done_until_its_end_is_known() {
    let begun = vec![started(&["a"]), begin("a", 1), effect("one").into()];
    let state = run(begun.clone());
    assert_eq!(stage(&state, "a").half_done().unwrap().intended, effect("one"));
    // The end of another one says nothing of it.
    let other = with(begun.clone(), effect_done("two"));
    assert!(stage(&other, "a").half_done().is_some());
    let state = with(begun, effect_done("one"));
    assert_eq!(stage(&state, "a").half_done(), None);
    let record = &stage(&state, "a").effects[0];
    assert_eq!(record.outcome, Some(EffectOutcome::Succeeded));
    assert_eq!(record.output, Some(BlobHash::of(b"said")));
}

#[test]
fn an_approval_of_an_effect_holds_until_it_is_begun() {
    let asked = ApprovalRequested { action: Some("write a.txt".into()), ..question("a") };
    let granted = ApprovalGranted { stage_id: "a".into(), comment: None };
    let log = vec![started(&["a"]), begin("a", 1), asked.clone().into(), granted.clone().into()];
    assert_eq!(stage(&run(log.clone()), "a").approved, Some(asked));
    assert_eq!(stage(&with(log, effect("one")), "a").approved, None, "it is for one time");
    // The answer to a workflow's own question allows nothing.
    let log = vec![started(&["a"]), begin("a", 1), question("a").into(), granted.into()];
    assert_eq!(stage(&run(log), "a").approved, None);
}

#[test]
fn what_was_made_before_a_rerun_is_kept_and_counts_no_more() {
    let made = |attempt, text: &str| ArtifactProduced {
        stage_id: "a".into(),
        attempt,
        name: "a".into(),
        hash: BlobHash::of(text.as_bytes()),
        bytes: 1,
        media_type: "text/plain".into(),
    };
    let rerun = WorkflowRerun { from_stage: "a".into(), stages: vec!["a".into(), "b".into()] };
    let log = vec![
        started(&["a", "b"]),
        begin("a", 1),
        made(1, "old").into(),
        complete("a", Some("b")),
        begin("b", 1),
        fail("b"),
        failed_run(),
        rerun.into(),
    ];
    let state = run(log.clone());
    assert_eq!((state.status, current(&state)), (WorkflowStatus::Running, Some("a")));
    assert_eq!((state.failure.as_ref(), state.ended_at), (None, None));
    assert_eq!(stage(&state, "a").status, StageStatus::Pending);
    assert_eq!(stage(&state, "b").error, None);
    assert_eq!(stage(&state, "a").artifacts, [made(1, "old")]);
    assert_eq!(stage(&state, "a").produced().count(), 0);
    let state = with([log, vec![begin("a", 2)]].concat(), made(2, "new"));
    let produced: Vec<_> = stage(&state, "a").produced().cloned().collect();
    assert_eq!(produced, [made(2, "new")]);
    assert_eq!(stage(&state, "a").artifacts.len(), 2);
}

#[test]
fn notes_hold_again_for_the_stages_that_run_again() {
    let rerun = WorkflowRerun { from_stage: "b".into(), stages: vec!["b".into()] };
    let state = run(vec![
        started(&["a", "b"]),
        begin("a", 1),
        note("a only", Some("a"), NoteScope::Stage),
        note("b only", Some("b"), NoteScope::Stage),
        note("onward", None, NoteScope::Onward),
        note("run", None, NoteScope::Run),
        complete("a", Some("b")),
        begin("b", 1),
        complete("b", None),
        completed_run(),
        rerun.into(),
    ]);
    let active: Vec<&str> =
        state.notes.active().map(|record| record.note.note_id.as_str()).collect();
    assert_eq!(active, ["b only", "onward", "run"]);
}

#[test]
fn notes_are_folded_with_the_stage_that_was_current_before_the_event() {
    let state = run(vec![
        started(&["a", "b"]),
        begin("a", 1),
        note("n", None, NoteScope::Onward),
        complete("a", Some("b")),
    ]);
    assert_eq!(state.notes.all().len(), 1);
    assert_eq!(state.notes.all()[0].target, Some("a".into()));
}

#[test]
fn what_does_not_change_a_run_changes_only_its_version_and_time() {
    let before = vec![started(&["notes", "summary", "publish"]), begin("summary", 1)];
    // A judge's question is not how the stage's answer came about.
    let judges = [
        ContextAssembled { judges: true, ..context("summary") }.into(),
        InferenceCompleted { judges: true, ..inference("summary") }.into(),
    ];
    let passing = samples().into_iter().filter(|sample| sample.kind() == "policy_denied");
    let unknown = EventPayload::Unknown(UnknownPayload {
        kind: "stage_dreamt".into(),
        json: "{}".into(),
        reason: UnknownReason::NewKind,
    });
    let passing: Vec<_> = passing.chain(judges).chain([unknown]).collect();
    assert_eq!(passing.len(), 4);
    for payload in passing {
        let mut expected = run(before.clone());
        expected.version = 3;
        expected.updated_at = at(3);
        assert_eq!(with(before.clone(), payload.clone()), expected, "{}", payload.kind());
    }
}

#[test]
fn an_event_of_a_stage_outside_the_plan_changes_no_other_stage() {
    let planned = run(vec![started(&["a", "b"])]);
    for payload in [begin("x", 1), complete("x", Some("b")), fail("x"), question("x").into()] {
        assert_eq!(with(vec![started(&["a", "b"])], payload).stages, planned.stages);
    }
}

#[test]
fn the_next_unfinished_stage_is_the_first_that_is_not_done() {
    let next = |payloads| run(payloads).next_unfinished().map(|stage| stage.plan.id.to_string());
    let plan = || vec![started(&["a", "b", "c"])];
    assert_eq!(next(plan()).as_deref(), Some("a"));
    assert_eq!(next([plan(), vec![complete("b", None)]].concat()).as_deref(), Some("a"));
    let two = [plan(), vec![complete("a", None), complete("b", None)]].concat();
    assert_eq!(next(two.clone()).as_deref(), Some("c"));
    assert_eq!(next([two.clone(), vec![fail("c")]].concat()).as_deref(), Some("c"));
    assert_eq!(next([two, vec![complete("c", None)]].concat()), None);
}

#[test]
fn a_status_is_written_as_the_specification_writes_it() {
    for (status, written, ended) in [
        (WorkflowStatus::Idle, "IDLE", false),
        (WorkflowStatus::Running, "RUNNING", false),
        (WorkflowStatus::Paused, "PAUSED", false),
        (WorkflowStatus::Completed, "COMPLETED", true),
        (WorkflowStatus::Failed, "FAILED", true),
    ] {
        assert_eq!(status.as_str(), written);
        assert_eq!(status.to_string(), written);
        assert_eq!(serde_json::to_value(status).unwrap(), written);
        assert_eq!(status.has_ended(), ended, "{written}");
    }
}

#[test]
fn a_state_that_holds_every_kind_survives_json() {
    let state = run(samples());
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<RunState>(&text).unwrap(), state);
}

proptest! {
    #[test]
    fn the_version_is_the_last_events_number_and_the_session_the_first_events(
        payloads in prop::collection::vec(any_payload(), 1..40)
    ) {
        let events = log(payloads.clone());
        let state = run(payloads);
        let last = &events.last().unwrap().metadata;
        prop_assert_eq!(state.version, last.sequence);
        prop_assert_eq!(state.updated_at, Some(last.timestamp));
        prop_assert_eq!(state.session_id, Some("s".into()));
    }

    #[test]
    fn a_run_that_has_ended_has_no_current_stage_and_no_pause(
        mut payloads in prop::collection::vec(any_payload(), 0..40),
        completes in any::<bool>(),
    ) {
        payloads.push(if completes { completed_run() } else { failed_run() });
        let state = run(payloads);
        prop_assert!(state.status.has_ended());
        prop_assert_eq!((state.current_stage, state.pause), (None, None));
        prop_assert_eq!(state.notes.active().count(), 0);
    }

    #[test]
    fn only_a_stage_that_waits_has_an_open_question(payloads in prop::collection::vec(any_payload(), 0..40)) {
        for stage in run(payloads).stages {
            prop_assert!(stage.question.is_none() || stage.status == StageStatus::Waiting);
        }
    }

    #[test]
    fn a_projection_folds_as_its_reducer_does(payloads in prop::collection::vec(any_payload(), 0..20)) {
        let projection = ReducerProjection(RunReducer);
        let events = log(payloads.clone());
        let folded = events.iter().fold(projection.initial(), |state, event| projection.apply(state, event));
        let direct = events.iter().fold(Projection::initial(&RunReducer), |state, event| {
            Projection::apply(&RunReducer, state, event)
        });
        prop_assert_eq!(&folded, &run(payloads));
        prop_assert_eq!(folded, direct);
        prop_assert_eq!(Reducer::initial(&RunReducer), RunState::default());
    }
}
