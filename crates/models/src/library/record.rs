//! What is known of one model.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::hub::HubFile;

/// A model that was downloaded or imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// Its stable name: the catalogue's where it is in there.
    pub id: String,
    /// What people read.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Its files, in order; the first is the one to open.
    pub files: Vec<InstalledFile>,
}

/// Where a model comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// It was downloaded.
    Hub {
        /// From where.
        file: HubFile,
        /// What the revision stood for then.
        commit: String,
    },
    /// It lies where somebody else put it.
    Imported,
}

/// One file, as it was when it was entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Its size.
    pub size_bytes: u64,
    /// SHA-256 of its bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// The name that the hub gave its content.
    #[serde(default)]
    pub etag: Option<String>,
    /// When it was last changed, in nanoseconds since 1970. Filled in when it is entered.
    #[serde(default)]
    pub modified: Option<i128>,
    /// Whether Correx put it there, so that Correx may delete it.
    #[serde(default)]
    pub ours: bool,
}

/// How a file compares with its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// It is there, of the recorded size and time.
    AsRecorded,
    /// It is not there.
    Gone(PathBuf),
    /// It is there with another size or time: its bytes have to be summed up to know more.
    Touched(PathBuf),
    /// Its bytes are others.
    Changed(PathBuf),
}

impl Installed {
    /// The file to open.
    pub fn path(&self) -> Option<&Path> {
        self.files.first().map(|file| file.path.as_path())
    }

    /// Bytes of all its files.
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }

    /// How its files compare with what was recorded, without reading them: the worst of them.
    pub fn glance(&self) -> FileState {
        let states = self.files.iter().map(InstalledFile::glance);
        states
            .into_iter()
            .find(|state| *state != FileState::AsRecorded)
            .unwrap_or(FileState::AsRecorded)
    }
}

impl InstalledFile {
    pub(super) fn glance(&self) -> FileState {
        match self.path.metadata() {
            Ok(about) if about.is_file() => {
                let same = about.len() == self.size_bytes
                    && self.modified.is_none_or(|then| modified(&self.path) == Some(then));
                match same {
                    true => FileState::AsRecorded,
                    false => FileState::Touched(self.path.clone()),
                }
            }
            _ => FileState::Gone(self.path.clone()),
        }
    }
}

/// When a file was last changed, in nanoseconds since 1970.
pub(super) fn modified(path: &Path) -> Option<i128> {
    let at = path.metadata().ok()?.modified().ok()?;
    Some(match at.duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).ok()?,
        Err(before) => -i128::try_from(before.duration().as_nanos()).ok()?,
    })
}
