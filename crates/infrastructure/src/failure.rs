//! Errors, as people meet them: what happened, what was kept, what to do.

use correx_context::PackError;
use correx_events::{BlobError, ReadError};
use correx_orchestration::{CreateError, InputErrors, RunControlError, WorkflowErrors};
use correx_protocol::{ErrorCode, ProtocolError};
use correx_router::{NoteOutcome, RouterError, SteeringRefusal, TranscriptError};
use correx_sessions::ReplayError;
use correx_store::{CatalogueError, OpenError};

use crate::examples::CopyError;
use crate::settings::SettingsError;

const NOTHING_STORED: &str = "Nothing was sent or stored.";
const TRY_DISK: &str =
    "Check that the disk has room and the data directory can be written, then try again.";

/// Why a message was not answered.
pub fn router(error: &RouterError) -> ProtocolError {
    let message = error.to_string();
    let at = |code| ProtocolError::new(code, message.clone());
    match error {
        RouterError::EmptyInput => {
            at(ErrorCode::EmptyInput).kept(NOTHING_STORED).hint("Type a message and send it again.")
        }
        RouterError::InputTooLong { .. } => at(ErrorCode::InputTooLong)
            .kept(NOTHING_STORED)
            .hint("Shorten it. A long text belongs into a workflow, as an input of its stages."),
        RouterError::DoesNotFit(error) => pack(error),
        RouterError::CannotSteer(refusal) => steering(refusal),
        RouterError::NothingToRetry => {
            at(ErrorCode::WrongState).kept(NOTHING_STORED).hint("Send a message first.")
        }
        RouterError::Replay(_) | RouterError::Append(_) => {
            at(ErrorCode::Storage).kept(NOTHING_STORED).hint(TRY_DISK)
        }
        RouterError::Transcript { note, .. } => {
            at(ErrorCode::Storage).kept(kept_note(note, NOTHING_STORED)).hint(TRY_DISK)
        }
        RouterError::Routing { note, .. } => {
            at(ErrorCode::Model).kept(kept_note(note, "Your message is kept.")).hint(
                "When the model is in place, retry the answer; the message need not be sent again.",
            )
        }
        RouterError::NoAnswer { note, .. } => at(ErrorCode::Inference)
            .kept(kept_note(note, "Your message and the thinking are kept."))
            .hint("Retry the answer; the message need not be sent again."),
        RouterError::Inference { note, .. } => at(ErrorCode::Inference)
            .kept(kept_note(note, "Your message is kept."))
            .hint("Retry the answer; the message need not be sent again."),
    }
}

fn kept_note(note: &NoteOutcome, otherwise: &str) -> String {
    match note {
        NoteOutcome::Emitted(_) => "The note was kept and acts.".to_owned(),
        NoteOutcome::NotEmitted => otherwise.to_owned(),
    }
}

/// Why a note cannot act.
pub fn steering(refusal: &SteeringRefusal) -> ProtocolError {
    let code = match refusal {
        SteeringRefusal::UnknownNote(_) => ErrorCode::NotFound,
        _ => ErrorCode::CannotSteer,
    };
    ProtocolError::new(code, refusal.to_string()).kept("The note was not stored.")
}

/// Why a prompt could not be made.
pub fn pack(error: &PackError) -> ProtocolError {
    match error {
        PackError::TooLarge { needed, limit, .. } => {
            let over = needed.saturating_sub(*limit);
            ProtocolError::new(
                ErrorCode::InputTooLong,
                format!("The message does not fit: it is {over} tokens too long ({error})."),
            )
            .kept(NOTHING_STORED)
            .hint("Shorten it, or raise `token_budget` in settings.toml if the model's window allows.")
        }
        PackError::Encode(_) => ProtocolError::new(ErrorCode::Model, error.to_string())
            .kept(NOTHING_STORED)
            .hint("This model's file may be damaged; try another one."),
    }
}

/// Why a run was not started, paused, resumed, ….
pub fn run_control(error: &RunControlError) -> ProtocolError {
    let at = |code| ProtocolError::new(code, error.to_string());
    const UNCHANGED: &str = "The run is as it was.";
    match error {
        RunControlError::NoSession(_)
        | RunControlError::UnknownNote(_)
        | RunControlError::UnknownStage { .. } => at(ErrorCode::NotFound),
        RunControlError::NoWorkflow
        | RunControlError::WrongState { .. }
        | RunControlError::NotAsking(_)
        | RunControlError::NotEditable(_)
        | RunControlError::AlreadyWithdrawn => at(ErrorCode::WrongState).kept(UNCHANGED),
        RunControlError::Model(_) => at(ErrorCode::Model)
            .kept("The run is as it was, and its inputs are kept.")
            .hint("When the model is in place, start it again."),
        RunControlError::Material(_) => at(ErrorCode::Storage)
            .kept("Everything that the log holds is kept.")
            .hint("Make a new session from the workflow."),
        RunControlError::Read(_) | RunControlError::Write(_) | RunControlError::Blob(_) => {
            at(ErrorCode::Storage).kept(UNCHANGED).hint(TRY_DISK)
        }
        RunControlError::Closing => at(ErrorCode::WrongState).kept(UNCHANGED),
    }
}

/// Why a session was not made.
pub fn create(error: &CreateError) -> ProtocolError {
    let code = match error {
        CreateError::Exists(_) => ErrorCode::WrongState,
        CreateError::MissingInput(_) => ErrorCode::BadInput,
        CreateError::Blob(_) | CreateError::Append(_) => ErrorCode::Storage,
    };
    let error = ProtocolError::new(code, error.to_string()).kept("No session was made.");
    if code == ErrorCode::Storage { error.hint(TRY_DISK) } else { error }
}

/// Everything that is wrong with a workflow file.
pub fn workflow(errors: &WorkflowErrors) -> ProtocolError {
    ProtocolError::new(ErrorCode::BadWorkflow, errors.to_string())
        .kept("Nothing was run.")
        .hint("Correct the file and try again; docs/workflows.md describes the format.")
}

/// Why an example was not copied.
pub fn copy(error: &CopyError) -> ProtocolError {
    let at = |code| {
        ProtocolError::new(code, error.to_string()).kept("Everything that was there is unchanged.")
    };
    match error {
        CopyError::Unknown { .. } => at(ErrorCode::BadWorkflow),
        CopyError::Exists(_) => at(ErrorCode::BadInput),
        CopyError::NotWhole(_) => {
            at(ErrorCode::BadInput).hint("Choose the folder, or type it whole.")
        }
        CopyError::NotAName(_) => {
            at(ErrorCode::BadInput).hint("Give it a name without slashes, such as my-workflow.")
        }
        CopyError::Unwritable { .. } => at(ErrorCode::Storage)
            .hint("Choose a folder that you can write to, with room on its disk."),
    }
}

/// Every input that could not be read.
pub fn inputs(errors: &InputErrors) -> ProtocolError {
    ProtocolError::new(ErrorCode::BadInput, errors.to_string()).kept("No session was made.")
}

/// The catalogue of sessions failed.
pub fn catalogue(error: &CatalogueError) -> ProtocolError {
    let message = error.to_string();
    match error {
        CatalogueError::UnknownSession(_) | CatalogueError::Deleted(_) => {
            ProtocolError::new(ErrorCode::NotFound, message).hint("`correx sessions` lists them.")
        }
        CatalogueError::Storage(_) => storage(message),
    }
}

/// Something could not be read.
pub fn storage(message: impl Into<String>) -> ProtocolError {
    ProtocolError::new(ErrorCode::Storage, message)
        .kept("What was stored is unchanged.")
        .hint(TRY_DISK)
}

/// A data directory could not be opened. Its text says already what was kept and what to do.
pub fn open(error: &OpenError) -> ProtocolError {
    let code = match error {
        OpenError::AlreadyOpen { .. } => ErrorCode::WrongState,
        _ => ErrorCode::Storage,
    };
    ProtocolError::new(code, error.to_string())
}

/// The settings have a mistake.
pub fn settings(error: &SettingsError) -> ProtocolError {
    ProtocolError::new(ErrorCode::BadInput, format!("The settings cannot be used: {error}"))
        .kept("The file was left as it is.")
        .hint("Correct it, or move it away to start with the defaults.")
}

macro_rules! storage_errors {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self(storage(error.to_string()))
            }
        }
    )*};
}
storage_errors!(BlobError, ReadError, ReplayError, TranscriptError);

/// A [`ProtocolError`] that `?` makes from the errors of the parts.
#[derive(Debug)]
pub struct Failure(pub ProtocolError);

impl From<ProtocolError> for Failure {
    fn from(error: ProtocolError) -> Self {
        Self(error)
    }
}

macro_rules! mapped_errors {
    ($($error:ty => $map:ident),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self($map(&error))
            }
        }
    )*};
}
mapped_errors!(
    RouterError => router,
    RunControlError => run_control,
    CreateError => create,
    WorkflowErrors => workflow,
    CopyError => copy,
    InputErrors => inputs,
    CatalogueError => catalogue,
    OpenError => open,
    SettingsError => settings
);

#[cfg(test)]
mod tests {
    use correx_events::NoteId;
    use correx_inference::InferenceError;

    use super::*;

    #[test]
    fn a_failed_answer_says_whether_the_note_acts() {
        let failed = |note| {
            let source = InferenceError::Engine("out of memory".into());
            router(&RouterError::Inference { source, note })
        };
        let kept = failed(NoteOutcome::Emitted(NoteId::new("n"))).kept.unwrap();
        assert_eq!(kept, "The note was kept and acts.");
        let kept = failed(NoteOutcome::NotEmitted).kept.unwrap();
        assert_eq!(kept, "Your message is kept.");
    }

    #[test]
    fn what_does_not_fit_is_said_in_tokens() {
        let error = pack(&PackError::TooLarge {
            needed: 5000,
            limit: 4096,
            largest: correx_context::SourceType::Message,
            largest_tokens: 4500,
        });
        assert_eq!(error.code, ErrorCode::InputTooLong);
        assert!(error.message.contains("904 tokens too long"), "{}", error.message);
        assert!(error.kept.is_some() && error.hint.is_some());
    }
}
