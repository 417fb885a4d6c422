//! Which stages a steering note acts on, and for how long.

use correx_events::{NoteScope, StageId, Timestamp};
use correx_sessions::{AppliedNote, NoteRecord, Notes, RunState};
use proptest::prelude::*;

use crate::given::{
    any_payload, apply, begin, cancel, complete, completed_run, fail, failed_run, log, note, run,
    started, withdraw,
};

fn target(state: &RunState, note: &str) -> Option<String> {
    state.notes.get(&note.into()).unwrap().target.as_ref().map(ToString::to_string)
}

fn record<'a>(state: &'a RunState, note: &str) -> &'a NoteRecord {
    state.notes.get(&note.into()).unwrap()
}

/// The notes that act on `stage` of the run.
fn acting(state: &RunState, stage: &str) -> Vec<String> {
    let order = state.order();
    let stage = StageId::new(stage);
    let acting = state.notes.acting_on(&stage, &order);
    acting.map(|record| record.note.note_id.to_string()).collect()
}

#[test]
fn a_note_for_no_stage_is_for_the_one_that_is_current_in_the_log() {
    let state = run(vec![
        started(&["a", "b"]),
        note("before", None, NoteScope::Stage),
        begin("a", 1),
        note("during", None, NoteScope::Stage),
        complete("a", Some("b")),
        note("between", None, NoteScope::Stage),
        begin("b", 1),
    ]);
    assert_eq!(target(&state, "before").as_deref(), Some("a"));
    assert_eq!(target(&state, "during").as_deref(), Some("a"));
    assert_eq!(target(&state, "between").as_deref(), Some("b"));
}

#[test]
fn a_note_given_when_nothing_is_current_is_for_the_first_stage_that_starts() {
    let waiting = vec![note("n", None, NoteScope::Stage), started(&["a", "b"])];
    let state = run(waiting.clone());
    assert_eq!(target(&state, "n"), None);
    assert!(acting(&state, "a").is_empty());

    let state = run([waiting, vec![begin("b", 1), begin("a", 1)]].concat());
    assert_eq!(target(&state, "n").as_deref(), Some("b"));
    assert_eq!(acting(&state, "b"), ["n"]);
    assert!(acting(&state, "a").is_empty());
}

#[test]
fn a_named_stage_wins_over_the_current_one_and_stays() {
    let state = run(vec![
        started(&["a", "b", "c"]),
        begin("a", 1),
        note("n", Some("c"), NoteScope::Stage),
        begin("b", 1),
    ]);
    assert_eq!(target(&state, "n").as_deref(), Some("c"));
}

#[test]
fn a_note_for_a_stage_acts_on_that_stage_only() {
    let state = run(vec![started(&["a", "b", "c"]), note("n", Some("b"), NoteScope::Stage)]);
    assert!(acting(&state, "a").is_empty());
    assert_eq!(acting(&state, "b"), ["n"]);
    assert!(acting(&state, "c").is_empty());
}

#[test]
fn a_note_for_a_stage_onward_acts_on_it_and_those_after_it_in_the_plan() {
    let state = run(vec![started(&["c", "b", "a"]), note("n", Some("b"), NoteScope::Onward)]);
    assert!(acting(&state, "c").is_empty());
    assert_eq!(acting(&state, "b"), ["n"]);
    assert_eq!(acting(&state, "a"), ["n"]);
    assert!(acting(&state, "unplanned").is_empty());
}

#[test]
fn a_note_onward_from_a_stage_outside_the_plan_acts_on_that_stage_alone() {
    let state = run(vec![started(&["a", "b"]), note("n", Some("x"), NoteScope::Onward)]);
    assert_eq!(acting(&state, "x"), ["n"]);
    assert!(acting(&state, "a").is_empty());
    assert!(acting(&state, "b").is_empty());
}

#[test]
fn a_note_for_the_run_acts_on_every_stage_whatever_was_current() {
    let state = run(vec![
        note("early", None, NoteScope::Run),
        started(&["a", "b", "c"]),
        begin("b", 1),
        note("late", None, NoteScope::Run),
    ]);
    for stage in ["a", "b", "c"] {
        assert_eq!(acting(&state, stage), ["early", "late"]);
    }
    // Also before anything has started.
    assert_eq!(acting(&run(vec![note("n", None, NoteScope::Run)]), "a"), ["n"]);
}

#[test]
fn notes_act_in_the_order_in_which_they_were_given() {
    let state = run(vec![
        started(&["a", "b"]),
        note("z", Some("b"), NoteScope::Stage),
        note("m", None, NoteScope::Run),
        note("other", Some("a"), NoteScope::Stage),
        note("a", Some("a"), NoteScope::Onward),
    ]);
    assert_eq!(acting(&state, "b"), ["z", "m", "a"]);
    let all: Vec<&str> =
        state.notes.all().iter().map(|record| record.note.note_id.as_str()).collect();
    assert_eq!(all, ["z", "m", "other", "a"]);
}

#[test]
fn a_withdrawn_note_acts_on_nothing_and_the_others_still_do() {
    for scope in [NoteScope::Stage, NoteScope::Onward, NoteScope::Run] {
        let state = run(vec![
            started(&["a", "b"]),
            note("kept", Some("a"), scope),
            note("gone", Some("a"), scope),
            withdraw("gone"),
            withdraw("never given"),
        ]);
        assert_eq!(acting(&state, "a"), ["kept"]);
        assert!(record(&state, "gone").withdrawn && !record(&state, "kept").withdrawn);
        assert!(!record(&state, "gone").is_active());
        let active: Vec<_> = state.notes.active().map(|record| &record.note.note_id).collect();
        assert_eq!(active, [&"kept".into()]);
        assert_eq!(state.notes.all().len(), 2, "a withdrawn note stays on record");
    }
}

#[test]
fn a_note_for_a_stage_is_spent_when_that_stage_ends() {
    for end in [complete("a", Some("b")), fail("a"), cancel("a")] {
        let state = run(vec![
            started(&["a", "b"]),
            begin("a", 1),
            note("here", None, NoteScope::Stage),
            note("later", Some("b"), NoteScope::Stage),
            note("onward", None, NoteScope::Onward),
            note("run", None, NoteScope::Run),
            end,
        ]);
        assert!(record(&state, "here").spent && !record(&state, "here").is_active());
        for name in ["later", "onward", "run"] {
            assert!(!record(&state, name).spent && record(&state, name).is_active(), "{name}");
        }
        assert_eq!(acting(&state, "b"), ["later", "onward", "run"]);
    }
}

#[test]
fn a_restart_of_its_stage_does_not_spend_a_note() {
    let state =
        run(vec![started(&["a"]), begin("a", 1), note("n", None, NoteScope::Stage), begin("a", 2)]);
    assert_eq!(acting(&state, "a"), ["n"]);
}

#[test]
fn every_note_is_spent_when_the_run_ends_and_none_acts_on_a_later_run() {
    for end in [completed_run(), failed_run()] {
        let mut payloads = vec![
            started(&["a", "b"]),
            note("stage", Some("b"), NoteScope::Stage),
            note("onward", Some("a"), NoteScope::Onward),
            note("run", None, NoteScope::Run),
            end,
        ];
        let state = run(payloads.clone());
        assert!(state.notes.all().iter().all(|record| record.spent));
        assert_eq!(state.notes.active().count(), 0);

        payloads.extend([started(&["a", "b"]), begin("a", 1)]);
        assert!(acting(&run(payloads.clone()), "b").is_empty());
        payloads.push(note("new", None, NoteScope::Onward));
        assert_eq!(acting(&run(payloads), "b"), ["new"]);
    }
}

#[test]
fn every_use_of_a_note_is_on_record_oldest_first() {
    let state = run(vec![
        started(&["a", "b"]),
        note("n", None, NoteScope::Run),
        note("other", None, NoteScope::Run),
        apply("n", "a", 1),
        apply("n", "a", 2),
        apply("n", "b", 1),
        apply("never given", "b", 1),
    ]);
    let used = |stage: &str, attempt| AppliedNote { stage_id: stage.into(), attempt };
    assert_eq!(record(&state, "n").applied, [used("a", 1), used("a", 2), used("b", 1)]);
    assert!(record(&state, "other").applied.is_empty());

    let was_shown_to =
        |stage: &str, attempt| record(&state, "n").is_applied_to(&stage.into(), attempt);
    assert!(was_shown_to("a", 1) && was_shown_to("a", 2) && was_shown_to("b", 1));
    assert!(!was_shown_to("b", 2) && !was_shown_to("a", 3) && !was_shown_to("c", 1));
}

#[test]
fn a_note_keeps_the_persons_words_and_the_moment() {
    let state = run(vec![started(&["a"]), note("n", None, NoteScope::Onward)]);
    let record = record(&state, "n");
    assert_eq!(record.note.content, "words of n");
    assert_eq!(record.note.stage_id, None, "what was said is kept apart from what it became");
    assert_eq!(record.at, Timestamp::from_second(2).unwrap());
    assert_eq!(state.notes.get(&"m".into()), None);
}

proptest! {
    /// What acts was given, is active, and reaches the stage by its own scope; nothing else acts.
    #[test]
    fn a_note_acts_exactly_where_its_scope_reaches(payloads in prop::collection::vec(any_payload(), 0..40)) {
        let state = run(payloads);
        let order: Vec<StageId> = ["a", "b", "c"].map(StageId::new).to_vec();
        for (here, stage) in order.iter().enumerate() {
            let acting: Vec<&NoteRecord> = state.notes.acting_on(stage, &order).collect();
            let expected: Vec<&NoteRecord> = state
                .notes
                .all()
                .iter()
                .filter(|record| !record.withdrawn && !record.spent)
                .filter(|record| {
                    let from = order.iter().position(|stage| Some(stage) == record.target.as_ref());
                    match record.note.scope {
                        NoteScope::Run => true,
                        NoteScope::Stage => from == Some(here),
                        NoteScope::Onward => from.is_some_and(|from| from <= here),
                    }
                })
                .collect();
            prop_assert_eq!(acting, expected);
        }
    }

    /// Notes fold alike whoever folds them: all that they need to know is the current stage.
    #[test]
    fn notes_fold_by_themselves_as_inside_a_run(payloads in prop::collection::vec(any_payload(), 0..40)) {
        let mut alone = Notes::default();
        for (index, event) in log(payloads.clone()).iter().enumerate() {
            let current = run(payloads[..index].to_vec()).current_stage;
            alone.fold(event, current.as_ref());
        }
        prop_assert_eq!(alone, run(payloads).notes);
    }
}
