//! Replies held to a form while they are generated: llguidance says after every token which ones
//! may come next, by the bytes of the vocabulary's own tokens.
//!
//! - [`schema`]: what a JSON Schema is made stricter by, so that a small model comes to an end.
//! - [`held`]: a reply on its way, which may think before it takes the form.

mod held;
mod schema;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use correx_inference::{FormatError, InferenceError, ResponseFormat};
use llguidance::api::{GrammarWithLexer, ParserLimits, StopReason, TopLevelGrammar};
use llguidance::panic_utils::catch_unwind;
use llguidance::{Matcher, ParserFactory};
use toktrie::{
    ApproximateTokEnv, INVALID_TOKEN, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie,
};

use crate::tokenizer::Vocabulary;
pub(crate) use held::{Held, Permitted};

/// Bytes of the longest token that is looked at; longer ones are runs of spaces or damage, and
/// nothing can only be said by them.
const LONGEST_TOKEN: usize = 512;
/// Bytes of all texts of a choice together, and of a regular expression.
const LONGEST_CHOICE: usize = 64 << 10;
const LONGEST_REGEX: usize = 8 << 10;
/// Tokens that are judged together wherever a text goes on: short ones and all. With these two sets
/// a step takes about 0.1 ms for 49,000 tokens and 0.2 ms for 152,000, and they take 18 and 52 MB;
/// the library's own four are a third faster and take a third more.
const SLICES: [&str; 2] = [r#"[^"\\\x00-\x1F\x7F]{1,10}"#, r#"[^"\\\x00-\x1F\x7F]+"#];
/// States of one reply's lexer, at one or two kilobytes each.
const MOST_STATES: usize = 50_000;

/// What a loaded model needs to hold replies to forms. Nothing is built before the first one.
pub(crate) struct Forms {
    vocabulary: Arc<Vocabulary>,
    factory: OnceLock<Result<ParserFactory, FormatError>>,
}

impl Forms {
    /// For replies in the tokens of `vocabulary`.
    pub(crate) fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self { vocabulary, factory: OnceLock::new() }
    }

    /// What holds a reply to `format`; nothing for free text. Takes milliseconds, the first time
    /// some hundreds.
    pub(crate) fn compile(
        &self,
        format: &ResponseFormat,
    ) -> Result<Option<Constraint>, FormatError> {
        let Some(grammar) = grammar(format)? else { return Ok(None) };
        let factory = self.factory.get_or_init(|| factory(&self.vocabulary));
        let parser = factory
            .as_ref()
            .map_err(FormatError::clone)?
            .create_parser(grammar)
            .map_err(|error| refused(format, &error.to_string()))?;
        let mut constraint = Constraint { matcher: Matcher::new(Ok(parser)) };
        // What cannot be followed even once is found out here, before anything is evaluated.
        constraint.permitted().map_err(|problem| refused(format, problem.text()))?;
        Ok(Some(constraint))
    }
}

/// The form in the language of llguidance.
fn grammar(format: &ResponseFormat) -> Result<Option<TopLevelGrammar>, FormatError> {
    let grammar = match format {
        ResponseFormat::Text => return Ok(None),
        ResponseFormat::JsonSchema(schema) => {
            GrammarWithLexer::from_json_schema(schema::prepare(schema)?)
        }
        ResponseFormat::Choice(texts) => {
            if texts.is_empty() {
                return Err(FormatError::NoChoice);
            }
            if texts.iter().any(String::is_empty) {
                return Err(FormatError::EmptyChoice);
            }
            let texts: Vec<String> = texts.iter().map(|text| regex_syntax::escape(text)).collect();
            let regex = texts.join("|");
            limit(&regex, LONGEST_CHOICE, "the texts to choose from")?;
            GrammarWithLexer::from_regex(&format!("(?:{regex})"))
        }
        ResponseFormat::Regex(regex) => {
            limit(regex, LONGEST_REGEX, "the regular expression")?;
            GrammarWithLexer::from_regex(whole(regex))
        }
    };
    Ok(Some(TopLevelGrammar::from_grammar(grammar)))
}

fn limit(text: &str, most: usize, what: &str) -> Result<(), FormatError> {
    if text.len() <= most {
        return Ok(());
    }
    Err(FormatError::TooLarge(format!("{what} take {} bytes of at most {most}", text.len())))
}

/// The expression without the anchors that many write around one that is to match a whole text.
fn whole(regex: &str) -> &str {
    let inner = regex.strip_prefix('^').unwrap_or(regex);
    match inner.strip_suffix('$') {
        // An escaped sign is no anchor.
        Some(rest) if rest.len() - rest.trim_end_matches('\\').len() == 1 => inner,
        Some(rest) => rest,
        None => inner,
    }
}

fn factory(vocabulary: &Vocabulary) -> Result<ParserFactory, FormatError> {
    let count = u32::try_from(vocabulary.len()).unwrap_or(u32::MAX);
    let words: Vec<Vec<u8>> = (0..count)
        .map(|id| vocabulary.plain_bytes(id))
        .map(|bytes| if bytes.len() > LONGEST_TOKEN { Vec::new() } else { bytes.to_vec() })
        .collect();
    let stops = vocabulary.stops();
    // A vocabulary comes from a file, and the library asserts what it takes for granted.
    let built = catch_unwind(AssertUnwindSafe(|| {
        let stop = stops.first().copied().unwrap_or(INVALID_TOKEN);
        let mut trie = TokTrie::from(&TokRxInfo::new(count, stop), &words);
        if !stops.is_empty() {
            trie = trie.with_eos_tokens(stops);
        }
        let tokens: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let slices = SLICES.map(str::to_owned);
        ParserFactory::new(&tokens, InferenceCapabilities::default(), &slices)
    }));
    let mut factory = built.map_err(|error| {
        tracing::warn!(%error, "replies of this model cannot be held to a form");
        FormatError::NotSupported
    })?;
    factory.quiet();
    *factory.limits_mut() = ParserLimits {
        max_lexer_states: MOST_STATES,
        verbose_errors: false,
        ..ParserLimits::default()
    };
    Ok(factory)
}

/// Why `format` was refused, from what the library says.
fn refused(format: &ResponseFormat, text: &str) -> FormatError {
    let text = first_line(text);
    let exhausted = ["fuel", "too large", "too big", "too complex", "limit", "too many"];
    if exhausted.iter().any(|word| text.to_lowercase().contains(word)) {
        return FormatError::TooLarge(text);
    }
    match format {
        ResponseFormat::JsonSchema(_) => FormatError::Schema(text),
        ResponseFormat::Regex(_) | ResponseFormat::Choice(_) | ResponseFormat::Text => {
            FormatError::Regex(text)
        }
    }
}

/// The library adds the state that it was in, which says nothing to a person.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// How far a reply has come in its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More may or must come.
    Open,
    /// Nothing may come any more.
    Complete,
}

/// Why a reply cannot go on in its form.
#[derive(Debug)]
pub(crate) enum Stuck {
    /// Following it takes too much.
    TooLarge(String),
    /// Anything else.
    Other(String),
}

impl Stuck {
    fn text(&self) -> &str {
        let (Self::TooLarge(text) | Self::Other(text)) = self;
        text
    }
}

impl From<Stuck> for InferenceError {
    fn from(stuck: Stuck) -> Self {
        match stuck {
            Stuck::TooLarge(text) => Self::Format(FormatError::TooLarge(text)),
            Stuck::Other(text) => {
                Self::Engine(format!("the reply could not be held to its form: {text}"))
            }
        }
    }
}

/// Follows one reply.
pub(crate) struct Constraint {
    matcher: Matcher,
}

impl Constraint {
    /// The ids that may come next, in order; those that end the reply only where the form may end.
    pub(crate) fn permitted(&mut self) -> Result<Vec<u32>, Stuck> {
        match self.matcher.compute_mask_or_eos() {
            Ok(mask) => Ok(mask.to_list()),
            Err(error) => Err(self.stuck(&error.to_string())),
        }
    }

    /// Goes on by `id`, one of those permitted.
    pub(crate) fn take(&mut self, id: u32) -> Result<Progress, Stuck> {
        self.take_all(&[id])
    }

    /// Goes on by a text that has been said already.
    fn take_text(&mut self, text: &str) -> Result<Progress, Stuck> {
        match self.matcher.tok_env() {
            Ok(tokens) => self.take_all(&tokens.tokenize(text)),
            Err(error) => Err(self.stuck(&error.to_string())),
        }
    }

    fn take_all(&mut self, ids: &[u32]) -> Result<Progress, Stuck> {
        if let Err(error) = self.matcher.consume_tokens(ids) {
            return Err(self.stuck(&error.to_string()));
        }
        Ok(if self.matcher.is_stopped() { Progress::Complete } else { Progress::Open })
    }

    fn stuck(&self, error: &str) -> Stuck {
        let reason = self.matcher.stop_reason();
        let too_large =
            matches!(reason, StopReason::LexerTooComplex | StopReason::ParserTooComplex);
        let text = match first_line(error) {
            text if text.is_empty() || text == StopReason::NoExtensionBias.to_string() => {
                "none of the model's tokens can go on in it".to_owned()
            }
            text => text,
        };
        if too_large { Stuck::TooLarge(text) } else { Stuck::Other(text) }
    }
}
