//! How much one prompt may hold.

use serde::{Deserialize, Serialize};

/// The most tokens a prompt may have, everything included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBudget {
    /// In tokens, counted on the rendered prompt.
    pub limit: usize,
}

impl TokenBudget {
    /// A budget of `limit` tokens.
    pub fn new(limit: usize) -> Self {
        Self { limit }
    }

    /// The limit that leaves room for the reply: the smaller of what the person set and what the
    /// model's window holds beside `reply_reserve` tokens.
    pub fn for_window(person_limit: usize, context_window: usize, reply_reserve: usize) -> Self {
        Self { limit: person_limit.min(context_window.saturating_sub(reply_reserve)) }
    }
}
