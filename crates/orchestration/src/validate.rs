//! What a stage's output must satisfy before it becomes an artifact.

use correx_inference::FinishReason;
use regex::Regex;

/// One requirement. A refusal's message is written for the model's next attempt: the request first,
/// then what was wrong.
#[derive(Debug, Clone)]
pub enum OutputCheck {
    /// At least so many words.
    MinWords(u64),
    /// At most so many words.
    MaxWords(u64),
    /// The pattern occurs.
    MustMatch(Regex),
    /// The pattern does not occur.
    MustNotMatch(Regex),
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
            Self::MustMatch(_) => "must_match",
            Self::MustNotMatch(_) => "must_not_match",
        }
    }

    /// What is wrong with `text`, if anything. Never quotes it.
    fn objection(&self, text: &str) -> Option<String> {
        let words = count_words(text);
        let had = format!("the last answer had {words} word{}", if words == 1 { "" } else { "s" });
        match self {
            Self::MinWords(min) => {
                (words < *min).then(|| format!("Write at least {min} words; {had}."))
            }
            Self::MaxWords(max) => {
                (words > *max).then(|| format!("Write at most {max} words; {had}."))
            }
            Self::MustMatch(pattern) => (!pattern.is_match(text))
                .then(|| format!("Write text of the form {pattern}; the last answer had none.")),
            Self::MustNotMatch(pattern) => pattern.is_match(text).then(|| {
                format!("Do not write text of the form {pattern}; the last answer had some.")
            }),
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

/// Why an output was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputRefusal {
    /// The first validator that refused it: a key of `[stage.check]`, `not_empty`, `thinking` or
    /// `max_tokens`.
    pub validator: &'static str,
    /// Everything that is wrong, in words that a model can act on. Never quotes the output.
    pub message: String,
}

/// Examines a finished reply: not empty, not cut off at `max_tokens`, and every check.
pub fn examine(
    text: &str,
    finish: FinishReason,
    max_tokens: usize,
    checks: &[OutputCheck],
) -> Result<(), OutputRefusal> {
    if text.trim().is_empty() {
        let message = "Write the answer; the last one was empty.".to_owned();
        return Err(OutputRefusal { validator: "not_empty", message });
    }
    let mut objections = Vec::new();
    if finish == FinishReason::Length {
        let message =
            format!("Write a shorter answer; the last one was cut off at {max_tokens} tokens.");
        objections.push(("max_tokens", message));
    }
    objections
        .extend(checks.iter().filter_map(|check| Some((check.name(), check.objection(text)?))));
    match objections.first() {
        None => Ok(()),
        Some((validator, _)) => {
            let messages: Vec<&str> =
                objections.iter().map(|(_, message)| message.as_str()).collect();
            Err(OutputRefusal { validator, message: messages.join(" ") })
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
