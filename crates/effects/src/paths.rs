//! What a path really is.
//!
//! Decisions are made on real paths only: links are followed, `..` is taken away after that, and names
//! are those that the file system gives (on one that ignores case, the case of what is there).

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing yet.
    Absent,
    /// A file with bytes in it.
    File,
    /// A folder.
    Folder,
    /// A device, a pipe, a socket.
    Special,
}

/// A path without links and `..`, and what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealPath {
    /// The path; absolute.
    pub path: PathBuf,
    /// What was there when it was looked at.
    pub kind: Kind,
    /// How many of its last names were not there.
    pub(crate) new_names: usize,
}

/// Why a path is not one to work with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PathProblem {
    /// Nothing was given.
    #[error("the path is empty")]
    Empty,
    /// Where it begins is not said.
    #[error("\"{0}\" is no absolute path")]
    Relative(String),
    /// A character that no path has.
    #[error("\"{0}\" has a control character in it")]
    ControlCharacter(String),
    /// `~` means something to a shell only.
    #[error("\"{0}\" begins with ~, which means nothing here; write the folder's whole path")]
    Tilde(String),
    /// `\\?\…`, `\\.\…`.
    #[error("\"{0}\" is a Windows device path; write the path as a person would")]
    DevicePath(String),
    /// `C:name`: relative to wherever the drive's current folder is.
    #[error("\"{0}\" begins with a drive letter but not at the drive's root")]
    DriveRelative(String),
    /// `name:stream`, or a backslash inside a name.
    #[error("the name \"{name}\" has \"{character}\" in it, which means something else on Windows")]
    Character {
        /// The name.
        name: String,
        /// What is wrong with it.
        character: char,
    },
    /// `CON`, `NUL`, `COM1`, …
    #[error("the name \"{0}\" belongs to a device on Windows; choose another one")]
    Reserved(String),
    /// Windows leaves it out in silence, so that another file is meant.
    #[error("the name \"{0}\" ends with a dot or a space, which Windows leaves out; take it away")]
    Trailing(String),
    /// A name of ours for files that are being written.
    #[error("the name \"{0}\" is one that Correx gives to half-written files; choose another one")]
    HalfWritten(String),
    /// A link whose target is missing.
    #[error("{} is a link that leads nowhere", .0.display())]
    LeadsNowhere(PathBuf),
    /// `..` behind a folder that is not there.
    #[error("the path goes up (..) from {}, which does not exist", .0.display())]
    UpFromNothing(PathBuf),
    /// Something below what is no folder.
    #[error("{} is no folder", .0.display())]
    NotAFolder(PathBuf),
    /// The system would not say.
    #[error("{} cannot be looked at: {reason}", .path.display())]
    Unreadable {
        /// How far it got.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

/// The real path of `path`, whose last names need not exist.
///
/// Errors say what is wrong with the path in a sentence for people.
pub fn real_path(path: &Path) -> Result<RealPath, PathProblem> {
    check_form(path)?;
    resolve(path)
}

/// [`real_path`] of a path whose form is known to be good.
pub(crate) fn resolve(path: &Path) -> Result<RealPath, PathProblem> {
    if !path.is_absolute() {
        return Err(PathProblem::Relative(path.display().to_string()));
    }
    let mut real = PathBuf::new();
    let mut new_names = 0;
    for component in path.components() {
        match component {
            Component::Prefix(_) | Component::RootDir => {
                real.push(component);
                if component == Component::RootDir {
                    real = canonical(&real)?.unwrap_or(real);
                }
            }
            Component::CurDir => {}
            // `real` has no links, so its parent is what the system means by `..` as well.
            Component::ParentDir if new_names == 0 => {
                real.pop();
            }
            Component::ParentDir => return Err(PathProblem::UpFromNothing(real)),
            Component::Normal(name) => {
                if new_names == 0 && !real.is_dir() {
                    return Err(PathProblem::NotAFolder(real));
                }
                let next = real.join(name);
                let found = if new_names == 0 { canonical(&next)? } else { None };
                if found.is_none() {
                    check_new_name(name.to_str(), path)?;
                    new_names += 1;
                }
                real = found.unwrap_or(next);
            }
        }
    }
    let kind = match new_names {
        0 => kind_of(&fs::metadata(&real).map_err(|error| unreadable(&real, &error))?),
        _ => Kind::Absent,
    };
    Ok(RealPath { path: real, kind, new_names })
}

/// `None`: nothing is there.
fn canonical(path: &Path) -> Result<Option<PathBuf>, PathProblem> {
    match fs::canonicalize(path) {
        Ok(real) => Ok(Some(real)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match path.symlink_metadata() {
            Ok(_) => Err(PathProblem::LeadsNowhere(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(path, &error)),
        },
        Err(error) => Err(unreadable(path, &error)),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> PathProblem {
    PathProblem::Unreadable { path: path.to_owned(), reason: error.to_string() }
}

fn kind_of(metadata: &fs::Metadata) -> Kind {
    if metadata.is_dir() {
        Kind::Folder
    } else if metadata.is_file() {
        Kind::File
    } else {
        Kind::Special
    }
}

/// What can be said of a path without looking at the disk.
pub(crate) fn check_form(path: &Path) -> Result<(), PathProblem> {
    let text = path.to_string_lossy();
    let shown = || text.clone().into_owned();
    if text.is_empty() {
        return Err(PathProblem::Empty);
    }
    if text.chars().any(char::is_control) {
        return Err(PathProblem::ControlCharacter(text.escape_debug().to_string()));
    }
    if text == "~" || text.starts_with("~/") || text.starts_with("~\\") {
        return Err(PathProblem::Tilde(shown()));
    }
    let slashed = text.replace('\\', "/");
    if ["//?/", "//./", "/??/"].iter().any(|start| slashed.starts_with(start)) {
        return Err(PathProblem::DevicePath(shown()));
    }
    let mut characters = slashed.chars();
    let is_drive = characters.next().is_some_and(|letter| letter.is_ascii_alphabetic())
        && characters.next() == Some(':');
    if is_drive && characters.next() != Some('/') {
        return Err(PathProblem::DriveRelative(shown()));
    }
    if cfg!(windows) {
        // There these forms reach other files than they name, also existing ones.
        for component in path.components() {
            if let Component::Normal(name) = component {
                check_new_name(name.to_str(), path)?;
            }
        }
    }
    Ok(())
}

/// Whether a name is one that this program gives to new files and folders, on any system.
fn check_new_name(name: Option<&str>, path: &Path) -> Result<(), PathProblem> {
    let Some(name) = name else {
        return Err(PathProblem::ControlCharacter(path.to_string_lossy().into_owned()));
    };
    let owned = || name.to_owned();
    if let Some(character) =
        name.chars().find(|character| [':', '\\', '<', '>', '"', '|', '?', '*'].contains(character))
    {
        return Err(PathProblem::Character { name: owned(), character });
    }
    if name.ends_with(['.', ' ']) {
        return Err(PathProblem::Trailing(owned()));
    }
    if is_reserved(name) {
        return Err(PathProblem::Reserved(owned()));
    }
    if is_half_written(name) {
        return Err(PathProblem::HalfWritten(owned()));
    }
    Ok(())
}

/// Device names of Windows, also with an ending.
fn is_reserved(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_uppercase();
    if ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&stem.as_str()) {
        return true;
    }
    let Some(number) = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT")) else {
        return false;
    };
    ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "¹", "²", "³"].contains(&number)
}

const HALF_WRITTEN_START: &str = ".correx-";
const HALF_WRITTEN_END: &str = ".part";

/// The name of a file that is being written; `number` is one that no other has.
pub(crate) fn half_written_name(process: u32, number: u64) -> String {
    format!("{HALF_WRITTEN_START}{process}-{number}{HALF_WRITTEN_END}")
}

/// Whether a name is one of [`half_written_name`].
pub(crate) fn is_half_written(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with(HALF_WRITTEN_START) && name.ends_with(HALF_WRITTEN_END)
}

/// Whether `path` is `folder` or below it; both real.
pub(crate) fn is_within(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder)
}

/// The same without regard to case: for denials, which must not be got round where the file system
/// does not look at case either.
pub(crate) fn is_within_any_case(path: &Path, folder: &Path) -> bool {
    folded(path).starts_with(folded(folder))
}

fn folded(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().to_lowercase())
}
