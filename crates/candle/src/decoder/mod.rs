//! One decoder for the llama-like families, driven by a GGUF file's metadata.
//!
//! - [`config`]: the numbers that a file's metadata gives, checked.
//! - [`weights`]: the tensors, checked against those numbers.
//! - [`matrix`]: what is multiplied with: our own kernels where they know the type, else candle.
//! - [`cache`]: keys and values of one sequence, or what it convolves.
//! - [`rotations`]: which turns a position makes in a layer.
//! - [`ops`]: the operations between the matrix products, each row reduced in one fixed order.
//! - [`attention`]: grouped-query attention over a cache.
//! - [`convolution`]: short convolutions over a cache, in place of attention.
//! - [`feed`]: the feed-forward part; [`experts`]: the same by a few of many experts.
//!
//! A step takes rows of several sequences at once. A row's result depends neither on the rows
//! beside it nor on how a prompt was cut into steps nor on the number of threads.

mod attention;
mod cache;
mod config;
mod convolution;
mod experts;
mod feed;
mod matrix;
mod ops;
mod rotations;
mod weights;

use std::panic::{AssertUnwindSafe, catch_unwind};

use candle_core::{Device, Tensor};
use correx_cpu_kernels::{Threads, View};
use thiserror::Error;

pub use cache::KvCache;
#[cfg(test)]
pub(crate) use cache::filled_cache;
pub use config::{Architecture, ConfigError, DecoderConfig};
pub(crate) use matrix::packed_kind;
pub use weights::WeightsError;

use attention::Attention;
use correx_gguf::Gguf;
use ops::{RmsNorm, Rope, SoftCap};
use rotations::Rotations;
use weights::{AttentionWeights, Layer, Linear, Mixer, Weights};

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
    rotations: Rotations,
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
        let rotations = Rotations::new(&config.rope, &weights.rope_factors);
        Ok(Self { config, weights, rotations, threads })
    }

    /// Everything about the weights of `gguf` that would keep them from being loaded, as far as
    /// the header tells. Without `config` their names and shapes are not looked at.
    pub fn problems(gguf: &Gguf, config: Option<&DecoderConfig>) -> Vec<WeightsError> {
        match config {
            Some(config) => Weights::problems(gguf, config),
            None => Weights::uncomputed(gguf),
        }
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
        KvCache::new(self.config.layer_kinds(), window)
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
            let (first, window) = (segment.cache.len(), segment.cache.window());
            positions.extend((first..first + segment.ids.len()).map(|at| (at, window)));
        }
        if ids.is_empty() {
            return Ok(Step::Done(Vec::new()));
        }
        let mut rotations = self.rotations.of(&positions);
        let query_scale = self.query_scale(&positions)?;
        let mut state = self.weights.embedding.rows(&ids)?;
        if self.config.embedding_scale != 1.0 {
            state = (state * f64::from(self.config.embedding_scale))?;
        }
        for (number, layer) in self.weights.layers.iter().enumerate() {
            if stop() {
                return Ok(Step::Stopped);
            }
            let rows = Rows {
                rotation: rotations.get(self.config.rotation(number))?,
                query_scale: query_scale.as_ref(),
            };
            match self.layer(layer, number, &state, &rows, segments, stop)? {
                Some(after) => state = after,
                None => return Ok(Step::Stopped),
            }
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

    /// What the queries of every position are multiplied by; `None`: nothing.
    fn query_scale(&self, positions: &[(usize, usize)]) -> Result<Option<Tensor>, StepError> {
        let Some(scale) = self.config.position_scale else { return Ok(None) };
        let scales: Vec<f32> = positions.iter().map(|(position, _)| scale.at(*position)).collect();
        Ok(Some(Tensor::from_vec(scales, (positions.len(), 1), &Device::Cpu)?))
    }

    /// The state behind a layer; `None`: it was stopped in the layer.
    fn layer(
        &self,
        layer: &Layer,
        number: usize,
        state: &Tensor,
        rows: &Rows<'_>,
        segments: &mut [Segment<'_>],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Tensor>, StepError> {
        let threads = &self.threads;
        let input = self.normed(state.clone(), &layer.attention_norm)?;
        let mixed = match &layer.mixer {
            Mixer::Attention(weights) => self.attend(weights, number, &input, rows, segments)?,
            Mixer::Convolution(weights) => weights.apply(number, &input, segments, threads)?,
        };
        let mixed = self.scaled(self.normed(mixed, &layer.attention_post_norm)?)?;
        let state = (mixed + state)?;
        let input = self.normed(state.clone(), &layer.feed_norm)?;
        let gate = self.config.family().gate;
        let Some(fed) = layer.feed.apply(&input, gate, threads, stop)? else { return Ok(None) };
        let fed = self.scaled(self.normed(fed, &layer.feed_post_norm)?)?;
        Ok(Some((fed + state)?))
    }

    fn attend(
        &self,
        weights: &AttentionWeights,
        number: usize,
        input: &Tensor,
        rows: &Rows<'_>,
        segments: &mut [Segment<'_>],
    ) -> candle_core::Result<Tensor> {
        let (config, threads) = (&self.config, &self.threads);
        let rope = Rope { pairs: config.rope.pairs, head: config.head };
        let [query, key, value] =
            Linear::apply_all([&weights.query, &weights.key, &weights.value], input, threads)?;
        let mut query = self.normed(query, &weights.query_norm)?;
        let mut key = self.normed(key, &weights.key_norm)?;
        if let Some(rotation) = &rows.rotation {
            query = query.apply_op2_no_bwd(rotation, &rope)?;
            key = key.apply_op2_no_bwd(rotation, &rope)?;
        }
        if let Some(scale) = rows.query_scale {
            query = query.broadcast_mul(scale)?;
        }
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
                view: View {
                    before: segment.cache.len(),
                    window: config.window(number),
                    scale: config.score_scale,
                    cap: config.score_cap,
                },
                remembered: segment.cache.layer(number)?,
                threads,
            };
            let query = query.narrow(0, row, rows)?;
            mixed.push(query.apply_op1_no_bwd(&attention)?);
            row += rows;
        }
        let mixed = if mixed.len() == 1 { mixed.remove(0) } else { Tensor::cat(&mixed, 0)? };
        weights.output.apply(&mixed, threads)
    }

    fn normed(&self, input: Tensor, weight: &Option<Tensor>) -> candle_core::Result<Tensor> {
        let norm = RmsNorm { epsilon: self.config.epsilon };
        match weight {
            Some(weight) => input.apply_op2_no_bwd(weight, &norm),
            None => Ok(input),
        }
    }

    /// What a part adds to the state.
    fn scaled(&self, part: Tensor) -> candle_core::Result<Tensor> {
        match self.config.residual_scale {
            1.0 => Ok(part),
            scale => part * f64::from(scale),
        }
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
        let mut logits = output.multiply(&last, &self.threads)?;
        if let Some(bias) = &self.weights.output_bias {
            logits = logits.broadcast_add(bias)?;
        }
        if self.config.logit_scale != 1.0 {
            logits = (logits * f64::from(self.config.logit_scale))?;
        }
        if let Some(cap) = self.config.logit_cap {
            logits = logits.apply_op1_no_bwd(&SoftCap { cap })?;
        }
        let mut rows = logits.to_vec2::<f32>()?.into_iter();
        Ok(segments
            .iter()
            .map(|segment| if segment.logits == Logits::Last { rows.next() } else { None })
            .collect())
    }
}

/// What a layer needs to know about the rows of a step.
struct Rows<'a> {
    /// `None`: the layer does not rotate.
    rotation: Option<Tensor>,
    /// `None`: queries stay as they are.
    query_scale: Option<&'a Tensor>,
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
