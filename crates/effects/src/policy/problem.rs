//! What can be wrong with a policy file, and where.

use std::fmt;

use thiserror::Error;

use crate::PatternProblem;

/// Everything that is wrong with one file, in the order of the text. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyErrors {
    /// The file's name, when it has one.
    pub file: Option<String>,
    /// The mistakes.
    pub errors: Vec<PolicyError>,
}

impl PolicyErrors {
    /// The same mistakes, shown with the file's name before each position.
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.file = Some(file.into());
        self
    }
}

impl fmt::Display for PolicyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            if let Some(file) = &self.file {
                write!(f, "{file}:")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PolicyErrors {}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{line}:{column}: {problem}")]
pub struct PolicyError {
    /// The line, from 1.
    pub line: usize,
    /// The character in that line, from 1.
    pub column: usize,
    /// The text in question, at most one line of it.
    pub excerpt: String,
    /// What is wrong with it.
    pub problem: PolicyProblem,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyProblem {
    /// The text is not TOML.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// The file could not be read at all.
    #[error("the file could not be read: {0}")]
    Unreadable(String),
    /// The version of the file format is not one that this version reads.
    #[error("version {0} of the policy file is not known; this version reads version 1")]
    Version(String),
    /// A key that means nothing here.
    #[error("unknown key \"{key}\" in {place}{}", did_you_mean(suggestion))]
    UnknownKey {
        /// The key.
        key: String,
        /// Where it stands.
        place: &'static str,
        /// The nearest key that means something.
        suggestion: Option<String>,
    },
    /// A value of another type than the key has.
    #[error("\"{key}\" must be {expected}, not {found}")]
    WrongType {
        /// The key.
        key: &'static str,
        /// What it takes.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A key that must be there.
    #[error("{place} needs \"{key}\": {example}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What needs it.
        place: &'static str,
        /// What it looks like.
        example: &'static str,
    },
    /// A word where one of a few is expected.
    #[error("\"{key}\" must be {choices}, not \"{word}\"")]
    UnknownWord {
        /// The key.
        key: &'static str,
        /// The word.
        word: String,
        /// All known ones.
        choices: &'static str,
    },
    /// A folder or program that is neither absolute nor below the home folder.
    #[error("\"{0}\" must be absolute or begin with ~/")]
    NotAbsolute(String),
    /// There is no home folder that `~` could stand for.
    #[error("\"{0}\" begins with ~, but this account has no home folder; write the whole path")]
    NoHome(String),
    /// A program with folders in it that is not absolute.
    #[error("\"{0}\" is neither a bare name nor an absolute path")]
    Program(String),
    /// No list of arguments.
    #[error(
        "no command line is allowed by an empty list; write [[]] for \"without arguments\" or \
         [[\"...\"]] for any"
    )]
    NoArguments,
    /// Patterns that are not lists.
    #[error(
        "each allowed command line is a list of its own, in double brackets: \
         arguments = [[\"first\", \"second\"]]"
    )]
    FlatArguments,
    /// A pattern that cannot be one.
    #[error("the pattern \"{pattern}\" cannot be used: {problem}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        problem: PatternProblem,
    },
    /// A text that names no variable.
    #[error("\"{0}\" is no variable; write NAME, or NAME=value")]
    Variable(String),
    /// A variable by which a workflow could run anything.
    #[error("what {0} is decides which code is run; it can only be given here: \"{0}=value\"")]
    OpenVariable(String),
    /// A variable that is always the same.
    #[error("{0} is always set by Correx")]
    OwnVariable(String),
}

fn did_you_mean(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default()
}
