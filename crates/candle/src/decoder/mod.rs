//! One decoder for the llama-like families, driven by a GGUF file's metadata.
//!
//! - [`config`]: the numbers that a file's metadata gives, checked.
//! - [`weights`]: the tensors, checked against those numbers.
//! - [`matrix`]: what is multiplied with: our own kernels where they know the type, else candle.
//! - [`cache`]: keys and values of one sequence.
//! - [`ops`]: the operations between the matrix products, each row reduced in one fixed order.
//! - [`attention`]: grouped-query attention over a cache.
//!
//! A step takes rows of several sequences at once. A row's result depends neither on the rows
//! beside it nor on how a prompt was cut into steps nor on the number of threads.

mod attention;
mod cache;
mod config;
mod matrix;
mod ops;
mod weights;

use std::panic::{AssertUnwindSafe, catch_unwind};

use candle_core::Tensor;
use correx_cpu_kernels::Threads;
use thiserror::Error;

pub use cache::KvCache;
#[cfg(test)]
pub(crate) use cache::filled_cache;
pub use config::{Architecture, ConfigError, DecoderConfig};
pub use weights::WeightsError;

use attention::Attention;
use correx_gguf::Gguf;
use ops::{RmsNorm, Rope, SwiGlu, rotation};
use weights::{Layer, Linear, Weights};

/// A step that failed. The caches keep what they held before it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the computation failed: {0}")]
pub struct StepError(String);

impl From<candle_core::Error> for StepError {
    fn from(error: candle_core::Error) -> Self {
        StepError(error.to_string())
    }
}

/// What a step should compute for a sequence beside filling its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logits {
    /// Nothing.
    Skip,
    /// The logits behind its last token.
    Last,
}

/// New tokens of one sequence.
pub struct Segment<'a> {
    /// What it remembers; the new tokens are added.
    pub cache: &'a mut KvCache,
    /// The new tokens, at least one.
    pub ids: &'a [u32],
    /// What to compute.
    pub logits: Logits,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// All was computed: per segment the logits that it asked for, one per token of the vocabulary.
    Done(Vec<Option<Vec<f32>>>),
    /// It was stopped between layers; nothing was added to any cache.
    Stopped,
}

/// A loaded model.
pub struct Decoder {
    config: DecoderConfig,
    weights: Weights,
    threads: Threads,
}

impl Decoder {
    /// Loads the weights of `gguf`, to be computed with by `threads`. `progress` hears how many bytes of how many are loaded and
    /// says whether to go on.
    pub fn load(
        gguf: &Gguf,
        config: DecoderConfig,
        threads: Threads,
        progress: &mut dyn FnMut(u64, u64) -> std::ops::ControlFlow<()>,
    ) -> Result<Self, WeightsError> {
        let weights = catch_unwind(AssertUnwindSafe(|| Weights::load(gguf, &config, progress)))
            .unwrap_or_else(|panic| Err(WeightsError::Failed(panic_text(&*panic))))?;
        let mut config = config;
        config.rope.speeds = weights.rope_speeds(&config.rope.speeds);
        Ok(Self { config, weights, threads })
    }

    /// The numbers of the model.
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// How many threads compute.
    pub fn threads(&self) -> usize {
        self.threads.count()
    }

    /// A cache for a new sequence of at most `window` tokens.
    pub fn new_cache(&self, window: usize) -> KvCache {
        KvCache::new(self.config.layers, self.config.kv_width(), window)
    }

    /// Evaluates the new tokens of every segment. `stop` is asked between layers.
    pub fn step(
        &self,
        segments: &mut [Segment<'_>],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Step, StepError> {
        let compute = || self.threads.enter(|| self.evaluate(segments, stop));
        catch_unwind(AssertUnwindSafe(compute))
            .unwrap_or_else(|panic| Err(StepError(panic_text(&*panic))))
    }

    fn evaluate(
        &self,
        segments: &mut [Segment<'_>],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Step, StepError> {
        let mut ids = Vec::new();
        let mut positions = Vec::new();
        for segment in segments.iter_mut() {
            if segment.ids.is_empty() {
                return Err(StepError("a sequence came without tokens".into()));
            }
            if let Some(id) = segment.ids.iter().find(|id| **id as usize >= self.config.vocabulary)
            {
                return Err(StepError(format!("token {id} is not in the vocabulary")));
            }
            segment.cache.reserve(segment.ids.len())?;
            ids.extend_from_slice(segment.ids);
            positions.extend(segment.cache.len()..segment.cache.len() + segment.ids.len());
        }
        if ids.is_empty() {
            return Ok(Step::Done(Vec::new()));
        }
        let rotation = rotation(&self.config.rope, &positions)?;
        let mut state = self.weights.embedding.rows(&ids)?;
        for (number, layer) in self.weights.layers.iter().enumerate() {
            if stop() {
                return Ok(Step::Stopped);
            }
            state = self.layer(layer, number, &state, &rotation, segments)?;
        }
        if stop() {
            return Ok(Step::Stopped);
        }
        let logits = self.logits(&state, segments)?;
        for segment in segments.iter_mut() {
            segment.cache.advance(segment.ids.len());
        }
        Ok(Step::Done(logits))
    }

    fn layer(
        &self,
        layer: &Layer,
        number: usize,
        state: &Tensor,
        rotation: &Tensor,
        segments: &mut [Segment<'_>],
    ) -> Result<Tensor, StepError> {
        let config = &self.config;
        let norm = RmsNorm { epsilon: config.epsilon };
        let rope = Rope { pairs: config.rope.pairs, head: config.head };
        let input = state.apply_op2_no_bwd(&layer.attention_norm, &norm)?;
        let threads = &self.threads;
        let [query, key, value] =
            Linear::apply_all([&layer.query, &layer.key, &layer.value], &input, threads)?;
        let query = query.apply_op2_no_bwd(rotation, &rope)?;
        let key = key.apply_op2_no_bwd(rotation, &rope)?;
        let mut mixed = Vec::with_capacity(segments.len());
        let mut row = 0;
        for segment in segments.iter_mut() {
            let rows = segment.ids.len();
            segment.cache.write(
                number,
                &key.narrow(0, row, rows)?,
                &value.narrow(0, row, rows)?,
            )?;
            let attention = Attention {
                heads: config.heads(),
                before: segment.cache.len(),
                remembered: segment.cache.layer(number),
                threads,
            };
            let query = query.narrow(0, row, rows)?;
            mixed.push(query.apply_op1_no_bwd(&attention)?);
            row += rows;
        }
        let mixed = if mixed.len() == 1 { mixed.remove(0) } else { Tensor::cat(&mixed, 0)? };
        let state = (layer.output.apply(&mixed, threads)? + state)?;
        let input = state.apply_op2_no_bwd(&layer.feed_norm, &norm)?;
        let [gate, up] = Linear::apply_all([&layer.gate, &layer.up], &input, threads)?;
        let inner = gate.apply_op2_no_bwd(&up, &SwiGlu { threads })?;
        Ok((layer.down.apply(&inner, threads)? + state)?)
    }

    fn logits(
        &self,
        state: &Tensor,
        segments: &[Segment<'_>],
    ) -> Result<Vec<Option<Vec<f32>>>, StepError> {
        let mut last = Vec::new();
        let mut row = 0;
        for segment in segments {
            row += segment.ids.len();
            if segment.logits == Logits::Last {
                last.push(state.narrow(0, row - 1, 1)?);
            }
        }
        if last.is_empty() {
            return Ok(vec![None; segments.len()]);
        }
        let norm = RmsNorm { epsilon: self.config.epsilon };
        let last = Tensor::cat(&last, 0)?.apply_op2_no_bwd(&self.weights.norm, &norm)?;
        let output = self.weights.output.as_ref().unwrap_or(&self.weights.embedding);
        let mut rows = output.multiply(&last, &self.threads)?.to_vec2::<f32>()?.into_iter();
        Ok(segments
            .iter()
            .map(|segment| if segment.logits == Logits::Last { rows.next() } else { None })
            .collect())
    }
}

/// What a panic said.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "an internal error".to_owned())
}

#[cfg(test)]
mod real_model;
