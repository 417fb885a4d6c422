//! SentencePiece-style merging.
//!
//! Every two neighbours that are a token together may be merged; the one with the best score is, and
//! of equal ones the leftmost. What is left and is no token is written in byte tokens. Not the stock
//! `Unigram` or `BPE` of `tokenizers`: neither decides by the scores of neighbours.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use correx_gguf::{Gguf, Texts, Value};

use super::VocabularyError;
use super::pieces::{Pieces, Words};
use super::tokens::{TokenKind, Tokens};

/// Stands for a token or a place that is not there.
const NONE: u32 = u32::MAX;

/// Merging by scores over one vocabulary.
#[derive(Debug)]
pub(super) struct Spm {
    pieces: Arc<Pieces>,
    /// Finds tokens by their texts, with a space for `▁`.
    words: Words,
    scores: Vec<f32>,
    /// The tokens of single bytes.
    bytes: Box<[u32; 256]>,
    prefix: SpacePrefix,
}

/// Whether texts begin with a space that is not theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpacePrefix {
    Added,
    None,
}

impl Spm {
    pub(super) fn new(
        gguf: &Gguf,
        texts: &Texts,
        tokens: &Tokens,
        prefix: SpacePrefix,
    ) -> Result<Self, VocabularyError> {
        let scores = scores(gguf, texts.len())?;
        let mut words = Words::default();
        let mut bytes = Box::new([NONE; 256]);
        for (id, (text, kind)) in (0u32..).zip(texts.iter().zip(&tokens.kinds)) {
            // No way leads from plain text to a control token. A real space never stands in a text
            // that is looked at.
            if *kind != TokenKind::Control && !text.contains(' ') {
                words.insert(&tokens.pieces, text.replace('▁', " ").as_bytes(), id);
            }
        }
        for (byte, token) in (0u8..=255).zip(bytes.iter_mut()) {
            let named = format!("<0x{byte:02X}>");
            *token = words
                .find(&tokens.pieces, named.as_bytes())
                .or_else(|| words.find(&tokens.pieces, &[byte]))
                .unwrap_or(NONE);
        }
        // Letters are in the vocabulary themselves; anything else needs its bytes.
        if let Some(missing) = (0..256).find(|byte| bytes[*byte] == NONE) {
            let unknown = gguf.number("tokenizer.ggml.unknown_token_id").unwrap_or(0);
            tracing::warn!(missing, unknown, "the vocabulary has not every byte");
            let unknown = u32::try_from(unknown).ok().filter(|id| (*id as usize) < texts.len());
            for token in bytes.iter_mut().filter(|token| **token == NONE) {
                *token = unknown.unwrap_or(NONE);
            }
        }
        Ok(Self { pieces: tokens.pieces.clone(), words, scores, bytes, prefix })
    }

    /// The ids of `text`, each with the bytes from and to which it goes. A space that was added
    /// belongs to the first character.
    pub(super) fn tokenize(&self, text: &str) -> Vec<(u32, (usize, usize))> {
        let mut seen = Vec::with_capacity(text.len() + 1);
        let mut symbols = Vec::with_capacity(text.len() + 1);
        let mut push = |seen: &mut Vec<u8>, character: char, origin: usize| {
            let start = seen.len() as u32;
            let character = if character == '▁' { ' ' } else { character };
            seen.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            let place = symbols.len() as u32;
            symbols.push(Symbol {
                start,
                end: seen.len() as u32,
                origin: origin as u32,
                before: place.checked_sub(1).unwrap_or(NONE),
                next: place + 1,
                token: NONE,
            });
        };
        if self.prefix == SpacePrefix::Added {
            push(&mut seen, ' ', 0);
        }
        for (origin, character) in text.char_indices() {
            push(&mut seen, character, origin);
        }
        self.merge(&seen, &mut symbols);
        let mut found = Vec::new();
        let mut place = 0;
        while let Some(symbol) = symbols.get(place) {
            let next = symbols.get(symbol.next as usize);
            let span =
                (symbol.origin as usize, next.map_or(text.len(), |next| next.origin as usize));
            self.write(&seen[symbol.start as usize..symbol.end as usize], symbol, span, &mut found);
            place = symbol.next as usize;
        }
        found
    }

    fn write(
        &self,
        seen: &[u8],
        symbol: &Symbol,
        span: (usize, usize),
        found: &mut Vec<(u32, (usize, usize))>,
    ) {
        let token = match symbol.token {
            NONE => self.words.find(&self.pieces, seen),
            token => Some(token),
        };
        match token {
            Some(token) => found.push((token, span)),
            None if seen == b" " => found.extend(self.spelled("▁".as_bytes(), span)),
            None => found.extend(self.spelled(seen, span)),
        }
    }

    fn spelled(
        &self,
        bytes: &[u8],
        span: (usize, usize),
    ) -> impl Iterator<Item = (u32, (usize, usize))> {
        let ids = bytes.iter().map(|byte| self.bytes[usize::from(*byte)]);
        ids.filter(|id| *id != NONE).map(move |id| (id, span))
    }

    fn merge(&self, seen: &[u8], symbols: &mut [Symbol]) {
        let mut waiting = BinaryHeap::new();
        let consider = |waiting: &mut BinaryHeap<_>, symbols: &[Symbol], left: u32, right: u32| {
            let (Some(one), Some(other)) =
                (symbols.get(left as usize), symbols.get(right as usize))
            else {
                return;
            };
            let joined = &seen[one.start as usize..other.end as usize];
            if let Some(token) = self.words.find(&self.pieces, joined) {
                let score = self.scores[token as usize];
                waiting.push(Candidate { score, left, length: joined.len() as u32, token });
            }
        };
        for right in 1..symbols.len() as u32 {
            consider(&mut waiting, symbols, right - 1, right);
        }
        while let Some(Candidate { left, length, token, .. }) = waiting.pop() {
            let one = symbols[left as usize];
            let Some(other) = symbols.get(one.next as usize).copied() else { continue };
            // A pair of which one has been merged meanwhile.
            if one.end == one.start || other.end - one.start != length {
                continue;
            }
            let gone = &mut symbols[one.next as usize];
            gone.end = gone.start;
            let merged = &mut symbols[left as usize];
            merged.end = other.end;
            merged.next = other.next;
            merged.token = token;
            if let Some(behind) = symbols.get_mut(other.next as usize) {
                behind.before = left;
            }
            consider(&mut waiting, symbols, one.before, left);
            consider(&mut waiting, symbols, left, other.next);
        }
    }
}

/// A part of a text.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    /// Where it stands in the text that is looked at.
    start: u32,
    end: u32,
    /// Where it begins in the text that was given.
    origin: u32,
    before: u32,
    next: u32,
    /// The token that it was merged to.
    token: u32,
}

/// Two neighbours that are a token together.
#[derive(Debug)]
struct Candidate {
    score: f32,
    left: u32,
    length: u32,
    token: u32,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.left.cmp(&self.left))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

/// The tokens' scores; none in the file: all are equal.
fn scores(gguf: &Gguf, count: usize) -> Result<Vec<f32>, VocabularyError> {
    let scores: Vec<f32> = match gguf.metadata.get("tokenizer.ggml.scores") {
        None => return Ok(vec![0.0; count]),
        Some(Value::Floats(scores)) => scores.iter().collect(),
        Some(Value::Numbers(scores)) => scores.iter().map(|score| score as f32).collect(),
        Some(_) => Vec::new(),
    };
    if scores.len() < count {
        return Err(VocabularyError::Damaged(format!(
            "it has {count} tokens and {} scores",
            scores.len()
        )));
    }
    // Comparable in one way only.
    Ok(scores
        .into_iter()
        .map(|score| if score.is_nan() || score == 0.0 { 0.0 } else { score })
        .collect())
}
