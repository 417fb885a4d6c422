//! Stages piece by piece, choices, conditions, and inputs that take only some values.

use std::collections::BTreeMap;

use correx_events::EventPayload;
use correx_inference::ResponseFormat;
use correx_orchestration::{GivenInput, Workflow, inputs};
use correx_sessions::{StageStatus, WorkflowStatus};

use crate::support::{Act, Scripted, World};

const LONG: &str = r#"
name = "Brief"
[[input]]
name = "report"
type = "text"
[[stage]]
id = "parts"
kind = "map"
over = "inputs.report"
piece_tokens = 40
max_tokens = 16
prompt = "Part {{ number }} of {{ count }}:\n{{ piece }}\nSum it up."
[[stage]]
id = "brief"
kind = "reduce"
over = "artifacts.parts"
max_tokens = 16
prompt = "{{ pieces }}\nPut it together."
"#;

fn report(sentences: usize) -> String {
    (0..sentences).map(|n| format!("Sentence number {n} says that all is well. ")).collect()
}

#[tokio::test]
async fn a_long_text_is_worked_on_in_pieces_and_no_prompt_exceeds_its_budget() {
    let text = report(400);
    let said = "This part says in a dozen words or so that all is well with it.";
    let model = Scripted::with_window(512, vec![Act::Say(said); 1_000]);
    let world = World::started(LONG, &[("report", &text)], model).await;
    let state = world.ended().await;

    assert_eq!(state.status, WorkflowStatus::Completed, "{:?}", state.failure);
    let pieces = &state.stages[0].pieces;
    assert!(pieces.len() > 20, "{}", pieces.len());
    let mut rounds = 0;
    for event in world.events().await {
        match event.payload {
            EventPayload::ContextAssembled(context) => {
                assert!(context.prompt_tokens <= context.budget_limit, "{context:?}");
                assert!(context.budget_limit < 512);
            }
            EventPayload::MapPieceCompleted(piece) => {
                rounds = rounds.max(piece.round.unwrap_or(0));
            }
            _ => {}
        }
    }
    assert!(rounds >= 1, "the results do not fit one prompt");
    // Every sentence was shown, in order.
    let mut shown = String::new();
    for index in 0..pieces.len() {
        shown.push_str(&world.model.call(index).prompt());
    }
    for n in 0..400 {
        assert!(shown.contains(&format!("number {n} says")), "{n}");
    }
}

#[tokio::test]
async fn a_restart_of_the_program_does_no_finished_piece_again() {
    let text = report(60);
    let model = Scripted::new([Act::Say("one"), Act::Say("two"), Act::Hold("thr")]);
    let world = World::started(LONG, &[("report", &text)], model).await;
    world.when(|state| state.stages[0].pieces.len() == 2).await;
    world.model.called(3).await;
    let world = world.restarted().await;
    let session = world.session.clone();
    world.orchestrator.resume(&session).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{:?}", state.failure);
    let mut seen: Vec<u32> = state.stages[0].pieces.iter().map(|piece| piece.piece).collect();
    let count = seen.len();
    seen.dedup();
    assert_eq!(seen.len(), count);
    let artifact = &state.stages[0].artifacts[0];
    assert!(world.text(&artifact.hash).await.starts_with("one\n\ntwo\n\n"));
}

#[tokio::test]
async fn a_choice_is_held_to_its_options_and_decides_what_runs() {
    let text = r#"
name = "Triage"
[[stage]]
id = "triage"
kind = "choose"
options = ["urgent", "later"]
prompt = "Which?"
[[stage]]
id = "answer"
kind = "generate"
when = 'artifacts.triage == "urgent"'
prompt = "Answer now."
[[stage]]
id = "file"
kind = "generate"
when = 'artifacts.triage == "later"'
prompt = "File it{{ artifacts.answer }}."
"#;
    let model = Scripted::new([Act::Say("later"), Act::Say("Filed.")]);
    let world = World::started(text, &[], model).await;
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{:?}", state.failure);
    let statuses: Vec<StageStatus> = state.stages.iter().map(|record| record.status).collect();
    assert_eq!(statuses, [StageStatus::Done, StageStatus::Skipped, StageStatus::Done]);
    let format = world.model.call(0).generation.format;
    assert_eq!(format, ResponseFormat::Choice(vec!["urgent".into(), "later".into()]));
    assert!(world.model.call(1).prompt().contains("File it."));
}

#[test]
fn choices_and_numbers_take_only_what_they_may() {
    let text = r#"
name = "W"
[[input]]
name = "tone"
type = "choice"
choices = ["friendly", "formal"]
[[input]]
name = "words"
type = "number"
min = 10
max = 99.5
default = "50"
[[stage]]
id = "one"
kind = "generate"
prompt = "{{ inputs.tone }} {{ inputs.words }}"
"#;
    let workflow = Workflow::parse(text).unwrap();
    let read = |tone: &str, words: &str| {
        let given = [("tone", tone), ("words", words)];
        let given = given.map(|(name, text)| (name.to_owned(), GivenInput::Text(text.to_owned())));
        inputs::read(&workflow.inputs, &BTreeMap::from(given))
    };
    let texts = read(" formal\n", "99.5").unwrap();
    assert_eq!((texts[0].text.as_str(), texts[1].text.as_str()), ("formal", "99.5"));
    for (tone, words, part) in [
        ("rude", "20", "one of: friendly, formal, and not \"rude\""),
        ("formal", "9.9", "a number from 10 to 99.5"),
        ("formal", "many", "a number from 10 to 99.5"),
        ("formal", "inf", "a number from 10 to 99.5"),
    ] {
        let error = read(tone, words).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
