//! The resident assistant: reads events, talks about the run, emits steering notes, nothing else.
//!
//! # Layout
//! - [`state`]: [`RouterState`], what the router knows; [`reducer`] folds it, [`projector`] and
//!   [`repository`] rebuild it from the log.
//! - [`summary`]: what a finished stage is remembered by, from its events' metadata.
//! - [`context_builder`]: the pack that an answer is generated from.
//! - [`facade`]: [`RouterFacade`], the way of one message; [`steering`] decides whether a note
//!   can act, [`conversation`] holds the history in memory.
//! - [`transcript`]: the trait by which conversations are kept beside the log.
//! - [`config`], [`response`], [`error`]: what goes in, what comes out.
//!
//! Of our crates this one depends on `events`, `sessions`, `context` and `inference`, never on
//! `orchestration`: it knows the run from its events only.

pub mod config;
pub mod context_builder;
pub mod conversation;
pub mod error;
pub mod facade;
pub mod projector;
pub mod reducer;
pub mod repository;
pub mod response;
pub mod state;
pub mod steering;
pub mod summary;
pub mod transcript;

pub use config::RouterConfig;
pub use context_builder::{DefaultRouterContextBuilder, RouterContextBuilder};
pub use error::{NoteOutcome, RouterError, SteeringRefusal};
pub use facade::{DefaultRouterFacade, RouterFacade, RouterParts};
pub use projector::RouterProjector;
pub use reducer::{DefaultRouterReducer, RouterReducer};
pub use repository::{DefaultRouterRepository, RouterRepository};
pub use response::{
    ChatMode, Draft, NoteTarget, RouterAnswer, RouterResponse, RouterSink, RouterStreamEvent,
    UserInput,
};
pub use state::{
    RouterL2Entry, RouterState, RouterTurn, StageOutcomeKind, TurnRole, WorkflowStatus,
};
pub use transcript::{
    ReplyReport, ReportedEntry, Thinking, TranscriptError, TranscriptStore, TranscriptTurn,
    TurnStatus,
};
