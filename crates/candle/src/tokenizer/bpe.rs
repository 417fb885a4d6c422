//! Byte-pair merging.
//!
//! Of all neighbours that may be merged, the pair that comes first in the file's list is, and of
//! equal pairs the leftmost. Not the stock model of `tokenizers`, because the peer also merges
//! towards texts that are no tokens, falls back from them in ways of its own, and because our table
//! needs none of the texts.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use correx_gguf::{Gguf, Texts};

use super::VocabularyError;
use super::bytes;
use super::pieces::{Pieces, Words};
use super::pre::{Rule, Symbols};
use super::tokens::{TokenKind, Tokens};

/// Stands for a symbol or a place that is not there.
const NONE: u32 = u32::MAX;

/// A merge: when it is done, and what it makes.
#[derive(Debug, Clone, Copy)]
struct Merge {
    rank: u32,
    result: u32,
}

/// Byte-pair merging over one vocabulary.
///
/// Inside it works on *symbols*: every token is one, under its id; texts that only merges know get
/// numbers behind the last id.
#[derive(Debug)]
pub(super) struct Bpe {
    pieces: Arc<Pieces>,
    start: Start,
    merges: hashbrown::HashMap<(u32, u32), Merge>,
    /// What becomes of symbols that are no tokens, from the first one on.
    fallback: Vec<Vec<u32>>,
    /// Finds pieces that are tokens.
    words: Words,
    whole: Whole,
}

/// The first symbols of a piece.
#[derive(Debug)]
enum Start {
    /// One for each byte.
    Bytes(Box<[u32; 256]>),
    /// One for each character; what has none is written with the byte tokens.
    Characters { symbols: HashMap<char, u32>, bytes: Box<[u32; 256]>, spaces: Spaces },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spaces {
    Kept,
    /// Written as `▁`.
    Marked,
}

/// Which pieces are taken whole when they are tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    Never,
    Newlines,
    Always,
}

/// Numbers symbols while a vocabulary is read.
struct Numbering<'a> {
    tokens: HashMap<&'a str, u32>,
    others: HashMap<String, u32>,
    first_other: u32,
}

impl Numbering<'_> {
    fn find(&self, text: &str) -> Option<u32> {
        self.tokens.get(text).or_else(|| self.others.get(text)).copied()
    }

    fn of(&mut self, text: &str) -> u32 {
        if let Some(known) = self.find(text) {
            return known;
        }
        let number = self.first_other + self.others.len() as u32;
        self.others.insert(text.to_owned(), number);
        number
    }
}

impl Bpe {
    pub(super) fn new(
        gguf: &Gguf,
        texts: &Texts,
        tokens: &Tokens,
        rule: &Rule,
    ) -> Result<Self, VocabularyError> {
        // No way leads from plain text to a control token: their texts are not known here.
        let known = (0u32..)
            .zip(texts.iter().zip(&tokens.kinds))
            .filter(|(_, (text, kind))| **kind != TokenKind::Control && !text.is_empty())
            .map(|(id, (text, _))| (text, id));
        let mut numbering = Numbering {
            tokens: known.clone().collect(),
            others: HashMap::new(),
            first_other: texts.len() as u32,
        };
        if rule.symbols == Symbols::Bytes {
            require_ascii(&numbering)?;
        }
        let merges = merges(gguf, &mut numbering);
        let start = start(rule.symbols, &mut numbering);
        let whole = match rule {
            Rule { whole_pieces_first: true, .. } => Whole::Always,
            Rule { whole_newlines_first: true, .. } => Whole::Newlines,
            _ => Whole::Never,
        };
        let mut words = Words::default();
        if whole != Whole::Never {
            for (text, id) in known {
                match rule.symbols {
                    Symbols::Bytes => {
                        let decoded: Option<Vec<u8>> = text.chars().map(bytes::byte).collect();
                        if let Some(decoded) = decoded {
                            words.insert(&tokens.pieces, &decoded, id);
                        }
                    }
                    Symbols::Characters | Symbols::Spaced => {
                        words.insert(&tokens.pieces, text.as_bytes(), id);
                    }
                }
            }
        }
        let fallback = fallback(rule.symbols, &numbering);
        Ok(Self { pieces: tokens.pieces.clone(), start, merges, fallback, words, whole })
    }

    /// The ids of `piece`, each with the bytes from and to which it goes.
    pub(super) fn tokenize(&self, piece: &str) -> Vec<(u32, (usize, usize))> {
        if self.is_taken_whole(piece)
            && let Some(id) = self.words.find(&self.pieces, piece.as_bytes())
        {
            return vec![(id, (0, piece.len()))];
        }
        let mut symbols = self.start.symbols(piece);
        self.merge(&mut symbols);
        let mut found = Vec::new();
        let mut place = 0;
        while let Some(symbol) = symbols.get(place) {
            let next = symbols.get(symbol.next as usize);
            let end = next.map_or(piece.len(), |next| next.start as usize);
            self.write(piece, symbol, end, &mut found);
            place = symbol.next as usize;
        }
        found
    }

    fn is_taken_whole(&self, piece: &str) -> bool {
        match self.whole {
            Whole::Never => false,
            Whole::Newlines => piece.bytes().all(|byte| byte == b'\n'),
            Whole::Always => true,
        }
    }

    fn merge(&self, symbols: &mut [Symbol]) {
        let mut waiting = BinaryHeap::new();
        let consider = |waiting: &mut BinaryHeap<_>, symbols: &[Symbol], left: u32, right: u32| {
            let (Some(one), Some(other)) =
                (symbols.get(left as usize), symbols.get(right as usize))
            else {
                return;
            };
            if let Some(merge) = self.merges.get(&(one.id, other.id)) {
                waiting.push(Reverse((merge.rank, left, one.id, other.id, merge.result)));
            }
        };
        for right in 1..symbols.len() as u32 {
            consider(&mut waiting, symbols, right - 1, right);
        }
        while let Some(Reverse((_, place, left, right, result))) = waiting.pop() {
            let one = symbols[place as usize];
            let Some(other) = symbols.get(one.next as usize).copied() else { continue };
            // A pair that one of its neighbours has taken meanwhile.
            if one.id != left || other.id != right {
                continue;
            }
            symbols[one.next as usize].id = NONE;
            let merged = &mut symbols[place as usize];
            merged.id = result;
            merged.next = other.next;
            if let Some(behind) = symbols.get_mut(other.next as usize) {
                behind.before = place;
            }
            consider(&mut waiting, symbols, one.before, place);
            consider(&mut waiting, symbols, place, other.next);
        }
    }

    /// Appends what `symbol`, which ends at `end`, becomes.
    fn write(
        &self,
        piece: &str,
        symbol: &Symbol,
        end: usize,
        found: &mut Vec<(u32, (usize, usize))>,
    ) {
        let start = symbol.start as usize;
        let tokens = self.pieces.len();
        if (symbol.id as usize) < tokens {
            found.push((symbol.id, (start, end)));
            return;
        }
        match self.fallback.get(symbol.id as usize - tokens) {
            Some(ids) => found.extend(ids.iter().map(|id| (*id, (start, end)))),
            // A character that has no symbol.
            None => {
                let ids = self.start.spelled(&piece[start..end]);
                found.extend(ids.into_iter().map(|id| (id, (start, end))));
            }
        }
    }
}

/// A part of a piece.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    id: u32,
    /// The byte where it begins.
    start: u32,
    before: u32,
    next: u32,
}

impl Start {
    fn symbols(&self, piece: &str) -> Vec<Symbol> {
        let symbol = |(place, (start, id)): (u32, (usize, u32))| Symbol {
            id,
            start: start as u32,
            before: place.checked_sub(1).unwrap_or(NONE),
            next: place + 1,
        };
        match self {
            Self::Bytes(table) => {
                let ids = piece.bytes().map(|byte| table[usize::from(byte)]).enumerate();
                (0u32..).zip(ids).map(symbol).collect()
            }
            Self::Characters { symbols, spaces, .. } => {
                let ids = piece.char_indices().map(|(start, character)| {
                    let seen = marked(character, *spaces);
                    (start, symbols.get(&seen).copied().unwrap_or(NONE))
                });
                (0u32..).zip(ids).map(symbol).collect()
            }
        }
    }

    /// `text` in byte tokens, as far as there are any.
    fn spelled(&self, text: &str) -> Vec<u32> {
        let Self::Characters { bytes, spaces, .. } = self else { return Vec::new() };
        let text: String = text.chars().map(|character| marked(character, *spaces)).collect();
        text.bytes().map(|byte| bytes[usize::from(byte)]).filter(|id| *id != NONE).collect()
    }
}

fn marked(character: char, spaces: Spaces) -> char {
    match (character, spaces) {
        (' ', Spaces::Marked) => '▁',
        _ => character,
    }
}

/// Rare bytes are missing in some vocabularies; their models never saw them, and they vanish. One
/// without the common ones is no vocabulary.
fn require_ascii(numbering: &Numbering<'_>) -> Result<(), VocabularyError> {
    for byte in [b' ', b'\n'].into_iter().chain(b'!'..=b'~') {
        if numbering.find(bytes::character(byte).encode_utf8(&mut [0; 4])).is_none() {
            return Err(VocabularyError::Damaged(format!("it has no token for byte {byte}")));
        }
    }
    Ok(())
}

fn merges(gguf: &Gguf, numbering: &mut Numbering<'_>) -> hashbrown::HashMap<(u32, u32), Merge> {
    let Some(list) = gguf.texts("tokenizer.ggml.merges") else { return hashbrown::HashMap::new() };
    let mut merges = hashbrown::HashMap::with_capacity(list.len());
    let mut joined = String::new();
    for (rank, merge) in (0u32..).zip(list.iter()) {
        // The left part may itself begin with a space.
        let Some(place) = merge.char_indices().skip(1).find(|(_, c)| *c == ' ') else { continue };
        let (left, right) = (&merge[..place.0], &merge[place.0 + 1..]);
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        let pair = (numbering.of(left), numbering.of(right));
        let result = numbering.of(&joined);
        merges.entry(pair).or_insert(Merge { rank, result });
    }
    merges
}

fn start(symbols: Symbols, numbering: &mut Numbering<'_>) -> Start {
    let spaces = match symbols {
        Symbols::Bytes => {
            let mut table = Box::new([NONE; 256]);
            for (byte, symbol) in (0u8..=255).zip(table.iter_mut()) {
                *symbol = numbering.of(bytes::character(byte).encode_utf8(&mut [0; 4]));
            }
            return Start::Bytes(table);
        }
        Symbols::Characters => Spaces::Kept,
        Symbols::Spaced => Spaces::Marked,
    };
    let texts = numbering.tokens.iter().map(|(text, id)| (*text, *id));
    let others = numbering.others.iter().map(|(text, id)| (text.as_str(), *id));
    let symbols = texts
        .chain(others)
        .filter_map(|(text, id)| {
            let mut characters = text.chars();
            characters.next().filter(|_| characters.next().is_none()).map(|only| (only, id))
        })
        .collect();
    let mut bytes = Box::new([NONE; 256]);
    for (byte, id) in (0u8..=255).zip(bytes.iter_mut()) {
        *id = byte_token(numbering, byte).unwrap_or(NONE);
    }
    Start::Characters { symbols, bytes, spaces }
}

fn byte_token(numbering: &Numbering<'_>, byte: u8) -> Option<u32> {
    numbering.tokens.get(format!("<0x{byte:02X}>").as_str()).copied()
}

/// What the symbols that are no tokens become: the byte-level peer looks for tokens of one
/// character among their characters, the other for byte tokens of their bytes.
fn fallback(symbols: Symbols, numbering: &Numbering<'_>) -> Vec<Vec<u32>> {
    let mut fallback = vec![Vec::new(); numbering.others.len()];
    for (text, number) in &numbering.others {
        let ids: Vec<u32> = match symbols {
            Symbols::Bytes => text
                .chars()
                .filter(char::is_ascii)
                .filter_map(|character| {
                    numbering.tokens.get(&*character.encode_utf8(&mut [0; 4])).copied()
                })
                .collect(),
            Symbols::Characters | Symbols::Spaced => {
                text.bytes().filter_map(|byte| byte_token(numbering, byte)).collect()
            }
        };
        fallback[(number - numbering.first_other) as usize] = ids;
    }
    fallback
}
