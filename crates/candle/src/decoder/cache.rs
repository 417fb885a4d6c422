//! Keys and values of one sequence.

use candle_core::{Error, Result, Tensor};
use correx_cpu_kernels::Remembered;

use super::StepError;
use super::ops::with_numbers;

/// Rows that are allocated when a cache grows.
const BLOCK: usize = 256;

/// What a sequence remembers: for every layer a row of keys and a row of values per token.
///
/// It grows in blocks up to the window and can be cut back to any earlier position.
pub struct KvCache {
    layers: Vec<Remembered>,
    len: usize,
    capacity: usize,
    window: usize,
}

impl KvCache {
    pub(super) fn new(layers: usize, width: usize, window: usize) -> Self {
        let layers = (0..layers).map(|_| Remembered::new(width)).collect();
        Self { layers, len: 0, capacity: 0, window }
    }

    /// Tokens that it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The most tokens that it can hold.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets everything from `position` on.
    pub fn cut_back(&mut self, position: usize) {
        self.len = self.len.min(position);
    }

    /// Bytes that are allocated.
    pub fn bytes(&self) -> usize {
        let layer = |layer: &Remembered| 2 * layer.capacity() * layer.width() * size_of::<f32>();
        self.layers.iter().map(layer).sum()
    }

    /// Bytes of a cache of `window` tokens that is full, in `layers` layers of rows of `width`
    /// keys and as many values.
    pub(crate) fn bytes_for(layers: usize, width: usize, window: usize) -> u64 {
        let rows = Remembered::capacity_for(window) as u64;
        rows.saturating_mul(2 * layers as u64 * width as u64 * size_of::<f32>() as u64)
    }

    /// Makes room for `more` tokens.
    pub(super) fn reserve(&mut self, more: usize) -> std::result::Result<(), StepError> {
        let needed = self.len + more;
        if needed > self.window {
            return Err(StepError(format!(
                "the sequence would have {needed} tokens in a window of {}",
                self.window
            )));
        }
        if needed <= self.capacity {
            return Ok(());
        }
        // What is there stays where it is, so that growing costs nothing but the new rows.
        let capacity = needed.next_multiple_of(BLOCK).min(self.window);
        for layer in &mut self.layers {
            layer.reserve(capacity).map_err(|_| {
                StepError(format!("there is no memory for a sequence of {needed} tokens"))
            })?;
        }
        self.capacity = capacity;
        Ok(())
    }

    /// Writes rows behind the last token. They count once [`advance`](Self::advance) is called.
    pub(super) fn write(&mut self, layer: usize, keys: &Tensor, values: &Tensor) -> Result<()> {
        with_numbers(keys, |keys| {
            with_numbers(values, |values| {
                self.layers[layer].write(self.len, keys, values).map_err(Error::wrap)
            })
        })
    }

    /// What a layer remembers, counted or not.
    pub(super) fn layer(&self, number: usize) -> &Remembered {
        &self.layers[number]
    }

    pub(super) fn advance(&mut self, tokens: usize) {
        self.len += tokens;
    }
}

#[cfg(test)]
impl KvCache {
    /// Grows to `tokens` tokens as a prompt in chunks makes it grow, without computing.
    pub(crate) fn pretend(&mut self, tokens: usize) -> std::result::Result<(), StepError> {
        while self.len < tokens {
            let more = (tokens - self.len).min(64);
            self.reserve(more)?;
            self.len += more;
        }
        Ok(())
    }
}

/// A cache of one narrow layer that holds `tokens` tokens.
#[cfg(test)]
pub(crate) fn filled_cache(tokens: usize) -> KvCache {
    let mut cache = KvCache::new(1, 8, 4096);
    cache.reserve(tokens).unwrap();
    cache.advance(tokens);
    cache
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn growing_keeps_what_is_there_up_to_the_window() {
        let mut cache = KvCache::new(2, 3, 600);
        let mut rows = 0;
        for more in [2usize, 300, 250, 48] {
            cache.reserve(more).unwrap();
            for layer in 0..2 {
                let fill = |sign: f32| -> Tensor {
                    let first = (rows * 3 + layer * 10_000) as f32;
                    let end = first + (more * 3) as f32;
                    let values = Tensor::arange(first, end, &Device::Cpu).unwrap();
                    (values.reshape((more, 3)).unwrap() * f64::from(sign)).unwrap()
                };
                cache.write(layer, &fill(1.0), &fill(-1.0)).unwrap();
            }
            cache.advance(more);
            rows += more;
        }
        assert_eq!((cache.len(), cache.bytes()), (600, 2 * 2 * 608 * 3 * 4));
        assert_eq!(KvCache::bytes_for(2, 3, 600), cache.bytes() as u64);
        assert!(cache.reserve(1).is_err());
        for layer in 0..2 {
            for token in 0..600 {
                let expected = [0, 1, 2].map(|n| (token * 3 + n + layer * 10_000) as f32);
                let (keys, values) = cache.layer(layer).row(token).unwrap();
                assert_eq!(keys, expected);
                assert_eq!(values, expected.map(|number| -number));
            }
        }
        cache.cut_back(7);
        cache.cut_back(9);
        assert_eq!((cache.len(), cache.is_empty()), (7, false));
    }
}
