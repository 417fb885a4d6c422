//! What can be wrong with a model file.

use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use thiserror::Error;

/// A file that was refused, and why.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct InspectError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a file. The text says what happened and what to do.
#[derive(Debug, Error)]
pub enum Problem {
    /// There is nothing at the path.
    #[error("there is no such file. Check the path, or download the model (`cargo xtask setup`)")]
    Missing,
    /// It is a folder or something else that cannot be read as a file.
    #[error("this is not a file. Choose the .gguf file itself")]
    NotAFile,
    /// It may not be read.
    #[error("it could not be read ({0}). Check its permissions and the disk")]
    Unreadable(std::io::Error),
    /// It has no bytes.
    #[error("the file is empty. Download the model again")]
    Empty,
    /// It ends before what it declares.
    #[error(
        "the file is incomplete: it has {size} bytes and needs at least {needed}. Download the model again"
    )]
    Truncated {
        /// Bytes that are there.
        size: u64,
        /// Bytes that the header speaks of, as far as it could be read.
        needed: u64,
    },
    /// It is a web page.
    #[error(
        "this is a web page, not a model: the download got an error page or needs a login. Delete it and download the model again"
    )]
    WebPage,
    /// It is a pointer that a large-file store left in place of the file.
    #[error(
        "this is only a Git LFS pointer to a model. Fetch the file itself (`git lfs pull`) or download it"
    )]
    LargeFilePointer,
    /// It is something else.
    #[error("this is not a GGUF model. Choose a .gguf file")]
    NotGguf,
    /// It is a predecessor of GGUF.
    #[error("this is a model in an old format that came before GGUF. Get it as a .gguf file")]
    OldFormat,
    /// Its numbers are stored big end first.
    #[error(
        "this GGUF file was made for big-endian machines. Get the usual (little-endian) file of the model"
    )]
    BigEndian,
    /// Its version is not one that Correx reads.
    #[error(
        "this is GGUF version {0}; Correx reads versions 2 and 3. Get a newer file of the model"
    )]
    Version(u32),
    /// `general.alignment` is not a power of two from 8 on.
    #[error("the file is damaged: its alignment is `{0}`. Download the model again")]
    Alignment(String),
    /// A tensor has a type that Correx cannot compute with.
    #[error(
        "the weights `{tensor}` are stored as {kind}, which Correx cannot run. Choose a file in Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, a K type, F16 or F32"
    )]
    TensorType {
        /// The tensor's name.
        tensor: String,
        /// The type's name or number.
        kind: String,
    },
    /// The header contradicts itself.
    #[error("the file is damaged: {0}. Download the model again")]
    Malformed(String),
}

impl Problem {
    pub(crate) fn from_io(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Problem::Missing,
            std::io::ErrorKind::IsADirectory => Problem::NotAFile,
            _ => Problem::Unreadable(error),
        }
    }
}

/// Looks at the first bytes, and leaves `source` behind the version number.
pub(crate) fn recognize(source: &mut (impl Read + Seek), size: u64) -> Result<(), Problem> {
    let mut start = Vec::new();
    source.by_ref().take(512).read_to_end(&mut start).map_err(Problem::Unreadable)?;
    if start.is_empty() {
        return Err(Problem::Empty);
    }
    if !start.starts_with(b"GGUF") {
        return Err(if b"GGUF".starts_with(&start) {
            Problem::Truncated { size, needed: 24 }
        } else {
            other_format(&start)
        });
    }
    let Some(version) = start.get(4..8) else {
        return Err(Problem::Truncated { size, needed: 24 });
    };
    let version = u32::from_le_bytes([version[0], version[1], version[2], version[3]]);
    match version {
        2 | 3 => {}
        swapped if matches!(swapped.swap_bytes(), 1..=3) => return Err(Problem::BigEndian),
        other => return Err(Problem::Version(other)),
    }
    source.seek(SeekFrom::Start(8)).map_err(Problem::Unreadable)?;
    Ok(())
}

fn other_format(start: &[u8]) -> Problem {
    let text = String::from_utf8_lossy(start).to_lowercase();
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if ["<!doctype", "<html", "<head", "<?xml", "<body", "<!--"]
        .iter()
        .any(|tag| text.starts_with(tag))
    {
        Problem::WebPage
    } else if text.starts_with("version https://git-lfs") {
        Problem::LargeFilePointer
    } else if [b"lmgg", b"fmgg", b"tjgg", b"algg"].iter().any(|magic| start.starts_with(*magic)) {
        Problem::OldFormat
    } else {
        Problem::NotGguf
    }
}
