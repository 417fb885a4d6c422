//! Reading TOML with positions, so that every mistake can be shown where it is.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{PolicyError, PolicyErrors, PolicyProblem};

/// The longest part of a line that an error shows.
const EXCERPT_CHARS: usize = 80;

pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// A value and where it stands in the text.
#[derive(Debug, Clone)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

/// A text being read, and what was found wrong with it so far.
pub(super) struct Reading<'s> {
    source: &'s str,
    problems: Vec<(Range<usize>, PolicyProblem)>,
}

impl<'s> Reading<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, problems: Vec::new() }
    }

    pub(super) fn report(&mut self, span: &Range<usize>, problem: PolicyProblem) {
        self.problems.push((span.clone(), problem));
    }

    pub(super) fn wrong_type(
        &mut self,
        key: &'static str,
        expected: &'static str,
        value: &Value<'_>,
    ) {
        let found = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.report(&value.span(), PolicyProblem::WrongType { key, expected, found });
    }

    /// Every mistake in the order of the text, if there is one.
    pub(super) fn into_errors(self) -> Option<PolicyErrors> {
        let mut errors: Vec<PolicyError> = self
            .problems
            .iter()
            .map(|(span, problem)| {
                let before = &self.source[..self.source.floor_char_boundary(span.start)];
                let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
                let end = self.source.floor_char_boundary(span.end).max(before.len());
                let excerpt = self.source[before.len()..end].lines().next().unwrap_or_default();
                PolicyError {
                    line: before.matches('\n').count() + 1,
                    column: before[line_start..].chars().count() + 1,
                    excerpt: excerpt.chars().take(EXCERPT_CHARS).collect(),
                    problem: problem.clone(),
                }
            })
            .collect();
        errors.sort_by_key(|error| (error.line, error.column));
        errors.dedup();
        (!errors.is_empty()).then_some(PolicyErrors { file: None, errors })
    }
}

/// One table and what it is called in messages.
pub(super) struct Fields<'t> {
    table: &'t DeTable<'t>,
    pub(super) span: Range<usize>,
    pub(super) place: &'static str,
}

impl<'t> Fields<'t> {
    /// Reports every key of `table` that is not one of `known`.
    pub(super) fn new(
        reading: &mut Reading<'_>,
        table: &'t DeTable<'t>,
        span: Range<usize>,
        place: &'static str,
        known: &[&str],
    ) -> Self {
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let suggestion = nearest(name, known);
                let problem = PolicyProblem::UnknownKey { key: name.to_owned(), place, suggestion };
                reading.report(&key.span(), problem);
            }
        }
        Self { table, span, place }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'t Value<'t>> {
        self.table.get(key)
    }

    pub(super) fn text(
        &self,
        reading: &mut Reading<'_>,
        key: &'static str,
    ) -> Option<Located<String>> {
        let value = self.get(key)?;
        let text = text_of(value);
        if text.is_none() {
            reading.wrong_type(key, "a text in quotes", value);
        }
        text
    }

    pub(super) fn truth(&self, reading: &mut Reading<'_>, key: &'static str) -> Option<bool> {
        let value = self.get(key)?;
        match value.get_ref() {
            DeValue::Boolean(truth) => Some(*truth),
            _ => {
                reading.wrong_type(key, "true or false", value);
                None
            }
        }
    }

    /// A list of texts; absent: empty.
    pub(super) fn texts(
        &self,
        reading: &mut Reading<'_>,
        key: &'static str,
    ) -> Vec<Located<String>> {
        const EXPECTED: &str = "a list of texts";
        let Some(value) = self.get(key) else { return Vec::new() };
        let DeValue::Array(items) = value.get_ref() else {
            reading.wrong_type(key, EXPECTED, value);
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in items {
            match text_of(item) {
                Some(text) => texts.push(text),
                None => reading.wrong_type(key, EXPECTED, item),
            }
        }
        texts
    }

    pub(super) fn table(
        &self,
        reading: &mut Reading<'_>,
        key: &'static str,
        place: &'static str,
        known: &[&str],
    ) -> Option<Fields<'t>> {
        let value = self.get(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(Fields::new(reading, table, value.span(), place, known)),
            _ => {
                reading.wrong_type(key, "a table", value);
                None
            }
        }
    }
}

pub(super) fn text_of(value: &Value<'_>) -> Option<Located<String>> {
    match value.get_ref() {
        DeValue::String(text) => {
            Some(Located { value: text.clone().into_owned(), span: value.span() })
        }
        _ => None,
    }
}

/// The known word that `word` was probably meant to be.
fn nearest(word: &str, known: &[&str]) -> Option<String> {
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1) + 1)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}
