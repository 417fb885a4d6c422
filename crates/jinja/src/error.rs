//! Why a template cannot be read or rendered.

use thiserror::Error;

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The source is no template.
    Syntax,
    /// The template itself refuses what it was given (`raise_exception`).
    Refused,
    /// It used up its fuel or nests too deeply.
    Limit,
    /// It computes something that cannot be computed.
    Failed,
}

/// A failure, with the line of the template when it is known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}{}", place(.line))]
pub struct Error {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// What happened.
    pub message: String,
    /// The line, from 1; 0 when it is not known.
    pub line: u32,
}

fn place(line: &u32) -> String {
    match line {
        0 => String::new(),
        line => format!(" (line {line})"),
    }
}

impl Error {
    pub(crate) fn syntax(line: u32, message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Syntax, message: message.into(), line }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Failed, message: message.into(), line: 0 }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Refused, message: message.into(), line: 0 }
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Limit, message: message.into(), line: 0 }
    }

    pub(crate) fn at(mut self, line: u32) -> Self {
        if self.line == 0 {
            self.line = line;
        }
        self
    }
}
