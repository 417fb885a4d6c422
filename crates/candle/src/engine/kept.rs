//! Caches of finished sequences.

use std::collections::VecDeque;

use crate::decoder::KvCache;

/// The most caches that are kept.
const MOST: usize = 4;

/// A cache and the ids that it holds.
struct Kept {
    key: String,
    ids: Vec<u32>,
    cache: KvCache,
}

/// The caches of the sequences that finished last, one per key.
pub(super) struct KeptCaches {
    caches: VecDeque<Kept>,
    bytes: usize,
}

impl KeptCaches {
    /// Keeps at most `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        Self { caches: VecDeque::new(), bytes }
    }

    /// Keeps a cache of `ids`; the oldest go when there are too many or they are too large.
    pub(super) fn put(&mut self, key: String, ids: Vec<u32>, cache: KvCache) {
        self.caches.retain(|kept| kept.key != key);
        if !cache.is_empty() {
            self.caches.push_back(Kept { key, ids, cache });
        }
        while self.caches.len() > MOST
            || self.caches.iter().map(|kept| kept.cache.bytes()).sum::<usize>() > self.bytes
        {
            if self.caches.pop_front().is_none() {
                break;
            }
        }
    }

    /// The cache of `key`, cut back to what it shares with `prompt`, and how much that is. At
    /// least one id is left to evaluate, because a reply needs the logits behind it.
    pub(super) fn take(&mut self, key: &str, prompt: &[u32]) -> Option<(KvCache, usize)> {
        let place = self.caches.iter().position(|kept| kept.key == key)?;
        let mut kept = self.caches.remove(place)?;
        let shared = kept.ids.iter().zip(prompt).take_while(|(kept, new)| kept == new).count();
        let shared = shared.min(prompt.len().saturating_sub(1)).min(kept.cache.len());
        kept.cache.cut_back(shared);
        Some((kept.cache, shared))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::filled_cache;

    fn keep(kept: &mut KeptCaches, key: &str, ids: &[u32]) {
        kept.put(key.to_owned(), ids.to_vec(), filled_cache(ids.len()));
    }

    fn shared(kept: &mut KeptCaches, key: &str, prompt: &[u32]) -> Option<usize> {
        let (cache, shared) = kept.take(key, prompt)?;
        assert_eq!(cache.len(), shared);
        Some(shared)
    }

    #[test]
    fn a_prompt_takes_the_cache_of_its_key_cut_back_to_what_they_share() {
        let mut kept = KeptCaches::new(usize::MAX);
        for (prompt, expected) in [
            (&[1, 2, 3, 4, 5][..], 3),
            (&[1, 2, 9], 2),
            (&[1, 2, 3], 2),
            (&[1], 0),
            (&[7, 2, 3], 0),
        ] {
            keep(&mut kept, "a", &[1, 2, 3]);
            assert_eq!(shared(&mut kept, "b", prompt), None);
            assert_eq!(shared(&mut kept, "a", prompt), Some(expected), "{prompt:?}");
            // It is taken, not copied.
            assert_eq!(shared(&mut kept, "a", prompt), None);
        }
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_or_they_are_too_large() {
        let mut kept = KeptCaches::new(usize::MAX);
        for key in ["a", "b", "c", "d", "a", "e"] {
            keep(&mut kept, key, &[1]);
        }
        let keys: Vec<&str> = kept.caches.iter().map(|kept| kept.key.as_str()).collect();
        assert_eq!(keys, ["c", "d", "a", "e"]);
        let mut small = KeptCaches::new(filled_cache(1).bytes() * 2);
        for key in ["a", "b", "c"] {
            keep(&mut small, key, &[1]);
        }
        let keys: Vec<&str> = small.caches.iter().map(|kept| kept.key.as_str()).collect();
        assert_eq!(keys, ["b", "c"]);
        let mut none = KeptCaches::new(0);
        keep(&mut none, "a", &[1]);
        assert!(none.caches.is_empty());
    }
}
