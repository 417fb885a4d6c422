//! What goes wrong: refused outputs, prompts that do not fit, models and disks that fail.

use correx_events::{EventPayload, PauseReason};
use correx_inference::{InferenceError, RoutingError};
use correx_orchestration::RunControlError;
use correx_sessions::WorkflowStatus;

use crate::support::{Act, GIVEN, Scripted, THREE, World};

const CHECKED: &str = r#"
name = "Checked"
[generation]
seed = 7
[[stage]]
id = "list"
kind = "generate"
prompt = "List three fruits."
retries = 2
[stage.check]
min_words = 3
must_not_match = "(?i)secret"
"#;

#[tokio::test]
async fn a_refusal_reaches_the_next_attempt_which_draws_other_words() {
    let model = Scripted::new([Act::Say("apple"), Act::Say("apple"), Act::Say("a b c")]);
    let world = World::started(CHECKED, &[], model).await;
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed);
    assert_eq!(state.stages[0].attempt, 3);
    let (first, second, third) = (world.model.call(0), world.model.call(1), world.model.call(2));
    assert!(!first.prompt().contains("Important"));
    assert!(
        second.prompt().ends_with("Important: Write at least 3 words; the last answer had 1 word.")
    );
    assert_ne!(second.prompt(), third.prompt());
    let seeds = [first, second, third].map(|call| call.generation.seed);
    assert_eq!(seeds, [7, 8, 9]);
    let sources: Vec<String> =
        world.model.call(1).pack.entries().map(|entry| entry.source.to_string()).collect();
    assert_eq!(sources, ["task", "refusal"]);
}

#[tokio::test]
async fn refusals_are_bounded_and_the_failure_says_what_was_wrong_but_not_what_was_written() {
    let model = Scripted::new(vec![Act::Say("my secret plan is this"); 9]);
    let world = World::started(CHECKED, &[], model).await;
    let state = world.ended().await;
    assert_eq!(world.model.calls_of("list"), 3);
    assert_eq!(world.count("stage_attempt_refused").await, 3);
    let error = state.stages[0].error.clone().unwrap();
    assert!(error.contains("refused 3 times"), "{error}");
    assert!(error.contains("must_not_match"), "{error}");
    assert!(!error.contains("plan"), "{error}");
    assert!(!state.failure.unwrap().message.contains("plan"));
    let draft = state.stages[0].drafts[2].draft.clone().unwrap();
    assert_eq!(world.text(&draft).await, "my secret plan is this");
}

#[tokio::test]
async fn a_reply_that_was_cut_off_never_becomes_an_artifact() {
    let model = Scripted::new(vec![Act::CutOff("one two three four"); 9]);
    let world = World::started(CHECKED, &[], model).await;
    let state = world.ended().await;
    assert!(state.stages[0].artifacts.is_empty());
    let error = state.stages[0].error.clone().unwrap();
    assert!(error.contains("cut off at 64 tokens"), "{error}");
    assert!(error.contains("Raise max_tokens"), "{error}");
    assert!(world.model.call(1).prompt().contains("cut off at 64 tokens"));
}

#[tokio::test]
async fn an_empty_reply_is_refused() {
    let world = World::started(CHECKED, &[], Scripted::new([Act::Say(" \n")])).await;
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed);
    assert_eq!(world.count("stage_attempt_refused").await, 1);
}

#[tokio::test]
async fn an_input_that_does_not_fit_fails_the_stage_before_the_model_is_called() {
    let long = "word ".repeat(500);
    let model = Scripted::with_window(300, []);
    let world = World::started(THREE, &[("notes", &long)], model).await;
    let state = world.ended().await;
    assert!(world.model.calls.lock().unwrap().is_empty());
    assert_eq!(world.count("inference_completed").await, 0);
    let error = state.stages[0].error.clone().unwrap();
    // 500 words, 4 + 3 of the task and the system text, 3 + 3 + 2 of the template; 300 - 64 allowed.
    for part in ["needs 515", "may have 236", "279 too many", "input \"notes\" with 500 tokens"] {
        assert!(error.contains(part), "{error} lacks {part}");
    }
}

#[tokio::test]
async fn without_a_model_a_run_does_not_start_and_nothing_is_written() {
    let world = World::new(THREE, GIVEN, Scripted::new([])).await;
    let missing = RoutingError::Load("the model file is missing; run setup".to_owned());
    *world.model.missing.lock().unwrap() = Some(missing.clone());
    let before = world.kinds().await;
    let refused = world.orchestrator.start(&world.session).await;
    assert_eq!(refused, Err(RunControlError::Model(missing)));
    assert_eq!(world.kinds().await, before);
    *world.model.missing.lock().unwrap() = None;
    world.orchestrator.start(&world.session).await.unwrap();
    assert_eq!(world.ended().await.status, WorkflowStatus::Completed);
}

#[tokio::test]
async fn a_model_that_goes_away_interrupts_the_run_which_can_be_resumed() {
    for act in [Act::Fail(InferenceError::Gone), Act::StopUnasked] {
        let world = World::started(THREE, GIVEN, Scripted::new([act])).await;
        let state = world.when(|state| state.status == WorkflowStatus::Paused).await;
        assert_eq!(state.pause, Some(PauseReason::Interrupted));
        world.orchestrator.resume(&world.session).await.unwrap();
        let state = world.ended().await;
        assert_eq!(state.status, WorkflowStatus::Completed);
        assert_eq!(state.stages[0].attempt, 2);
    }
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_between_stages_interrupts_the_run_and_says_so() {
    let world = World::started(THREE, GIVEN, Scripted::new([Act::Hold("An")])).await;
    world.model.called(1).await;
    let missing = RoutingError::Load("the model file is gone".to_owned());
    *world.model.missing.lock().unwrap() = Some(missing);
    world.model.release.add_permits(1);
    let state = world.when(|state| state.status == WorkflowStatus::Paused).await;
    assert_eq!(state.pause, Some(PauseReason::Interrupted));
    assert!(world.told.stalls.lock().unwrap()[0].contains("the model file is gone"));
    let refused = world.orchestrator.resume(&world.session).await;
    assert!(matches!(refused, Err(RunControlError::Model(_))));
    *world.model.missing.lock().unwrap() = None;
    world.orchestrator.resume(&world.session).await.unwrap();
    assert_eq!(world.ended().await.status, WorkflowStatus::Completed);
    assert_eq!(world.model.calls_of("summary"), 1);
}

#[tokio::test]
async fn a_model_that_fails_fails_the_stage_with_its_message() {
    let model = Scripted::new([Act::Fail(InferenceError::Engine("out of memory".to_owned()))]);
    let world = World::started(THREE, GIVEN, model).await;
    let state = world.ended().await;
    assert!(state.failure.unwrap().message.contains("out of memory"));
}

#[tokio::test]
async fn a_model_that_was_fed_something_else_fails_loudly() {
    let world = World::started(THREE, GIVEN, Scripted::new([Act::FedOther])).await;
    let state = world.ended().await;
    assert!(state.stages[0].artifacts.is_empty());
    assert!(state.failure.unwrap().message.contains("fed other tokens"));
}

#[tokio::test]
async fn a_full_disk_stalls_the_run_and_it_can_be_resumed_when_there_is_room() {
    let world = World::new(THREE, GIVEN, Scripted::new([])).await;
    world.log.refuse(Some("artifact_produced"));
    world.orchestrator.start(&world.session).await.unwrap();
    while world.orchestrator.is_live(&world.session) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let stalls = world.told.stalls.lock().unwrap().clone();
    assert!(stalls[0].contains("no space left on device"), "{stalls:?}");
    assert_eq!(world.state().await.status, WorkflowStatus::Running);
    world.log.refuse(None);
    world.orchestrator.resume(&world.session).await.unwrap();
    assert_eq!(world.ended().await.status, WorkflowStatus::Completed);
    let started = world.events().await.into_iter().filter_map(|event| match event.payload {
        EventPayload::StageStarted(started) if started.stage_id.as_str() == "summary" => {
            Some(started.attempt)
        }
        _ => None,
    });
    assert_eq!(started.collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test]
async fn a_damaged_log_that_contradicts_itself_is_an_error_and_not_an_endless_decision() {
    let world = World::new(THREE, GIVEN, Scripted::new([])).await;
    world.log.contradict();
    let start = world.orchestrator.start(&world.session);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(10), start).await.unwrap();
    let error = ended.unwrap_err();
    assert!(matches!(error, RunControlError::Write(_)), "{error:?}");
    assert!(error.to_string().contains("contradicts itself"), "{error}");
}
