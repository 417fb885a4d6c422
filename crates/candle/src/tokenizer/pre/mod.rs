//! How text is split before pieces are merged.
//!
//! A GGUF file only names its rule. [`rules`] says what each name means; an unknown name is
//! refused, because a wrong rule gives wrong tokens with no sign of it. [`steps`] carries a rule
//! out.
//!
//! The stock pre-tokenizers are not used: the peer that our ids are compared with sees every
//! character beyond ASCII as its category only (all letters are both large and small to it), knows
//! Unicode up to 15.1, and looks at each piece as if nothing stood beside it.

mod rules;
mod sets;
mod steps;

use tokenizers::{NormalizedString, PreTokenizedString, PreTokenizer, normalizer::Range};

use super::VocabularyError;

pub(super) use rules::{Begins, Rule, Symbols};
use steps::CompiledStep;

/// The rule that files call `name`.
pub(super) fn rule(name: &str) -> Result<&'static Rule, VocabularyError> {
    rules::find(name).ok_or_else(|| VocabularyError::PreTokenizer {
        name: correx_gguf::shown(name).into_owned(),
        known: names().collect::<Vec<_>>().join(", "),
    })
}

/// Every name that is known, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&str> = rules::RULES.iter().flat_map(|rule| rule.names).copied().collect();
    names.sort_unstable();
    names.into_iter()
}

/// A rule, ready to split text.
#[derive(Debug)]
pub(super) struct Splitter {
    steps: Vec<CompiledStep>,
}

impl Splitter {
    pub(super) fn new(rule: &Rule) -> Result<Self, VocabularyError> {
        let steps = rule.steps.iter().map(CompiledStep::new).collect::<Result<_, _>>()?;
        Ok(Self { steps })
    }

    /// Where each piece of `text` ends, in bytes, in order.
    pub(super) fn ends(&self, text: &str) -> Vec<usize> {
        steps::ends(&self.steps, text)
    }
}

impl PreTokenizer for Splitter {
    fn pre_tokenize(&self, pretokenized: &mut PreTokenizedString) -> tokenizers::Result<()> {
        pretokenized.split(|_, text: NormalizedString| {
            let mut start = 0;
            let ends = self.ends(text.get());
            let pieces: Option<Vec<NormalizedString>> = ends
                .into_iter()
                .map(|end| {
                    let piece = text.slice(Range::Normalized(start..end));
                    start = end;
                    piece
                })
                .collect();
            pieces.ok_or_else(|| "a piece does not begin and end with a character".into())
        })
    }
}

#[cfg(test)]
mod tests;
