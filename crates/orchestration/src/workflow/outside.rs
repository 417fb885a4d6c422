//! Stages that touch the world outside: `command`, `write`, `read`.

use std::collections::BTreeMap;

use correx_events::ArtifactName;
use toml::de::DeValue;

use super::keys::EXISTING;
use super::kinds::source;
use super::parse::template;
use super::problem::WorkflowProblem;
use super::reading::{Fields, Located, Reading};
use super::scope::{OutsideKind, Scope};
use super::{CommandStep, Existing, ReadStep, Step, WriteStep};
use crate::Template;

/// The most that a command's output may be limited to: what an artifact may have at all.
pub(super) const MOST_OUTPUT: u64 = 64 << 20;

/// What the stage does. `None` only after something was reported.
pub(super) fn step(
    reading: &mut Reading<'_>,
    scope: &Scope<'_>,
    kind: OutsideKind,
    output: Option<&Located<String>>,
) -> Option<Step> {
    match kind {
        OutsideKind::Command => command(reading, scope, output).map(Step::Command),
        OutsideKind::Write => write(reading, scope).map(Step::Write),
        OutsideKind::Read => read(reading, scope, output).map(Step::Read),
    }
}

fn command(
    reading: &mut Reading<'_>,
    scope: &Scope<'_>,
    output: Option<&Located<String>>,
) -> Option<CommandStep> {
    let fields = &scope.raw[scope.index].fields;
    let program = fields.required_words(reading, "program");
    let program = program.and_then(|program| {
        // Which program runs is for the file and policy to say, never for a model.
        super::parse::plain(reading, Some(program), "program")
    });
    let args = templates(reading, scope, "args");
    let stdin = match fields.get("stdin") {
        Some(_) => source(reading, scope, "stdin").map(Some),
        None => Some(None),
    };
    let cwd = optional_template(reading, scope, "cwd");
    let env = env(reading, scope);
    let media_type = media_type(reading, fields);
    let max_output_bytes = fields.whole(
        reading,
        "max_output_bytes",
        (1, MOST_OUTPUT),
        "between 1 and 67108864 (64 MiB)",
    );
    let exit_codes = exit_codes(reading, fields);
    Some(CommandStep {
        program: program?,
        args: args?,
        stdin: stdin?,
        cwd: cwd?,
        env: env?,
        output: ArtifactName::new(output?.value.clone()),
        media_type,
        max_output_bytes,
        exit_codes: exit_codes?,
    })
}

fn write(reading: &mut Reading<'_>, scope: &Scope<'_>) -> Option<WriteStep> {
    let fields = &scope.raw[scope.index].fields;
    if fields.get("from").is_none() {
        fields.missing(reading, "from");
    }
    let from = source(reading, scope, "from");
    let path = fields.required_words(reading, "path");
    let path = path.and_then(|path| template(reading, scope, &path));
    let existing = match fields.words(reading, "existing") {
        None => Existing::Ask,
        Some(word) => match word.value.as_str() {
            "ask" => Existing::Ask,
            "fail" => Existing::Fail,
            _ => {
                let what = "answer to an existing file";
                super::names::unknown_word(reading, what, &word, EXISTING);
                return None;
            }
        },
    };
    Some(WriteStep { from: from?, path: path?, existing })
}

fn read(
    reading: &mut Reading<'_>,
    scope: &Scope<'_>,
    output: Option<&Located<String>>,
) -> Option<ReadStep> {
    let fields = &scope.raw[scope.index].fields;
    if fields.get("paths").is_none() {
        fields.missing(reading, "paths");
    }
    let paths = templates(reading, scope, "paths");
    if let (Some(value), Some([])) = (fields.get("paths"), paths.as_deref()) {
        let allowed = "a list with at least one file or folder";
        let problem = WorkflowProblem::OutOfRange { key: "paths".to_owned(), allowed };
        reading.report(&value.span(), problem);
        return None;
    }
    let media_type = media_type(reading, fields);
    Some(ReadStep { paths: paths?, output: ArtifactName::new(output?.value.clone()), media_type })
}

fn media_type(reading: &mut Reading<'_>, fields: &Fields<'_>) -> String {
    let media_type = fields.words(reading, "media_type").map(|text| text.value);
    media_type.unwrap_or_else(|| "text/plain".to_owned())
}

fn templates(reading: &mut Reading<'_>, scope: &Scope<'_>, key: &str) -> Option<Vec<Template>> {
    let texts = scope.raw[scope.index].fields.texts(reading, key);
    let read: Vec<Option<Template>> =
        texts.iter().map(|text| template(reading, scope, text)).collect();
    read.into_iter().collect()
}

fn optional_template(
    reading: &mut Reading<'_>,
    scope: &Scope<'_>,
    key: &str,
) -> Option<Option<Template>> {
    let fields = &scope.raw[scope.index].fields;
    match (fields.get(key), fields.words(reading, key)) {
        (None, _) => Some(None),
        (Some(_), text) => template(reading, scope, &text?).map(Some),
    }
}

/// Variables by name; their names are checked by policy, which decides about them.
fn env(reading: &mut Reading<'_>, scope: &Scope<'_>) -> Option<BTreeMap<String, Template>> {
    let fields = &scope.raw[scope.index].fields;
    let Some(value) = fields.get("env") else { return Some(BTreeMap::new()) };
    let DeValue::Table(table) = value.get_ref() else {
        fields.table(reading, "env", "env", &[]);
        return None;
    };
    let names: Vec<&str> = table.keys().map(|key| key.get_ref().as_ref()).collect();
    let fields = Fields::new(reading, table, value.span(), "env", &names);
    let mut env = BTreeMap::new();
    let mut is_whole = true;
    for name in names {
        match fields.text(reading, name).and_then(|text| template(reading, scope, &text)) {
            Some(template) => {
                env.insert(name.to_owned(), template);
            }
            None => is_whole = false,
        }
    }
    is_whole.then_some(env)
}

fn exit_codes(reading: &mut Reading<'_>, fields: &Fields<'_>) -> Option<Vec<i32>> {
    let Some(value) = fields.get("exit_codes") else { return Some(vec![0]) };
    let codes = value.get_ref().as_array().and_then(|items| {
        let code = |item: &DeValue<'_>| match item {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .ok()
                .filter(|code| (0..=255).contains(code))
                .and_then(|code| i32::try_from(code).ok()),
            _ => None,
        };
        items.iter().map(|item| code(item.get_ref())).collect::<Option<Vec<i32>>>()
    });
    match codes {
        Some(codes) if !codes.is_empty() => Some(codes),
        _ => {
            let allowed = "a list of numbers from 0 to 255, such as [0, 1]";
            let problem = WorkflowProblem::OutOfRange { key: "exit_codes".to_owned(), allowed };
            reading.report(&value.span(), problem);
            None
        }
    }
}
