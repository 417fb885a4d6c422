//! State folded from events.
//!
//! # Layout
//! - [`projection`]: [`Reducer`] and [`Projection`], pure folds.
//! - [`replayer`]: [`EventReplayer`], rebuilding a state from the log, whole or incrementally.
//! - [`notes`]: [`Notes`], the steering notes of a session and which stages they act on.
//! - [`run`]: [`RunState`], a run as its events tell it.
//! - [`run_reducer`]: [`RunReducer`], which folds it.
//!
//! This crate does no I/O of its own; it reads through the [`EventStore`] trait.
//!
//! [`EventStore`]: correx_events::EventStore

pub mod notes;
pub mod projection;
pub mod replayer;
pub mod run;
pub mod run_reducer;

pub use notes::{AppliedNote, NoteRecord, Notes};
pub use projection::{Projection, Reducer, ReducerProjection};
pub use replayer::{
    DefaultEventReplayer, EventReplayer, IncrementalReplayer, ReplayError, Versioned,
};
pub use run::{
    ArtifactRecord, DraftReason, DraftRecord, EffectRecord, RunState, StageRecord, StageStatus,
    Thought, WorkflowStatus,
};
pub use run_reducer::RunReducer;
