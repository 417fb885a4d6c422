//! The form that a reply is held to while it is generated.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// The form that a reply is held to while it is generated. What a model thinks before its answer
/// is free of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Anything.
    #[default]
    Text,
    /// A JSON value that this JSON Schema accepts, on one line.
    JsonSchema(Value),
    /// Exactly one of these texts.
    Choice(Vec<String>),
    /// A text that this regular expression matches as a whole.
    Regex(String),
}

impl ResponseFormat {
    /// Whether anything may be said, so that any provider will do.
    pub fn is_free(&self) -> bool {
        *self == Self::Text
    }
}

/// Why a reply cannot be held to a form. Found before anything is evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FormatError {
    /// The provider only gives free text.
    #[error(
        "this model cannot be held to a form while it writes. Use a model that runs on this \
         computer, or ask for plain text"
    )]
    NotSupported,
    /// There is nothing to choose from.
    #[error("the reply is to be one of several texts, but none is given. Name at least one")]
    NoChoice,
    /// One of the texts to choose from is empty.
    #[error("one of the texts that the reply may be is empty. Leave it out, or give it a text")]
    EmptyChoice,
    /// The schema is not one, or uses what cannot be held to.
    #[error("a reply cannot be held to this JSON Schema: {0}")]
    Schema(String),
    /// The regular expression is not one, or uses what cannot be held to.
    #[error("a reply cannot be held to this regular expression: {0}")]
    Regex(String),
    /// The form takes too much to follow.
    #[error("the form of the reply is too large to be followed: {0}. Make it simpler or smaller")]
    TooLarge(String),
}
