//! How a reply is generated.

use serde::{Deserialize, Serialize};

use crate::ResponseFormat;

/// How the next token is chosen, and how many at most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GenerationConfig {
    /// 0 is greedy: always the likeliest token.
    pub temperature: f64,
    /// Keep the likeliest tokens that together have this probability (0–1]; 1 keeps all.
    pub top_p: f64,
    /// Keep this many of the likeliest tokens; 0 keeps all.
    pub top_k: usize,
    /// Drop tokens less likely than this share of the likeliest one's probability; 0 keeps all.
    pub min_p: f64,
    /// Divide (positive) or multiply (negative) the logits of recent tokens by this; 1 is off.
    pub repetition_penalty: f32,
    /// How many tokens back the repetition penalty looks.
    pub repetition_window: usize,
    /// The random generator's seed: equal seeds and prompts give equal replies.
    pub seed: u64,
    /// The most tokens to generate.
    pub max_tokens: usize,
    /// The form of the reply.
    pub format: ResponseFormat,
}

impl Default for GenerationConfig {
    fn default() -> Self {
        Self {
            temperature: 0.7,
            top_p: 0.95,
            top_k: 40,
            min_p: 0.05,
            repetition_penalty: 1.1,
            repetition_window: 64,
            seed: 0,
            max_tokens: 512,
            format: ResponseFormat::Text,
        }
    }
}

impl GenerationConfig {
    /// Always the likeliest token, no penalty: repeatable by itself.
    pub fn greedy(max_tokens: usize) -> Self {
        Self {
            temperature: 0.0,
            top_p: 1.0,
            top_k: 0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            max_tokens,
            ..Self::default()
        }
    }
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model ended its turn.
    Stop,
    /// `max_tokens` was reached, or the context window was full.
    Length,
    /// It was cancelled; what was generated until then is kept.
    Cancelled,
}
