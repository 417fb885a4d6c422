//! Keys and values of one sequence.

use candle_core::{DType, Device, Tensor};

use super::StepError;

/// Rows that are allocated at least when a cache grows.
const BLOCK: usize = 256;

/// What a sequence remembers: for every layer a row of keys and a row of values per token.
///
/// It grows in blocks up to the window and can be cut back to any earlier position.
pub struct KvCache {
    layers: Vec<(Tensor, Tensor)>,
    count: usize,
    width: usize,
    len: usize,
    capacity: usize,
    window: usize,
}

impl KvCache {
    pub(super) fn new(layers: usize, width: usize, window: usize) -> Self {
        Self { layers: Vec::new(), count: layers, width, len: 0, capacity: 0, window }
    }

    /// Tokens that it holds.
    pub fn len(&self) -> usize {
        self.len
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
        self.count * 2 * self.capacity * self.width * size_of::<f32>()
    }

    /// Makes room for `more` tokens.
    pub(super) fn reserve(&mut self, more: usize) -> Result<(), StepError> {
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
        // By half of what is there, so that growing costs little in all.
        let capacity =
            needed.max(self.capacity + self.capacity / 2).next_multiple_of(BLOCK).min(self.window);
        let mut layers = Vec::with_capacity(self.count);
        for number in 0..self.count {
            let grown = |old: Option<&Tensor>| -> candle_core::Result<Tensor> {
                let new = Tensor::zeros((capacity, self.width), DType::F32, &Device::Cpu)?;
                if let Some(old) = old.filter(|_| self.len > 0) {
                    new.slice_set(&old.narrow(0, 0, self.len)?, 0, 0)?;
                }
                Ok(new)
            };
            let old = self.layers.get(number);
            layers.push((grown(old.map(|(keys, _)| keys))?, grown(old.map(|(_, values)| values))?));
        }
        self.layers = layers;
        self.capacity = capacity;
        Ok(())
    }

    /// Writes rows behind the last token. They count once [`advance`](Self::advance) is called.
    pub(super) fn write(
        &mut self,
        layer: usize,
        keys: &Tensor,
        values: &Tensor,
    ) -> candle_core::Result<()> {
        let (all_keys, all_values) = &self.layers[layer];
        all_keys.slice_set(&keys.contiguous()?, 0, self.len)?;
        all_values.slice_set(&values.contiguous()?, 0, self.len)
    }

    /// All rows of a layer's keys and values, written or not.
    pub(super) fn layer(&self, number: usize) -> (&Tensor, &Tensor) {
        let (keys, values) = &self.layers[number];
        (keys, values)
    }

    pub(super) fn advance(&mut self, tokens: usize) {
        self.len += tokens;
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
        assert_eq!((cache.len(), cache.bytes()), (600, 2 * 2 * 600 * 3 * 4));
        assert!(cache.reserve(1).is_err());
        for layer in 0..2 {
            let (keys, values) = cache.layer(layer);
            let expected: Vec<f32> = (0..1800).map(|n| (n + layer * 10_000) as f32).collect();
            assert_eq!(keys.flatten_all().unwrap().to_vec1::<f32>().unwrap(), expected);
            let negative: Vec<f32> = expected.iter().map(|number| -number).collect();
            assert_eq!(values.flatten_all().unwrap().to_vec1::<f32>().unwrap(), negative);
        }
        cache.cut_back(7);
        cache.cut_back(9);
        assert_eq!((cache.len(), cache.is_empty()), (7, false));
    }
}
