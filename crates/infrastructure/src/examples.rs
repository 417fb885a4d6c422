//! The workflows that Correx brings, with the texts to try them on.

use std::collections::BTreeMap;

use correx_orchestration::{Workflow, WorkflowErrors};
use correx_protocol::WorkflowView;

use crate::view;

struct Example {
    name: &'static str,
    source: &'static str,
    /// File names beside the workflow file, and their texts.
    samples: &'static [(&'static str, &'static str)],
}

const EXAMPLES: &[Example] = &[
    Example {
        name: "meeting-notes",
        source: include_str!("../../../examples/meeting-notes/workflow.toml"),
        samples: &[("notes.txt", include_str!("../../../examples/meeting-notes/notes.txt"))],
    },
    Example {
        name: "brief",
        source: include_str!("../../../examples/brief/workflow.toml"),
        samples: &[("report.txt", include_str!("../../../examples/brief/report.txt"))],
    },
];

/// The source text of an example.
pub fn source(name: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|example| example.name == name).map(|example| example.source)
}

/// The names of all examples.
pub fn names() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().map(|example| example.name)
}

/// Every example, described, with its sample texts.
pub fn all() -> Result<Vec<WorkflowView>, WorkflowErrors> {
    EXAMPLES.iter().map(describe).collect()
}

/// One example, described, with its sample texts.
pub fn one(name: &str) -> Option<Result<WorkflowView, WorkflowErrors>> {
    EXAMPLES.iter().find(|example| example.name == name).map(describe)
}

fn describe(example: &Example) -> Result<WorkflowView, WorkflowErrors> {
    let workflow = Workflow::parse(example.source)?;
    let samples: BTreeMap<String, String> = workflow
        .inputs
        .iter()
        .filter_map(|input| {
            let file = input.sample.as_deref()?;
            let (_, text) = example.samples.iter().find(|(name, _)| *name == file)?;
            Some((input.name.clone(), (*text).to_owned()))
        })
        .collect();
    Ok(view::workflow(&workflow, Some(example.name), &samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_can_be_tried_with_the_text_that_it_brings() {
        let examples = all().unwrap();
        assert_eq!(examples.len(), names().count());
        for example in examples {
            assert!(example.stages.len() >= 3, "{}", example.name);
            for input in example.inputs.iter().filter(|input| input.required) {
                assert!(input.sample.is_some(), "{}: {}", example.name, input.name);
            }
        }
    }
}
