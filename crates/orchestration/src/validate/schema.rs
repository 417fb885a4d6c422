//! JSON held against a JSON Schema (draft 2020-12). Nothing outside the schema is ever fetched.

use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::form::json;
use super::short;

/// Mistakes that are said at once.
const MAX_MISTAKES: usize = 3;

/// A schema that can be used.
#[derive(Clone)]
pub struct Schema(Arc<Validator>);

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schema")
    }
}

impl Schema {
    /// Refuses what is no schema, or refers to something outside itself, saying why.
    pub fn new(schema: &Value) -> Result<Self, String> {
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            // An expression that takes for ever must not hold up a run.
            .with_pattern_options(PatternOptions::regex());
        options.build(schema).map(|validator| Self(Arc::new(validator))).map_err(|error| {
            let place = error.instance_path().as_str().to_owned();
            match place.is_empty() {
                true => error.to_string(),
                false => format!("{error} (at {place})"),
            }
        })
    }

    /// What is wrong with `text`, if anything, as a request.
    pub fn objection(&self, text: &str) -> Option<String> {
        let value = match json(text) {
            Ok(value) => value,
            Err(request) => return Some(request),
        };
        let mut mistakes: Vec<String> = Vec::new();
        for error in self.0.iter_errors(&value) {
            let mistake = in_words(&error);
            if !mistakes.contains(&mistake) {
                mistakes.push(mistake);
            }
            if mistakes.len() == MAX_MISTAKES {
                break;
            }
        }
        (!mistakes.is_empty()).then(|| format!("Correct the JSON: {}.", mistakes.join("; ")))
    }
}

/// A mistake in the words of the schema: nothing of the output is repeated.
fn in_words(error: &ValidationError<'_>) -> String {
    let place = place(error.evaluation_path());
    let value = |value: &Value| short(&value.to_string());
    let what = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            return match place.as_str() {
                "the value" => format!("\"{property}\" is missing"),
                place => format!("\"{property}\" is missing in {place}"),
            };
        }
        ValidationErrorKind::Type { .. } => "is of the wrong type".to_owned(),
        ValidationErrorKind::Enum { options } => format!("must be one of {}", value(options)),
        ValidationErrorKind::Constant { expected_value } => {
            format!("must be {}", value(expected_value))
        }
        ValidationErrorKind::AdditionalProperties { .. }
        | ValidationErrorKind::UnevaluatedProperties { .. } => {
            "has properties that it must not have".to_owned()
        }
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be above {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be below {limit}"),
        ValidationErrorKind::MinLength { limit: 1 } => "must not be empty".to_owned(),
        ValidationErrorKind::MinLength { limit } => format!("needs at least {limit} characters"),
        ValidationErrorKind::MaxLength { limit } => format!("may have at most {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("needs at least {limit} items"),
        ValidationErrorKind::MaxItems { limit } => format!("may have at most {limit} items"),
        ValidationErrorKind::UniqueItems => "has an item twice".to_owned(),
        ValidationErrorKind::Pattern { pattern } => {
            format!("must be of the form {}", short(pattern))
        }
        ValidationErrorKind::Format { format } => format!("must be a {format}"),
        other => format!("does not satisfy \"{}\"", other.keyword()),
    };
    format!("{place} {what}")
}

/// Where in the value a part of the schema applies: `"items[].name"`.
fn place(path: &Location) -> String {
    let mut place = String::new();
    let mut segments = path.iter();
    while let Some(segment) = segments.next() {
        let LocationSegment::Property(keyword) = segment else { continue };
        match &*keyword {
            "properties" => match segments.next() {
                Some(LocationSegment::Property(name)) => {
                    place.push_str(if place.is_empty() { "" } else { "." });
                    place.push_str(&name);
                }
                Some(LocationSegment::Index(index)) => place.push_str(&format!(".{index}")),
                None => {}
            },
            "items" | "prefixItems" => place.push_str("[]"),
            "additionalProperties" | "patternProperties" if segments.len() > 0 => {
                place.push_str(".*");
            }
            "$defs" | "definitions" => {
                segments.next();
            }
            _ => {}
        }
    }
    match place.is_empty() {
        true => "the value".to_owned(),
        false => format!("\"{}\"", short(&place)),
    }
}
