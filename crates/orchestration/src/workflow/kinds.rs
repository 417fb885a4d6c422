//! What only some stages and inputs have: conditions, needs, schemas, pieces, choices.

use std::collections::BTreeSet;
use std::time::Duration;

use correx_events::{InputKind, StageId};
use toml::de::DeValue;

use super::problem::WorkflowProblem;
use super::reading::{Fields, Located, Reading, nearest};
use super::scope::{ModelKind, Scope};
use super::{Answer, ChooseStep, Condition, GenerateStep, MapStep, ReduceStep, Source, Step};
use crate::Template;
use crate::validate::Schema;

/// A score has at most so many values.
const MOST_SCORES: u64 = 1_000;

/// What an input may be.
#[derive(Default)]
pub(super) struct Values {
    pub(super) choices: Vec<String>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
}

/// The choices of a choice, the range of a number; nothing of other inputs, which may not have any.
pub(super) fn values(
    reading: &mut Reading<'_>,
    fields: &Fields<'_>,
    kind: Option<InputKind>,
    default: Option<&str>,
) -> Values {
    let finite = |number: f64| number.is_finite();
    let values = Values {
        choices: distinct(reading, fields, "choices"),
        min: fields.number(reading, "min", finite, "a number"),
        max: fields.number(reading, "max", finite, "a number"),
    };
    let is_choice = kind == Some(InputKind::Choice);
    let is_number = kind == Some(InputKind::Number);
    if kind.is_some() && !is_choice && fields.get("choices").is_some() {
        out_of_range(
            reading,
            fields,
            "choices",
            "left out: only an input of the type choice has choices",
        );
    }
    for key in ["min", "max"] {
        if kind.is_some() && !is_number && fields.get(key).is_some() {
            out_of_range(
                reading,
                fields,
                key,
                "left out: only an input of the type number has a range",
            );
        }
    }
    if is_choice {
        if fields.get("choices").is_none() {
            fields.missing(reading, "choices");
        } else if values.choices.len() < 2 {
            out_of_range(reading, fields, "choices", "a list of at least two different texts");
        } else if default.is_some_and(|text| !values.choices.iter().any(|one| one == text)) {
            out_of_range(reading, fields, "default", "one of the choices");
        }
    }
    if is_number {
        if let (Some(min), Some(max)) = (values.min, values.max)
            && min > max
        {
            out_of_range(reading, fields, "min", "at most max");
        }
        if default.is_some_and(|text| !is_in(text, values.min, values.max)) {
            out_of_range(reading, fields, "default", "a number in the input's range, in quotes");
        }
    }
    values
}

fn out_of_range(reading: &mut Reading<'_>, fields: &Fields<'_>, key: &str, allowed: &'static str) {
    let span = fields.get(key).map_or(fields.span.clone(), |value| value.span());
    let problem = WorkflowProblem::OutOfRange { key: key.to_owned(), allowed };
    reading.report(&span, problem);
}

/// Whether `text` is a decimal number in the range.
pub(crate) fn is_in(text: &str, min: Option<f64>, max: Option<f64>) -> bool {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.is_some_and(|number| {
        min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max)
    })
}

/// Texts of which none is empty or there twice.
fn distinct(reading: &mut Reading<'_>, fields: &Fields<'_>, key: &'static str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut texts = Vec::new();
    for text in fields.texts(reading, key) {
        let trimmed = text.value.trim().to_owned();
        if trimmed.is_empty() || !seen.insert(trimmed.clone()) {
            let allowed = "a list of different texts, none of them empty";
            let problem = WorkflowProblem::OutOfRange { key: key.to_owned(), allowed };
            reading.report(&text.span, problem);
        } else {
            texts.push(trimmed);
        }
    }
    texts
}

/// The condition of the stage.
pub(super) fn condition(reading: &mut Reading<'_>, scope: &Scope<'_>) -> Option<Condition> {
    let text = scope.raw[scope.index].fields.words(reading, "when")?;
    let condition = match Condition::parse(&text.value) {
        Ok(condition) => condition,
        Err(error) => {
            let span = reading.inside(&text, error.range);
            reading.report(&span, WorkflowProblem::Condition(error.message));
            return None;
        }
    };
    for name in condition.variables() {
        if let Err((suggestion, reason)) = scope.resolve(&name) {
            let problem = WorkflowProblem::UnknownVariable { name, suggestion, reason };
            reading.report(&text.span, problem);
        }
    }
    Some(condition)
}

/// How long an attempt of the stage may take.
pub(super) fn timeout(reading: &mut Reading<'_>, scope: &Scope<'_>) -> Option<Duration> {
    let fields = &scope.raw[scope.index].fields;
    let seconds = fields.whole(reading, "timeout_seconds", (1, 86_400), "between 1 and 86400");
    seconds.map(Duration::from_secs)
}

/// The stages that must be over before this one.
pub(super) fn needs(
    reading: &mut Reading<'_>,
    scope: &Scope<'_>,
    when: Option<&Condition>,
    step: Option<&Step>,
) -> Vec<StageId> {
    let fields = &scope.raw[scope.index].fields;
    let earlier = || scope.raw[..scope.index].iter().filter_map(|raw| raw.id());
    let mut needed: Vec<&str> = Vec::new();
    if fields.get("needs").is_none() {
        needed.extend(earlier().next_back());
    }
    for named in fields.texts(reading, "needs") {
        match earlier().find(|id| *id == named.value) {
            Some(id) => needed.push(id),
            None => {
                let suggestion = nearest(&named.value, earlier());
                let problem = WorkflowProblem::UnknownStage { id: named.value, suggestion };
                reading.report(&named.span, problem);
            }
        }
    }
    let mut variables: BTreeSet<String> = when.map(Condition::variables).unwrap_or_default();
    if let Some(call) = step.and_then(Step::call) {
        variables.extend(call.prompt.variables());
    }
    match step {
        Some(Step::Map(MapStep { over, .. }) | Step::Reduce(ReduceStep { over, .. })) => {
            variables.insert(over.to_string());
        }
        Some(Step::Command(step)) => {
            let templates = step.args.iter().chain(step.env.values()).chain(&step.cwd);
            variables.extend(templates.flat_map(Template::variables));
            variables.extend(step.stdin.as_ref().map(Source::to_string));
        }
        Some(Step::Write(step)) => {
            variables.extend(step.path.variables());
            variables.insert(step.from.to_string());
        }
        Some(Step::Read(step)) => {
            variables.extend(step.paths.iter().flat_map(Template::variables));
        }
        Some(Step::Approve(step)) => {
            variables.extend(step.show.as_ref().map(|name| format!("artifacts.{name}")));
        }
        _ => {}
    }
    needed.extend(scope.producers(variables.iter().map(String::as_str)));
    let mut seen = BTreeSet::new();
    needed.retain(|id| seen.insert(*id));
    needed.into_iter().map(StageId::new).collect()
}

/// Reports a prompt that does not show what its stage goes through.
pub(super) fn shown(
    reading: &mut Reading<'_>,
    kind: ModelKind,
    prompt: &Located<String>,
    template: &Template,
) {
    let (kind, variable) = match kind {
        ModelKind::Map => ("map", "piece"),
        ModelKind::Reduce => ("reduce", "pieces"),
        ModelKind::Generate | ModelKind::Choose => return,
    };
    if !template.variables().contains(variable) {
        reading.report(&prompt.span, WorkflowProblem::NotShown { kind, variable });
    }
}

/// The JSON Schema under `schema`: a table, or JSON in a text.
pub(super) fn schema(
    reading: &mut Reading<'_>,
    fields: &Fields<'_>,
) -> Option<(serde_json::Value, Schema)> {
    let value = fields.get("schema")?;
    let schema = match value.get_ref() {
        DeValue::Table(_) => json(value.get_ref()),
        DeValue::String(text) => serde_json::from_str(text).map_err(|error| error.to_string()),
        _ => Err("write it as a table, or as JSON in quotes".to_owned()),
    };
    let schema = schema.and_then(|schema| match schema.is_object() {
        true => Schema::new(&schema).map(|checked| (schema, checked)),
        false => Err("it is no object".to_owned()),
    });
    match schema {
        Ok(schema) => Some(schema),
        Err(message) => {
            reading.report(&value.span(), WorkflowProblem::Schema(message));
            None
        }
    }
}

/// TOML as JSON, in the order in which it is written.
fn json(value: &DeValue<'_>) -> Result<serde_json::Value, String> {
    use serde_json::Value;
    Ok(match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(truth) => Value::from(*truth),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Value::from)
            .map_err(|error| format!("{}: {error}", number.as_str()))?,
        DeValue::Float(number) => {
            let float = number.as_str().parse::<f64>().map_err(|error| error.to_string())?;
            serde_json::Number::from_f64(float)
                .map(Value::Number)
                .ok_or_else(|| format!("{float} is no number of JSON"))?
        }
        DeValue::Datetime(_) => return Err("JSON has no dates; write it in quotes".to_owned()),
        DeValue::Array(items) => {
            items.iter().map(|item| json(item.get_ref())).collect::<Result<_, _>>()?
        }
        DeValue::Table(table) => {
            // A table's keys are sorted when they are read; the text says their order.
            let mut entries: Vec<_> = table.iter().collect();
            entries.sort_by_key(|(key, _)| key.span().start);
            let mut object = serde_json::Map::new();
            for (key, value) in entries {
                object.insert(key.get_ref().to_string(), json(value.get_ref())?);
            }
            Value::Object(object)
        }
    })
}

/// What the stage does, around what the model is asked.
pub(super) fn step(
    reading: &mut Reading<'_>,
    scope: &Scope<'_>,
    kind: ModelKind,
    call: Option<GenerateStep>,
) -> Option<Step> {
    let fields = &scope.raw[scope.index].fields;
    match kind {
        ModelKind::Generate => call.map(Step::Generate),
        ModelKind::Choose => {
            let answer = answer(reading, fields);
            Some(Step::Choose(ChooseStep { ask: call?, answer: answer? }))
        }
        ModelKind::Map => {
            let over = required_source(reading, scope, "over");
            const TOKENS: (u64, u64) = (32, 1_000_000);
            let piece_tokens =
                fields.whole(reading, "piece_tokens", TOKENS, "between 32 and 1000000");
            let join = fields.text(reading, "join").map(|text| text.value);
            let redo_pieces = fields.truth(reading, "redo_pieces").unwrap_or(false);
            Some(Step::Map(MapStep {
                each: call?,
                over: over?,
                piece_tokens: piece_tokens.and_then(|tokens| usize::try_from(tokens).ok()),
                join: join.unwrap_or_else(|| "\n\n".to_owned()),
                redo_pieces,
            }))
        }
        ModelKind::Reduce => {
            let over = required_source(reading, scope, "over");
            Some(Step::Reduce(ReduceStep { each: call?, over: over? }))
        }
    }
}

fn required_source(
    reading: &mut Reading<'_>,
    scope: &Scope<'_>,
    key: &'static str,
) -> Option<Source> {
    let fields = &scope.raw[scope.index].fields;
    if fields.get(key).is_none() {
        fields.missing(reading, key);
    }
    source(reading, scope, key)
}

/// The input or artifact that `key` names. `None` when there is no such key, or after something
/// was reported.
pub(super) fn source(reading: &mut Reading<'_>, scope: &Scope<'_>, key: &str) -> Option<Source> {
    let name = scope.raw[scope.index].fields.words(reading, key)?;
    if let Err((suggestion, reason)) = scope.resolve(&name.value) {
        let name_ = name.value.clone();
        let problem = WorkflowProblem::UnknownVariable { name: name_, suggestion, reason };
        reading.report(&name.span, problem);
        return None;
    }
    let source = scope.source(&name.value);
    if source.is_none() {
        let allowed = "inputs.NAME or artifacts.NAME";
        let problem = WorkflowProblem::OutOfRange { key: key.to_owned(), allowed };
        reading.report(&name.span, problem);
    }
    source
}

/// What a `choose` stage can answer.
fn answer(reading: &mut Reading<'_>, fields: &Fields<'_>) -> Option<Answer> {
    match (fields.get("options"), fields.get("score")) {
        (Some(value), None) => {
            let options = distinct(reading, fields, "options");
            if !(2..=50).contains(&options.len()) {
                let allowed = "a list of 2 to 50 different texts";
                let problem = WorkflowProblem::OutOfRange { key: "options".to_owned(), allowed };
                reading.report(&value.span(), problem);
                return None;
            }
            Some(Answer::OneOf(options))
        }
        (None, Some(value)) => {
            let ends: Option<Vec<i64>> = value.get_ref().as_array().and_then(|items| {
                let number = |item: &DeValue<'_>| match item {
                    DeValue::Integer(number) => {
                        i64::from_str_radix(number.as_str(), number.radix()).ok()
                    }
                    _ => None,
                };
                items.iter().map(|item| number(item.get_ref())).collect()
            });
            match ends.as_deref() {
                Some([min, max]) if min < max && min.abs_diff(*max) < MOST_SCORES => {
                    Some(Answer::Score { min: *min, max: *max })
                }
                _ => {
                    let allowed = "the least and the greatest score, such as [1, 10]";
                    let problem = WorkflowProblem::OutOfRange { key: "score".to_owned(), allowed };
                    reading.report(&value.span(), problem);
                    None
                }
            }
        }
        _ => {
            let (place, one, other) = ("a choose stage", "options", "score");
            reading.report(&fields.span, WorkflowProblem::OneOf { place, one, other });
            None
        }
    }
}
