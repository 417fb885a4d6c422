//! The workflows that Correx brings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use correx_orchestration::{GivenInput, Workflow, inputs};

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
    assert!(files.len() >= 7, "{files:?}");
    for file in files {
        let workflow = read(&file);
        assert!(workflow.stages.len() >= 3, "{}", file.display());
        assert!(workflow.description.is_some(), "{}", file.display());
        let texts = inputs::read(&workflow.inputs, &samples(&file, &workflow)).unwrap();
        assert!(texts.iter().all(|text| text.text.split_whitespace().count() >= 5));
    }
}
