//! Running workflows.
//!
//! - [`orchestrator`]: [`Orchestrator`], what a person can do to a run; each an event.
//! - `runner`: the task of one run: reads the log, decides the next step, takes it.
//! - `attempt`: one model call of a stage, and what is made of its reply.
//! - `material`: the workflow and the inputs of a run, from the blob store.
//! - `record`: what the log says about a model call.
//! - `log`: the folded log of one session, and appending to it.
//! - [`progress`]: what a front end is told while a stage generates.
//! - [`error`]: why an operation on a run was refused.

mod attempt;
pub mod error;
mod log;
mod material;
pub mod orchestrator;
pub mod progress;
mod record;
mod runner;

pub use error::{CreateError, RunControlError};
pub use orchestrator::{Orchestrator, OrchestratorConfig, OrchestratorDeps, Recovery};
pub use progress::{ProgressSink, StageProgress};
