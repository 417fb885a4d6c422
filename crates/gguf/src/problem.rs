//! What can be wrong with a model file.

use std::borrow::Cow;
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
        "this is a web page, not a model. Choose another file; if it was downloaded as a model, the site answered with a page in its place"
    )]
    WebPage,
    /// It is a short text or a JSON object, as servers send in place of a file.
    #[error("this is a text, not a model (it begins with `{0}`). Choose another file")]
    ErrorText(String),
    /// It is a pointer that a large-file store left in place of the file.
    #[error(
        "this is only a Git LFS pointer to a model. Fetch the file itself (`git lfs pull`) or download it"
    )]
    LargeFilePointer,
    /// It is a file of another kind.
    #[error("this is {0}, not a GGUF model. Choose a .gguf file")]
    OtherFormat(&'static str),
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
        "this is GGUF version {0}; Correx reads versions 1 to 3. Get the model in one of these, or a newer Correx"
    )]
    Version(u32),
    /// `general.alignment` is not a power of two from 8 on.
    #[error("the file is damaged: its alignment is `{0}`. Download the model again")]
    Alignment(String),
    /// A tensor has a type that is not known, so that its size is not known either.
    #[error(
        "the weights `{tensor}` are stored in a type that Correx does not know (number {number}). Choose a file in Q4_K_M, Q8_0 or another usual type, or get a newer Correx"
    )]
    TensorType {
        /// The tensor's name.
        tensor: String,
        /// The type's number.
        number: u32,
    },
    /// It is one of several files of a model, and others are not there.
    #[error("this model has {count} files, and of these {} missing: {}. Put them into the same folder", are(missing.len()), listed(missing))]
    MissingParts {
        /// How many files the model has.
        count: usize,
        /// The names of those that are missing.
        missing: Vec<String>,
    },
    /// It is one of several files of a model, and not named so that the others can be found.
    #[error(
        "this is file {number} of the {count} files of a model, but it is not named so. Give all of them their names back (this one: {expected})"
    )]
    PartName {
        /// Which file it is, from 1 on.
        number: usize,
        /// How many files the model has.
        count: usize,
        /// How it should be named.
        expected: String,
    },
    /// It is named like a file of the same model, but is none.
    #[error("the files of this model do not belong together: {0}. Download all of them again")]
    OtherSet(String),
    /// The header contradicts itself.
    #[error("the file is damaged: {0}. Download the model again")]
    Malformed(String),
}

impl Problem {
    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Problem::Malformed(what.into())
    }

    pub(crate) fn from_io(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Problem::Missing,
            std::io::ErrorKind::IsADirectory => Problem::NotAFile,
            _ => Problem::Unreadable(error),
        }
    }
}

fn are(count: usize) -> String {
    if count == 1 { "one is".to_owned() } else { format!("{count} are") }
}

/// The first names of a list.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN {
        text += &format!(" and {} more", names.len() - SHOWN);
    }
    text
}

/// A text from a file, short enough and harmless in a message.
pub fn shown(text: &str) -> Cow<'_, str> {
    shown_within(text, 80)
}

/// At most `longest` characters of a text from a file, on one line and harmless on a terminal.
pub(crate) fn shown_within(text: &str, longest: usize) -> Cow<'_, str> {
    if text.len() <= longest && !text.contains(char::is_control) {
        return text.into();
    }
    let mut rest = text.chars();
    let mut short: String =
        rest.by_ref().take(longest).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if rest.next().is_some() {
        short.push('…');
    }
    short.into()
}

/// Looks at the first bytes, leaves `source` behind the version number, and returns that.
pub(crate) fn recognize(source: &mut (impl Read + Seek), size: u64) -> Result<u32, Problem> {
    let mut start = Vec::new();
    source.by_ref().take(512).read_to_end(&mut start).map_err(Problem::Unreadable)?;
    if start.is_empty() {
        return Err(Problem::Empty);
    }
    if !start.starts_with(b"GGUF") {
        return Err(if b"GGUF".starts_with(&start) {
            Problem::Truncated { size, needed: 24 }
        } else {
            other_format(&start, size)
        });
    }
    let Some(version) = start.get(4..8) else {
        return Err(Problem::Truncated { size, needed: 24 });
    };
    let version = u32::from_le_bytes([version[0], version[1], version[2], version[3]]);
    match version {
        1..=3 => {}
        swapped if matches!(swapped.swap_bytes(), 1..=3) => return Err(Problem::BigEndian),
        other => return Err(Problem::Version(other)),
    }
    source.seek(SeekFrom::Start(8)).map_err(Problem::Unreadable)?;
    Ok(version)
}

fn other_format(start: &[u8], size: u64) -> Problem {
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let lower = text.to_lowercase();
    let begins = |tags: &[&str]| tags.iter().any(|tag| lower.starts_with(tag));
    if begins(&["<!doctype", "<html", "<head", "<?xml", "<body", "<!--"]) {
        Problem::WebPage
    } else if begins(&["version https://git-lfs"]) {
        Problem::LargeFilePointer
    } else if [b"lmgg", b"fmgg", b"tjgg", b"algg"].iter().any(|magic| start.starts_with(*magic)) {
        Problem::OldFormat
    } else if start.starts_with(b"PK\x03\x04") {
        Problem::OtherFormat("an archive or a PyTorch checkpoint")
    } else if start.get(8) == Some(&b'{') && start.get(5..8) == Some(&[0; 3]) {
        Problem::OtherFormat("a safetensors file")
    } else if start.starts_with(&[0x1f, 0x8b]) || start.starts_with(b"\x28\xb5\x2f\xfd") {
        Problem::OtherFormat("a compressed file")
    } else if size <= 1 << 16 && readable(start) {
        Problem::ErrorText(shown(text.trim_end()).into_owned())
    } else {
        Problem::NotGguf
    }
}

/// Whether a file begins as a text does. A character may be cut off at the end.
fn readable(start: &[u8]) -> bool {
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) if error.error_len().is_some() => return false,
        Err(error) => std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default(),
    };
    !text.contains(|c: char| c.is_control() && !c.is_whitespace())
}
