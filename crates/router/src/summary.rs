//! What a finished stage is remembered by: words made from its events' metadata. Deterministic,
//! never written by a model, never an artifact's content.

use correx_events::{StageCancelled, StageCompleted, StageFailed};

/// For example `finished on attempt 2: 214 words, 301 tokens, 4.1 s`.
pub fn completed(stage: &StageCompleted) -> String {
    let mut facts = Vec::new();
    if let Some(words) = stage.words {
        facts.push(count(words, "word"));
    }
    if let Some(tokens) = stage.output_tokens {
        facts.push(count(tokens, "token"));
    }
    facts.push(seconds(stage.duration_ms));
    format!("finished on attempt {}: {}", stage.attempt, facts.join(", "))
}

/// For example `failed on attempt 3: the answer has 12 words, at least 30 are wanted`.
pub fn failed(stage: &StageFailed) -> String {
    format!("failed on attempt {}: {}", stage.attempt, stage.reason)
}

/// For example `cancelled during attempt 1`.
pub fn cancelled(stage: &StageCancelled) -> String {
    format!("cancelled during attempt {}", stage.attempt)
}

fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100)
}
