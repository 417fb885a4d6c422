//! The models of this person, as front ends see them.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::ProtocolError;

/// Which models there are, as far as Correx knows without looking through the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct LibraryView {
    /// The known models, by size.
    pub catalogue: Vec<KnownModel>,
    /// What was downloaded or imported.
    pub installed: Vec<InstalledModel>,
    /// Downloads that go on, wait to be gone on with, or ended since the program started.
    pub downloads: Vec<DownloadView>,
    /// Parts of downloads that nobody can go on with: they can only be deleted.
    pub leftovers: Vec<LeftoverView>,
}

/// A model of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct KnownModel {
    /// Its stable name.
    pub id: String,
    /// For people.
    pub name: String,
    /// `tiny`, `small`, `medium`, `large` or `larger`.
    pub class: String,
    /// The architecture that its file names.
    pub architecture: String,
    /// The licence of its weights.
    pub licence: String,
    /// Where it can be read, where its name does not say.
    pub licence_url: Option<String>,
    /// Tokens that it was trained to hold.
    pub context_length: u32,
    /// One line that helps to choose.
    pub good_for: String,
    /// The file's size in bytes, exactly or about.
    #[ts(type = "number | null")]
    pub bytes: Option<u64>,
    /// Memory that it takes, about, in bytes.
    #[ts(type = "number | null")]
    pub memory: Option<u64>,
    /// Where it comes from: what `start_download` takes, or the name of a package.
    pub source: String,
    /// Whether it can be downloaded.
    pub downloadable: bool,
    /// Its file, when it is on this machine.
    pub path: Option<String>,
}

/// A model that was downloaded or imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct InstalledModel {
    /// Its stable name.
    pub id: String,
    /// For people.
    pub name: String,
    /// The file to open.
    pub path: String,
    /// Bytes of all its files.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Where it comes from.
    pub origin: ModelOrigin,
    /// Whether its files are as they were.
    pub state: ModelFileState,
    /// What its header says; absent when it cannot be read.
    pub about: Option<ModelAbout>,
}

/// Where an installed model comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ModelOrigin {
    /// It was downloaded.
    Hub {
        /// From where.
        source: String,
        /// The commit.
        commit: String,
        /// SHA-256 of its first file.
        sha256: String,
    },
    /// It lies where somebody else put it.
    Imported,
}

/// Whether a model's files are as they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ModelFileState {
    /// They are.
    AsRecorded,
    /// One is not there.
    Gone,
    /// One has another size or time than it had.
    Touched,
}

/// What a header says of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ModelAbout {
    /// For example `llama`.
    pub architecture: Option<String>,
    /// For example `Q4_1`.
    pub quantization: Option<String>,
    /// The number of weights.
    #[ts(type = "number")]
    pub parameters: u64,
    /// Tokens that it was trained to hold.
    #[ts(type = "number | null")]
    pub context_length: Option<u64>,
}

/// A model that another program holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct FoundModel {
    /// The program's name.
    pub holder: String,
    /// Its name there.
    pub name: String,
    /// The file to open.
    pub path: String,
    /// Bytes of all its files.
    #[ts(type = "number")]
    pub bytes: u64,
    /// What its header says.
    pub about: Option<ModelAbout>,
    /// Why it cannot be used.
    pub problem: Option<String>,
    /// The id that it has here, when it is installed or imported already.
    pub installed: Option<String>,
}

/// A download, as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct DownloadView {
    /// Its name.
    pub id: String,
    /// The model in the catalogue, if it is one of those.
    pub model: Option<String>,
    /// The model's name for people.
    pub name: String,
    /// What it is doing.
    pub phase: DownloadPhase,
    /// Bytes that are here.
    #[ts(type = "number")]
    pub done: u64,
    /// Bytes in all, once that is known.
    #[ts(type = "number | null")]
    pub total: Option<u64>,
    /// Bytes per second over the last seconds.
    #[ts(type = "number | null")]
    pub speed: Option<u64>,
    /// Seconds that the rest takes at this speed.
    #[ts(type = "number | null")]
    pub remaining_seconds: Option<u64>,
    /// Something that a person should know, and that is no error.
    pub notice: Option<String>,
}

/// What a download is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DownloadPhase {
    /// It asks about the file.
    Asking,
    /// Another program downloads the same file; its end is waited for.
    Waiting,
    /// What is here already is read again.
    Rereading,
    /// Bytes come.
    Receiving,
    /// A try failed; the next comes after a pause.
    Retrying {
        /// Why.
        error: ProtocolError,
        /// How many tries have failed.
        failed: u32,
        /// How many may.
        of: u32,
        /// The pause, in seconds.
        wait_seconds: u32,
    },
    /// The whole file is compared with what was announced.
    Verifying,
    /// A person stopped it; what is here is kept.
    Paused,
    /// It is here.
    Done {
        /// Its id in the library.
        installed: String,
        /// The file to open.
        path: String,
    },
    /// It stopped by itself.
    Failed {
        /// Why, what is kept, what to do.
        error: ProtocolError,
    },
}

impl DownloadView {
    /// Whether somebody is at work on it.
    pub fn is_active(&self) -> bool {
        !matches!(
            self.phase,
            DownloadPhase::Paused | DownloadPhase::Done { .. } | DownloadPhase::Failed { .. }
        )
    }
}

/// What happens to what is here of a download that is given up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum PartFate {
    /// It stays; the download can be resumed.
    #[default]
    Keep,
    /// It is deleted.
    Delete,
}

/// A part of a download that nobody can go on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct LeftoverView {
    /// The file.
    pub path: String,
    /// Bytes that it takes.
    #[ts(type = "number")]
    pub bytes: u64,
}

/// What deleting a model would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct DeletionView {
    /// Which one.
    pub id: String,
    /// For people.
    pub name: String,
    /// Files that are deleted.
    pub deletes: Vec<String>,
    /// Bytes that become free.
    #[ts(type = "number")]
    pub frees: u64,
    /// What stays, and why.
    pub stays: Vec<String>,
    /// What uses it.
    pub used_by: Vec<String>,
}
