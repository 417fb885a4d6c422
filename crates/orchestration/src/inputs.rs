//! Reading what a run works on: text as given, a file, a folder's files.
//!
//! The one place of this crate that touches the file system; [`read`] blocks.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use correx_events::InputKind;
use thiserror::Error;

use crate::{InputSpec, Need};

/// The largest input in bytes, a folder's files together.
pub const MAX_INPUT_BYTES: u64 = 20 * 1024 * 1024;
/// Folders inside folders that are looked into.
const MAX_DEPTH: usize = 8;

/// Where an input's text is to come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenInput {
    /// The text itself.
    Text(String),
    /// A file or a folder.
    Path(PathBuf),
}

/// An input as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputText {
    /// The declared name.
    pub name: String,
    /// Where it came from.
    pub kind: InputKind,
    /// The path it was read from.
    pub path: Option<String>,
    /// Its text.
    pub text: String,
    /// A folder's files that could not be read, and why. They are named in the text too.
    pub not_read: Vec<String>,
}

/// Why inputs could not be read: every problem at once.
#[derive(Debug, PartialEq, Eq)]
pub struct InputErrors(pub Vec<InputError>);

impl std::fmt::Display for InputErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for InputErrors {}

/// Why an input could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InputError {
    /// It was not given.
    #[error("the input \"{name}\" is missing; give it {what}")]
    NotGiven {
        /// Its name.
        name: String,
        /// What it takes.
        what: &'static str,
    },
    /// The workflow has no such input.
    #[error("the workflow has no input \"{name}\"; it has: {known}")]
    Undeclared {
        /// The name that was given.
        name: String,
        /// The declared names.
        known: String,
    },
    /// A file where a folder is wanted, or the other way round, or a text in place of a folder.
    #[error("the input \"{name}\" takes {what}, and {found} was given")]
    WrongKind {
        /// Its name.
        name: String,
        /// What it takes.
        what: &'static str,
        /// What was given.
        found: String,
    },
    /// Nothing at that path.
    #[error("the input \"{name}\" could not be read: there is no {path}; check the path")]
    Missing {
        /// Its name.
        name: String,
        /// The path.
        path: String,
    },
    /// The system refused.
    #[error("the input \"{name}\" could not be read from {path}: {message}")]
    Unreadable {
        /// Its name.
        name: String,
        /// The path.
        path: String,
        /// What the system said.
        message: String,
    },
    /// Nothing in it but white space.
    #[error("the input \"{name}\" is empty ({from}); give it some text")]
    Empty {
        /// Its name.
        name: String,
        /// Where it came from.
        from: String,
    },
    /// Not text.
    #[error(
        "the input \"{name}\" ({from}) is not UTF-8 text: {what} at byte {offset}; save it as plain text (UTF-8) and try again"
    )]
    NotText {
        /// Its name.
        name: String,
        /// Where it came from.
        from: String,
        /// What was found.
        what: &'static str,
        /// Where, in bytes from 0.
        offset: usize,
    },
    /// More than [`MAX_INPUT_BYTES`].
    #[error(
        "the input \"{name}\" ({from}) has {bytes} bytes; the most is {limit}; give a part of it"
    )]
    TooLarge {
        /// Its name.
        name: String,
        /// Where it came from.
        from: String,
        /// Its size, or a lower bound of it.
        bytes: u64,
        /// The most.
        limit: u64,
    },
}

/// Reads every input that `specs` declare. An optional one that is not given is its default or an
/// empty text. Blocks on the file system.
pub fn read(
    specs: &[InputSpec],
    given: &BTreeMap<String, GivenInput>,
) -> Result<Vec<InputText>, InputErrors> {
    let mut errors: Vec<InputError> = given
        .keys()
        .filter(|name| !specs.iter().any(|spec| spec.name == **name))
        .map(|name| {
            let known: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            InputError::Undeclared { name: name.clone(), known }
        })
        .collect();
    let mut texts = Vec::new();
    for spec in specs {
        match read_one(spec, given.get(&spec.name)) {
            Ok(text) => texts.push(text),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(texts) } else { Err(InputErrors(errors)) }
}

fn read_one(spec: &InputSpec, given: Option<&GivenInput>) -> Result<InputText, InputError> {
    let name = spec.name.clone();
    let input = |kind, path: Option<String>, text: String, not_read| InputText {
        name: name.clone(),
        kind,
        path,
        text,
        not_read,
    };
    match given {
        None => match (&spec.default, spec.need) {
            (Some(default), _) => Ok(input(InputKind::Text, None, default.clone(), Vec::new())),
            (None, Need::Optional) => Ok(input(InputKind::Text, None, String::new(), Vec::new())),
            (None, Need::Required) => Err(InputError::NotGiven { name, what: wanted(spec.kind) }),
        },
        Some(GivenInput::Text(text)) => {
            if spec.kind == InputKind::Folder {
                let found = "a text".to_owned();
                return Err(InputError::WrongKind { name, what: wanted(spec.kind), found });
            }
            let bytes = text.as_bytes().to_vec();
            let text = text_of(spec, "given as text", bytes)?;
            Ok(input(InputKind::Text, None, text, Vec::new()))
        }
        Some(GivenInput::Path(path)) => {
            let shown = path.display().to_string();
            let metadata = fs::metadata(path).map_err(|error| unreadable(&name, &shown, &error))?;
            match (spec.kind, metadata.is_dir(), metadata.is_file()) {
                (InputKind::Folder, true, _) => {
                    let (text, not_read) = read_folder(spec, path)?;
                    Ok(input(InputKind::Folder, Some(shown), text, not_read))
                }
                (InputKind::Text | InputKind::File, _, true) => {
                    if metadata.len() > MAX_INPUT_BYTES {
                        return Err(too_large(spec, &shown, metadata.len()));
                    }
                    let bytes =
                        fs::read(path).map_err(|error| unreadable(&name, &shown, &error))?;
                    let text = text_of(spec, &shown, bytes)?;
                    Ok(input(InputKind::File, Some(shown), text, Vec::new()))
                }
                (_, is_folder, is_file) => {
                    let found = match (is_folder, is_file) {
                        (true, _) => format!("the folder {shown}"),
                        (_, true) => format!("the file {shown}"),
                        _ => format!("{shown}, which is neither file nor folder,"),
                    };
                    Err(InputError::WrongKind { name, what: wanted(spec.kind), found })
                }
            }
        }
    }
}

fn wanted(kind: InputKind) -> &'static str {
    match kind {
        InputKind::Text => "a text or a text file",
        InputKind::File => "a text file",
        InputKind::Folder => "a folder of text files",
    }
}

fn unreadable(name: &str, path: &str, error: &io::Error) -> InputError {
    let (name, path) = (name.to_owned(), path.to_owned());
    match error.kind() {
        io::ErrorKind::NotFound => InputError::Missing { name, path },
        _ => InputError::Unreadable { name, path, message: error.to_string() },
    }
}

fn too_large(spec: &InputSpec, from: &str, bytes: u64) -> InputError {
    let (name, from) = (spec.name.clone(), from.to_owned());
    InputError::TooLarge { name, from, bytes, limit: MAX_INPUT_BYTES }
}

/// The text in `bytes`, without a byte-order mark.
fn text_of(spec: &InputSpec, from: &str, bytes: Vec<u8>) -> Result<String, InputError> {
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(too_large(spec, from, bytes.len() as u64));
    }
    let text = decode(bytes).map_err(|(what, offset)| InputError::NotText {
        name: spec.name.clone(),
        from: from.to_owned(),
        what,
        offset,
    })?;
    if text.trim().is_empty() && spec.need == Need::Required {
        return Err(InputError::Empty { name: spec.name.clone(), from: from.to_owned() });
    }
    Ok(text)
}

fn decode(bytes: Vec<u8>) -> Result<String, (&'static str, usize)> {
    if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
        return Err(("a NUL byte", offset));
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| ("a byte that is not UTF-8", error.utf8_error().valid_up_to()))?;
    Ok(text.strip_prefix('\u{FEFF}').map(str::to_owned).unwrap_or(text))
}

/// A folder's text files under headings, sorted by name, and what could not be read.
fn read_folder(spec: &InputSpec, folder: &Path) -> Result<(String, Vec<String>), InputError> {
    let shown = folder.display().to_string();
    let mut files = Vec::new();
    let mut not_read = Vec::new();
    list(folder, Path::new(""), 0, &mut files, &mut not_read)
        .map_err(|error| unreadable(&spec.name, &shown, &error))?;
    files.sort();
    let mut text = String::new();
    let mut total = 0_u64;
    for file in files {
        let name = file.display().to_string();
        let path = folder.join(&file);
        total += fs::metadata(&path).map(|metadata| metadata.len()).unwrap_or(0);
        if total > MAX_INPUT_BYTES {
            return Err(too_large(spec, &shown, total));
        }
        let content = fs::read(&path).map_err(|error| error.to_string()).and_then(|bytes| {
            decode(bytes).map_err(|(what, offset)| format!("not text: {what} at byte {offset}"))
        });
        match content {
            Ok(content) => text.push_str(&format!("# {name}\n\n{}\n\n", content.trim_end())),
            Err(why) => not_read.push(format!("{name} ({why})")),
        }
    }
    if text.is_empty() {
        let from = if not_read.is_empty() {
            format!("no files in {shown}")
        } else {
            format!("no text files in {shown}; not read: {}", not_read.join(", "))
        };
        return Err(InputError::Empty { name: spec.name.clone(), from });
    }
    not_read.sort();
    if !not_read.is_empty() {
        text.push_str(&format!("# Files that could not be read\n\n- {}\n", not_read.join("\n- ")));
    }
    Ok((text, not_read))
}

/// Collects the files under `folder`, relative to it. Hidden files are left alone; links are named
/// but not followed, so that the folder is all that is read.
fn list(
    folder: &Path,
    inside: &Path,
    depth: usize,
    files: &mut Vec<PathBuf>,
    not_read: &mut Vec<String>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(inside))? {
        let entry = entry?;
        let path = inside.join(entry.file_name());
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_file() {
            files.push(path);
        } else if kind.is_dir() && depth < MAX_DEPTH {
            if let Err(error) = list(folder, &path, depth + 1, files, not_read) {
                not_read.push(format!("{} ({error})", path.display()));
            }
        } else {
            let why = if kind.is_symlink() {
                "a link"
            } else if kind.is_dir() {
                "too deep"
            } else {
                "not a file"
            };
            not_read.push(format!("{} ({why})", path.display()));
        }
    }
    Ok(())
}
