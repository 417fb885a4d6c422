//! Why an operation on a run was refused. Nothing was appended then.

use correx_events::{AppendError, BlobError, NoteId, PauseReason, ReadError, SessionId, StageId};
use correx_inference::RoutingError;
use correx_sessions::{ReplayError, WorkflowStatus};
use thiserror::Error;

/// Why a session could not be created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CreateError {
    /// The session has events already.
    #[error("the session {0} exists already")]
    Exists(SessionId),
    /// A declared input was not read.
    #[error("the workflow's input \"{0}\" is missing; give it and try again")]
    MissingInput(String),
    /// Content could not be kept.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The log could not be written.
    #[error(transparent)]
    Append(AppendError),
}

/// Why a run could not be started, paused, resumed, cancelled, approved, denied or steered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunControlError {
    /// Nothing is known of the session.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// A plain chat.
    #[error("this session has no workflow; make a new one from a workflow to run it")]
    NoWorkflow,
    /// The run is not in a state for this.
    #[error("the run is {status}{}: {instead}", waiting(*pause))]
    WrongState {
        /// Its status.
        status: WorkflowStatus,
        /// Why it waits, if it does.
        pause: Option<PauseReason>,
        /// What can be done instead.
        instead: &'static str,
    },
    /// The stage does not wait for an approval.
    #[error("the stage \"{0}\" does not ask for approval now")]
    NotAsking(StageId),
    /// Nothing is shown that could be changed.
    #[error(
        "the stage \"{0}\" shows nothing that could be changed; approve it as it is, or refuse it"
    )]
    NotEditable(StageId),
    /// No such stage in this run.
    #[error("this run has no stage \"{stage}\"; it has: {known}")]
    UnknownStage {
        /// What was named.
        stage: StageId,
        /// The stages that there are.
        known: String,
    },
    /// No such note in this session.
    #[error("this session has no steering note {0}")]
    UnknownNote(NoteId),
    /// The note was taken back before.
    #[error("the steering note was already withdrawn")]
    AlreadyWithdrawn,
    /// No model can run the stages. Nothing was begun.
    #[error("no model for this run: {0}")]
    Model(#[from] RoutingError),
    /// Something that the run was created from is gone or damaged.
    #[error("the run cannot go on: {0}")]
    Material(String),
    /// The log could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log could not be written.
    #[error("{0}; free some disk space or check the data directory, then try again")]
    Write(String),
    /// Content could not be kept or read.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The program is ending.
    #[error("Correx is closing; the run goes on at the next start")]
    Closing,
}

impl From<ReplayError> for RunControlError {
    fn from(error: ReplayError) -> Self {
        Self::Read(error.0)
    }
}

fn waiting(pause: Option<PauseReason>) -> &'static str {
    match pause {
        None => "",
        Some(PauseReason::Person) => " by a person",
        Some(PauseReason::Approval) => " until its question is answered",
        Some(PauseReason::Interrupted) => " because it was interrupted",
    }
}
