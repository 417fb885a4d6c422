//! Notes: each has one defined outcome, none is lost, none is applied twice to an attempt.

use std::time::Duration;

use correx_events::{
    EventPayload, NoteId, NoteScope, PauseReason, SteeringNoteApplied, SteeringNoteWithdrawn,
};
use correx_orchestration::RunControlError;
use correx_sessions::{DraftReason, WorkflowStatus};

use crate::support::{ASKING, Act, GIVEN, Scripted, THREE, World, note, scoped};

async fn applied(world: &World) -> Vec<SteeringNoteApplied> {
    let events = world.events().await;
    let applied = events.into_iter().filter_map(|event| match event.payload {
        EventPayload::SteeringNoteApplied(applied) => Some(applied),
        _ => None,
    });
    applied.collect()
}

fn uses(applied: &[SteeringNoteApplied]) -> Vec<(&str, &str, u32)> {
    applied
        .iter()
        .map(|used| (used.note_id.as_str(), used.stage_id.as_str(), used.attempt))
        .collect()
}

#[tokio::test]
async fn a_note_restarts_the_running_stage_and_reaches_the_ones_after_it() {
    let text = THREE.replacen("system =", "retries = 0\nsystem =", 1);
    let world = World::started(&text, GIVEN, Scripted::new([Act::Hold("Half an answer")])).await;
    world.model.called(1).await;
    world.steer(note("n1", "Write in German.")).await;
    let state = world.ended().await;

    assert_eq!(state.status, WorkflowStatus::Completed);
    let drafts = &state.stages[0].drafts;
    assert_eq!(drafts[0].reason, DraftReason::Steered { notes: vec![NoteId::new("n1")] });
    assert_eq!(world.text(drafts[0].draft.as_ref().unwrap()).await, "Half an answer");
    assert_eq!(
        uses(&applied(&world).await),
        [("n1", "summary", 2), ("n1", "actions", 1), ("n1", "mail", 1)]
    );
    let (first, second) = (world.model.call(0), world.model.call(1));
    assert!(!first.prompt().contains("German"));
    let tail =
        "\n\nInstructions from the person, to be followed above all else:\n- Write in German.";
    assert_eq!(second.prompt(), format!("{}{tail}", first.prompt()));
    assert_eq!(first.generation.seed, second.generation.seed);
    assert!(world.model.encoder.decode(&second.pack.prompt.ids).ends_with("Write in German."));
}

#[tokio::test]
async fn three_notes_in_quick_succession_make_one_restart() {
    let world = World::started(THREE, GIVEN, Scripted::new([Act::Hold("Half")])).await;
    world.model.called(1).await;
    for (id, text) in [("n1", "First."), ("n2", "Second."), ("n3", "Third.")] {
        world.steer(note(id, text)).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let state = world.ended().await;
    assert_eq!(world.count("stage_restarted").await, 1);
    assert_eq!(state.stages[0].attempt, 2);
    let notes = ["n1", "n2", "n3"].map(NoteId::new).to_vec();
    assert_eq!(state.stages[0].drafts[0].reason, DraftReason::Steered { notes });
    assert!(world.model.call(1).prompt().ends_with("- First.\n- Second.\n- Third."));
}

#[tokio::test]
async fn a_note_between_the_end_of_generation_and_completion_restarts_the_stage() {
    let model = Scripted::new([Act::Say("A whole answer")]);
    let world = World::new(THREE, GIVEN, model).await;
    world.log.inject("stage_completed", vec![note("late", "Mention Ana.")]);
    world.orchestrator.start(&world.session).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.stages[0].attempt, 2);
    assert_eq!(world.count("stage_restarted").await, 1);
    let draft = state.stages[0].drafts[0].draft.clone().unwrap();
    assert_eq!(world.text(&draft).await, "A whole answer");
    assert!(world.model.call(1).prompt().contains("Mention Ana."));
    assert_eq!(uses(&applied(&world).await)[0], ("late", "summary", 2));
}

#[tokio::test]
async fn a_note_before_the_prompt_is_recorded_is_shown_to_that_attempt_once() {
    let world = World::new(THREE, GIVEN, Scripted::new([])).await;
    let only_here = scoped("n1", "Mention Ana.", None, NoteScope::Stage);
    world.log.inject("context_assembled", vec![only_here]);
    world.orchestrator.start(&world.session).await.unwrap();
    world.ended().await;
    assert_eq!(world.count("stage_restarted").await, 0);
    assert_eq!(uses(&applied(&world).await), [("n1", "summary", 1)]);
    assert_eq!(world.count("context_assembled").await, 3);
}

#[tokio::test]
async fn a_note_between_restart_and_completion_of_the_restart_is_not_lost() {
    let world = World::new(THREE, GIVEN, Scripted::new([Act::Hold("Half")])).await;
    world.log.inject("stage_restarted", vec![note("n2", "Second.")]);
    world.orchestrator.start(&world.session).await.unwrap();
    world.model.called(1).await;
    world.steer(note("n1", "First.")).await;
    world.ended().await;
    assert_eq!(world.count("stage_restarted").await, 1);
    assert!(world.model.call(1).prompt().ends_with("- First.\n- Second."));
}

#[tokio::test]
async fn a_note_while_paused_is_followed_after_the_resume() {
    let world = World::started(THREE, GIVEN, Scripted::new([Act::Hold("")])).await;
    world.model.called(1).await;
    world.orchestrator.pause(&world.session).await.unwrap();
    world.when(|state| state.stages[0].inference.is_some()).await;
    world.steer(note("n1", "Be brief.")).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(world.model.calls.lock().unwrap().len(), 1);
    world.orchestrator.resume(&world.session).await.unwrap();
    world.ended().await;
    assert_eq!(world.count("stage_restarted").await, 0);
    assert_eq!(uses(&applied(&world).await)[0], ("n1", "summary", 2));
}

#[tokio::test]
async fn a_note_before_the_start_acts_on_the_first_stage() {
    let world = World::new(THREE, GIVEN, Scripted::new([])).await;
    world.steer(scoped("n1", "Be brief.", None, NoteScope::Stage)).await;
    world.orchestrator.start(&world.session).await.unwrap();
    world.ended().await;
    assert_eq!(uses(&applied(&world).await), [("n1", "summary", 1)]);
}

#[tokio::test]
async fn a_note_for_a_later_stage_waits_there_and_restarts_nothing() {
    let world = World::started(THREE, GIVEN, Scripted::new([Act::Hold("An")])).await;
    world.model.called(1).await;
    world.steer(scoped("n1", "Sign as Bo.", Some("mail"), NoteScope::Stage)).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    world.model.release.add_permits(1);
    world.ended().await;
    assert_eq!(world.count("stage_restarted").await, 0);
    assert_eq!(uses(&applied(&world).await), [("n1", "mail", 1)]);
    assert!(!world.model.call(1).prompt().contains("Bo"));
    assert!(world.model.call(2).prompt().contains("Bo"));
}

#[tokio::test]
async fn a_note_at_an_approval_restarts_nothing_and_acts_after_it() {
    let world = World::started(ASKING, &[], Scripted::new([])).await;
    world.when(|state| state.pause == Some(PauseReason::Approval)).await;
    world.steer(note("n1", "Sign as Bo.")).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(world.state().await.pause, Some(PauseReason::Approval));
    world.orchestrator.approve(&world.session, &"check".into(), None, None).await.unwrap();
    world.ended().await;
    assert_eq!(world.count("stage_restarted").await, 0);
    assert_eq!(uses(&applied(&world).await), [("n1", "final", 1)]);
}

#[tokio::test]
async fn a_note_withdrawn_before_it_is_used_is_not_shown() {
    let world = World::started(THREE, GIVEN, Scripted::new([Act::Hold("An")])).await;
    world.model.called(1).await;
    world.steer(scoped("n1", "Sign as Bo.", Some("mail"), NoteScope::Stage)).await;
    let (session, note) = (&world.session, NoteId::new("n1"));
    world.orchestrator.withdraw_note(session, &note).await.unwrap();
    let twice = world.orchestrator.withdraw_note(session, &note).await;
    assert_eq!(twice, Err(RunControlError::AlreadyWithdrawn));
    let unknown = world.orchestrator.withdraw_note(session, &"n9".into()).await;
    assert_eq!(unknown, Err(RunControlError::UnknownNote("n9".into())));
    world.model.release.add_permits(1);
    world.ended().await;
    assert!(applied(&world).await.is_empty());
    assert_eq!(world.count("steering_note_withdrawn").await, 1);
    let late = world.orchestrator.withdraw_note(session, &"n1".into()).await;
    assert_eq!(late, Err(RunControlError::AlreadyWithdrawn));
}

#[tokio::test]
async fn a_note_withdrawn_while_the_prompt_is_made_is_not_in_it() {
    let world = World::new(THREE, GIVEN, Scripted::new([])).await;
    world.steer(note("n1", "Sign as Bo.")).await;
    let withdrawn = SteeringNoteWithdrawn { note_id: NoteId::new("n1") };
    world.log.inject("context_assembled", vec![withdrawn.into()]);
    world.orchestrator.start(&world.session).await.unwrap();
    world.ended().await;
    assert!(applied(&world).await.is_empty());
    assert!(!world.model.call(0).prompt().contains("Bo"));
}

#[tokio::test]
async fn withdrawing_a_note_that_was_shown_leaves_the_running_attempt_alone() {
    let world = World::new(THREE, GIVEN, Scripted::new([Act::Hold("An")])).await;
    world.steer(note("n1", "Sign as Bo.")).await;
    world.orchestrator.start(&world.session).await.unwrap();
    world.model.called(1).await;
    world.orchestrator.withdraw_note(&world.session, &"n1".into()).await.unwrap();
    world.model.release.add_permits(1);
    let state = world.ended().await;
    assert_eq!(state.stages[0].attempt, 1);
    assert_eq!(uses(&applied(&world).await), [("n1", "summary", 1)]);
}

#[tokio::test]
async fn notes_and_a_pause_at_once_keep_the_draft_and_lose_no_note() {
    let world = World::started(THREE, GIVEN, Scripted::new([Act::Hold("Half")])).await;
    world.model.called(1).await;
    world.steer(note("n1", "Be brief.")).await;
    world.orchestrator.pause(&world.session).await.unwrap();
    let state = world.when(|state| !state.stages[0].drafts.is_empty()).await;
    assert_eq!(state.status, WorkflowStatus::Paused);
    world.orchestrator.resume(&world.session).await.unwrap();
    world.ended().await;
    assert_eq!(uses(&applied(&world).await)[0], ("n1", "summary", 2));
    assert!(world.model.call(1).prompt().contains("Be brief."));
}

#[tokio::test]
async fn a_note_survives_a_crash_before_it_was_used() {
    let world = World::started(THREE, GIVEN, Scripted::new([Act::Hold("Half")])).await;
    world.model.called(1).await;
    let world = world.restarted().await;
    world.steer(note("n1", "Be brief.")).await;
    world.orchestrator.recover(&world.session).await.unwrap();
    world.orchestrator.resume(&world.session).await.unwrap();
    world.ended().await;
    assert_eq!(uses(&applied(&world).await)[0], ("n1", "summary", 2));
}
