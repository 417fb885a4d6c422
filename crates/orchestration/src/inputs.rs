//! Reading what a run works on: text as given, a file, a folder's files.
//!
//! The one place of this crate that touches the file system; [`read`] blocks.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use correx_documents::{Document, DocumentError, folder, read_document, walk};
use correx_events::InputKind;
use thiserror::Error;

use crate::gather::Gathered;
use crate::workflow::is_in;
use crate::{InputSpec, Need};

/// The largest input in bytes, a folder's files together.
pub const MAX_INPUT_BYTES: u64 = 20 * 1024 * 1024;

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
    /// What a person should know about how its files were read, such as pictures left out.
    pub notes: Vec<String>,
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
    /// A file that is no document, or damaged, or not to be opened.
    #[error("the input \"{name}\" ({from}) could not be read: {why}")]
    NotADocument {
        /// Its name.
        name: String,
        /// Where it came from.
        from: String,
        /// What is wrong with it.
        why: DocumentError,
    },
    /// None of its choices, or no number in its range.
    #[error("the input \"{name}\" takes {allowed}, and not \"{given}\"")]
    NotAllowed {
        /// Its name.
        name: String,
        /// What it takes.
        allowed: String,
        /// What was given, shortened.
        given: String,
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
    let plain = |text: String| InputText {
        name: spec.name.clone(),
        kind: InputKind::Text,
        path: None,
        text,
        notes: Vec::new(),
        not_read: Vec::new(),
    };
    match given {
        None => match (&spec.default, spec.need) {
            (Some(default), _) => Ok(plain(default.clone())),
            (None, Need::Optional) => Ok(plain(String::new())),
            (None, Need::Required) => Err(InputError::NotGiven { name, what: wanted(spec.kind) }),
        },
        Some(GivenInput::Text(text)) => {
            if spec.kind == InputKind::Folder {
                let found = "a text".to_owned();
                return Err(InputError::WrongKind { name, what: wanted(spec.kind), found });
            }
            let text = given_text(spec, text)?;
            Ok(plain(allowed(spec, text)?))
        }
        Some(GivenInput::Path(path)) => {
            let shown = path.display().to_string();
            let metadata = fs::metadata(path).map_err(|error| unreadable(&name, &shown, &error))?;
            match (spec.kind, metadata.is_dir(), metadata.is_file()) {
                (InputKind::Folder, true, _) => read_folder(spec, path),
                (InputKind::Text | InputKind::File, _, true) => {
                    read_file(spec, path, metadata.len())
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

/// A choice and a number without the space around them, if the input takes them.
fn allowed(spec: &InputSpec, text: String) -> Result<String, InputError> {
    let trimmed = text.trim();
    let (is_allowed, allowed) = match spec.kind {
        _ if trimmed.is_empty() => return Ok(text),
        InputKind::Choice => (
            spec.choices.iter().any(|one| one == trimmed),
            format!("one of: {}", spec.choices.join(", ")),
        ),
        InputKind::Number => {
            let range = match (spec.min, spec.max) {
                (Some(min), Some(max)) => format!("a number from {min} to {max}"),
                (Some(min), None) => format!("a number of at least {min}"),
                (None, Some(max)) => format!("a number of at most {max}"),
                (None, None) => "a number".to_owned(),
            };
            (is_in(trimmed, spec.min, spec.max), range)
        }
        InputKind::Text | InputKind::File | InputKind::Folder => return Ok(text),
    };
    match is_allowed {
        true => Ok(trimmed.to_owned()),
        false => Err(InputError::NotAllowed {
            name: spec.name.clone(),
            allowed,
            given: trimmed.chars().take(80).collect(),
        }),
    }
}

fn read_file(spec: &InputSpec, path: &Path, bytes: u64) -> Result<InputText, InputError> {
    let shown = path.display().to_string();
    if bytes > MAX_INPUT_BYTES {
        return Err(too_large(spec, &shown, bytes));
    }
    let bytes = fs::read(path).map_err(|error| unreadable(&spec.name, &shown, &error))?;
    // It may have grown since it was measured.
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(too_large(spec, &shown, bytes.len() as u64));
    }
    let Document { text, notes, .. } =
        read_document(&shown, bytes).map_err(|why| not_a_document(spec, &shown, why))?;
    not_empty(spec, &shown, &text)?;
    Ok(InputText {
        name: spec.name.clone(),
        kind: InputKind::File,
        path: Some(shown),
        text,
        notes,
        not_read: Vec::new(),
    })
}

fn wanted(kind: InputKind) -> &'static str {
    match kind {
        InputKind::Text => "a text or a file",
        InputKind::File => "a file",
        InputKind::Folder => "a folder of files",
        InputKind::Choice => "one of its choices",
        InputKind::Number => "a number",
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

/// A text as it was typed or pasted: it is never taken for a file of another format.
fn given_text(spec: &InputSpec, text: &str) -> Result<String, InputError> {
    let from = "given as text";
    if text.len() as u64 > MAX_INPUT_BYTES {
        return Err(too_large(spec, from, text.len() as u64));
    }
    if let Some(offset) = text.find('\0') {
        let why = DocumentError::NotText { what: "a NUL byte", offset };
        return Err(not_a_document(spec, from, why));
    }
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    not_empty(spec, from, text)?;
    Ok(text.to_owned())
}

fn not_a_document(spec: &InputSpec, from: &str, why: DocumentError) -> InputError {
    InputError::NotADocument { name: spec.name.clone(), from: from.to_owned(), why }
}

fn not_empty(spec: &InputSpec, from: &str, text: &str) -> Result<(), InputError> {
    match text.trim().is_empty() && spec.need == Need::Required {
        true => Err(InputError::Empty { name: spec.name.clone(), from: from.to_owned() }),
        false => Ok(()),
    }
}

/// A folder's files under headings, sorted by name, and what could not be read.
fn read_folder(spec: &InputSpec, path: &Path) -> Result<InputText, InputError> {
    let shown = path.display().to_string();
    let found = walk(path, folder::MAX_DEPTH, folder::MAX_FILES)
        .map_err(|error| unreadable(&spec.name, &shown, &error))?;
    let mut gathered = Gathered { not_read: found.left_out, ..Gathered::default() };
    let mut total = 0_u64;
    for file in found.files {
        let name = file.display().to_string();
        let file = path.join(&file);
        total += fs::metadata(&file).map(|metadata| metadata.len()).unwrap_or(0);
        if total > MAX_INPUT_BYTES {
            return Err(too_large(spec, &shown, total));
        }
        gathered.add(&name, fs::read(&file).map_err(|error| error.to_string()));
        // A packed file can hold more than its size says.
        if gathered.text.len() as u64 > MAX_INPUT_BYTES {
            return Err(too_large(spec, &shown, gathered.text.len() as u64));
        }
    }
    if gathered.text.is_empty() {
        let from = if gathered.not_read.is_empty() {
            format!("no files in {shown}")
        } else {
            format!("nothing in {shown} could be read: {}", gathered.not_read.join(", "))
        };
        return Err(InputError::Empty { name: spec.name.clone(), from });
    }
    let Gathered { text, notes, not_read } = gathered.finish();
    Ok(InputText {
        name: spec.name.clone(),
        kind: InputKind::Folder,
        path: Some(shown),
        text,
        notes,
        not_read,
    })
}
