//! The person's rules: what workflows may run, write and read.
//!
//! Denial is absolute: it wins over everything that allows, and no approval lifts it. What no rule
//! allows is denied. The format of the file is described in `docs/policy.md`.

mod commands;
mod decision;
mod files;
mod parse;
mod problem;
mod reading;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{ArgumentPattern, NamePattern};

pub use decision::{Approval, CommandRequest, Decided, Decision, Launch, SessionFolders, Verdict};
pub use problem::{PolicyError, PolicyErrors, PolicyProblem};

/// The file's name in the data directory.
pub const POLICY_FILE: &str = "policy.toml";

/// A policy file to begin with: it means what no file means, and explains what can be added.
pub const POLICY_TEMPLATE: &str = include_str!("template.toml");

/// What workflows may do.
///
/// The default: no commands; new files inside the session's output folder; an existing one there
/// only with approval; of files to read only what the person gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    origin: Origin,
    commands: Vec<CommandRule>,
    read: Vec<FolderRule>,
    write: Vec<FolderRule>,
    existing: OverExisting,
    approval: Lists,
    deny: Lists,
    /// Correx's own folders.
    protected: Vec<PathBuf>,
}

/// Where the rules come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Origin {
    #[default]
    Default,
    File,
    Broken(PolicyErrors),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CommandRule {
    /// From 1, as it stands in the file.
    number: usize,
    program: ProgramRule,
    arguments: Vec<ArgumentPattern>,
    environment: Vec<Variable>,
    folders: Vec<FolderRule>,
    approval: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    name: String,
    /// Fixed by the person; else the workflow's, else Correx's own.
    value: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ProgramRule {
    written: String,
    wanted: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FolderRule {
    written: String,
    path: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NameRule {
    pattern: NamePattern,
}

/// What is done about a file that is there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum OverExisting {
    #[default]
    Ask,
    Deny,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Lists {
    programs: Vec<ProgramRule>,
    folders: Vec<FolderRule>,
    files: Vec<NameRule>,
}

impl Policy {
    /// Reads a policy from the text of a file. `~` is this account's home folder.
    ///
    /// Errors are all mistakes of the text, each with its place.
    pub fn parse(text: &str) -> Result<Self, PolicyErrors> {
        parse::parse(text, std::env::home_dir().as_deref())
    }

    /// The policy of a data directory, whose own files are protected from then on.
    ///
    /// Without a file it is the default. A file that cannot be used is never taken for permission: see
    /// [`Policy::broken`].
    pub fn load(data_dir: &Path) -> Self {
        let path = data_dir.join(POLICY_FILE);
        let name = path.display().to_string();
        let policy = match fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text),
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() =>
            {
                Ok(Self::default())
            }
            Err(error) => {
                let problem = PolicyProblem::Unreadable(error.to_string());
                let error = PolicyError { line: 1, column: 1, excerpt: String::new(), problem };
                Err(PolicyErrors { file: None, errors: vec![error] })
            }
        };
        policy.unwrap_or_else(|errors| Self::broken(errors.in_file(name))).protecting(data_dir)
    }

    /// What holds while the file has mistakes: nothing but new files in the session's output folder
    /// and reading what the person gave. Everything else is denied, with the mistakes.
    pub fn broken(errors: PolicyErrors) -> Self {
        Self { origin: Origin::Broken(errors), ..Self::default() }
    }

    /// The same policy, which also keeps workflows away from `folder` (Correx's own files), apart
    /// from a session's output folder in it and what the person gave as input.
    pub fn protecting(mut self, folder: impl Into<PathBuf>) -> Self {
        self.protected.push(folder.into());
        self
    }

    /// What is wrong with the file, if it cannot be used.
    pub fn problem(&self) -> Option<&PolicyErrors> {
        match &self.origin {
            Origin::Broken(errors) => Some(errors),
            Origin::Default | Origin::File => None,
        }
    }

    /// What a rule is called that stands in no table.
    fn general_rule(&self) -> String {
        match &self.origin {
            Origin::Default => "the default policy".to_owned(),
            Origin::File => format!("{POLICY_FILE}: what it does not allow is denied"),
            Origin::Broken(_) => format!("{POLICY_FILE}, which has a mistake"),
        }
    }

    /// What to do about something that no rule allows.
    fn unless_added(&self, addition: &str) -> String {
        match &self.origin {
            Origin::Default | Origin::File => format!("to allow it, {addition} in {POLICY_FILE}"),
            Origin::Broken(errors) => {
                format!("correct the file, then run the workflow again:\n{errors}")
            }
        }
    }
}

impl FolderRule {
    fn rule(&self, table: &str) -> String {
        format!("{POLICY_FILE}: {table} folders {:?}", self.written)
    }
}

impl CommandRule {
    fn rule(&self) -> String {
        format!("{POLICY_FILE}: [[command]] {} ({})", self.number, self.program.written)
    }
}
