//! Runs workflows: reads their files, shows their stages to a model, writes what happened.
//!
//! # Layout
//! - [`workflow`]: [`Workflow`], a workflow file read with every mistake named.
//! - [`template`]: [`Template`], prompts over inputs and artifacts, and what came from where.
//! - [`inputs`]: reading a run's inputs; `gather`: several files as one text.
//! - [`stage_context`]: what a stage's model call is shown.
//! - [`validate`]: [`OutputCheck`], what an output must satisfy to become an artifact.
//! - [`run`]: [`Orchestrator`], the only writer of workflow events, and the loop of one run.
//!
//! The log is the truth: a person's pause, cancel or approval is an event first, and the task that
//! runs the stages reads it there. Whoever appends says which version of the log the decision was
//! made on; when something came in between, it is made again.

mod gather;
pub mod inputs;
pub mod run;
pub mod stage_context;
pub mod template;
pub mod validate;
pub mod workflow;

pub use inputs::{GivenInput, InputError, InputErrors, InputText};
pub use run::{
    CreateError, Orchestrator, OrchestratorConfig, OrchestratorDeps, PolicySource, ProgressSink,
    Recovery, Rules, RunControlError, StageProgress,
};
pub use stage_context::{AttemptContext, AttemptLimits, StageContextError};
pub use template::{Origin, RenderError, Segment, Template, TemplateSyntaxError, TemplateValues};
pub use validate::{Examined, OutputCheck, OutputRefusal};
pub use workflow::{
    Answer, ApproveStep, ChooseStep, CommandStep, Condition, ConditionError, Existing,
    GenerateStep, InputSpec, MapStep, Need, ReadStep, ReduceStep, Sampling, Source, Stage,
    StageThinking, Step, Workflow, WorkflowError, WorkflowErrors, WorkflowProblem, WriteStep,
};
