//! Whole runs: order, approval, pause, cancel, crash.

use std::time::{Duration, Instant};

use correx_events::{EventPayload, FailureReason, PauseReason, StageId};
use correx_orchestration::{CreateError, Recovery, RunControlError, Workflow};
use correx_sessions::{StageStatus, WorkflowStatus};

use crate::support::{ASKING, Act, GIVEN, Scripted, THREE, World, note};

#[tokio::test]
async fn a_run_goes_through_its_stages_and_the_log_tells_it_in_order() {
    let model = Scripted::new([Act::Say("Ana ships."), Act::Say("- ship"), Act::Say("Dear all")]);
    let world = World::started(THREE, GIVEN, model).await;
    let state = world.ended().await;

    assert_eq!(state.status, WorkflowStatus::Completed);
    let stage = [
        "stage_started",
        "context_assembled",
        "inference_completed",
        "artifact_produced",
        "stage_completed",
    ];
    let mut expected = vec!["session_created", "inputs_captured", "workflow_started"];
    expected.extend([stage; 3].concat());
    expected.push("workflow_completed");
    assert_eq!(world.kinds().await, expected);
    let texts: Vec<&str> = vec!["Ana ships.", "- ship", "Dear all"];
    for (record, text) in state.stages.iter().zip(texts) {
        assert_eq!(world.text(&record.artifacts[0].hash).await, text);
        assert_eq!(record.artifacts[0].media_type, "text/markdown");
        assert_eq!(record.words, Some(text.split(' ').count() as u64));
    }
    assert!(world.model.call(2).prompt().contains("a mail with - ship and Ana ships."));
}

#[tokio::test]
async fn each_completed_stage_names_the_one_that_runs_next() {
    let world = World::started(THREE, GIVEN, Scripted::new([])).await;
    world.ended().await;
    let next: Vec<Option<StageId>> = world
        .events()
        .await
        .into_iter()
        .filter_map(|event| match event.payload {
            EventPayload::StageCompleted(completed) => Some(completed.next_stage),
            _ => None,
        })
        .collect();
    assert_eq!(next, [Some("actions".into()), Some("mail".into()), None]);
}

#[tokio::test]
async fn progress_tells_the_prompt_and_the_text_as_it_comes() {
    let model = Scripted::new([Act::Hold("So far")]);
    let world = World::started(THREE, GIVEN, model).await;
    world.model.called(1).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let told = world.told.progress.lock().unwrap().clone();
    let last = told.last().unwrap();
    assert_eq!((last.text.as_str(), last.tokens, last.max_tokens), ("So far", 1, 64));
    assert_eq!(last.prompt_done, last.prompt_total);
    assert_eq!(last.prompt_total, world.model.call(0).pack.budget_used);
    assert_eq!((told[0].prompt_done, told[0].attempt), (0, 1));
}

#[tokio::test]
async fn an_approval_waits_for_the_person_and_then_the_run_goes_on() {
    let world = World::started(ASKING, &[], Scripted::new([Act::Say("A draft")])).await;
    let state = world.when(|state| state.pause == Some(PauseReason::Approval)).await;
    let question = state.stage(&"check".into()).unwrap().question.clone().unwrap();
    assert_eq!(question.prompt, "Is it good?");
    assert_eq!(world.text(&question.artifact.unwrap()).await, "A draft");
    assert_eq!(world.model.calls_of("final"), 0);

    let wrong = world.orchestrator.approve(&world.session, &"draft".into(), None, None).await;
    assert_eq!(wrong, Err(RunControlError::NotAsking("draft".into())));
    let resumed = world.orchestrator.resume(&world.session).await.unwrap_err();
    assert!(resumed.to_string().contains("approve or deny it"), "{resumed}");

    world
        .orchestrator
        .approve(&world.session, &"check".into(), Some("Go".into()), None)
        .await
        .unwrap();
    assert_eq!(world.ended().await.status, WorkflowStatus::Completed);
    let kinds = world.kinds().await;
    let at = kinds.iter().position(|kind| kind == "approval_granted").unwrap();
    assert_eq!(kinds[at + 1..at + 3], ["orchestration_resumed", "stage_completed"]);
    assert!(world.model.call(1).prompt().contains("Polish A draft"));
}

#[tokio::test]
async fn an_approval_is_answered_once() {
    let world = World::started(ASKING, &[], Scripted::new([])).await;
    world.when(|state| state.pause == Some(PauseReason::Approval)).await;
    let stage = StageId::from("check");
    let both = tokio::join!(
        world.orchestrator.approve(&world.session, &stage, None, None),
        world.orchestrator.deny(&world.session, &stage, None),
    );
    assert!(both.0.is_ok() != both.1.is_ok(), "{both:?}");
    world.ended().await;
    assert_eq!(world.count("approval_granted").await + world.count("approval_denied").await, 1);
}

#[tokio::test]
async fn a_denied_approval_ends_the_run_with_the_reason() {
    let world = World::started(ASKING, &[], Scripted::new([])).await;
    world.when(|state| state.pause == Some(PauseReason::Approval)).await;
    let reason = Some("too long".to_owned());
    world.orchestrator.deny(&world.session, &"check".into(), reason).await.unwrap();
    let state = world.ended().await;
    let failure = state.failure.clone().unwrap();
    assert_eq!(failure.reason, FailureReason::ApprovalDenied);
    assert!(failure.message.contains("too long"));
    assert_eq!(state.stage(&"check".into()).unwrap().status, StageStatus::Failed);
    assert_eq!(world.model.calls_of("final"), 0);
}

#[tokio::test]
async fn an_open_approval_survives_a_restart_of_the_program() {
    let world = World::started(ASKING, &[], Scripted::new([Act::Say("A draft")])).await;
    world.when(|state| state.pause == Some(PauseReason::Approval)).await;
    let world = world.restarted().await;
    assert_eq!(world.orchestrator.recover(&world.session).await, Ok(Recovery::Nothing));
    assert_eq!(world.state().await.pause, Some(PauseReason::Approval));
    assert!(!world.orchestrator.is_live(&world.session));
    world.orchestrator.approve(&world.session, &"check".into(), None, None).await.unwrap();
    assert_eq!(world.ended().await.status, WorkflowStatus::Completed);
    assert_eq!(world.model.calls_of("draft"), 1);
}

#[tokio::test]
async fn a_pause_keeps_the_draft_and_a_resume_begins_a_new_attempt_without_using_a_retry() {
    let text = THREE.replacen("system =", "retries = 0\nsystem =", 1);
    let model = Scripted::new([Act::Hold("Half an"), Act::Say("whole")]);
    let world = World::started(&text, GIVEN, model).await;
    world.model.called(1).await;
    world.orchestrator.pause(&world.session).await.unwrap();
    let state = world.when(|state| !state.stages[0].drafts.is_empty()).await;
    assert_eq!((state.status, state.pause), (WorkflowStatus::Paused, Some(PauseReason::Person)));
    let draft = state.stages[0].drafts[0].draft.clone().unwrap();
    assert_eq!(world.text(&draft).await, "Half an");
    let paused_twice = world.orchestrator.pause(&world.session).await;
    assert!(matches!(paused_twice, Err(RunControlError::WrongState { .. })));
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(world.model.calls_of("summary"), 1, "nothing is generated while it is paused");

    world.orchestrator.resume(&world.session).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed);
    assert_eq!(state.stages[0].attempt, 2);
    let (first, second) = (world.model.call(0), world.model.call(1));
    assert_eq!(first.prompt(), second.prompt());
    assert_eq!(first.generation.seed, second.generation.seed);
}

#[tokio::test]
async fn cancelling_ends_the_run_at_once_and_nothing_is_written_after_it() {
    let world = World::started(THREE, GIVEN, Scripted::new([Act::Hold("Half")])).await;
    world.model.called(1).await;
    let before = Instant::now();
    world.orchestrator.cancel(&world.session).await.unwrap();
    while world.orchestrator.is_live(&world.session) {
        assert!(before.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let state = world.state().await;
    assert_eq!(state.failure.unwrap().reason, FailureReason::Cancelled);
    assert_eq!(state.stages[0].status, StageStatus::Cancelled);
    let kinds = world.kinds().await;
    assert_eq!(kinds[kinds.len() - 2..], ["stage_cancelled", "workflow_failed"]);
    for refused in [
        world.orchestrator.cancel(&world.session).await,
        world.orchestrator.pause(&world.session).await,
        world.orchestrator.resume(&world.session).await,
        world.orchestrator.start(&world.session).await,
    ] {
        assert!(matches!(refused, Err(RunControlError::WrongState { .. })), "{refused:?}");
    }
    assert_eq!(world.kinds().await, kinds);
}

#[tokio::test]
async fn a_paused_run_an_asking_run_and_an_interrupted_run_can_be_cancelled() {
    let paused = World::started(THREE, GIVEN, Scripted::new([Act::Hold("")])).await;
    paused.model.called(1).await;
    paused.orchestrator.pause(&paused.session).await.unwrap();
    let asking = World::started(ASKING, &[], Scripted::new([])).await;
    asking.when(|state| state.pause == Some(PauseReason::Approval)).await;
    let interrupted = World::started(THREE, GIVEN, Scripted::new([Act::Hold("")])).await;
    interrupted.model.called(1).await;
    let interrupted = interrupted.restarted().await;
    interrupted.orchestrator.recover(&interrupted.session).await.unwrap();
    for world in [paused, asking, interrupted] {
        world.orchestrator.cancel(&world.session).await.unwrap();
        let state = world.state().await;
        assert_eq!(state.failure.unwrap().reason, FailureReason::Cancelled);
        assert_eq!(world.count("stage_cancelled").await, 1);
    }
}

#[tokio::test]
async fn a_run_that_was_not_started_cannot_be_paused_resumed_or_cancelled() {
    let world = World::new(THREE, GIVEN, Scripted::new([])).await;
    for refused in [
        world.orchestrator.cancel(&world.session).await,
        world.orchestrator.pause(&world.session).await,
        world.orchestrator.resume(&world.session).await,
    ] {
        assert!(matches!(refused, Err(RunControlError::WrongState { .. })), "{refused:?}");
    }
    let unknown = world.orchestrator.start(&"nobody".into()).await;
    assert_eq!(unknown, Err(RunControlError::NoSession("nobody".into())));
    world.orchestrator.create(&"chat".into(), "A chat", None, &[]).await.unwrap();
    let chat = world.orchestrator.start(&"chat".into()).await;
    assert_eq!(chat, Err(RunControlError::NoWorkflow));
}

#[tokio::test]
async fn a_session_is_created_once_and_with_all_its_inputs() {
    let world = World::new(THREE, GIVEN, Scripted::new([])).await;
    let workflow = Workflow::parse(THREE).unwrap();
    let missing = world.orchestrator.create(&"other".into(), "", Some(&workflow), &[]).await;
    assert_eq!(missing, Err(CreateError::MissingInput("notes".to_owned())));
    let twice = world.orchestrator.create(&world.session, "", None, &[]).await;
    assert_eq!(twice, Err(CreateError::Exists(world.session.clone())));
    assert_eq!(world.kinds().await, ["session_created", "inputs_captured"]);
}

#[tokio::test]
async fn a_killed_run_is_interrupted_and_goes_on_after_its_last_completed_stage() {
    let model = Scripted::new([Act::Say("Ana ships."), Act::Hold("- sh")]);
    let world = World::started(THREE, GIVEN, model).await;
    world.model.called(2).await;
    let before = world.kinds().await;
    let world = world.restarted().await;
    assert_eq!(world.kinds().await, before, "a killed process writes nothing more");

    assert_eq!(world.orchestrator.recover(&world.session).await, Ok(Recovery::Interrupted));
    assert_eq!(world.orchestrator.recover(&world.session).await, Ok(Recovery::Nothing));
    let state = world.state().await;
    assert_eq!(state.pause, Some(PauseReason::Interrupted));
    assert_eq!(state.current_stage, Some("actions".into()));

    world.orchestrator.resume(&world.session).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed);
    let attempts: Vec<u32> = state.stages.iter().map(|record| record.attempt).collect();
    assert_eq!(attempts, [1, 2, 1]);
    assert_eq!(world.model.calls_of("summary"), 1);
    assert!(world.model.call(2).prompt().contains("Given Ana ships. list"));
}

#[tokio::test]
async fn a_shutdown_leaves_no_mark_and_lets_nothing_start_any_more() {
    let world = World::started(THREE, GIVEN, Scripted::new([Act::Hold("")])).await;
    world.model.called(1).await;
    let before = world.kinds().await;
    world.orchestrator.shutdown().await;
    assert_eq!(world.kinds().await, before);
    assert!(!world.orchestrator.is_live(&world.session));
    assert_eq!(world.state().await.status, WorkflowStatus::Running);
    let closing = world.orchestrator.resume(&world.session).await;
    assert_eq!(closing, Err(RunControlError::Closing));
}

#[tokio::test]
async fn a_forgotten_session_has_no_task() {
    let world = World::started(THREE, GIVEN, Scripted::new([Act::Hold("")])).await;
    world.model.called(1).await;
    world.orchestrator.forget(&world.session).await;
    assert!(!world.orchestrator.is_live(&world.session));
}

#[tokio::test]
async fn a_conflicting_append_is_decided_again() {
    let world = World::new(THREE, GIVEN, Scripted::new([])).await;
    for kind in ["workflow_started", "stage_started", "workflow_completed"] {
        world.log.inject(kind, vec![note(kind, "Be kind.")]);
    }
    world.orchestrator.start(&world.session).await.unwrap();
    assert_eq!(world.ended().await.status, WorkflowStatus::Completed);
    assert_eq!(world.count("workflow_started").await, 1);
    assert_eq!(world.count("workflow_completed").await, 1);
}
