//! Models that think before they write: the answer alone becomes the artifact.

use correx_events::EventPayload;
use correx_inference::ThinkingMode;
use correx_orchestration::StageThinking;
use correx_orchestration::Workflow;
use correx_sessions::WorkflowStatus;

use crate::support::{Act, Scripted, World, note};

const ONE: &str = r#"
name = "One"
[[stage]]
id = "draft"
kind = "generate"
prompt = "Write a draft."
retries = 1
[stage.check]
must_not_match = "pigeon"
max_words = 3
"#;

const THOUGHT: &str = "Two pigeons and two pigeons are many words";

fn think(say: &'static str) -> Act {
    Act::Think(THOUGHT, say)
}

async fn artifact(world: &World) -> String {
    let state = world.state().await;
    world.text(&state.stages[0].artifacts[0].hash).await
}

#[tokio::test]
async fn only_the_answer_is_checked_and_becomes_the_artifact_and_the_thinking_is_kept() {
    let world = World::started(ONE, &[], Scripted::new([think("Four birds.")])).await;
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed);
    assert_eq!(artifact(&world).await, "Four birds.");
    let stage = &state.stages[0];
    assert_eq!(stage.words, Some(2));
    let thought = stage.thought_in(1).unwrap();
    assert_eq!((world.text(&thought.text).await.as_str(), thought.tokens), (THOUGHT, 8));
    assert_eq!(stage.output_tokens, Some(10));
}

#[tokio::test]
async fn a_reply_that_only_thinks_is_refused_with_what_to_do_and_its_thinking_is_not_fed_back() {
    let model = Scripted::new([Act::ThinkTooLong(THOUGHT), Act::ThinkTooLong(THOUGHT)]);
    let world = World::started(ONE, &[], model).await;
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Failed);
    let error = state.stages[0].error.clone().unwrap();
    for part in ["whole reply of 8 tokens thinking", "Raise max_tokens", "thinking = false"] {
        assert!(error.contains(part), "{error} lacks {part}");
    }
    let again = world.model.call(1).prompt();
    assert!(again.contains("8 tokens thinking") && !again.contains("pigeons"), "{again}");
    let drafts = &state.stages[0].drafts;
    assert_eq!(drafts.len(), 2);
    let thought = drafts[0].thinking.clone().unwrap();
    assert_eq!(world.text(&thought.text).await, THOUGHT);
    let refused = world.events().await.into_iter().find_map(|event| match event.payload {
        EventPayload::StageAttemptRefused(refused) => Some(refused),
        _ => None,
    });
    assert_eq!(refused.unwrap().validator, "thinking");
}

#[tokio::test]
async fn a_note_that_comes_while_it_thinks_keeps_the_thinking_with_the_draft_and_out_of_the_prompt()
{
    let model = Scripted::new([Act::ThinkAndHold(THOUGHT), think("Four birds.")]);
    let world = World::started(ONE, &[], model).await;
    world.model.called(1).await;
    world.steer(note("n", "Be brief.")).await;
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed);
    let draft = &state.stages[0].drafts[0];
    assert_eq!((draft.attempt, &draft.draft), (1, &None));
    assert_eq!(world.text(&draft.thinking.clone().unwrap().text).await, THOUGHT);
    let again = world.model.call(1).prompt();
    assert!(again.contains("Be brief.") && !again.contains("pigeons"), "{again}");
    assert_eq!(artifact(&world).await, "Four birds.");
}

#[tokio::test]
async fn progress_tells_the_thinking_apart_from_the_draft() {
    let world = World::started(ONE, &[], Scripted::new([think("Four birds.")])).await;
    world.ended().await;
    let told = world.told.progress.lock().unwrap().clone();
    let thinking: String = told.iter().map(|each| each.thinking.as_str()).collect();
    let text: String = told.iter().map(|each| each.text.as_str()).collect();
    assert_eq!((thinking.as_str(), text.as_str()), (THOUGHT, "Four birds."));
    let last = told.last().unwrap();
    assert_eq!((last.thinking_tokens, last.tokens), (8, 10));
}

#[tokio::test]
async fn a_stage_answers_at_once_unless_its_workflow_or_the_person_says_otherwise() {
    let with = |generation: &str, stage: &str| {
        let text = format!(
            "name = \"T\"\n{generation}\n[[stage]]\nid = \"a\"\nkind = \"generate\"\nprompt = \"x\"\n{stage}\n"
        );
        let workflow = Workflow::parse(&text).unwrap();
        let correx_orchestration::Step::Generate(step) = workflow.stages[0].step.clone() else {
            panic!("it is a generate stage");
        };
        move |decided| workflow.thinking_for(&step, decided)
    };
    let says = StageThinking::AsTheWorkflowSays;
    let on = "[generation]\nthinking = true";
    assert_eq!(with("", "")(says), ThinkingMode::Off);
    assert_eq!(with(on, "")(says), ThinkingMode::On);
    assert_eq!(with(on, "thinking = false")(says), ThinkingMode::Off);
    assert_eq!(with("", "thinking = true")(says), ThinkingMode::On);
    let never = StageThinking::Always(ThinkingMode::Off);
    assert_eq!(with(on, "thinking = true")(never), ThinkingMode::Off);
    let world = World::started(ONE, &[], Scripted::new([think("Four birds.")])).await;
    world.ended().await;
    assert_eq!(*world.model.thinking.lock().unwrap(), [ThinkingMode::Off]);
}
