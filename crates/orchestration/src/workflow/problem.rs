//! What can be wrong with a workflow file, and where.

use std::fmt;

use thiserror::Error;

/// Everything that is wrong with one file, in the order of the text. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowErrors {
    /// The file's name, when it has one.
    pub file: Option<String>,
    /// The mistakes.
    pub errors: Vec<WorkflowError>,
}

impl WorkflowErrors {
    /// The same mistakes, shown with the file's name before each position.
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.file = Some(file.into());
        self
    }
}

impl fmt::Display for WorkflowErrors {
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

impl std::error::Error for WorkflowErrors {}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{line}:{column}: {problem}")]
pub struct WorkflowError {
    /// The line, from 1.
    pub line: usize,
    /// The character in that line, from 1.
    pub column: usize,
    /// The text in question, at most one line of it.
    pub excerpt: String,
    /// What is wrong with it.
    pub problem: WorkflowProblem,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkflowProblem {
    /// The text is not TOML.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// The version of the file format is not one that this version reads.
    #[error("version {0} of the workflow file is not known; this version reads version 1")]
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
        key: String,
        /// What it takes.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A value outside what the key takes.
    #[error("\"{key}\" must be {allowed}")]
    OutOfRange {
        /// The key.
        key: String,
        /// What it takes.
        allowed: &'static str,
    },
    /// A key that must be there.
    #[error("{place} needs \"{key}\"")]
    Missing {
        /// The key.
        key: &'static str,
        /// What needs it.
        place: &'static str,
    },
    /// No stage at all.
    #[error("the workflow has no stages; add at least one [[stage]]")]
    NoStages,
    /// A name with characters that cannot be used in it.
    #[error("\"{name}\" cannot be {what}: {allowed}")]
    BadName {
        /// What it would name.
        what: &'static str,
        /// The name.
        name: String,
        /// What may be in it.
        allowed: &'static str,
    },
    /// Two things of one name.
    #[error("{what} \"{name}\" is already used in line {first_line}")]
    Duplicate {
        /// What is named.
        what: &'static str,
        /// The name.
        name: String,
        /// Where it was used first.
        first_line: usize,
    },
    /// A word where one of a few is expected.
    #[error("unknown {what} \"{word}\"{}; it is one of: {choices}", did_you_mean(suggestion))]
    UnknownWord {
        /// What the word says.
        what: &'static str,
        /// The word.
        word: String,
        /// The nearest known one.
        suggestion: Option<String>,
        /// All known ones.
        choices: String,
    },
    /// A prompt that is not a valid template.
    #[error("the template cannot be used: {0}")]
    Template(String),
    /// A variable that a template cannot have.
    #[error(
        "unknown variable \"{name}\" in the template{}{}",
        did_you_mean(suggestion),
        because(reason)
    )]
    UnknownVariable {
        /// The variable.
        name: String,
        /// The nearest one that can be used here.
        suggestion: Option<String>,
        /// Why it cannot be used here, when there is more to say.
        reason: Option<String>,
    },
    /// A template's marks in a text that is shown as it is.
    #[error(
        "\"{key}\" is shown as it is and takes no variables; put them into the prompt of a generate stage"
    )]
    NoTemplate {
        /// The key.
        key: &'static str,
    },
    /// An artifact that is not there when the stage runs.
    #[error("no earlier stage produces \"{name}\"{}", did_you_mean(suggestion))]
    UnknownArtifact {
        /// Its name.
        name: String,
        /// The nearest that is there.
        suggestion: Option<String>,
    },
    /// A stage that is not there before this one.
    #[error("no earlier stage has the id \"{id}\"{}", did_you_mean(suggestion))]
    UnknownStage {
        /// The id.
        id: String,
        /// The nearest that is there.
        suggestion: Option<String>,
    },
    /// A condition that is no expression.
    #[error("the condition cannot be used: {0}")]
    Condition(String),
    /// A prompt that leaves out what its stage goes through.
    #[error("the prompt of a {kind} stage must have {{{{ {variable} }}}} in it")]
    NotShown {
        /// The kind.
        kind: &'static str,
        /// What it must show.
        variable: &'static str,
    },
    /// A schema that is none.
    #[error("not a JSON Schema: {0}")]
    Schema(String),
    /// Two keys of which one is wanted.
    #[error("{place} needs one of \"{one}\" and \"{other}\", not both and not none")]
    OneOf {
        /// What needs it.
        place: &'static str,
        /// The one.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A pattern that is not a regular expression.
    #[error("not a regular expression: {0}")]
    Pattern(String),
    /// Limits that leave nothing.
    #[error("{min_key} is {min} and {max_key} is {max}: no text satisfies both")]
    NothingFits {
        /// The key of the lower limit.
        min_key: &'static str,
        /// The lower limit.
        min: u64,
        /// The key of the upper limit.
        max_key: &'static str,
        /// The upper limit.
        max: u64,
    },
}

fn did_you_mean(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default()
}

fn because(reason: &Option<String>) -> String {
    reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
}
