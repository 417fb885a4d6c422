//! From a file's text to a [`Policy`], collecting every mistake on the way.

use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::problem::{PolicyErrors, PolicyProblem};
use super::reading::{Fields, Located, Reading, text_of};
use super::{
    CommandRule, FolderRule, NameRule, Origin, OverExisting, Policy, ProgramRule, Variable,
};
use crate::{ArgumentPattern, NamePattern};

const TOP: &[&str] = &["version", "command", "read", "write", "approval", "deny"];
const COMMAND: &[&str] = &["program", "arguments", "environment", "folders", "approval"];
const READ: &[&str] = &["folders"];
const WRITE: &[&str] = &["folders", "existing"];
const LISTS: &[&str] = &["programs", "folders", "files"];

pub(super) fn parse(text: &str, home: Option<&Path>) -> Result<Policy, PolicyErrors> {
    let mut reading = Reading::new(text);
    let (document, syntax) = DeTable::parse_recoverable(text);
    let mut policy = Policy { origin: Origin::File, ..Policy::default() };
    if syntax.is_empty() {
        let top = Fields::new(&mut reading, document.get_ref(), 0..0, "a policy", TOP);
        read(&mut reading, &top, home, &mut policy);
    }
    for error in &syntax {
        let span = error.span().unwrap_or(0..0);
        reading.report(&span, PolicyProblem::Syntax(error.message().trim_end().to_owned()));
    }
    match reading.into_errors() {
        None => Ok(policy),
        Some(errors) => Err(errors),
    }
}

fn read(reading: &mut Reading<'_>, top: &Fields<'_>, home: Option<&Path>, policy: &mut Policy) {
    match top.get("version") {
        None => reading.report(
            &top.span,
            PolicyProblem::Missing { key: "version", place: top.place, example: "version = 1" },
        ),
        Some(value) => match value.get_ref() {
            DeValue::Integer(number) if number.as_str() == "1" => {}
            DeValue::Integer(number) => {
                reading.report(&value.span(), PolicyProblem::Version(number.to_string()));
            }
            _ => reading.wrong_type("version", "the whole number 1", value),
        },
    }
    if let Some(value) = top.get("command") {
        const EXPECTED: &str = "a list of tables, each under [[command]]";
        match value.get_ref() {
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    match item.get_ref() {
                        DeValue::Table(table) => {
                            let fields =
                                Fields::new(reading, table, item.span(), "a [[command]]", COMMAND);
                            policy.commands.extend(command(reading, &fields, home, index + 1));
                        }
                        _ => reading.wrong_type("command", EXPECTED, item),
                    }
                }
            }
            _ => reading.wrong_type("command", EXPECTED, value),
        }
    }
    if let Some(fields) = top.table(reading, "read", "[read]", READ) {
        policy.read = folders(reading, &fields, home);
    }
    if let Some(fields) = top.table(reading, "write", "[write]", WRITE) {
        policy.write = folders(reading, &fields, home);
        if let Some(word) = fields.text(reading, "existing") {
            match word.value.as_str() {
                "ask" => policy.existing = OverExisting::Ask,
                "deny" => policy.existing = OverExisting::Deny,
                _ => {
                    let choices = "\"ask\" or \"deny\"";
                    let problem = PolicyProblem::UnknownWord {
                        key: "existing",
                        word: word.value.clone(),
                        choices,
                    };
                    reading.report(&word.span, problem);
                }
            }
        }
    }
    if let Some(fields) = top.table(reading, "approval", "[approval]", LISTS) {
        policy.approval.programs = programs(reading, &fields, home);
        policy.approval.folders = folders(reading, &fields, home);
        policy.approval.files = files(reading, &fields);
    }
    if let Some(fields) = top.table(reading, "deny", "[deny]", LISTS) {
        policy.deny.programs = programs(reading, &fields, home);
        policy.deny.folders = folders(reading, &fields, home);
        policy.deny.files = files(reading, &fields);
    }
}

/// `None` only after something was reported.
fn command(
    reading: &mut Reading<'_>,
    fields: &Fields<'_>,
    home: Option<&Path>,
    number: usize,
) -> Option<CommandRule> {
    let place = fields.place;
    let missing = |reading: &mut Reading<'_>, key, example| {
        reading.report(&fields.span, PolicyProblem::Missing { key, place, example });
    };
    if fields.get("program").is_none() {
        missing(reading, "program", "program = \"pandoc\", or its absolute path");
    }
    let name = fields.text(reading, "program");
    let program = name.and_then(|name| program(reading, &name, home));
    if fields.get("arguments").is_none() {
        missing(
            reading,
            "arguments",
            "arguments = [[\"--to\", \"html\", \"*\"]]; [[]] is \"without arguments\", \
             [[\"...\"]] is any",
        );
    }
    let arguments = arguments(reading, fields);
    let environment = fields
        .texts(reading, "environment")
        .iter()
        .filter_map(|text| variable(reading, text))
        .collect();
    let folders = folders(reading, fields, home);
    let approval = fields.truth(reading, "approval").unwrap_or(false);
    Some(CommandRule { number, program: program?, arguments, environment, folders, approval })
}

fn arguments(reading: &mut Reading<'_>, fields: &Fields<'_>) -> Vec<ArgumentPattern> {
    const KEY: &str = "arguments";
    const EXPECTED: &str = "a list of lists of texts";
    let Some(value) = fields.get(KEY) else { return Vec::new() };
    let DeValue::Array(lines) = value.get_ref() else {
        reading.wrong_type(KEY, EXPECTED, value);
        return Vec::new();
    };
    if lines.is_empty() {
        reading.report(&value.span(), PolicyProblem::NoArguments);
    }
    let mut patterns = Vec::new();
    for line in lines {
        let items = match line.get_ref() {
            DeValue::Array(items) => items,
            DeValue::String(_) => {
                reading.report(&value.span(), PolicyProblem::FlatArguments);
                return patterns;
            }
            _ => {
                reading.wrong_type(KEY, EXPECTED, line);
                continue;
            }
        };
        let mut texts = Vec::new();
        for item in items {
            match text_of(item) {
                Some(text) => texts.push(text),
                None => reading.wrong_type(KEY, EXPECTED, item),
            }
        }
        let written: Vec<&str> = texts.iter().map(|text| text.value.as_str()).collect();
        match ArgumentPattern::parse(&written) {
            Ok(pattern) => patterns.push(pattern),
            Err((index, problem)) => {
                let pattern = texts[index].value.clone();
                reading.report(&texts[index].span, PolicyProblem::Pattern { pattern, problem });
            }
        }
    }
    patterns
}

/// Variables by which whoever sets them chooses what code is run.
const OPEN: &[&str] = &[
    "BASH_ENV",
    "CLASSPATH",
    "ENV",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "PERL5LIB",
    "PERL5OPT",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "SHELLOPTS",
];

fn variable(reading: &mut Reading<'_>, text: &Located<String>) -> Option<Variable> {
    let (name, value) = match text.value.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text.value.as_str(), None),
    };
    let mut characters = name.chars();
    let is_name =
        characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|other| other.is_ascii_alphanumeric() || other == '_')
            && !value.as_ref().is_some_and(|value| value.contains('\0'));
    let upper = name.to_ascii_uppercase();
    if !is_name {
        reading.report(&text.span, PolicyProblem::Variable(text.value.clone()));
        return None;
    }
    if upper == "PATH" || upper == crate::command::MARKER {
        reading.report(&text.span, PolicyProblem::OwnVariable(name.to_owned()));
        return None;
    }
    let open = OPEN.contains(&upper.as_str())
        || ["LD_", "DYLD_"].iter().any(|start| upper.starts_with(start));
    if open && value.is_none() {
        reading.report(&text.span, PolicyProblem::OpenVariable(name.to_owned()));
        return None;
    }
    Some(Variable { name: name.to_owned(), value })
}

fn program(
    reading: &mut Reading<'_>,
    text: &Located<String>,
    home: Option<&Path>,
) -> Option<ProgramRule> {
    let written = text.value.clone();
    if text.value.starts_with('~') {
        let path = expand(reading, text, home)?;
        let wanted = path.to_string_lossy().into_owned();
        return Some(ProgramRule { written, wanted });
    }
    let is_bare =
        !text.value.contains(['/', '\\']) && !matches!(text.value.trim(), "" | "." | "..");
    if is_bare || Path::new(&text.value).is_absolute() {
        return Some(ProgramRule { wanted: text.value.clone(), written });
    }
    reading.report(&text.span, PolicyProblem::Program(written));
    None
}

fn programs(
    reading: &mut Reading<'_>,
    fields: &Fields<'_>,
    home: Option<&Path>,
) -> Vec<ProgramRule> {
    let texts = fields.texts(reading, "programs");
    texts.iter().filter_map(|text| program(reading, text, home)).collect()
}

fn folders(reading: &mut Reading<'_>, fields: &Fields<'_>, home: Option<&Path>) -> Vec<FolderRule> {
    let texts = fields.texts(reading, "folders");
    texts
        .iter()
        .filter_map(|text| {
            let path = expand(reading, text, home)?;
            Some(FolderRule { written: text.value.clone(), path })
        })
        .collect()
}

fn files(reading: &mut Reading<'_>, fields: &Fields<'_>) -> Vec<NameRule> {
    let texts = fields.texts(reading, "files");
    texts
        .iter()
        .filter_map(|text| match NamePattern::parse(&text.value) {
            Ok(pattern) => Some(NameRule { pattern }),
            Err(problem) => {
                let pattern = text.value.clone();
                reading.report(&text.span, PolicyProblem::Pattern { pattern, problem });
                None
            }
        })
        .collect()
}

/// An absolute path, with the home folder in place of `~`.
fn expand(
    reading: &mut Reading<'_>,
    text: &Located<String>,
    home: Option<&Path>,
) -> Option<PathBuf> {
    let written = text.value.as_str();
    if let Some(below) = written.strip_prefix('~')
        && (below.is_empty() || below.starts_with(['/', '\\']))
    {
        let below = below.trim_start_matches(['/', '\\']);
        return match home {
            Some(home) if below.is_empty() => Some(home.to_owned()),
            Some(home) => Some(home.join(below)),
            None => {
                reading.report(&text.span, PolicyProblem::NoHome(written.to_owned()));
                None
            }
        };
    }
    if Path::new(written).is_absolute() && !written.chars().any(char::is_control) {
        return Some(PathBuf::from(written));
    }
    reading.report(&text.span, PolicyProblem::NotAbsolute(written.to_owned()));
    None
}
