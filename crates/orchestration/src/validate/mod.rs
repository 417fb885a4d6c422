//! What a stage's output must satisfy before it becomes an artifact.
//!
//! # Layout
//! - [`OutputCheck`]: one requirement; [`examine`] holds a reply against all of a stage.
//! - [`wording`]: texts compared as people read them: [`Phrase`], the longest copied run.
//! - [`facts`]: numbers and names of an answer against those of what was shown.
//! - [`language`]: which language a text is in, where that is sure.
//! - [`form`]: Markdown, JSON, CSV; [`schema`]: JSON by a JSON Schema.

pub mod facts;
pub mod form;
pub mod language;
pub mod schema;
pub mod wording;

use correx_inference::FinishReason;
use regex::Regex;

pub use form::Form;
pub use language::Language;
pub use schema::Schema;
pub use wording::Phrase;

/// What is said to a model at once: more it does not follow.
const MAX_REQUESTS: usize = 3;
/// Numbers that are asked for at once.
const MAX_NUMBERS: usize = 6;
/// Letters of a pattern or a phrase that are repeated to the model.
const MAX_LETTERS: usize = 120;

/// One requirement. A refusal's message is written for the model's next attempt: the request first,
/// then what was wrong.
#[derive(Debug, Clone)]
pub enum OutputCheck {
    /// At least so many words.
    MinWords(u64),
    /// At most so many words.
    MaxWords(u64),
    /// At least so many tokens.
    MinTokens(u64),
    /// At most so many tokens.
    MaxTokens(u64),
    /// At least so many sentences, list items and table rows.
    MinSentences(u64),
    /// At most so many sentences, list items and table rows.
    MaxSentences(u64),
    /// At least so many lines with something in them.
    MinLines(u64),
    /// At most so many lines with something in them.
    MaxLines(u64),
    /// The pattern occurs.
    MustMatch(Regex),
    /// The pattern does not occur.
    MustNotMatch(Regex),
    /// The phrase occurs.
    MustContain(Phrase),
    /// The phrase does not occur.
    MustNotContain(Phrase),
    /// It is in this language, as far as that can be told.
    Language(Language),
    /// At most so many words in a row are from a text that the model was shown.
    MaxCopiedWords(u64),
    /// Its numbers are all in what the model was shown.
    KnownNumbers,
    /// Its names are all in what the model was shown.
    KnownNames,
    /// The numbers of what the model was shown are all in it.
    KeptNumbers,
    /// It is of this form.
    Form(Form),
    /// It is JSON that this schema accepts.
    Schema(Schema),
}

impl OutputCheck {
    /// Requires `pattern`, a regular expression. Refuses what is none, saying why.
    pub fn must_match(pattern: &str) -> Result<Self, String> {
        compile(pattern).map(Self::MustMatch)
    }

    /// Forbids `pattern`, a regular expression. Refuses what is none, saying why.
    pub fn must_not_match(pattern: &str) -> Result<Self, String> {
        compile(pattern).map(Self::MustNotMatch)
    }

    /// The key by which a workflow file asks for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MinWords(_) => "min_words",
            Self::MaxWords(_) => "max_words",
            Self::MinTokens(_) => "min_tokens",
            Self::MaxTokens(_) => "max_tokens",
            Self::MinSentences(_) => "min_sentences",
            Self::MaxSentences(_) => "max_sentences",
            Self::MinLines(_) => "min_lines",
            Self::MaxLines(_) => "max_lines",
            Self::MustMatch(_) => "must_match",
            Self::MustNotMatch(_) => "must_not_match",
            Self::MustContain(_) => "must_contain",
            Self::MustNotContain(_) => "must_not_contain",
            Self::Language(_) => "language",
            Self::MaxCopiedWords(_) => "max_copied_words",
            Self::KnownNumbers => "known_numbers",
            Self::KnownNames => "known_names",
            Self::KeptNumbers => "kept_numbers",
            Self::Form(_) => "format",
            Self::Schema(_) => "schema",
        }
    }

    /// What is said first: without the right form nothing else can be right, and a text in
    /// another language will have other words.
    fn rank(&self) -> u8 {
        match self {
            Self::Form(_) | Self::Schema(_) => 0,
            Self::Language(_) => 1,
            Self::MinWords(_)
            | Self::MaxWords(_)
            | Self::MinTokens(_)
            | Self::MaxTokens(_)
            | Self::MinSentences(_)
            | Self::MaxSentences(_)
            | Self::MinLines(_)
            | Self::MaxLines(_) => 2,
            Self::MustContain(_) | Self::MustMatch(_) | Self::KeptNumbers => 3,
            Self::MustNotContain(_)
            | Self::MustNotMatch(_)
            | Self::KnownNumbers
            | Self::KnownNames => 4,
            Self::MaxCopiedWords(_) => 5,
        }
    }

    /// Whether it says something also about an answer that was cut off.
    fn holds_for_a_part(&self) -> bool {
        match self {
            Self::MinWords(_)
            | Self::MinTokens(_)
            | Self::MinSentences(_)
            | Self::MinLines(_)
            | Self::MustContain(_)
            | Self::MustMatch(_)
            | Self::KeptNumbers
            | Self::Form(_)
            | Self::Schema(_) => false,
            Self::MaxWords(_)
            | Self::MaxTokens(_)
            | Self::MaxSentences(_)
            | Self::MaxLines(_)
            | Self::MustNotMatch(_)
            | Self::MustNotContain(_)
            | Self::Language(_)
            | Self::KnownNumbers
            | Self::KnownNames
            | Self::MaxCopiedWords(_) => true,
        }
    }

    /// What is wrong with the text, if anything. Never quotes it.
    fn objection(&self, examined: &Examined<'_>) -> Option<String> {
        let text = examined.text;
        let at_least = |min: u64, unit, count| {
            let had = numbered(count, unit);
            let min_units = numbered(min, unit);
            (count < min).then(|| format!("Write at least {min_units}; the last answer had {had}."))
        };
        let at_most = |max: u64, unit, count| {
            let had = numbered(count, unit);
            let max_units = numbered(max, unit);
            (count > max).then(|| format!("Write at most {max_units}; the last answer had {had}."))
        };
        match self {
            Self::MinWords(min) => at_least(*min, "word", count_words(text)),
            Self::MaxWords(max) => at_most(*max, "word", count_words(text)),
            Self::MinTokens(min) => at_least(*min, "token", (examined.count)(text) as u64),
            Self::MaxTokens(max) => at_most(*max, "token", (examined.count)(text) as u64),
            Self::MinSentences(min) => at_least(*min, "sentence", count_sentences(text)),
            Self::MaxSentences(max) => at_most(*max, "sentence", count_sentences(text)),
            Self::MinLines(min) => at_least(*min, "line", count_lines(text)),
            Self::MaxLines(max) => at_most(*max, "line", count_lines(text)),
            Self::MustMatch(pattern) => (!pattern.is_match(text)).then(|| {
                let pattern = short(pattern.as_str());
                format!("Write text of the form {pattern}; the last answer had none.")
            }),
            Self::MustNotMatch(pattern) => pattern.is_match(text).then(|| {
                let pattern = short(pattern.as_str());
                format!("Do not write text of the form {pattern}; the last answer had some.")
            }),
            Self::MustContain(phrase) => (!phrase.is_in(text)).then(|| {
                let phrase = short(phrase.as_str());
                format!("Write \"{phrase}\" in the answer; the last answer did not have it.")
            }),
            Self::MustNotContain(phrase) => phrase.is_in(text).then(|| {
                let phrase = short(phrase.as_str());
                format!("Do not write \"{phrase}\"; the last answer had it.")
            }),
            Self::Language(language) => language.contradicts(text).then(|| {
                let language = language.name();
                format!("Write in {language}; the last answer was in another language.")
            }),
            Self::KnownNumbers => {
                let unknown = facts::unknown_numbers(text, examined.shown);
                (unknown > 0).then(|| {
                    let unknown = numbered(unknown, "number");
                    format!(
                        "Write only numbers that stand in the text above; the last answer had \
                         {unknown} from elsewhere."
                    )
                })
            }
            Self::KnownNames => {
                let unknown = facts::unknown_names(text, examined.shown);
                (unknown > 0).then(|| {
                    let unknown = numbered(unknown, "name");
                    format!(
                        "Write only names that stand in the text above; the last answer had \
                         {unknown} from elsewhere."
                    )
                })
            }
            Self::KeptNumbers => {
                let lost = facts::lost_numbers(text, examined.shown);
                (!lost.is_empty()).then(|| {
                    let named = lost[..lost.len().min(MAX_NUMBERS)].join("; ");
                    format!("Write these numbers too: {named}. The last answer left them out.")
                })
            }
            Self::MaxCopiedWords(max) => {
                let copied = wording::longest_copy(text, examined.shown);
                let max_words = numbered(*max, "word");
                (copied > *max).then(|| {
                    format!(
                        "Use your own words and copy at most {max_words} in a row; the last answer \
                         copied {copied} in a row."
                    )
                })
            }
            Self::Form(form) => form.objection(text),
            Self::Schema(schema) => schema.objection(text),
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| {
        // The last line says what is wrong; those before it draw the pattern.
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default().trim();
        last.strip_prefix("error: ").unwrap_or(last).to_owned()
    })
}

/// A finished reply and what it is examined by.
pub struct Examined<'a> {
    /// The answer.
    pub text: &'a str,
    /// How it ended.
    pub finish: FinishReason,
    /// The most tokens that it could have.
    pub max_tokens: usize,
    /// Counts tokens as the model does.
    pub count: &'a dyn Fn(&str) -> usize,
    /// The inputs and artifacts that the model was shown.
    pub shown: &'a [&'a str],
}

/// Why an output was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputRefusal {
    /// The first validator that refused it: a key of `[stage.check]`, `not_empty`, `thinking` or
    /// `max_tokens`.
    pub validator: &'static str,
    /// What is wrong, the most important first and not more than a few things, in words that a
    /// model can act on. Never quotes the output.
    pub message: String,
}

/// Examines a finished reply: not empty, not cut off, and every check.
pub fn examine(examined: &Examined<'_>, checks: &[OutputCheck]) -> Result<(), OutputRefusal> {
    if examined.text.trim().is_empty() {
        let message = "Write the answer; the last one was empty.".to_owned();
        return Err(OutputRefusal { validator: "not_empty", message });
    }
    let mut objections = Vec::new();
    let cut_off = examined.finish == FinishReason::Length;
    if cut_off {
        let max_tokens = examined.max_tokens;
        let message =
            format!("Write a shorter answer; the last one was cut off at {max_tokens} tokens.");
        objections.push(("max_tokens", message));
    }
    let mut ranked: Vec<&OutputCheck> =
        checks.iter().filter(|check| !cut_off || check.holds_for_a_part()).collect();
    ranked.sort_by_key(|check| check.rank());
    objections
        .extend(ranked.iter().filter_map(|check| Some((check.name(), check.objection(examined)?))));
    match objections.first() {
        None => Ok(()),
        Some((validator, _)) => {
            let requests =
                objections.iter().take(MAX_REQUESTS).map(|(_, message)| message.as_str());
            let message = requests.collect::<Vec<_>>().join(" ");
            Err(OutputRefusal { validator, message })
        }
    }
}

/// The refusal of a reply of `tokens` tokens that thought and gave no answer.
pub(crate) fn only_thought(finish: FinishReason, tokens: usize) -> OutputRefusal {
    let how = match finish {
        FinishReason::Length => format!("used its whole reply of {tokens} tokens thinking"),
        _ => format!("thought for {tokens} tokens and gave no answer"),
    };
    let message = format!("Think briefly, then write the answer; the last attempt {how}.");
    OutputRefusal { validator: "thinking", message }
}

/// Words as people count them: what stands between white space.
pub fn count_words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

/// Sentences, list items and table rows, without headings.
fn count_sentences(text: &str) -> u64 {
    correx_documents::sentences(text).len() as u64
}

fn count_lines(text: &str) -> u64 {
    text.lines().filter(|line| !line.trim().is_empty()).count() as u64
}

fn numbered(count: u64, unit: &str) -> String {
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// What can be repeated to a model of a long text.
fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
