//! Workflow files, version 1: what a person describes, read with every mistake named.
//!
//! The format is written down in `docs/workflows.md`.

mod names;
mod parse;
mod problem;
mod reading;
mod scope;

pub use problem::{WorkflowError, WorkflowErrors, WorkflowProblem};

use correx_events::{ArtifactName, InputKind, StageId, StageKind, StagePlan};
use correx_inference::{GenerationConfig, ThinkingMode};

use crate::{OutputCheck, Template};

/// How many further attempts a stage has when the file does not say.
pub const DEFAULT_RETRIES: u32 = 2;

/// A workflow as its file says it. Only a file without mistakes becomes one.
#[derive(Debug, Clone)]
pub struct Workflow {
    /// Its name.
    pub name: String,
    /// What it does, for people.
    pub description: Option<String>,
    /// How its stages sample, where they do not say it themselves.
    pub generation: Sampling,
    /// What it reads, in declaration order.
    pub inputs: Vec<InputSpec>,
    /// Its steps, in the order in which they run.
    pub stages: Vec<Stage>,
    source: String,
}

impl Workflow {
    /// Reads a workflow file's text, or says everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, WorkflowErrors> {
        parse::parse(text)
    }

    /// The text that it was read from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// A stage by id.
    pub fn stage(&self, id: &StageId) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.id == *id)
    }

    /// The stages as the log plans them.
    pub fn plan(&self) -> Vec<StagePlan> {
        self.stages.iter().map(Stage::plan).collect()
    }

    /// How `step` generates, over what the program does by default.
    pub fn generation_for(&self, step: &GenerateStep, base: GenerationConfig) -> GenerationConfig {
        step.sampling.over(self.generation.over(base))
    }

    /// Whether the model is told to think before it writes what `step` asks for.
    pub fn thinking_for(&self, step: &GenerateStep, decided: StageThinking) -> ThinkingMode {
        match decided {
            StageThinking::Always(mode) => mode,
            StageThinking::AsTheWorkflowSays => {
                match step.sampling.thinking.or(self.generation.thinking) {
                    Some(true) => ThinkingMode::On,
                    Some(false) | None => ThinkingMode::Off,
                }
            }
        }
    }
}

/// Who decides whether a stage's model thinks before it writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StageThinking {
    /// The workflow; where it says nothing the model answers at once, because the thinking counts
    /// against `max_tokens`.
    #[default]
    AsTheWorkflowSays,
    /// Always this, whatever the workflow says.
    Always(ThinkingMode),
}

/// An input that a workflow declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSpec {
    /// The name by which templates refer to it.
    pub name: String,
    /// Text, a file, a folder.
    pub kind: InputKind,
    /// What it is, for people.
    pub description: Option<String>,
    /// Whether a run needs it.
    pub need: Need,
    /// The text it has when none is given.
    pub default: Option<String>,
    /// A file with an example of it, relative to the workflow file.
    pub sample: Option<String>,
}

/// Whether a run needs an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A run cannot start without it.
    Required,
    /// Without it, it is an empty text.
    Optional,
}

/// One step.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Unique inside the workflow.
    pub id: StageId,
    /// For people.
    pub title: String,
    /// What it does.
    pub step: Step,
}

impl Stage {
    /// As the log plans it.
    pub fn plan(&self) -> StagePlan {
        let kind = match self.step {
            Step::Generate(_) => StageKind::Generate,
            Step::Approve(_) => StageKind::Approve,
        };
        StagePlan { id: self.id.clone(), title: self.title.clone(), kind }
    }
}

/// What a stage does.
#[derive(Debug, Clone)]
pub enum Step {
    /// A prompt answered by the model.
    Generate(GenerateStep),
    /// A person decides.
    Approve(ApproveStep),
}

/// A prompt answered by the model.
#[derive(Debug, Clone)]
pub struct GenerateStep {
    /// The prompt, over inputs and earlier artifacts.
    pub prompt: Template,
    /// Standing instructions; the model's own when there are none.
    pub system: Option<String>,
    /// The name of what it produces.
    pub output: ArtifactName,
    /// The media type of what it produces.
    pub media_type: String,
    /// How it samples.
    pub sampling: Sampling,
    /// Further attempts after a refused one.
    pub retries: u32,
    /// What its output must satisfy.
    pub checks: Vec<OutputCheck>,
}

/// A person decides whether the run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApproveStep {
    /// The question.
    pub question: String,
    /// What is to be approved, if it is an artifact.
    pub show: Option<ArtifactName>,
}

/// How to generate, where the file says it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling {
    /// 0 is greedy.
    pub temperature: Option<f64>,
    /// Nucleus share.
    pub top_p: Option<f64>,
    /// How many likeliest tokens are kept; 0 keeps all.
    pub top_k: Option<usize>,
    /// Least share of the likeliest token's probability.
    pub min_p: Option<f64>,
    /// Repetition penalty; 1 is off.
    pub repetition_penalty: Option<f32>,
    /// Random seed.
    pub seed: Option<u64>,
    /// The most tokens to generate.
    pub max_tokens: Option<usize>,
    /// Whether the model thinks before it writes, if it can be told so.
    pub thinking: Option<bool>,
}

impl Sampling {
    /// `base` with what is said here put in its place.
    pub fn over(&self, base: GenerationConfig) -> GenerationConfig {
        GenerationConfig {
            temperature: self.temperature.unwrap_or(base.temperature),
            top_p: self.top_p.unwrap_or(base.top_p),
            top_k: self.top_k.unwrap_or(base.top_k),
            min_p: self.min_p.unwrap_or(base.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(base.repetition_penalty),
            seed: self.seed.unwrap_or(base.seed),
            max_tokens: self.max_tokens.unwrap_or(base.max_tokens),
            ..base
        }
    }
}
