//! Names: which characters, used once, and the words that a key takes.

use std::collections::BTreeMap;

use super::problem::WorkflowProblem;
use super::reading::{Located, Reading, nearest};

pub(super) const NAME_RULE: &str = "use letters, digits and _, beginning with a letter";
pub(super) const ID_RULE: &str = "use letters, digits, - and _, beginning with a letter";

/// Names that must not be used twice.
pub(super) struct Names {
    what: &'static str,
    lines: BTreeMap<String, usize>,
}

impl Names {
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, lines: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, reading: &mut Reading<'_>, name: &Located<String>) {
        let line = reading.line(name.span.start);
        let first_line = *self.lines.entry(name.value.clone()).or_insert(line);
        if first_line != line {
            let problem = WorkflowProblem::Duplicate {
                what: self.what,
                name: name.value.clone(),
                first_line,
            };
            reading.report(&name.span, problem);
        }
    }
}

pub(super) fn check_name(
    reading: &mut Reading<'_>,
    what: &'static str,
    name: &Located<String>,
    allowed: &'static str,
    is_allowed: fn(&str) -> bool,
) {
    if !is_allowed(&name.value) {
        let problem = WorkflowProblem::BadName { what, name: name.value.clone(), allowed };
        reading.report(&name.span, problem);
    }
}

pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub(super) fn is_id(id: &str) -> bool {
    is_name(&id.replace('-', "_"))
}

pub(super) fn unknown_word(
    reading: &mut Reading<'_>,
    what: &'static str,
    word: &Located<String>,
    known: &[&str],
) {
    let problem = WorkflowProblem::UnknownWord {
        what,
        word: word.value.clone(),
        suggestion: nearest(&word.value, known.iter().copied()),
        choices: known.join(", "),
    };
    reading.report(&word.span, problem);
}
