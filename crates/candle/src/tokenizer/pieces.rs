//! The texts of all tokens, in one buffer, and the way from a text to its token.

use std::collections::HashMap;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// What every token says, one after another.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    bytes: Vec<u8>,
    /// Token `i` ends here.
    ends: Vec<usize>,
}

impl Pieces {
    pub(super) fn push(&mut self, piece: impl IntoIterator<Item = u8>) {
        self.bytes.extend(piece);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// What token `id` says; nothing when there is no such token.
    pub(super) fn get(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(end) = self.ends.get(id) else { return &[] };
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[start..*end]
    }
}

/// From what stands in a text to the token that is this text.
#[derive(Debug, Default)]
pub(super) struct Words {
    hasher: DefaultHashBuilder,
    /// Tokens that are found by what they say.
    regular: HashTable<u32>,
    /// Tokens that are found by something else.
    odd: HashMap<Vec<u8>, u32>,
    longest: usize,
}

impl Words {
    /// Of two tokens with one text the later one is found.
    pub(super) fn insert(&mut self, pieces: &Pieces, key: &[u8], id: u32) {
        if key.is_empty() {
            return;
        }
        self.longest = self.longest.max(key.len());
        if key != pieces.get(id) {
            self.odd.insert(key.to_vec(), id);
            return;
        }
        let hasher = &self.hasher;
        let hash = hasher.hash_one(key);
        match self.regular.find_mut(hash, |known| pieces.get(*known) == key) {
            Some(known) => *known = id,
            None => {
                self.regular.insert_unique(hash, id, |id| hasher.hash_one(pieces.get(*id)));
            }
        }
    }

    /// The token whose text is `key`.
    pub(super) fn find(&self, pieces: &Pieces, key: &[u8]) -> Option<u32> {
        if key.len() > self.longest {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        match self.regular.find(hash, |id| pieces.get(*id) == key) {
            Some(id) => Some(*id),
            None if self.odd.is_empty() => None,
            None => self.odd.get(key).copied(),
        }
    }
}
