//! How fast a model is here.

use std::path::Path;
use std::time::Instant;

use correx_inference::GenerationConfig;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::memory;
use crate::provider::LoadError;
use crate::raw::{RawError, RawModel, RawOptions};
use crate::sampler::Sampler;

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BenchPlan {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Tokens of each reply.
    pub reply: usize,
    /// Threads; `None`: [`compute_threads`](crate::compute_threads).
    pub threads: Option<usize>,
    /// The rule that splits text, whatever the file says; `None`: the file's.
    pub pre_tokenizer: Option<&'static str>,
}

/// What was measured. Speeds are in tokens per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchReport {
    /// Evaluating the prompt.
    pub prompt_tps: f64,
    /// Replying from an empty context.
    pub reply_tps: f64,
    /// Replying behind the prompt.
    pub reply_after_prompt_tps: f64,
    /// Loading, in seconds.
    pub load_s: f64,
    /// The most memory that was held, less what the process held before loading, in MiB; `None`
    /// where the system does not tell.
    pub peak_rss_mib: Option<f64>,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens of each reply.
    pub reply_tokens: usize,
    /// Threads that computed.
    pub threads: usize,
}

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The model could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The model failed.
    #[error(transparent)]
    Raw(#[from] RawError),
    /// There is nothing to measure, or no room for it.
    #[error("a prompt of {prompt} and a reply of {reply} tokens do not fit a window of {window}")]
    Plan {
        /// Tokens of the prompt.
        prompt: usize,
        /// Tokens of the reply.
        reply: usize,
        /// The window.
        window: usize,
    },
}

/// Measures the model at `path`: greedy, a fixed pseudo-random prompt, nothing streamed, one run.
pub fn bench(path: &Path, plan: BenchPlan) -> Result<BenchReport, BenchError> {
    let before = memory::resident_bytes();
    memory::forget_peak();
    let options = RawOptions { threads: plan.threads, pre_tokenizer: plan.pre_tokenizer };
    let begun = Instant::now();
    let model = RawModel::load_with(path, options, |_| {})?;
    let load_s = begun.elapsed().as_secs_f64();
    let BenchPlan { prompt, reply, .. } = plan;
    let window = model.context_window();
    if prompt == 0 || reply == 0 || prompt.saturating_add(reply) > window {
        return Err(BenchError::Plan { prompt, reply, window });
    }
    let ids = pseudo_random_ids(prompt, model.vocabulary().len());
    // Once without counting: the first step wakes threads and touches memory.
    model.evaluate(&mut model.new_cache(), &ids[..prompt.min(4)])?;
    let reply_tps = {
        let mut cache = model.new_cache();
        let logits = model.evaluate(&mut cache, &[model.vocabulary().first_id()])?;
        reply_speed(&model, &mut cache, logits, reply)?
    };
    let mut cache = model.new_cache();
    let begun = Instant::now();
    let logits = model.evaluate(&mut cache, &ids)?;
    let prompt_tps = prompt as f64 / begun.elapsed().as_secs_f64();
    let reply_after_prompt_tps = reply_speed(&model, &mut cache, logits, reply)?;
    Ok(BenchReport {
        prompt_tps,
        reply_tps,
        reply_after_prompt_tps,
        load_s,
        peak_rss_mib: memory::peak_bytes()
            .zip(before)
            .map(|(peak, before)| peak.saturating_sub(before) as f64 / f64::from(1 << 20)),
        prompt_tokens: prompt,
        reply_tokens: reply,
        threads: model.threads(),
    })
}

/// Replies with `tokens` tokens, whatever they are, and says how many came per second.
fn reply_speed(
    model: &RawModel,
    cache: &mut crate::decoder::KvCache,
    mut logits: Vec<f32>,
    tokens: usize,
) -> Result<f64, BenchError> {
    let mut sampler = Sampler::new(&GenerationConfig::greedy(tokens));
    let begun = Instant::now();
    for _ in 0..tokens {
        let id = sampler.choose(&mut logits, &[]).map_err(RawError::from)?;
        logits = model.evaluate(cache, &[id])?;
    }
    Ok(tokens as f64 / begun.elapsed().as_secs_f64())
}

/// The same ids on every machine, by a linear congruential generator.
fn pseudo_random_ids(count: usize, vocabulary: usize) -> Vec<u32> {
    let mut state = 42u64;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) % vocabulary.max(1) as u64) as u32
        })
        .collect()
}
