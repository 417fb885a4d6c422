//! Prompt templates: minijinja over `inputs` and `artifacts`, rendered once, with the origin of
//! every piece of the result.
//!
//! What a document says is data: it is put in after the template was parsed and is never parsed
//! itself. To know afterwards what came from where, the formatter brackets every value that it
//! writes with marks that occur nowhere in the template and the values.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use correx_events::ArtifactName;
use minijinja::value::Value;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, context, escape_formatter};
use thiserror::Error;

/// Instructions that one rendering may take: a template that loops for ever ends as an error.
const FUEL: u64 = 1_000_000;
/// A noncharacter: no text that people write has it. The number behind it makes sure.
const MARK: char = '\u{FDD0}';
const MARK_END: char = '\u{FDD1}';
const NAME: &str = "prompt";

/// A prompt with places for inputs and artifacts: `{{ inputs.notes }}`, `{{ artifacts.summary }}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    source: String,
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct TemplateSyntaxError {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes of the text.
    pub range: Range<usize>,
}

/// Why a template could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the prompt's template failed: {0}")]
pub struct RenderError(pub String);

/// The values of one rendering, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateValues {
    /// The inputs' texts.
    pub inputs: BTreeMap<String, String>,
    /// The artifacts' texts.
    pub artifacts: BTreeMap<ArtifactName, String>,
    /// What stands beside them in a stage that goes piece by piece: `piece`, `number`, `count`,
    /// `heading`, `pieces`.
    pub own: BTreeMap<&'static str, String>,
}

/// Where a piece of a rendered prompt comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The template's own text, or a value that a filter changed.
    Task,
    /// An input, as it is.
    Input(String),
    /// An artifact, as it is.
    Artifact(ArtifactName),
    /// A piece of what a stage goes through, or pieces put together.
    Piece,
}

/// A piece of a rendered prompt. The pieces add up to the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Where it comes from.
    pub origin: Origin,
    /// The text, never empty.
    pub text: String,
}

impl TemplateValues {
    /// The artifacts' texts by their bare names.
    pub fn artifact_texts(&self) -> BTreeMap<&str, &str> {
        self.artifacts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
    }
}

impl Template {
    /// Accepts `source` if it is a template whose filters, tests and functions exist.
    pub fn parse(source: &str) -> Result<Self, TemplateSyntaxError> {
        let environment = environment(UndefinedBehavior::Chainable);
        let template = environment
            .template_from_named_str(NAME, source)
            .map_err(|error| located(&error, source))?;
        // Filters and tests are looked up when a template runs: run it on both sides of an `if`.
        for value in ["", "text"] {
            let named = |family: &str| -> BTreeMap<String, &str> {
                let names = template.undeclared_variables(true).into_iter();
                names
                    .filter_map(|name| Some((name.strip_prefix(family)?.to_owned(), value)))
                    .collect()
            };
            let (inputs, artifacts) = (named("inputs."), named("artifacts."));
            match template.render(context! { inputs, artifacts }) {
                Err(error) if is_certain(error.kind()) => return Err(located(&error, source)),
                _ => {}
            }
        }
        Ok(Self { source: source.to_owned() })
    }

    /// The text of the template.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The variables that it takes from outside, dotted: `inputs.notes`.
    pub fn variables(&self) -> BTreeSet<String> {
        let environment = environment(UndefinedBehavior::Strict);
        let globals: BTreeSet<&str> = environment.globals().map(|(name, _)| name).collect();
        let Ok(template) = environment.template_from_named_str(NAME, &self.source) else {
            return BTreeSet::new();
        };
        let variables = template.undeclared_variables(true);
        variables.into_iter().filter(|name| !globals.contains(name.as_str())).collect()
    }

    /// Renders the prompt in one pass over `values`.
    pub fn render(&self, values: &TemplateValues) -> Result<Vec<Segment>, RenderError> {
        let mark = free_mark(&self.source, values);
        let inputs: BTreeMap<&str, Value> =
            values.inputs.iter().map(|(name, text)| (name.as_str(), shared(text))).collect();
        let artifacts: BTreeMap<&str, Value> =
            values.artifacts.iter().map(|(name, text)| (name.as_str(), shared(text))).collect();
        let own: BTreeMap<&str, Value> =
            values.own.iter().map(|(name, text)| (*name, shared(text))).collect();
        let pieces = ["piece", "pieces"].into_iter().filter_map(|name| own.get(name));
        let sources: Vec<(Origin, Value)> =
            inputs
                .iter()
                .map(|(name, value)| (Origin::Input((*name).to_owned()), value.clone()))
                .chain(artifacts.iter().map(|(name, value)| {
                    (Origin::Artifact(ArtifactName::new(*name)), value.clone())
                }))
                .chain(pieces.map(|value| (Origin::Piece, value.clone())))
                .collect();
        let origins: Vec<Origin> = sources.iter().map(|(origin, _)| origin.clone()).collect();

        let mut environment = environment(UndefinedBehavior::Strict);
        let sources = Arc::new(sources);
        let opening = mark.clone();
        environment.set_formatter(move |out, state, value| match source_of(value, &sources) {
            Some(index) => {
                write!(out, "{opening}{index}{MARK_END}")?;
                escape_formatter(out, state, value)?;
                Ok(write!(out, "{opening}{MARK_END}")?)
            }
            None => escape_formatter(out, state, value),
        });
        let rendered = environment
            .template_from_named_str(NAME, &self.source)
            .and_then(|template| {
                template.render(context! { inputs, artifacts, ..Value::from_serialize(&own) })
            })
            .map_err(|error| RenderError(error.to_string()))?;
        Ok(segments(&rendered, &mark, &origins))
    }
}

/// Whether a failed trial says something about the template, and not about the trial's values.
fn is_certain(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::UnknownFilter
            | ErrorKind::UnknownTest
            | ErrorKind::UnknownMethod
            | ErrorKind::TemplateNotFound
            | ErrorKind::BadInclude
            | ErrorKind::OutOfFuel
    )
}

pub(crate) fn environment(undefined: UndefinedBehavior) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(undefined);
    environment.set_fuel(Some(FUEL));
    environment.set_debug(true);
    // It would print every input.
    environment.remove_global("debug");
    environment
}

pub(crate) fn located(error: &minijinja::Error, source: &str) -> TemplateSyntaxError {
    let whole = 0..source.len();
    let range = error
        .range()
        .filter(|range| source.get(range.clone()).is_some())
        .or_else(|| {
            let line = error.line()?;
            let start: usize =
                source.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
            Some(start..source.len())
        })
        .unwrap_or(whole);
    let message = match error.detail() {
        Some(detail) if error.kind() == ErrorKind::SyntaxError => detail.to_owned(),
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    TemplateSyntaxError { message, range }
}

/// A value that keeps its place in memory wherever the template takes it, also when it is short:
/// two equal inputs can be told apart by it.
fn shared(text: &str) -> Value {
    Value::from(Arc::<str>::from(text))
}

/// The value's source: the very same text, or one equal to it.
fn source_of(value: &Value, sources: &[(Origin, Value)]) -> Option<usize> {
    let text = value.as_str()?;
    let same = |(_, source): &(Origin, Value)| {
        source.as_str().is_some_and(|source| std::ptr::eq(source, text))
    };
    let equal = |(_, source): &(Origin, Value)| source.as_str() == Some(text);
    sources.iter().position(same).or_else(|| sources.iter().position(equal))
}

/// A mark that occurs neither in the template nor in a value.
fn free_mark(source: &str, values: &TemplateValues) -> String {
    let texts = || {
        std::iter::once(source)
            .chain(values.inputs.values().map(String::as_str))
            .chain(values.artifacts.values().map(String::as_str))
            .chain(values.own.values().map(String::as_str))
    };
    let mut number = 0_u64;
    loop {
        let mark = format!("{MARK}{number}:");
        // Texts are finite and numbers are not.
        if !texts().any(|text| text.contains(&mark)) {
            return mark;
        }
        number += 1;
    }
}

/// Splits at the marks. A mark whose partner a filter cut off changes nothing but the origin.
fn segments(rendered: &str, mark: &str, origins: &[Origin]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut inside: Vec<&Origin> = Vec::new();
    let mut rest = rendered;
    let mut push = |text: &str, origin: &Origin| {
        if text.is_empty() {
            return;
        }
        match segments.last_mut().filter(|last| last.origin == *origin) {
            Some(last) => last.text.push_str(text),
            None => segments.push(Segment { origin: origin.clone(), text: text.to_owned() }),
        }
    };
    while let Some(at) = rest.find(mark) {
        push(&rest[..at], inside.last().copied().unwrap_or(&Origin::Task));
        rest = &rest[at + mark.len()..];
        let index = rest.split(MARK_END).next().unwrap_or_default();
        match index.parse::<usize>().ok().and_then(|index| origins.get(index)) {
            Some(origin) => {
                inside.push(origin);
                rest = &rest[index.len()..];
            }
            None => {
                inside.pop();
            }
        }
        rest = rest.strip_prefix(MARK_END).unwrap_or(rest);
    }
    push(rest, inside.last().copied().unwrap_or(&Origin::Task));
    segments
}
