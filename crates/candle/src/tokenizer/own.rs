//! Tokens that a file defines beside its pieces: texts that are one token wherever they stand.
//!
//! The longest is looked for first, in the whole text; then the next one in what is left, and so
//! on. (Going from left to right and taking the longest at each place would find others.)

use aho_corasick::AhoCorasick;
use correx_gguf::{Gguf, Texts};

use super::tokens::TokenKind;

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Text from here to there, in bytes.
    Text(usize, usize),
    /// A token that begins here.
    Token(u32, usize),
}

/// White space beside a token that is taken away with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Strip {
    /// Before it.
    pub(crate) left: bool,
    /// Behind it.
    pub(crate) right: bool,
}

/// One of these tokens.
#[derive(Debug)]
struct OwnToken {
    id: u32,
    text: String,
    strip: Strip,
}

/// The tokens that are cut out of texts.
#[derive(Debug)]
pub(super) struct OwnTokens {
    /// The longest first.
    tokens: Vec<OwnToken>,
    automaton: Option<AhoCorasick>,
}

impl OwnTokens {
    pub(super) fn new(tokens: impl IntoIterator<Item = (u32, String, Strip)>) -> Self {
        let mut tokens: Vec<OwnToken> = tokens
            .into_iter()
            .filter(|(_, text, _)| !text.is_empty())
            .map(|(id, text, strip)| OwnToken { id, text, strip })
            .collect();
        tokens.sort_by_key(|token| std::cmp::Reverse(token.text.len()));
        let automaton = match tokens.is_empty() {
            true => None,
            false => AhoCorasick::new(tokens.iter().map(|token| &token.text)).ok(),
        };
        Self { tokens, automaton }
    }

    /// Cuts `text` at these tokens.
    pub(super) fn cut(&self, text: &str) -> Vec<Part> {
        let mut parts = match text.is_empty() {
            true => Vec::new(),
            false => vec![Part::Text(0, text.len())],
        };
        for token in self.occurring(text) {
            let mut cut = Vec::with_capacity(parts.len());
            for part in parts {
                match part {
                    Part::Text(start, end) => cut_at(token, text, start, end, &mut cut),
                    Part::Token(..) => cut.push(part),
                }
            }
            parts = cut;
        }
        parts
    }

    /// The tokens that are somewhere in `text`, the longest first.
    fn occurring(&self, text: &str) -> Vec<&OwnToken> {
        let Some(automaton) = &self.automaton else { return Vec::new() };
        let mut seen = vec![false; self.tokens.len()];
        for found in automaton.find_overlapping_iter(text) {
            seen[found.pattern().as_usize()] = true;
        }
        self.tokens.iter().zip(seen).filter_map(|(token, seen)| seen.then_some(token)).collect()
    }
}

fn cut_at(token: &OwnToken, text: &str, start: usize, end: usize, cut: &mut Vec<Part>) {
    let mut done = start;
    while let Some(found) = text[done..end].find(&token.text) {
        let place = done + found;
        let before = match token.strip.left {
            true => text[done..place].trim_end_matches(is_blank).len(),
            false => found,
        };
        if before > 0 {
            cut.push(Part::Text(done, done + before));
        }
        cut.push(Part::Token(token.id, place));
        done = place + token.text.len();
        if token.strip.right {
            done = end - text[done..end].trim_start_matches(is_blank).len();
        }
    }
    if done < end {
        cut.push(Part::Text(done, end));
    }
}

/// What counts as white space beside a token.
pub(crate) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

/// The tokens that take white space away, by id. Files do not say it: it goes by their names.
pub(super) fn strips(gguf: &Gguf, texts: &Texts, kinds: &[TokenKind]) -> Vec<(u32, Strip)> {
    let has = |key: &str, parts: &[&str]| {
        let value = gguf.text(key).unwrap_or_default().to_ascii_lowercase();
        parts.iter().any(|part| value.contains(part))
    };
    let (right, left) =
        (Strip { right: true, ..Strip::default() }, Strip { left: true, ..Strip::default() });
    let all = (0u32..).zip(texts.iter().zip(kinds));
    let only = |wanted: &str, strip: Strip| -> Vec<(u32, Strip)> {
        let found = all.clone().filter(|(_, (text, _))| *text == wanted);
        found.map(|(id, _)| (id, strip)).collect()
    };
    if has("tokenizer.ggml.pre", &["jina-v2-de", "jina-v2-es", "jina-v2-code"])
        || has("general.architecture", &["nomic-bert-moe", "jina-bert-v3"])
    {
        only("<mask>", left)
    } else if has("general.name", &["phi-3", "phi3"]) {
        all.filter(|(_, (text, kind))| {
            matches!(kind, TokenKind::Control | TokenKind::UserDefined)
                && !["<unk>", "<s>", "<|endoftext|>"].contains(text)
        })
        .map(|(id, _)| (id, right))
        .collect()
    } else if has("general.name", &["modern-bert"]) {
        only("[MASK]", left)
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(texts: &[(&str, Strip)]) -> OwnTokens {
        OwnTokens::new(
            (0u32..).zip(texts).map(|(id, (text, strip))| (id, (*text).to_owned(), *strip)),
        )
    }

    fn shown(own: &OwnTokens, text: &str) -> Vec<String> {
        own.cut(text)
            .into_iter()
            .map(|part| match part {
                Part::Text(start, end) => text[start..end].to_owned(),
                Part::Token(id, start) => format!("{id}@{start}"),
            })
            .collect()
    }

    #[test]
    fn the_longest_is_found_first_wherever_it_stands() {
        let none = Strip::default();
        let own = own(&[("abc", none), ("bcde", none), ("\n", none), ("\n\n", none)]);
        assert_eq!(shown(&own, "abcde"), ["a", "1@1"]);
        assert_eq!(shown(&own, "abcd"), ["0@0", "d"]);
        assert_eq!(shown(&own, "x\n\n\ny"), ["x", "3@1", "2@3", "y"]);
        assert_eq!(shown(&own, "abcabc"), ["0@0", "0@3"]);
        assert!(shown(&own, "").is_empty());
    }

    #[test]
    fn white_space_beside_a_token_goes_where_the_token_says_so() {
        let right = Strip { right: true, ..Strip::default() };
        let left = Strip { left: true, ..Strip::default() };
        let own = own(&[("<r>", right), ("<left>", left)]);
        assert_eq!(shown(&own, "a <r> \n b <left>c"), ["a ", "0@2", "b", "1@10", "c"]);
        assert_eq!(shown(&own, " <left><r>\u{a0}"), ["1@1", "0@7", "\u{a0}"]);
    }
}
