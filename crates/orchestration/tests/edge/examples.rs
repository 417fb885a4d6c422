//! The workflows that Correx brings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use correx_orchestration::{GivenInput, Workflow, inputs};

use crate::support::{Scripted, World};

fn examples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folders = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = folders
        .filter(|folder| folder.is_dir())
        .map(|folder| folder.join("workflow.toml"))
        .collect();
    files.sort();
    files
}

fn read(file: &Path) -> Workflow {
    let text = fs::read_to_string(file).unwrap();
    let name = file.display().to_string();
    Workflow::parse(&text).map_err(|errors| errors.in_file(name).to_string()).unwrap()
}

fn samples(file: &Path, workflow: &Workflow) -> BTreeMap<String, GivenInput> {
    let folder = file.parent().unwrap();
    let specs = workflow.inputs.iter().filter_map(|spec| {
        let path = folder.join(spec.sample.as_ref()?);
        Some((spec.name.clone(), GivenInput::Path(path)))
    });
    specs.collect()
}

#[test]
fn every_example_is_a_workflow_of_three_stages_or_more_with_its_samples_beside_it() {
    let files = examples();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        let workflow = read(&file);
        assert!(workflow.stages.len() >= 3, "{}", file.display());
        assert!(workflow.description.is_some(), "{}", file.display());
        let texts = inputs::read(&workflow.inputs, &samples(&file, &workflow)).unwrap();
        assert!(texts.iter().all(|text| text.text.split_whitespace().count() >= 150));
    }
}

#[tokio::test]
async fn every_example_runs_to_its_end_on_its_samples() {
    for file in examples() {
        let workflow = read(&file);
        let texts = inputs::read(&workflow.inputs, &samples(&file, &workflow)).unwrap();
        let given: Vec<(&str, &str)> =
            texts.iter().map(|text| (text.name.as_str(), text.text.as_str())).collect();
        let answer = "- Ana Keller sends the plan by Friday, 12 June, and Bo orders the parts.\n\
                      - The team meets again on Monday to look at the budget of 4,000 euros.";
        let model = Scripted::new(vec![crate::support::Act::Say(answer); 9]);
        let world = World::started(workflow.source(), &given, model).await;
        for _ in 0..workflow.stages.len() {
            let state = world
                .when(|state| state.status.has_ended() || state.current_question().is_some())
                .await;
            if let Some(stage) = state.current_question() {
                world.orchestrator.approve(&world.session, &stage, None, None).await.unwrap();
            }
        }
        let state = world.ended().await;
        assert!(state.failure.is_none(), "{}: {:?}", file.display(), state.failure);
    }
}

trait CurrentQuestion {
    fn current_question(&self) -> Option<correx_events::StageId>;
}

impl CurrentQuestion for correx_sessions::RunState {
    fn current_question(&self) -> Option<correx_events::StageId> {
        let asking = self.stages.iter().find(|stage| stage.question.is_some())?;
        Some(asking.plan.id.clone())
    }
}
