//! Whether a stage runs: a minijinja expression over inputs and artifacts.

use std::collections::BTreeSet;

use minijinja::{UndefinedBehavior, context};
use thiserror::Error;

use crate::TemplateValues;
use crate::template::{TemplateSyntaxError, environment, located};

/// An expression such as `artifacts.triage == "urgent"` or `inputs.words | int > 200`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    source: String,
}

/// Why a condition could not be decided.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("its condition `when` failed: {0}")]
pub struct ConditionError(pub String);

impl Condition {
    /// Accepts `source` if it is an expression.
    pub fn parse(source: &str) -> Result<Self, TemplateSyntaxError> {
        let environment = environment(UndefinedBehavior::Strict);
        match environment.compile_expression(source) {
            Ok(_) => Ok(Self { source: source.to_owned() }),
            Err(error) => Err(located(&error, source)),
        }
    }

    /// The text of the expression.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The variables that it takes from outside, dotted: `inputs.notes`.
    pub fn variables(&self) -> BTreeSet<String> {
        let environment = environment(UndefinedBehavior::Strict);
        let globals: BTreeSet<&str> = environment.globals().map(|(name, _)| name).collect();
        let Ok(expression) = environment.compile_expression(&self.source) else {
            return BTreeSet::new();
        };
        let variables = expression.undeclared_variables(true);
        variables.into_iter().filter(|name| !globals.contains(name.as_str())).collect()
    }

    /// Whether it holds for `values`.
    pub fn holds(&self, values: &TemplateValues) -> Result<bool, ConditionError> {
        let environment = environment(UndefinedBehavior::Strict);
        let (inputs, artifacts) = (&values.inputs, values.artifact_texts());
        environment
            .compile_expression(&self.source)
            .and_then(|expression| expression.eval(context! { inputs, artifacts }))
            .map(|value| value.is_true())
            .map_err(|error| ConditionError(error.to_string()))
    }
}
