//! Why a message was not answered. Each says what happened; [`NoteOutcome`] says what was kept.

use correx_context::{EncodeError, PackError};
use correx_events::{AppendError, NoteId};
use correx_inference::{InferenceError, RoutingError};
use correx_sessions::ReplayError;
use thiserror::Error;

use crate::TranscriptError;

/// Whether a steering note was stored before something failed: a retry must not emit it twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteOutcome {
    /// None was asked for, or nothing was stored.
    NotEmitted,
    /// It is in the log and acts.
    Emitted(NoteId),
}

/// Why a message was not answered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RouterError {
    /// Nothing but white space.
    #[error("the message is empty")]
    EmptyInput,
    /// More bytes than are looked at.
    #[error("the message is too long: {bytes} bytes, and at most {limit} are accepted")]
    InputTooLong {
        /// The message's size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The message does not fit beside what must not be dropped. Nothing was stored.
    #[error("the message does not fit: {0}")]
    DoesNotFit(PackError),
    /// The note cannot act. Nothing was stored.
    #[error(transparent)]
    CannotSteer(#[from] SteeringRefusal),
    /// There is no message that could be answered again.
    #[error("there is no message to answer again")]
    NothingToRetry,
    /// The log could not be read. Nothing was stored.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The note could not be written. Nothing was stored.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The conversation could not be kept.
    #[error("{source}")]
    Transcript {
        /// Why.
        source: TranscriptError,
        /// What became of the note.
        note: NoteOutcome,
    },
    /// No model could be had.
    #[error("{source}")]
    Routing {
        /// Why.
        source: RoutingError,
        /// What became of the note.
        note: NoteOutcome,
    },
    /// The model thought until its reply ended. The thinking is kept; the history is as it was
    /// before the message.
    #[error("{reason}")]
    NoAnswer {
        /// What happened and what to do.
        reason: String,
        /// What became of the note.
        note: NoteOutcome,
    },
    /// The model failed. The history is as it was before the message.
    #[error("{source}")]
    Inference {
        /// Why.
        source: InferenceError,
        /// What became of the note.
        note: NoteOutcome,
    },
}

impl RouterError {
    /// What became of the note.
    pub fn note(&self) -> &NoteOutcome {
        match self {
            RouterError::Transcript { note, .. }
            | RouterError::Routing { note, .. }
            | RouterError::NoAnswer { note, .. }
            | RouterError::Inference { note, .. } => note,
            _ => &NoteOutcome::NotEmitted,
        }
    }
}

/// Why a note cannot act, and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SteeringRefusal {
    /// The session is a plain chat.
    #[error("this session has no workflow, so there is nothing to steer; ask instead")]
    NoWorkflow,
    /// The run is over.
    #[error(
        "the run has ended ({0}), so no stage is left to follow the note; start a new run with it"
    )]
    RunEnded(&'static str),
    /// The stage is over.
    #[error("the stage {0} has already ended; choose a stage that is still to run")]
    StageEnded(String),
    /// The stage was passed over.
    #[error(
        "the stage {0} was passed over, because its condition did not hold; choose a stage that is still to run"
    )]
    StageSkipped(String),
    /// The stage asks no model.
    #[error("the stage {0} asks no model, so a note changes nothing there; choose one that writes")]
    AsksNoModel(String),
    /// None of the stages that are left asks a model.
    #[error(
        "no stage that is still to run asks a model, so nothing would follow the note; when the run has ended, run it again from a stage that writes"
    )]
    NoneLeft,
    /// There is no such note.
    #[error("this session has no steering note {0}")]
    UnknownNote(NoteId),
    /// The note was taken back.
    #[error("the note was withdrawn or replaced; give a new one")]
    Withdrawn,
    /// A stage was shown the note.
    #[error(
        "the note was already used in {stage}, attempt {attempt}, and stays as it was; withdraw it and give a new one"
    )]
    Used {
        /// The stage's title.
        stage: String,
        /// Which attempt was shown it.
        attempt: u32,
    },
    /// There is no such stage.
    #[error("the run has no stage {0}")]
    NoSuchStage(String),
    /// It does not fit beside the other notes.
    #[error(
        "the note has {tokens} tokens and the notes in force have {used}; together at most {allowance} are allowed: shorten it or withdraw another"
    )]
    NoRoom {
        /// The note's tokens.
        tokens: usize,
        /// Tokens of the notes in force.
        used: usize,
        /// What they may have together.
        allowance: usize,
    },
    /// It could not be counted.
    #[error("the note could not be counted: {0}")]
    Count(#[from] EncodeError),
}
