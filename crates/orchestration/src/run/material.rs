//! What a run works with: read back from the blob store by hash, never from the files again.

use std::collections::BTreeMap;

use correx_events::{ArtifactName, BlobHash, BlobStore};
use correx_sessions::{RunState, StageRecord, StageStatus};

use super::error::RunControlError;
use crate::{Need, TemplateValues, Workflow};

/// The workflow and the inputs of one run.
#[derive(Debug, Clone)]
pub(super) struct Material {
    pub(super) workflow: Workflow,
    inputs: BTreeMap<String, String>,
}

impl Material {
    /// Loads what `state` refers to.
    pub(super) async fn load(
        state: &RunState,
        blobs: &dyn BlobStore,
    ) -> Result<Self, RunControlError> {
        let reference = state.workflow.as_ref().ok_or(RunControlError::NoWorkflow)?;
        let source = text(blobs, &reference.source, "the workflow").await?;
        let workflow = Workflow::parse(&source).map_err(|errors| {
            RunControlError::Material(format!("its workflow cannot be read any more: {errors}"))
        })?;
        let mut inputs = BTreeMap::new();
        for input in &state.inputs {
            let what = format!("the input \"{}\"", input.name);
            inputs.insert(input.name.clone(), text(blobs, &input.hash, &what).await?);
        }
        for spec in &workflow.inputs {
            if inputs.contains_key(&spec.name) {
                continue;
            }
            match (&spec.default, spec.need) {
                (Some(default), _) => inputs.insert(spec.name.clone(), default.clone()),
                (None, Need::Optional) => inputs.insert(spec.name.clone(), String::new()),
                (None, Need::Required) => {
                    let message = format!("its input \"{}\" was never given", spec.name);
                    return Err(RunControlError::Material(message));
                }
            };
        }
        Ok(Self { workflow, inputs })
    }

    /// The inputs and every artifact that the run has made so far.
    pub(super) async fn values(
        &self,
        state: &RunState,
        blobs: &dyn BlobStore,
    ) -> Result<TemplateValues, RunControlError> {
        let mut artifacts: BTreeMap<ArtifactName, String> = BTreeMap::new();
        for artifact in state.stages.iter().flat_map(StageRecord::produced) {
            let what = format!("the artifact \"{}\"", artifact.name);
            artifacts.insert(artifact.name.clone(), text(blobs, &artifact.hash, &what).await?);
        }
        // What a stage that was passed over would have made is an empty text.
        for record in state.stages.iter().filter(|record| record.status == StageStatus::Skipped) {
            let output = self.workflow.stage(&record.plan.id).and_then(|stage| stage.step.output());
            if let Some(name) = output {
                artifacts.entry(name.clone()).or_default();
            }
        }
        Ok(TemplateValues { inputs: self.inputs.clone(), artifacts, own: BTreeMap::new() })
    }
}

async fn text(
    blobs: &dyn BlobStore,
    hash: &BlobHash,
    what: &str,
) -> Result<String, RunControlError> {
    let bytes = blobs.get(hash).await?;
    let bytes = bytes.ok_or_else(|| {
        RunControlError::Material(format!("{what} is no longer in the data directory"))
    })?;
    String::from_utf8(bytes)
        .map_err(|_| RunControlError::Material(format!("{what} is damaged in the data directory")))
}
