//! Keys and values of a layer.

use std::collections::TryReserveError;

use crate::multiply::ShapeError;

/// Tokens whose keys lie together.
pub(crate) const TOKENS: usize = 16;

/// What one layer remembers of a sequence: a row of keys and a row of values per token.
///
/// Keys lie in blocks of 16 tokens, element by element, as they are multiplied; values lie token by
/// token, as they are summed.
pub struct Remembered {
    width: usize,
    capacity: usize,
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Remembered {
    /// Nothing yet, of rows of `width` numbers.
    pub fn new(width: usize) -> Self {
        Self { width, capacity: 0, keys: Vec::new(), values: Vec::new() }
    }

    /// Makes room for at least `tokens` tokens in all; what is there stays.
    ///
    /// # Errors
    /// There is not as much memory; what is there stays.
    pub fn reserve(&mut self, tokens: usize) -> Result<(), TryReserveError> {
        let capacity = tokens.next_multiple_of(TOKENS);
        if capacity <= self.capacity {
            return Ok(());
        }
        let length = capacity.saturating_mul(self.width);
        for part in [&mut self.keys, &mut self.values] {
            part.try_reserve_exact(length - part.len())?;
        }
        for part in [&mut self.keys, &mut self.values] {
            part.resize(length, 0.0);
        }
        self.capacity = capacity;
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
        for (token, row) in (first..).zip(keys.chunks_exact(self.width)) {
            let block = &mut self.keys[token / TOKENS * TOKENS * self.width..];
            for (element, key) in row.iter().enumerate() {
                block[element * TOKENS + token % TOKENS] = *key;
            }
        }
        self.values[first * self.width..][..values.len()].copy_from_slice(values);
        Ok(())
    }

    /// The keys and the values of a token; `None`: there is no room for as many.
    pub fn row(&self, token: usize) -> Option<(Vec<f32>, &[f32])> {
        let values = self.values.chunks_exact(self.width.max(1)).nth(token)?;
        let block = self.keys.get(token / TOKENS * TOKENS * self.width..)?;
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
        self.keys[(number * self.width + first) * TOKENS..].as_chunks().0
    }

    /// All values.
    pub(crate) fn values(&self) -> &[f32] {
        &self.values
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
        for more in [1, 14, 5, 40] {
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
        assert_eq!(remembered.capacity(), 64);
        assert!(remembered.row(64).is_none());
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
