//! Why something about models was not done, as people meet it.

use correx_models::DownloadError;
use correx_models::library::{ImportError, LibraryError};
use correx_protocol::{ErrorCode, ProtocolError};

/// Why a download stopped; `kept` is what is here of it.
pub(crate) fn download(error: &DownloadError, kept: Option<String>) -> ProtocolError {
    let code = match error {
        DownloadError::Offline => ErrorCode::WrongState,
        DownloadError::Unknown(_)
        | DownloadError::NotFound(_)
        | DownloadError::Name(_)
        | DownloadError::NotOnHub(_) => ErrorCode::NotFound,
        DownloadError::Unsuitable { .. } | DownloadError::NotAModel { .. } => ErrorCode::Model,
        DownloadError::DiskFull { .. } | DownloadError::File { .. } => ErrorCode::Storage,
        DownloadError::GaveUp { last, .. } => return gave_up(error, last, kept),
        _ => ErrorCode::Network,
    };
    with_kept(ProtocolError::new(code, error.to_string()), kept).hint(error.hint())
}

fn gave_up(error: &DownloadError, last: &DownloadError, kept: Option<String>) -> ProtocolError {
    ProtocolError { message: error.to_string(), ..download(last, kept) }
}

fn with_kept(error: ProtocolError, kept: Option<String>) -> ProtocolError {
    match kept {
        Some(kept) => error.kept(format!("{kept}.")),
        None => error.kept("Nothing was kept."),
    }
}

/// Why a file was not imported.
pub(crate) fn import(error: &ImportError) -> ProtocolError {
    let code = match error {
        _ if error.is_missing() => ErrorCode::NotFound,
        ImportError::NoModel(_) | ImportError::Unsuitable { .. } => ErrorCode::Model,
        ImportError::Stopped | ImportError::Named { .. } => ErrorCode::WrongState,
        ImportError::Library(_) => ErrorCode::Storage,
    };
    ProtocolError::new(code, error.to_string()).kept("Nothing was changed.")
}

/// Why the library could not be used.
pub(crate) fn library(error: &LibraryError) -> ProtocolError {
    match error {
        LibraryError::Unknown(_) => ProtocolError::new(ErrorCode::NotFound, error.to_string())
            .hint("`correx model list` names what is here."),
        LibraryError::File { .. } => ProtocolError::new(ErrorCode::Storage, error.to_string())
            .hint("Check the folder's permissions and the disk, then try again."),
    }
}
