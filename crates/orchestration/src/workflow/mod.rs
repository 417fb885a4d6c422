//! Workflow files, version 1: what a person describes, read with every mistake named.
//!
//! The format is written down in `docs/workflows.md`.

mod checks;
mod condition;
pub mod keys;
mod kinds;
mod names;
mod outside;
mod parse;
mod plan;
mod problem;
mod reading;
mod schema;
mod scope;
mod types;

pub(crate) use kinds::is_in;

pub use condition::{Condition, ConditionError};
pub use problem::{WorkflowError, WorkflowErrors, WorkflowProblem};
pub use schema::workflow_schema;
pub use types::{
    Answer, ApproveStep, ChooseStep, CommandStep, DEFAULT_RETRIES, Existing, GenerateStep,
    InputSpec, MapStep, Need, ReadStep, ReduceStep, Sampling, Source, Stage, StageThinking, Step,
    Workflow, WriteStep,
};
