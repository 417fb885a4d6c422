//! Keys and values of a layer.

use crate::multiply::ShapeError;
use crate::storage::{AlignedNumbers, NoMemory};

/// Tokens whose keys lie together.
pub(crate) const TOKENS: usize = 16;

/// Tokens that are stored together. What is stored never moves when more is added.
pub(crate) const PART: usize = 256;

/// What one layer remembers of a sequence: a row of keys and a row of values per token.
///
/// Keys lie in blocks of 16 tokens, element by element, as they are multiplied; values lie token by
/// token, as they are summed.
pub struct Remembered {
    width: usize,
    capacity: usize,
    /// All of 256 tokens but the last, which may have room for fewer.
    parts: Vec<Part>,
}

struct Part {
    keys: AlignedNumbers,
    values: AlignedNumbers,
}

impl Remembered {
    /// Nothing yet, of rows of `width` numbers.
    pub fn new(width: usize) -> Self {
        Self { width, capacity: 0, parts: Vec::new() }
    }

    /// Tokens that there is room for once room for `tokens` was made.
    pub const fn capacity_for(tokens: usize) -> usize {
        tokens.next_multiple_of(TOKENS)
    }

    /// Makes room for at least `tokens` tokens in all; what is there stays.
    ///
    /// # Errors
    /// There is not as much memory; what is there stays.
    pub fn reserve(&mut self, tokens: usize) -> Result<(), NoMemory> {
        let capacity = Self::capacity_for(tokens);
        while self.capacity < capacity {
            // The last part may have room for fewer than it could.
            let begun = self.capacity / PART;
            let room = (capacity - begun * PART).min(PART);
            let part = Part::grown(self.parts.get(begun), room.saturating_mul(self.width))?;
            self.parts.truncate(begun);
            self.parts.push(part);
            self.capacity = begun * PART + room;
        }
        Ok(())
    }

    /// Writes rows of keys and values for the tokens from `first` on.
    ///
    /// # Errors
    /// They are no whole rows, or there is no room; nothing is written then.
    pub fn write(&mut self, first: usize, keys: &[f32], values: &[f32]) -> Result<(), ShapeError> {
        let fits = |rows: &[f32]| {
            rows.len().is_multiple_of(self.width)
                && first + rows.len() / self.width <= self.capacity
        };
        if self.width == 0 || !fits(keys) || keys.len() != values.len() {
            return Err(ShapeError::Activations { length: keys.len(), columns: self.width });
        }
        let rows = keys.chunks_exact(self.width).zip(values.chunks_exact(self.width));
        for (token, (keys, values)) in (first..).zip(rows) {
            let (part, token) = (&mut self.parts[token / PART], token % PART);
            let block = &mut part.keys.as_mut_slice()[token / TOKENS * TOKENS * self.width..];
            for (element, key) in keys.iter().enumerate() {
                block[element * TOKENS + token % TOKENS] = *key;
            }
            part.values.as_mut_slice()[token * self.width..][..self.width].copy_from_slice(values);
        }
        Ok(())
    }

    /// The keys and the values of a token; `None`: there is no room for as many.
    pub fn row(&self, token: usize) -> Option<(Vec<f32>, &[f32])> {
        let (part, token) = (self.parts.get(token / PART)?, token % PART);
        let values = part.values.as_slice().chunks_exact(self.width.max(1)).nth(token)?;
        let block = part.keys.as_slice().get(token / TOKENS * TOKENS * self.width..)?;
        let (elements, _) = block.as_chunks::<TOKENS>();
        let keys = elements.iter().take(self.width).map(|tokens| tokens[token % TOKENS]);
        Some((keys.collect(), values))
    }

    /// Numbers of a row of keys, and of values.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Tokens that there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The keys of block `number`, from element `first` on, one array per element.
    pub(crate) fn keys(&self, number: usize, first: usize) -> &[[f32; TOKENS]] {
        const BLOCKS: usize = PART / TOKENS;
        let (part, number) = (&self.parts[number / BLOCKS], number % BLOCKS);
        part.keys.as_slice()[(number * self.width + first) * TOKENS..].as_chunks().0
    }

    /// Rows of values from `token` on, as far as they lie together: to the end of the part, or of
    /// what there is.
    pub(crate) fn values(&self, token: usize) -> &[f32] {
        &self.parts[token / PART].values.as_slice()[token % PART * self.width..]
    }
}

impl Part {
    /// A part of `length` numbers that begins as `before` does.
    fn grown(before: Option<&Part>, length: usize) -> Result<Self, NoMemory> {
        let (mut keys, mut values) =
            (AlignedNumbers::zeroed(length)?, AlignedNumbers::zeroed(length)?);
        if let Some(before) = before {
            for (new, old) in [(&mut keys, &before.keys), (&mut values, &before.values)] {
                let old = old.as_slice();
                new.as_mut_slice()[..old.len()].copy_from_slice(old);
            }
        }
        Ok(Self { keys, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_also_after_it_has_grown() {
        let mut remembered = Remembered::new(3);
        let row = |token: usize, sign: f32| [0, 1, 2].map(|n| sign * (token * 3 + n) as f32);
        let mut written = 0;
        for more in [1, 14, 5, 40, 230, 300] {
            remembered.reserve(written + more).unwrap();
            let rows = |sign| (written..written + more).flat_map(move |token| row(token, sign));
            let (keys, values): (Vec<f32>, Vec<f32>) = (rows(1.0).collect(), rows(-1.0).collect());
            remembered.write(written, &keys, &values).unwrap();
            written += more;
            for token in 0..written {
                let (keys, values) = remembered.row(token).unwrap();
                assert_eq!(
                    (keys.as_slice(), values),
                    (&row(token, 1.0)[..], &row(token, -1.0)[..])
                );
            }
        }
        assert_eq!(remembered.capacity(), 592);
        assert!(remembered.row(592).is_none());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut remembered = Remembered::new(2);
        remembered.reserve(16).unwrap();
        assert!(remembered.write(15, &[1.0; 4], &[1.0; 4]).is_err());
        assert!(remembered.write(0, &[1.0; 3], &[1.0; 3]).is_err());
        assert!(remembered.write(0, &[1.0; 4], &[1.0; 2]).is_err());
        assert_eq!(remembered.row(0).unwrap(), (vec![0.0; 2], &[0.0; 2][..]));
        assert!(Remembered::new(1 << 40).reserve(1 << 30).is_err());
    }
}
