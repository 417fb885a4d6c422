//! Judges: the model answers yes or no about an answer.

use correx_inference::ResponseFormat;
use correx_sessions::WorkflowStatus;

use crate::support::{Act, Scripted, World, note};

const JUDGED: &str = r#"
name = "Judged"
[[stage]]
id = "note"
kind = "generate"
prompt = "Write a note."
retries = 1
[stage.check]
min_words = 2
judge = ["Does it name a day?", "Is it polite?"]
"#;

#[tokio::test]
async fn a_judge_is_asked_about_an_answer_that_the_other_checks_have_passed() {
    let model = Scripted::new([
        Act::Say("Short"),
        Act::Say("Come on Friday please."),
        Act::Say("yes"),
        Act::Say("yes"),
    ]);
    let world = World::started(JUDGED, &[], model).await;
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{:?}", state.failure);
    let (first, second) = (world.model.call(2), world.model.call(3));
    assert!(first.prompt().contains("Come on Friday please."), "{}", first.prompt());
    assert!(first.prompt().ends_with("Does it name a day?\nAnswer with yes or no."));
    assert!(second.prompt().ends_with("Is it polite?\nAnswer with yes or no."));
    let choice = ResponseFormat::Choice(vec!["yes".into(), "no".into()]);
    assert_eq!(first.generation.format, choice);
    let stage = &state.stages[0];
    assert_eq!(world.text(&stage.artifacts[0].hash).await, "Come on Friday please.");
    // What the stage itself was shown and how its call went is what the state has.
    let context = stage.context.as_ref().unwrap();
    assert!(!context.judges && !stage.inference.as_ref().unwrap().judges);
    assert_eq!(world.count("context_assembled").await, 4);
    assert_eq!(world.count("inference_completed").await, 4);
}

#[tokio::test]
async fn a_judges_no_is_a_refusal_that_the_next_attempt_is_told() {
    let model = Scripted::new([
        Act::Say("Come here."),
        Act::Say("no"),
        Act::Say("Come on Friday."),
        Act::Say("yes"),
        Act::Say("no"),
    ]);
    let world = World::started(JUDGED, &[], model).await;
    let state = world.ended().await;
    let again = world.model.call(2).prompt();
    assert!(again.contains("Does it name a day?"), "{again}");
    assert!(!again.contains("Come here"), "a refusal quotes nothing of the answer: {again}");
    let error = state.stages[0].error.clone().unwrap();
    assert!(error.contains("refused 2 times"), "{error}");
    assert!(error.contains("Is it polite?"), "{error}");
    assert_eq!(world.model.calls.lock().unwrap().len(), 5, "after a no nothing more is asked");
}

#[tokio::test]
async fn a_note_while_a_judge_is_asked_begins_the_stage_again() {
    let model = Scripted::new([
        Act::Say("Come on Monday."),
        Act::Hold(""),
        Act::Say("Come on Friday."),
        Act::Say("yes"),
        Act::Say("yes"),
    ]);
    let world = World::started(JUDGED, &[], model).await;
    world.model.called(2).await;
    world.steer(note("n", "Friday, not Monday.")).await;
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{:?}", state.failure);
    assert!(world.model.call(2).prompt().contains("Friday, not Monday."));
    // The judge is asked what the workflow asks, whatever the person wants.
    assert!(!world.model.call(3).prompt().contains("not Monday"));
    let stage = &state.stages[0];
    assert_eq!(world.text(&stage.artifacts[0].hash).await, "Come on Friday.");
    assert_eq!(stage.drafts.len(), 1, "what had been written is kept");
    assert_eq!(world.count("stage_attempt_refused").await, 0);
}

#[tokio::test]
async fn an_answer_whose_judge_was_stopped_is_never_taken_unjudged() {
    let model = Scripted::new([
        Act::Say("Come on Friday."),
        Act::Hold(""),
        Act::Say("Come on Monday."),
        Act::Say("yes"),
        Act::Say("yes"),
    ]);
    let world = World::started(JUDGED, &[], model).await;
    world.model.called(2).await;
    world.orchestrator.pause(&world.session).await.unwrap();
    world.when(|state| !state.stages[0].drafts.is_empty()).await;
    world.orchestrator.resume(&world.session).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{:?}", state.failure);
    assert_eq!(world.text(&state.stages[0].artifacts[0].hash).await, "Come on Monday.");
}
