//! `[stage.check]`: what a stage's output must satisfy.

use super::keys::FORMATS;
use super::names::unknown_word;
use super::problem::WorkflowProblem;
use super::reading::{Fields, Reading, nearest};
use crate::OutputCheck;
use crate::validate::{Form, Language, Phrase};

/// A pair of limits: the keys, and what they make.
type Limits = (&'static str, &'static str, fn(u64) -> OutputCheck, fn(u64) -> OutputCheck);

const LIMITS: &[Limits] = &[
    ("min_words", "max_words", OutputCheck::MinWords, OutputCheck::MaxWords),
    ("min_tokens", "max_tokens", OutputCheck::MinTokens, OutputCheck::MaxTokens),
    ("min_sentences", "max_sentences", OutputCheck::MinSentences, OutputCheck::MaxSentences),
    ("min_lines", "max_lines", OutputCheck::MinLines, OutputCheck::MaxLines),
];

pub(super) fn checks(reading: &mut Reading<'_>, fields: &Fields<'_>) -> Vec<OutputCheck> {
    const MANY: (u64, u64) = (1, 1_000_000);
    let mut checks = Vec::new();
    for (min_key, max_key, at_least, at_most) in LIMITS {
        let min = fields.whole(reading, min_key, MANY, "between 1 and 1000000");
        let max = fields.whole(reading, max_key, MANY, "between 1 and 1000000");
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            let span = fields.get(min_key).map_or(fields.span.clone(), |value| value.span());
            let problem = WorkflowProblem::NothingFits { min_key, min, max_key, max };
            reading.report(&span, problem);
        }
        checks.extend(min.map(at_least));
        checks.extend(max.map(at_most));
    }
    for (key, check) in [
        ("must_match", OutputCheck::must_match as fn(&str) -> _),
        ("must_not_match", OutputCheck::must_not_match),
    ] {
        for pattern in fields.texts(reading, key) {
            match check(&pattern.value) {
                Ok(check) => checks.push(check),
                Err(error) => reading.report(&pattern.span, WorkflowProblem::Pattern(error)),
            }
        }
    }
    for (key, check) in [
        ("must_contain", OutputCheck::MustContain as fn(Phrase) -> _),
        ("must_not_contain", OutputCheck::MustNotContain),
    ] {
        for text in fields.texts(reading, key) {
            match Phrase::new(&text.value) {
                Some(phrase) => checks.push(check(phrase)),
                None => {
                    let allowed = "texts with something in them";
                    let problem = WorkflowProblem::OutOfRange { key: key.to_owned(), allowed };
                    reading.report(&text.span, problem);
                }
            }
        }
    }
    checks.extend(language(reading, fields));
    let copied = fields.whole(reading, "max_copied_words", MANY, "between 1 and 1000000");
    checks.extend(copied.map(OutputCheck::MaxCopiedWords));
    for (key, check) in [
        ("known_numbers", OutputCheck::KnownNumbers),
        ("known_names", OutputCheck::KnownNames),
        ("kept_numbers", OutputCheck::KeptNumbers),
    ] {
        let is_wanted = fields.truth(reading, key).unwrap_or(false);
        checks.extend(is_wanted.then_some(check));
    }
    checks.extend(form(reading, fields));
    checks.extend(schema(reading, fields));
    checks
}

/// Questions to the model about the answer, shown as they are.
pub(super) fn judges(reading: &mut Reading<'_>, fields: &Fields<'_>) -> Vec<String> {
    let mut questions = Vec::new();
    for text in fields.texts(reading, "judge") {
        match text.value.trim() {
            "" => {
                let allowed = "a question, or a list of them";
                let problem = WorkflowProblem::OutOfRange { key: "judge".to_owned(), allowed };
                reading.report(&text.span, problem);
            }
            question => questions.push(question.to_owned()),
        }
    }
    questions
}

fn language(reading: &mut Reading<'_>, fields: &Fields<'_>) -> Option<OutputCheck> {
    let code = fields.words(reading, "language")?;
    match code.value.parse::<Language>() {
        Ok(language) => Some(OutputCheck::Language(language)),
        Err(_) => {
            let problem = WorkflowProblem::UnknownWord {
                what: "language",
                word: code.value.clone(),
                suggestion: nearest(&code.value, Language::codes()),
                choices: Language::codes().collect::<Vec<_>>().join(", "),
            };
            reading.report(&code.span, problem);
            None
        }
    }
}

fn form(reading: &mut Reading<'_>, fields: &Fields<'_>) -> Option<OutputCheck> {
    let word = fields.words(reading, "format");
    let columns = fields.texts(reading, "columns");
    let is_csv = word.as_ref().is_some_and(|word| word.value == "csv");
    if let Some(value) = fields.get("columns").filter(|_| !is_csv) {
        let allowed = "beside format = \"csv\"";
        let problem = WorkflowProblem::OutOfRange { key: "columns".to_owned(), allowed };
        reading.report(&value.span(), problem);
    }
    let word = word?;
    let form = match word.value.as_str() {
        "markdown" => Form::Markdown,
        "json" => Form::Json,
        "csv" => Form::Csv {
            columns: (!columns.is_empty())
                .then(|| columns.into_iter().map(|column| column.value).collect()),
        },
        _ => {
            unknown_word(reading, "format", &word, FORMATS);
            return None;
        }
    };
    Some(OutputCheck::Form(form))
}

fn schema(reading: &mut Reading<'_>, fields: &Fields<'_>) -> Option<OutputCheck> {
    super::kinds::schema(reading, fields).map(|(_, schema)| OutputCheck::Schema(schema))
}
