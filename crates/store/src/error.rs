//! What can go wrong, by operation.

use std::io;
use std::path::{Path, PathBuf};

use correx_events::{AppendError, BlobError, ReadError, SessionId};
use correx_router::TranscriptError;
use thiserror::Error;

/// Why a data directory could not be opened. Whatever the reason, the file in it is left as it is.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The directory cannot be made, or nothing can be written into it.
    #[error(
        "nothing can be written into the data directory {dir} ({source}). Nothing was changed. \
         Make it writable, or choose another data directory."
    )]
    NotWritable {
        /// The data directory.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something that is not a folder has its name, or a part of it.
    #[error(
        "the data directory {dir} is not a folder: a file is in its place, or on the way to it. \
         The file is left as it is. Move it away, or choose another data directory."
    )]
    NotAFolder {
        /// The data directory.
        dir: PathBuf,
    },
    /// No space is left.
    #[error(
        "the disk that holds the data directory {dir} is full. What was there is kept. \
         Free some space and start again."
    )]
    DiskFull {
        /// The data directory.
        dir: PathBuf,
    },
    /// Another process, or another handle of this one, has it open.
    #[error(
        "the data directory {dir} is in use by another Correx. \
         Use that one, or close it and start again."
    )]
    AlreadyOpen {
        /// The data directory.
        dir: PathBuf,
    },
    /// A newer Correx wrote it.
    #[error(
        "{path} has format {found}; this Correx knows formats up to {known}. The file is left as \
         it is. Start the newer Correx that wrote it, or choose another data directory."
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u64,
        /// The newest version that this program reads.
        known: u64,
    },
    /// It is not a store, or no longer one.
    #[error(
        "{path} cannot be read as a Correx store ({detail}). The file is left as it is. \
         Put a backup in its place, or move it away to begin with an empty store."
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The system refused something else.
    #[error("{path} could not be opened ({source}). The file is left as it is.")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl OpenError {
    /// Sorts an I/O error met at `path` inside the data directory `dir`.
    pub(crate) fn from_io(dir: &Path, path: &Path, source: io::Error) -> Self {
        use io::ErrorKind as Kind;
        match source.kind() {
            Kind::StorageFull | Kind::QuotaExceeded => Self::DiskFull { dir: dir.to_owned() },
            Kind::NotADirectory | Kind::AlreadyExists => Self::NotAFolder { dir: dir.to_owned() },
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem | Kind::NotFound => {
                Self::NotWritable { dir: dir.to_owned(), source }
            }
            Kind::InvalidData | Kind::UnexpectedEof => {
                Self::Damaged { path: path.to_owned(), detail: source.to_string() }
            }
            _ => Self::Io { path: path.to_owned(), source },
        }
    }

    /// Sorts an error of the database library.
    pub(crate) fn from_redb(dir: &Path, path: &Path, error: redb::Error) -> Self {
        match error {
            redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => {
                Self::AlreadyOpen { dir: dir.to_owned() }
            }
            redb::Error::Io(source) => Self::from_io(dir, path, source),
            other => Self::Damaged { path: path.to_owned(), detail: other.to_string() },
        }
    }
}

/// Why the catalogue of sessions could not be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CatalogueError {
    /// There is no such session.
    #[error("there is no session {0}")]
    UnknownSession(SessionId),
    /// It was deleted, and stays so.
    #[error("the session {0} was deleted")]
    Deleted(SessionId),
    /// The store failed.
    #[error("the store could not be read or written: {0}")]
    Storage(String),
}

/// The database or the disk below it failed. The text is for people.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub(crate) struct StorageFailure(pub(crate) String);

impl StorageFailure {
    /// For what is not an error of the database library.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl From<redb::Error> for StorageFailure {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
                ) =>
            {
                Self::new("the disk is full, so nothing was changed; free some space and try again")
            }
            redb::Error::ValueTooLarge(bytes) => {
                Self(format!("{bytes} bytes are more than one record can hold"))
            }
            other => Self(other.to_string()),
        }
    }
}

/// Why a write did not happen.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum WriteError {
    /// The session is at another event than the caller knew.
    #[error("the session is at event {actual}, not {expected}")]
    Conflict { expected: u64, actual: u64 },
    /// The session was deleted.
    #[error("the session was deleted")]
    Deleted(SessionId),
    /// There is no such session.
    #[error("there is no such session")]
    UnknownSession(SessionId),
    /// What was to be written is not acceptable.
    #[error("{0}")]
    Refused(String),
    /// The store failed; the transaction must not be used any further.
    #[error(transparent)]
    Storage(#[from] StorageFailure),
}

macro_rules! from_redb {
    ($($error:ident),*) => {$(
        impl From<redb::$error> for StorageFailure {
            fn from(error: redb::$error) -> Self {
                redb::Error::from(error).into()
            }
        }

        impl From<redb::$error> for WriteError {
            fn from(error: redb::$error) -> Self {
                Self::Storage(error.into())
            }
        }
    )*};
}
from_redb!(StorageError, TableError, TransactionError, CommitError, SetDurabilityError);

impl From<WriteError> for AppendError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Conflict { expected, actual } => Self::VersionConflict { expected, actual },
            other => Self::Storage(other.to_string()),
        }
    }
}

impl From<WriteError> for BlobError {
    fn from(error: WriteError) -> Self {
        Self(error.to_string())
    }
}

impl From<WriteError> for TranscriptError {
    fn from(error: WriteError) -> Self {
        Self(error.to_string())
    }
}

impl From<WriteError> for CatalogueError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Deleted(session) => Self::Deleted(session),
            WriteError::UnknownSession(session) => Self::UnknownSession(session),
            other => Self::Storage(other.to_string()),
        }
    }
}

impl From<StorageFailure> for ReadError {
    fn from(failure: StorageFailure) -> Self {
        Self(failure.0)
    }
}

impl From<StorageFailure> for BlobError {
    fn from(failure: StorageFailure) -> Self {
        Self(failure.0)
    }
}

impl From<StorageFailure> for TranscriptError {
    fn from(failure: StorageFailure) -> Self {
        Self(failure.0)
    }
}

impl From<StorageFailure> for CatalogueError {
    fn from(failure: StorageFailure) -> Self {
        Self::Storage(failure.0)
    }
}
