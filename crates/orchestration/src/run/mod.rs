//! Running workflows.
//!
//! - [`orchestrator`]: [`Orchestrator`], what a person can do to a run; each an event.
//! - `runner`: the task of one run: reads the log, decides the next step, takes it.
//! - `guard`: which operation a run's state allows.
//! - `attempt`: one attempt of a generate stage, its prompt and its model call.
//! - `outcome`: what becomes of the reply: artifact, another attempt, or failure.
//! - `outside`: stages that run a program, write or read a file; `deed`: what policy says of them;
//!   `reading`: the text of files.
//! - [`policy`]: where the person's rules come from.
//! - `pieces`: stages that go piece by piece.
//! - `finish`: the end of a stage, and of a run.
//! - `material`: the workflow and the inputs of a run, from the blob store.
//! - `record`: what the log says about a model call.
//! - `log`: the folded log of one session, and appending to it.
//! - [`progress`]: what a front end is told while a stage generates.
//! - [`error`]: why an operation on a run was refused.

mod attempt;
mod deed;
pub mod error;
mod finish;
mod guard;
mod log;
mod material;
mod opinion;
pub mod orchestrator;
mod outcome;
mod outside;
mod pieces;
pub mod policy;
pub mod progress;
mod reading;
mod record;
mod runner;

pub use error::{CreateError, RunControlError};
pub use orchestrator::{Orchestrator, OrchestratorConfig, OrchestratorDeps, Recovery};
pub use policy::{PolicySource, Rules};
pub use progress::{ProgressSink, StageProgress};
