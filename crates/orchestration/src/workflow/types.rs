//! What a workflow is. Only a file without mistakes becomes one.

use std::collections::BTreeMap;
use std::time::Duration;

use correx_events::{ArtifactName, InputKind, StageId, StageKind, StagePlan};
use correx_inference::{GenerationConfig, ThinkingMode};

use super::{Condition, WorkflowErrors, parse, plan};
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
    /// The model that runs its stages, where they do not name one: an id or a file. `None`: the
    /// one that is in use.
    pub model: Option<String>,
    /// How its stages sample, where they do not say it themselves.
    pub generation: Sampling,
    /// What it reads, in declaration order.
    pub inputs: Vec<InputSpec>,
    /// Its steps, in the order of the file.
    pub stages: Vec<Stage>,
    pub(super) source: String,
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

    /// The stages as the log plans them: in the order of the file, but each behind all that it
    /// needs.
    pub fn plan(&self) -> Vec<StagePlan> {
        plan::order(&self.stages).into_iter().map(Stage::plan).collect()
    }

    /// The model that `step` names, or the workflow.
    pub fn model_for<'a>(&'a self, step: &'a GenerateStep) -> Option<&'a str> {
        step.model.as_deref().or(self.model.as_deref())
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
#[derive(Debug, Clone, PartialEq)]
pub struct InputSpec {
    /// The name by which templates refer to it.
    pub name: String,
    /// Text, a file, a folder, a choice, a number.
    pub kind: InputKind,
    /// What it is, for people.
    pub description: Option<String>,
    /// Whether a run needs it.
    pub need: Need,
    /// The text it has when none is given.
    pub default: Option<String>,
    /// A file with an example of it, relative to the workflow file.
    pub sample: Option<String>,
    /// Of a choice: what can be chosen, at least one. Empty otherwise.
    pub choices: Vec<String>,
    /// Of a number: the least that it may be.
    pub min: Option<f64>,
    /// Of a number: the most that it may be.
    pub max: Option<f64>,
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
    /// The stages that must be over before it begins, without repetition: those that `needs` names
    /// (without `needs`, the one before it in the file), and those whose artifacts it uses.
    pub needs: Vec<StageId>,
    /// It is skipped when this does not hold once its needs are over.
    pub when: Option<Condition>,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// What it does.
    pub step: Step,
}

impl Stage {
    /// As the log plans it.
    pub fn plan(&self) -> StagePlan {
        StagePlan {
            id: self.id.clone(),
            title: self.title.clone(),
            kind: self.step.kind(),
            needs: Some(self.needs.clone()),
        }
    }
}

/// What a stage does.
#[derive(Debug, Clone)]
pub enum Step {
    /// A prompt answered by the model.
    Generate(GenerateStep),
    /// A prompt over each piece of something long.
    Map(MapStep),
    /// A prompt over many results, until one is left.
    Reduce(ReduceStep),
    /// The model picks one of a few answers.
    Choose(ChooseStep),
    /// A person decides.
    Approve(ApproveStep),
    /// A program runs.
    Command(CommandStep),
    /// An artifact goes into a file.
    Write(WriteStep),
    /// Files become an artifact.
    Read(ReadStep),
}

impl Step {
    /// Its kind, as the log names it.
    pub fn kind(&self) -> StageKind {
        match self {
            Step::Generate(_) => StageKind::Generate,
            Step::Map(_) => StageKind::Map,
            Step::Reduce(_) => StageKind::Reduce,
            Step::Choose(_) => StageKind::Choose,
            Step::Approve(_) => StageKind::Approve,
            Step::Command(_) => StageKind::Command,
            Step::Write(_) => StageKind::Write,
            Step::Read(_) => StageKind::Read,
        }
    }

    /// What the model is asked, if it is.
    pub fn call(&self) -> Option<&GenerateStep> {
        match self {
            Step::Generate(call) => Some(call),
            Step::Map(step) => Some(&step.each),
            Step::Reduce(step) => Some(&step.each),
            Step::Choose(step) => Some(&step.ask),
            Step::Approve(_) | Step::Command(_) | Step::Write(_) | Step::Read(_) => None,
        }
    }

    /// The name of what it produces, if it produces anything.
    pub fn output(&self) -> Option<&ArtifactName> {
        match self {
            Step::Command(step) => Some(&step.output),
            Step::Read(step) => Some(&step.output),
            step => step.call().map(|call| &call.output),
        }
    }
}

/// A prompt answered by the model.
#[derive(Debug, Clone)]
pub struct GenerateStep {
    /// The prompt, over inputs and earlier artifacts; in a `map` also over `piece` (its text),
    /// `number` (from 1), `count` and `heading`; in a `reduce` over `pieces`.
    pub prompt: Template,
    /// Standing instructions; the model's own when there are none.
    pub system: Option<String>,
    /// The model that answers, when it is not the workflow's: an id or a file.
    pub model: Option<String>,
    /// The name of what it produces.
    pub output: ArtifactName,
    /// The media type of what it produces.
    pub media_type: String,
    /// The JSON Schema that the answer is held to while it is generated.
    pub schema: Option<serde_json::Value>,
    /// How it samples.
    pub sampling: Sampling,
    /// Further attempts after a refused one.
    pub retries: u32,
    /// What its output must satisfy; of a `map` or `reduce`, each single result.
    pub checks: Vec<OutputCheck>,
    /// Questions about an output that every check has passed, which the model must answer with yes.
    pub judges: Vec<String>,
}

/// A prompt over each piece of something long.
#[derive(Debug, Clone)]
pub struct MapStep {
    /// What is asked of each piece, and what the results together are called.
    pub each: GenerateStep,
    /// What is cut.
    pub over: Source,
    /// The most tokens of a piece; `None`: as many as fit beside the rest of the prompt.
    pub piece_tokens: Option<usize>,
    /// What stands between the results in the artifact.
    pub join: String,
    /// What a steering note in the middle does to the pieces that are done.
    pub redo_pieces: bool,
}

/// A prompt over many results, put together as many as fit, again and again until one is left.
#[derive(Debug, Clone)]
pub struct ReduceStep {
    /// What is asked of each group.
    pub each: GenerateStep,
    /// What is reduced: the results of a `map` one by one, anything else cut into pieces.
    pub over: Source,
}

/// The model picks one of a few answers.
#[derive(Debug, Clone)]
pub struct ChooseStep {
    /// What is asked.
    pub ask: GenerateStep,
    /// What can be answered.
    pub answer: Answer,
}

/// What a `choose` stage can answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// One of these; at least two, all different.
    OneOf(Vec<String>),
    /// A whole number in this range, both ends included.
    Score {
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
}

impl Answer {
    /// Every possible answer.
    pub fn options(&self) -> Vec<String> {
        match self {
            Answer::OneOf(options) => options.clone(),
            Answer::Score { min, max } => (*min..=*max).map(|score| score.to_string()).collect(),
        }
    }
}

/// A person decides whether the run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApproveStep {
    /// The question.
    pub question: String,
    /// What is to be approved, if it is an artifact. The person may change it.
    pub show: Option<ArtifactName>,
}

/// A text that a stage takes as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An input.
    Input(String),
    /// What an earlier stage produced.
    Artifact(ArtifactName),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Input(name) => write!(f, "inputs.{name}"),
            Source::Artifact(name) => write!(f, "artifacts.{name}"),
        }
    }
}

/// A program runs, without a shell, if policy lets it.
#[derive(Debug, Clone)]
pub struct CommandStep {
    /// The program's name or absolute path, as it is.
    pub program: String,
    /// One template for each argument.
    pub args: Vec<Template>,
    /// What it reads.
    pub stdin: Option<Source>,
    /// The folder it runs in; the session's output folder when there is none.
    pub cwd: Option<Template>,
    /// What its environment has beside what policy gives it.
    pub env: BTreeMap<String, Template>,
    /// The name of what it writes to its standard output.
    pub output: ArtifactName,
    /// The media type of that.
    pub media_type: String,
    /// The most bytes of that.
    pub max_output_bytes: Option<u64>,
    /// Which exit codes are no failure; 0 alone unless the file says otherwise.
    pub exit_codes: Vec<i32>,
}

/// An artifact goes into a file, if policy lets it.
#[derive(Debug, Clone)]
pub struct WriteStep {
    /// What is written.
    pub from: Source,
    /// The file; relative to the session's output folder.
    pub path: Template,
    /// What happens when there is such a file already.
    pub existing: Existing,
}

/// What a `write` does about a file that exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Existing {
    /// A person is asked.
    #[default]
    Ask,
    /// The stage fails.
    Fail,
}

/// Files and folders become an artifact, if policy lets them be read.
#[derive(Debug, Clone)]
pub struct ReadStep {
    /// The files and folders.
    pub paths: Vec<Template>,
    /// The name of the artifact.
    pub output: ArtifactName,
    /// Its media type.
    pub media_type: String,
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
