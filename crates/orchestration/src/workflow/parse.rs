//! From a file's text to a [`Workflow`], collecting every mistake on the way.

use std::ops::Range;

use correx_events::{ArtifactName, InputKind, StageId};
use toml::de::{DeTable, DeValue};

use super::checks::{checks, judges};
use super::keys::{self, CHECK, FILE, INPUT, INPUT_TYPES, SAMPLING};
use super::names::{ID_RULE, NAME_RULE, Names, check_name, is_id, is_name, unknown_word};
use super::problem::{WorkflowErrors, WorkflowProblem};
use super::reading::{Fields, Located, Reading, nearest};
use super::scope::{ModelKind, OutsideKind, RawKind, RawStage, Scope};
use super::{
    ApproveStep, DEFAULT_RETRIES, GenerateStep, InputSpec, Need, Sampling, Stage, Step, Workflow,
    kinds, outside,
};
use crate::{OutputCheck, Template};

pub(super) fn parse(text: &str) -> Result<Workflow, WorkflowErrors> {
    let mut reading = Reading::new(text);
    let (document, syntax) = DeTable::parse_recoverable(text);
    let broken: Vec<Range<usize>> =
        syntax.iter().map(|error| error.span().unwrap_or(0..0)).collect();
    for (error, span) in syntax.iter().zip(&broken) {
        reading.report(span, WorkflowProblem::Syntax(error.message().to_owned()));
    }
    let workflow = if broken.is_empty() {
        read_table(&mut reading, document.get_ref(), text)
    } else {
        // What else is wrong is looked for in the lines that are TOML, if they are a whole.
        let mended = reading.without_lines(&broken);
        DeTable::parse(&mended)
            .ok()
            .and_then(|document| read_table(&mut reading, document.get_ref(), text))
    };
    match workflow {
        Some(workflow) if !reading.has_problems() => Ok(workflow),
        _ => Err(WorkflowErrors { file: None, errors: reading.into_errors() }),
    }
}

fn read_table(reading: &mut Reading<'_>, table: &DeTable<'_>, text: &str) -> Option<Workflow> {
    let top = Fields::new(reading, table, 0..0, "a workflow", &keys::names(FILE));
    read(reading, &top, text)
}

/// `None` only after something was reported.
fn read(reading: &mut Reading<'_>, top: &Fields<'_>, source: &str) -> Option<Workflow> {
    if let Some(value) = top.get("version")
        && !matches!(value.get_ref(), DeValue::Integer(number) if number.as_str() == "1")
    {
        let found = match value.get_ref() {
            DeValue::Integer(number) => number.to_string(),
            _ => "of this form".to_owned(),
        };
        reading.report(&value.span(), WorkflowProblem::Version(found));
    }
    let name = top.required_words(reading, "name");
    let description = top.words(reading, "description").map(|text| text.value);
    let model = model(reading, top);
    let generation = top
        .table(reading, "generation", "[generation]", &keys::names(SAMPLING))
        .map(|fields| sampling(reading, &fields))
        .unwrap_or_default();
    let mut inputs = Vec::new();
    let mut input_names = Names::new("the input name");
    for (table, span) in top.tables(reading, "input") {
        inputs.extend(input(reading, table, span, &mut input_names));
    }
    let stages = stages(reading, top, &inputs);
    if top.tables(reading, "stage").is_empty() {
        reading.report(&(0..0), WorkflowProblem::NoStages);
    }
    Some(Workflow {
        name: name?.value,
        description,
        model: model?,
        generation,
        inputs,
        stages,
        source: source.to_owned(),
    })
}

fn sampling(reading: &mut Reading<'_>, fields: &Fields<'_>) -> Sampling {
    const TOKENS: (u64, u64) = (1, 1_000_000);
    let share = |number: f64| number > 0.0 && number <= 1.0;
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Sampling {
        temperature: fields.number(
            reading,
            "temperature",
            |number| (0.0..=5.0).contains(&number),
            "between 0 (always the likeliest word) and 5",
        ),
        top_p: fields.number(reading, "top_p", share, "above 0 and at most 1"),
        top_k: fields
            .whole(reading, "top_k", (0, 1_000_000), "a whole number from 0 (off)")
            .map(size),
        min_p: fields.number(
            reading,
            "min_p",
            |number| (0.0..=1.0).contains(&number),
            "between 0 and 1",
        ),
        // Bounded to two digits: nothing is lost that matters.
        repetition_penalty: fields
            .number(
                reading,
                "repetition_penalty",
                |number| (0.5..=5.0).contains(&number),
                "between 0.5 and 5; 1 is off",
            )
            .map(|number| number as f32),
        seed: fields.whole(reading, "seed", (0, u64::MAX), "a whole number from 0"),
        max_tokens: fields.whole(reading, "max_tokens", TOKENS, "between 1 and 1000000").map(size),
        thinking: fields.truth(reading, "thinking"),
    }
}

fn input(
    reading: &mut Reading<'_>,
    table: &DeTable<'_>,
    span: Range<usize>,
    names: &mut Names,
) -> Option<InputSpec> {
    let fields = Fields::new(reading, table, span, "an [[input]]", &keys::names(INPUT));
    let name = fields.required_words(reading, "name");
    if let Some(name) = &name {
        check_name(reading, "the name of an input", name, NAME_RULE, is_name);
        names.add(reading, name);
    }
    let kind = fields.required_words(reading, "type").and_then(|word| match word.value.as_str() {
        "text" => Some(InputKind::Text),
        "file" => Some(InputKind::File),
        "folder" => Some(InputKind::Folder),
        "choice" => Some(InputKind::Choice),
        "number" => Some(InputKind::Number),
        _ => {
            unknown_word(reading, "input type", &word, INPUT_TYPES);
            None
        }
    });
    let need = match fields.truth(reading, "required") {
        Some(false) => Need::Optional,
        _ => Need::Required,
    };
    let description = fields.words(reading, "description").map(|text| text.value);
    let default = fields.text(reading, "default").map(|text| text.value);
    let sample = fields.words(reading, "sample").map(|text| text.value);
    let values = kinds::values(reading, &fields, kind, default.as_deref());
    Some(InputSpec {
        name: name?.value,
        kind: kind?,
        description,
        need,
        default,
        sample,
        choices: values.choices,
        min: values.min,
        max: values.max,
    })
}

fn stages(reading: &mut Reading<'_>, top: &Fields<'_>, inputs: &[InputSpec]) -> Vec<Stage> {
    let mut ids = Names::new("the stage id");
    let mut outputs = Names::new("the output name");
    let mut raw = Vec::new();
    for (table, span) in top.tables(reading, "stage") {
        raw.push(raw_stage(reading, table, span, &mut ids, &mut outputs));
    }
    let mut stages = Vec::new();
    for index in 0..raw.len() {
        let scope = Scope { inputs, raw: &raw, index };
        stages.extend(stage(reading, &scope));
    }
    stages
}

fn raw_stage<'t>(
    reading: &mut Reading<'_>,
    table: &'t DeTable<'t>,
    span: Range<usize>,
    ids: &mut Names,
    outputs: &mut Names,
) -> RawStage<'t> {
    let kind = table.get("kind").and_then(|value| value.get_ref().as_str()).unwrap_or_default();
    let (place, known) = match keys::kind(kind) {
        Some(kind) => (kind.place, kind.names()),
        None => ("a stage", keys::any_stage()),
    };
    let fields = Fields::new(reading, table, span, place, &known);
    let id = fields.required_words(reading, "id");
    if let Some(id) = &id {
        check_name(reading, "the id of a stage", id, ID_RULE, is_id);
        ids.add(reading, id);
    }
    let title = fields.words(reading, "title").map(|text| text.value);
    let kind = match fields.required_words(reading, "kind") {
        None => RawKind::Unusable,
        Some(word) => match word.value.as_str() {
            "generate" | "map" | "reduce" | "choose" => {
                let kind = match word.value.as_str() {
                    "map" => ModelKind::Map,
                    "reduce" => ModelKind::Reduce,
                    "choose" => ModelKind::Choose,
                    _ => ModelKind::Generate,
                };
                RawKind::Model { kind, output: output(reading, &fields, id.as_ref(), outputs) }
            }
            "approve" => RawKind::Approve,
            "write" => RawKind::Outside { kind: OutsideKind::Write, output: None },
            "command" | "read" => {
                let kind = match word.value.as_str() {
                    "read" => OutsideKind::Read,
                    _ => OutsideKind::Command,
                };
                RawKind::Outside { kind, output: output(reading, &fields, id.as_ref(), outputs) }
            }
            _ => {
                unknown_word(reading, "stage kind", &word, &keys::kinds());
                RawKind::Unusable
            }
        },
    };
    RawStage { fields, id, title, kind }
}

/// The name of what a stage produces: its id's, unless it says another.
fn output(
    reading: &mut Reading<'_>,
    fields: &Fields<'_>,
    id: Option<&Located<String>>,
    outputs: &mut Names,
) -> Option<Located<String>> {
    let output = fields.words(reading, "output").inspect(|name| {
        check_name(reading, "the name of an output", name, NAME_RULE, is_name);
    });
    let output = output.or_else(|| {
        id.map(|id| Located { value: id.value.replace('-', "_"), span: id.span.clone() })
    });
    if let Some(name) = &output {
        outputs.add(reading, name);
    }
    output
}

fn stage(reading: &mut Reading<'_>, scope: &Scope<'_>) -> Option<Stage> {
    let raw = &scope.raw[scope.index];
    let step = match &raw.kind {
        RawKind::Model { kind, output } => {
            let call = generate(reading, scope, *kind, output.as_ref());
            kinds::step(reading, scope, *kind, call)
        }
        RawKind::Approve => approve(reading, scope).map(Step::Approve),
        RawKind::Outside { kind, output } => outside::step(reading, scope, *kind, output.as_ref()),
        RawKind::Unusable => None,
    };
    let id = raw.id()?;
    let title = raw.title.clone().unwrap_or_else(|| title_of(id));
    let when = kinds::condition(reading, scope);
    let timeout = kinds::timeout(reading, scope);
    let needs = kinds::needs(reading, scope, when.as_ref(), step.as_ref());
    Some(Stage { id: StageId::new(id), title, needs, when, timeout, step: step? })
}

fn generate(
    reading: &mut Reading<'_>,
    scope: &Scope<'_>,
    kind: ModelKind,
    output: Option<&Located<String>>,
) -> Option<GenerateStep> {
    let fields = &scope.raw[scope.index].fields;
    let prompt = fields.required_words(reading, "prompt");
    let prompt = prompt.and_then(|prompt| {
        let template = template(reading, scope, &prompt)?;
        kinds::shown(reading, kind, &prompt, &template);
        Some(template)
    });
    let system = fields.words(reading, "system");
    let system = plain(reading, system, "system");
    let media_type = fields.words(reading, "media_type").map(|text| text.value);
    let sampling = sampling(reading, fields);
    let model = model(reading, fields);
    let schema = kinds::schema(reading, fields);
    let by_default = match (kind, &schema) {
        (ModelKind::Choose, _) => "text/plain",
        (_, Some(_)) => "application/json",
        (_, None) => "text/markdown",
    };
    let retries = fields.whole(reading, "retries", (0, 20), "between 0 and 20");
    let (mut checks, judges) = fields
        .table(reading, "check", "[stage.check]", &keys::names(CHECK))
        .map(|fields| (checks(reading, &fields), judges(reading, &fields)))
        .unwrap_or_default();
    // Not every engine can hold an answer to a schema.
    let schema = schema.map(|(schema, checked)| {
        checks.push(OutputCheck::Schema(checked));
        schema
    });
    Some(GenerateStep {
        prompt: prompt?,
        system,
        model: model?,
        schema,
        output: ArtifactName::new(output?.value.clone()),
        media_type: media_type.unwrap_or_else(|| by_default.to_owned()),
        sampling,
        retries: retries.and_then(|n| u32::try_from(n).ok()).unwrap_or(DEFAULT_RETRIES),
        checks,
        judges,
    })
}

/// `None` only after something was reported.
fn model(reading: &mut Reading<'_>, fields: &Fields<'_>) -> Option<Option<String>> {
    match (fields.get("model"), fields.words(reading, "model")) {
        (Some(_), None) => None,
        (_, model) => Some(model.map(|model| model.value.trim().to_owned())),
    }
}

fn approve(reading: &mut Reading<'_>, scope: &Scope<'_>) -> Option<ApproveStep> {
    let fields = &scope.raw[scope.index].fields;
    let question = fields.required_words(reading, "prompt");
    let question = plain(reading, question, "prompt");
    let show = fields.words(reading, "show");
    if let Some(name) = &show
        && !scope.earlier_outputs().any(|output| output == name.value)
    {
        let problem = WorkflowProblem::UnknownArtifact {
            name: name.value.clone(),
            suggestion: nearest(&name.value, scope.earlier_outputs()),
        };
        reading.report(&name.span, problem);
    }
    let show = show.map(|name| ArtifactName::new(name.value));
    Some(ApproveStep { question: question?, show })
}

pub(super) fn template(
    reading: &mut Reading<'_>,
    scope: &Scope<'_>,
    text: &Located<String>,
) -> Option<Template> {
    let template = match Template::parse(&text.value) {
        Ok(template) => template,
        Err(error) => {
            let span = reading.inside(text, error.range);
            reading.report(&span, WorkflowProblem::Template(error.message));
            return None;
        }
    };
    for name in template.variables() {
        if let Err((suggestion, reason)) = scope.resolve(&name) {
            let span = match text.value.find(&name) {
                Some(start) => reading.inside(text, start..start + name.len()),
                None => text.span.clone(),
            };
            let problem = WorkflowProblem::UnknownVariable { name, suggestion, reason };
            reading.report(&span, problem);
        }
    }
    Some(template)
}

/// A text that is shown as it is: a template's marks in it are a mistake.
pub(super) fn plain(
    reading: &mut Reading<'_>,
    text: Option<Located<String>>,
    key: &'static str,
) -> Option<String> {
    let text = text?;
    match text.value.find("{{").or_else(|| text.value.find("{%")) {
        Some(at) => {
            let span = reading.inside(&text, at..at + 2);
            reading.report(&span, WorkflowProblem::NoTemplate { key });
            None
        }
        None => Some(text.value.trim().to_owned()),
    }
}

/// `action-items` → `Action items`.
fn title_of(id: &str) -> String {
    let words = id.replace(['-', '_'], " ");
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => words,
    }
}
