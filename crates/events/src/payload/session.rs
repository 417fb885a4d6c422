//! Facts about a session as a whole.

use serde::{Deserialize, Serialize};

use crate::BlobHash;

/// A session came into being.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCreated {
    /// For people; can be changed outside the log.
    pub title: String,
    /// The workflow it can run; `None` for a plain chat.
    pub workflow: Option<WorkflowRef>,
}

/// Which workflow file, exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRef {
    /// The workflow's own name.
    pub name: String,
    /// Its source text, in the blob store.
    pub source: BlobHash,
}

/// What the run reads, as it was at the start: files change later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputsCaptured {
    /// One per declared input, in declaration order.
    pub inputs: Vec<CapturedInput>,
}

/// One input's content and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedInput {
    /// The name by which stages refer to it.
    pub name: String,
    /// Text typed in, a file, a folder.
    pub kind: InputKind,
    /// The path it was read from, for people.
    pub path: Option<String>,
    /// The content, in the blob store.
    pub hash: BlobHash,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Where an input's text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// Given as text.
    Text,
    /// Read from one file.
    File,
    /// Read from the files of a folder.
    Folder,
    /// One of the texts that the workflow names.
    Choice,
    /// A number, in decimal digits.
    Number,
}
