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
