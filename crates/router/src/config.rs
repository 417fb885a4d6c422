//! The router's settings.

use correx_inference::{GenerationConfig, ThinkingMode};
use serde::{Deserialize, Serialize};

/// How much the router remembers, shows and says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouterConfig {
    /// How many of the newest turns a prompt may show. The history keeps twice as many.
    pub conversation_keep_last: usize,
    /// The most tokens a prompt may have, template included.
    pub token_budget: usize,
    /// Tokens of the model's window that are kept free for the reply.
    pub reply_reserve: usize,
    /// The most tokens of the answer to a steering note: it only has to confirm it.
    pub note_reply_tokens: usize,
    /// Tokens that the active steering notes may have together.
    pub note_allowance: usize,
    /// The longest message that is looked at, in bytes; what is longer cannot fit any window here.
    pub max_input_bytes: usize,
    /// Whether models that can be told so think before they answer. The replies are short, so by
    /// default they do not.
    pub thinking: ThinkingMode,
    /// How replies are generated; `max_tokens` is governed by `reply_reserve`.
    pub generation: GenerationConfig,
}

impl Default for RouterConfig {
    fn default() -> Self {
        Self {
            conversation_keep_last: 6,
            token_budget: 4096,
            reply_reserve: 512,
            note_reply_tokens: 96,
            note_allowance: 512,
            max_input_bytes: 256 * 1024,
            thinking: ThinkingMode::Off,
            generation: GenerationConfig { temperature: 0.3, ..GenerationConfig::default() },
        }
    }
}
