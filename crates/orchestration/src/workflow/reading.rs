//! Reading TOML with positions, so that every mistake can be shown where it is.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{WorkflowError, WorkflowProblem};

/// The longest part of a line that an error shows.
const EXCERPT_CHARS: usize = 80;

/// A value and where it stands in the text.
#[derive(Debug, Clone)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

/// A text being read, and what was found wrong with it so far.
pub(super) struct Reading<'s> {
    source: &'s str,
    problems: Vec<(Range<usize>, WorkflowProblem)>,
}

impl<'s> Reading<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, problems: Vec::new() }
    }

    pub(super) fn report(&mut self, span: &Range<usize>, problem: WorkflowProblem) {
        self.problems.push((span.clone(), problem));
    }

    pub(super) fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// The line of a byte offset, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.before(offset).matches('\n').count() + 1
    }

    /// Where `part` of a string value stands: escapes can move it, then it is the value's place.
    pub(super) fn inside(&self, value: &Located<String>, part: Range<usize>) -> Range<usize> {
        let raw = self.source.get(value.span.clone()).unwrap_or_default();
        match raw.find(value.value.as_str()) {
            Some(start) => {
                let start = value.span.start + start;
                start + part.start..start + part.end
            }
            None => value.span.clone(),
        }
    }

    /// The text with the lines in which `spans` begin blanked out, everything else in its place.
    pub(super) fn without_lines(&self, spans: &[Range<usize>]) -> String {
        let lines: Vec<usize> = spans.iter().map(|span| self.line(span.start)).collect();
        let mended = self.source.split_inclusive('\n').enumerate().map(|(index, line)| {
            let ending = if line.ends_with('\n') { "\n" } else { "" };
            match lines.contains(&(index + 1)) {
                true => " ".repeat(line.len() - ending.len()) + ending,
                false => line.to_owned(),
            }
        });
        mended.collect()
    }

    /// Every mistake in the order of the text.
    ///
    /// What seems to be missing in a text that is not TOML only follows from that: it is left out.
    pub(super) fn into_errors(self) -> Vec<WorkflowError> {
        let is_syntax = |problem: &WorkflowProblem| matches!(problem, WorkflowProblem::Syntax(_));
        let is_toml = !self.problems.iter().any(|(_, problem)| is_syntax(problem));
        let only_follows = |problem: &WorkflowProblem| {
            matches!(
                problem,
                WorkflowProblem::Missing { .. }
                    | WorkflowProblem::NoStages
                    | WorkflowProblem::UnknownVariable { .. }
                    | WorkflowProblem::UnknownArtifact { .. }
                    | WorkflowProblem::UnknownStage { .. }
            )
        };
        let mut errors: Vec<WorkflowError> = self
            .problems
            .iter()
            .filter(|(_, problem)| is_toml || !only_follows(problem))
            .map(|(span, problem)| WorkflowError {
                line: self.line(span.start),
                column: self.column(span.start),
                excerpt: self.excerpt(span),
                problem: problem.clone(),
            })
            .collect();
        errors.sort_by_key(|error| (error.line, error.column));
        errors.dedup();
        errors
    }

    fn before(&self, offset: usize) -> &'s str {
        let mut end = offset.min(self.source.len());
        while !self.source.is_char_boundary(end) {
            end -= 1;
        }
        &self.source[..end]
    }

    fn column(&self, offset: usize) -> usize {
        let before = self.before(offset);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        before[line_start..].chars().count() + 1
    }

    fn excerpt(&self, span: &Range<usize>) -> String {
        let start = self.before(span.start).len();
        let end = self.before(span.end).len().max(start);
        let text = &self.source[start..end];
        text.lines().next().unwrap_or_default().chars().take(EXCERPT_CHARS).collect()
    }
}

/// One table: what it is called in messages, and the keys that mean something in it.
pub(super) struct Fields<'t> {
    table: &'t DeTable<'t>,
    /// Where the table stands.
    pub(super) span: Range<usize>,
    place: &'static str,
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
                let problem = WorkflowProblem::UnknownKey {
                    key: name.to_owned(),
                    place,
                    suggestion: nearest(name, known.iter().copied()),
                };
                reading.report(&key.span(), problem);
            }
        }
        Self { table, span, place }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.table.get(key)
    }

    pub(super) fn missing(&self, reading: &mut Reading<'_>, key: &'static str) {
        reading.report(&self.span, WorkflowProblem::Missing { key, place: self.place });
    }

    pub(super) fn text(&self, reading: &mut Reading<'_>, key: &str) -> Option<Located<String>> {
        let value = self.get(key)?;
        match value.get_ref() {
            DeValue::String(text) => {
                Some(Located { value: text.clone().into_owned(), span: value.span() })
            }
            _ => wrong_type(reading, key, "a text in quotes", value),
        }
    }

    /// A text with something in it.
    pub(super) fn words(&self, reading: &mut Reading<'_>, key: &str) -> Option<Located<String>> {
        let text = self.text(reading, key)?;
        if text.value.trim().is_empty() {
            let allowed = "a text with something in it";
            let problem = WorkflowProblem::OutOfRange { key: key.to_owned(), allowed };
            reading.report(&text.span, problem);
            return None;
        }
        Some(text)
    }

    pub(super) fn required_words(
        &self,
        reading: &mut Reading<'_>,
        key: &'static str,
    ) -> Option<Located<String>> {
        if self.get(key).is_none() {
            self.missing(reading, key);
        }
        self.words(reading, key)
    }

    pub(super) fn truth(&self, reading: &mut Reading<'_>, key: &str) -> Option<bool> {
        let value = self.get(key)?;
        match value.get_ref() {
            DeValue::Boolean(truth) => Some(*truth),
            _ => wrong_type(reading, key, "true or false", value),
        }
    }

    /// A whole number between `least` and `most`, both included.
    pub(super) fn whole(
        &self,
        reading: &mut Reading<'_>,
        key: &str,
        (least, most): (u64, u64),
        allowed: &'static str,
    ) -> Option<u64> {
        let value = self.get(key)?;
        let DeValue::Integer(number) = value.get_ref() else {
            return wrong_type(reading, key, "a whole number", value);
        };
        match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) if (least..=most).contains(&number) => Some(number),
            _ => {
                let problem = WorkflowProblem::OutOfRange { key: key.to_owned(), allowed };
                reading.report(&value.span(), problem);
                None
            }
        }
    }

    /// A number for which `is_allowed` holds.
    pub(super) fn number(
        &self,
        reading: &mut Reading<'_>,
        key: &str,
        is_allowed: impl Fn(f64) -> bool,
        allowed: &'static str,
    ) -> Option<f64> {
        let value = self.get(key)?;
        let number = match value.get_ref() {
            DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
            // Any i64 is near enough to a float for what is bounded far below.
            DeValue::Integer(number) => {
                i64::from_str_radix(number.as_str(), number.radix()).ok().map(|n| n as f64)
            }
            _ => return wrong_type(reading, key, "a number", value),
        };
        match number {
            Some(number) if is_allowed(number) => Some(number),
            _ => {
                let problem = WorkflowProblem::OutOfRange { key: key.to_owned(), allowed };
                reading.report(&value.span(), problem);
                None
            }
        }
    }

    /// A text, or a list of texts.
    pub(super) fn texts(&self, reading: &mut Reading<'_>, key: &str) -> Vec<Located<String>> {
        let Some(value) = self.get(key) else { return Vec::new() };
        match value.get_ref() {
            DeValue::String(text) => {
                vec![Located { value: text.clone().into_owned(), span: value.span() }]
            }
            DeValue::Array(items) => items
                .iter()
                .filter_map(|item| match item.get_ref() {
                    DeValue::String(text) => {
                        Some(Located { value: text.clone().into_owned(), span: item.span() })
                    }
                    _ => wrong_type(reading, key, "a list of texts", item),
                })
                .collect(),
            _ => wrong_type(reading, key, "a list of texts", value).unwrap_or_default(),
        }
    }

    /// A table of its own.
    pub(super) fn table(
        &self,
        reading: &mut Reading<'_>,
        key: &str,
        place: &'static str,
        known: &[&str],
    ) -> Option<Fields<'t>> {
        let value = self.get(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(Fields::new(reading, table, value.span(), place, known)),
            _ => wrong_type(reading, key, "a table", value),
        }
    }

    /// The tables of a list such as `[[stage]]`.
    pub(super) fn tables(
        &self,
        reading: &mut Reading<'_>,
        key: &str,
    ) -> Vec<(&'t DeTable<'t>, Range<usize>)> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let DeValue::Array(items) = value.get_ref() else {
            return wrong_type(reading, key, "a list of tables, each under double brackets", value)
                .unwrap_or_default();
        };
        items
            .iter()
            .filter_map(|item| match item.get_ref() {
                DeValue::Table(table) => Some((table, item.span())),
                _ => wrong_type(reading, key, "a list of tables", item),
            })
            .collect()
    }
}

fn wrong_type<T>(
    reading: &mut Reading<'_>,
    key: &str,
    expected: &'static str,
    value: &Spanned<DeValue<'_>>,
) -> Option<T> {
    let found = match value.get_ref() {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    let problem = WorkflowProblem::WrongType { key: key.to_owned(), expected, found };
    reading.report(&value.span(), problem);
    None
}

/// The known word that `word` was probably meant to be.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1) + 1)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}
