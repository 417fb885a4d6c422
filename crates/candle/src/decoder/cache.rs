//! Keys and values of one sequence.

use candle_core::{Error, Result, Tensor, bail};
use correx_cpu_kernels::Remembered;

use super::StepError;
use super::ops::with_numbers;

/// Rows that are allocated when a cache grows.
const BLOCK: usize = 256;

/// What a sequence remembers: for every layer a row of keys and a row of values per token, or a
/// row of what is convolved.
///
/// It grows in blocks up to the window and can be cut back to any earlier position.
pub struct KvCache {
    layers: Vec<Layer>,
    len: usize,
    capacity: usize,
    window: usize,
}

/// What a layer remembers of every token.
enum Layer {
    Attention(Remembered),
    Convolution(Rows),
}

/// What a layer remembers of every token, by its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayerKind {
    /// A row of keys, and one of values.
    Attention(usize),
    /// A row of what is convolved.
    Convolution(usize),
}

impl LayerKind {
    /// Numbers of every token.
    pub(crate) fn numbers(self) -> usize {
        match self {
            LayerKind::Attention(width) => 2 * width,
            LayerKind::Convolution(width) => width,
        }
    }
}

/// Rows of one width, one per token. What is there never moves.
pub(super) struct Rows {
    width: usize,
    /// All of [`BLOCK`] rows but the last, which may have room for fewer.
    parts: Vec<Vec<f32>>,
}

impl Rows {
    /// The row of a token; `None`: there is no room for as many.
    pub(super) fn row(&self, token: usize) -> Option<&[f32]> {
        self.parts.get(token / BLOCK)?.get(token % BLOCK * self.width..)?.get(..self.width)
    }

    fn reserve(&mut self, tokens: usize) -> Result<()> {
        for number in 0..tokens.div_ceil(BLOCK) {
            if number == self.parts.len() {
                self.parts.push(Vec::new());
            }
            let part = &mut self.parts[number];
            let rows = (tokens - number * BLOCK).min(BLOCK);
            let more = rows.saturating_mul(self.width).saturating_sub(part.len());
            part.try_reserve_exact(more).map_err(Error::wrap)?;
            part.resize(part.len() + more, 0.0);
        }
        Ok(())
    }

    fn write(&mut self, first: usize, rows: &[f32]) -> Result<()> {
        for (token, row) in (first..).zip(rows.chunks_exact(self.width)) {
            let part = self.parts.get_mut(token / BLOCK);
            let place = part.and_then(|part| part.get_mut(token % BLOCK * self.width..));
            match place.and_then(|place| place.get_mut(..self.width)) {
                Some(place) => place.copy_from_slice(row),
                None => bail!("there is no room for token {token}"),
            }
        }
        Ok(())
    }
}

impl Layer {
    fn new(kind: LayerKind) -> Self {
        match kind {
            LayerKind::Attention(width) => Layer::Attention(Remembered::new(width)),
            LayerKind::Convolution(width) => Layer::Convolution(Rows { width, parts: Vec::new() }),
        }
    }

    fn reserve(&mut self, tokens: usize) -> Result<()> {
        match self {
            Layer::Attention(remembered) => remembered.reserve(tokens).map_err(Error::wrap),
            Layer::Convolution(rows) => rows.reserve(tokens),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Layer::Attention(layer) => 2 * layer.capacity() * layer.width() * size_of::<f32>(),
            Layer::Convolution(rows) => {
                rows.parts.iter().map(Vec::len).sum::<usize>() * size_of::<f32>()
            }
        }
    }
}

impl KvCache {
    pub(super) fn new(layers: impl Iterator<Item = LayerKind>, window: usize) -> Self {
        Self { layers: layers.map(Layer::new).collect(), len: 0, capacity: 0, window }
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
        self.layers.iter().map(Layer::bytes).sum()
    }

    /// Bytes of a cache of `window` tokens that is full and holds so many numbers of each.
    pub(crate) fn bytes_for(numbers: usize, window: usize) -> u64 {
        let rows = Remembered::capacity_for(window) as u64;
        rows.saturating_mul(numbers as u64 * size_of::<f32>() as u64)
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
        let Layer::Attention(remembered) = &mut self.layers[layer] else {
            bail!("layer {layer} does not attend")
        };
        with_numbers(keys, |keys| {
            with_numbers(values, |values| {
                remembered.write(self.len, keys, values).map_err(Error::wrap)
            })
        })
    }

    /// Writes rows of what is convolved behind the last token, as [`write`](Self::write) does.
    pub(super) fn write_convolved(&mut self, layer: usize, rows: &Tensor) -> Result<()> {
        match &mut self.layers[layer] {
            Layer::Convolution(kept) => with_numbers(rows, |rows| kept.write(self.len, rows)),
            Layer::Attention(_) => bail!("layer {layer} does not convolve"),
        }
    }

    /// What a layer that attends remembers, counted or not.
    pub(super) fn layer(&self, number: usize) -> Result<&Remembered> {
        match &self.layers[number] {
            Layer::Attention(remembered) => Ok(remembered),
            Layer::Convolution(_) => bail!("layer {number} does not attend"),
        }
    }

    /// What a layer that convolves remembers, counted or not.
    pub(super) fn convolved(&self, number: usize) -> Result<&Rows> {
        match &self.layers[number] {
            Layer::Convolution(rows) => Ok(rows),
            Layer::Attention(_) => bail!("layer {number} does not convolve"),
        }
    }

    pub(super) fn advance(&mut self, tokens: usize) {
        self.len += tokens;
    }
}

#[cfg(test)]
impl KvCache {
    /// Grows to `tokens` tokens as a prompt in chunks makes it grow, without computing. The rows
    /// are written: memory that nobody wrote to is not held.
    pub(crate) fn pretend(&mut self, tokens: usize) -> std::result::Result<(), StepError> {
        while self.len < tokens {
            let more = (tokens - self.len).min(64);
            self.reserve(more)?;
            for layer in &mut self.layers {
                match layer {
                    Layer::Attention(layer) => {
                        let rows = vec![1.0; more * layer.width()];
                        layer.write(self.len, &rows, &rows).map_err(Error::wrap)?;
                    }
                    Layer::Convolution(layer) => {
                        layer.write(self.len, &vec![1.0; more * layer.width])?;
                    }
                }
            }
            self.len += more;
        }
        Ok(())
    }
}

/// A cache of one narrow layer that holds `tokens` tokens.
#[cfg(test)]
pub(crate) fn filled_cache(tokens: usize) -> KvCache {
    let mut cache = KvCache::new([LayerKind::Attention(8)].into_iter(), 4096);
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
        let mut cache = KvCache::new([LayerKind::Attention(3); 2].into_iter(), 600);
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
        assert_eq!(KvCache::bytes_for(2 * 2 * 3, 600), cache.bytes() as u64);
        assert!(cache.reserve(1).is_err());
        for layer in 0..2 {
            for token in 0..600 {
                let expected = [0, 1, 2].map(|n| (token * 3 + n + layer * 10_000) as f32);
                let (keys, values) = cache.layer(layer).unwrap().row(token).unwrap();
                assert_eq!(keys, expected);
                assert_eq!(values, expected.map(|number| -number));
            }
        }
        cache.cut_back(7);
        cache.cut_back(9);
        assert_eq!((cache.len(), cache.is_empty()), (7, false));
    }
    #[test]
    fn what_is_convolved_stays_when_it_grows_and_each_layer_keeps_its_kind() {
        let kinds = [LayerKind::Convolution(2), LayerKind::Attention(4)];
        let mut cache = KvCache::new(kinds.into_iter(), 700);
        for (first, more) in [(0usize, 1usize), (1, 400), (401, 299)] {
            cache.reserve(more).unwrap();
            let numbers =
                Tensor::arange((2 * first) as f32, (2 * (first + more)) as f32, &Device::Cpu);
            let rows = numbers.unwrap().reshape((more, 2)).unwrap();
            cache.write_convolved(0, &rows).unwrap();
            assert!(cache.write_convolved(1, &rows).is_err());
            assert!(cache.write(0, &rows, &rows).is_err());
            cache.advance(more);
        }
        for token in 0..700 {
            let row = cache.convolved(0).unwrap().row(token).unwrap();
            assert_eq!(row, [(2 * token) as f32, (2 * token + 1) as f32]);
        }
        assert!(cache.convolved(0).unwrap().row(700).is_none());
        assert!(cache.convolved(1).is_err() && cache.layer(0).is_err());
        assert_eq!(cache.bytes(), 700 * 2 * 4 + 2 * 704 * 4 * 4);
    }
}
