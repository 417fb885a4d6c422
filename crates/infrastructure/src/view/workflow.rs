//! A workflow, described.

use std::collections::BTreeMap;

use correx_events::InputKind;
use correx_inference::GenerationConfig;
use correx_orchestration::{Need, Workflow};
use correx_protocol::{InputSpecView, StageSpecView, WorkflowView};

use super::Planned;
use super::run::kind;

/// A workflow; `example` is the name to choose it by, `samples` its inputs' example texts.
pub fn workflow(
    workflow: &Workflow,
    example: Option<&str>,
    samples: &BTreeMap<String, String>,
) -> WorkflowView {
    WorkflowView {
        example: example.map(str::to_owned),
        name: workflow.name.clone(),
        description: workflow.description.clone().unwrap_or_default(),
        inputs: workflow
            .inputs
            .iter()
            .map(|input| InputSpecView {
                name: input.name.clone(),
                kind: match input.kind {
                    InputKind::Text => "text",
                    InputKind::File => "file",
                    InputKind::Folder => "folder",
                    InputKind::Choice => "choice",
                    InputKind::Number => "number",
                }
                .into(),
                description: input.description.clone().unwrap_or_default(),
                required: input.need == Need::Required && input.default.is_none(),
                sample: samples.get(&input.name).cloned(),
                default: input.default.clone(),
                choices: input.choices.clone(),
                min: input.min,
                max: input.max,
            })
            .collect(),
        stages: workflow
            .plan()
            .into_iter()
            .map(|plan| StageSpecView { kind: kind(&plan), stage_id: plan.id, title: plan.title })
            .collect(),
    }
}

impl Planned {
    /// What `workflow` says beyond the log; `base` is how stages generate when it says nothing.
    pub fn of(workflow: &Workflow, base: &GenerationConfig) -> Self {
        let max_tokens = workflow
            .stages
            .iter()
            .filter_map(|stage| {
                let generation = workflow.generation_for(stage.step.call()?, base.clone());
                Some((stage.id.clone(), generation.max_tokens))
            })
            .collect();
        Self { stages: workflow.plan(), max_tokens }
    }
}
