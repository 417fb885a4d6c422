//! Reading what a policy let through.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::OpenOptions;
use thiserror::Error;

use crate::folder::{self, FolderError, Missing};
use crate::paths::{Kind, RealPath};

/// A file or folder that may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadTarget {
    folder: PathBuf,
    name: Option<OsString>,
    path: PathBuf,
    kind: Kind,
}

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// Its folder is not what was allowed.
    #[error("{} was not read: {error}", .path.display())]
    Folder {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: FolderError,
    },
    /// It is a folder, or has become something else.
    #[error("{} was not read: it is no file", .0.display())]
    NotAFile(PathBuf),
    /// It is larger than what was asked for.
    #[error(
        "{} was not read: it is larger than {limit} bytes; use a smaller file or split it",
        .path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most bytes.
        limit: u64,
    },
    /// The system would not.
    #[error("{} was not read: {reason}", .path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

impl ReadTarget {
    pub(crate) fn new(real: &RealPath) -> Self {
        let (folder, name) = match (real.kind, real.path.parent(), real.path.file_name()) {
            (Kind::File, Some(folder), Some(name)) => (folder.to_owned(), Some(name.to_owned())),
            _ => (real.path.clone(), None),
        };
        Self { folder, name, path: real.path.clone(), kind: real.kind }
    }

    /// Its real path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a file or a folder.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The bytes of the file, at most `limit` of them.
    ///
    /// Errors when it is a folder, too large, or something else than when it was allowed.
    pub fn read(&self, limit: u64) -> Result<Vec<u8>, ReadError> {
        let path = &self.path;
        let system =
            |error: io::Error| ReadError::System { path: path.clone(), reason: error.to_string() };
        let Some(name) = &self.name else { return Err(ReadError::NotAFile(path.clone())) };
        let folder = folder::open(&self.folder, Missing::Refuse)
            .map_err(|error| ReadError::Folder { path: path.clone(), error })?;
        // What is no file must not be opened: a pipe would wait for its other end.
        if !folder.symlink_metadata(name).map_err(system)?.is_file() {
            return Err(ReadError::NotAFile(path.clone()));
        }
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No);
        let file = folder.open_with(name, &options).map_err(system)?;
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(system)?;
        if bytes.len() as u64 > limit {
            return Err(ReadError::TooLarge { path: path.clone(), limit });
        }
        Ok(bytes)
    }
}
