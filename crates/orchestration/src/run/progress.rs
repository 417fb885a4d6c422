//! What a front end is told while a stage generates. Never the authority: the log is.

use std::sync::{Arc, Mutex, PoisonError};

use correx_events::{PieceRef, SessionId, StageId};
use correx_inference::{StreamEvent, StreamSink};

/// How far an attempt is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageProgress {
    /// The session.
    pub session: SessionId,
    /// The stage.
    pub stage: StageId,
    /// The attempt.
    pub attempt: u32,
    /// Prompt tokens evaluated or reused.
    pub prompt_done: usize,
    /// Prompt tokens in all.
    pub prompt_total: usize,
    /// Tokens generated.
    pub tokens: usize,
    /// The most that it may generate.
    pub max_tokens: usize,
    /// Of those, tokens of what the model thinks before its answer.
    pub thinking_tokens: usize,
    /// Text to append to the attempt's thinking.
    pub thinking: String,
    /// Text to append to the attempt's draft.
    pub text: String,
    /// Of a stage that goes piece by piece: the one at work.
    pub piece: Option<PieceRef>,
}

/// Receives progress. Called on the engine's thread: it must not block.
pub trait ProgressSink: Send + Sync {
    /// An attempt came further.
    fn progress(&self, progress: StageProgress);

    /// A run cannot go on for a reason that lies outside it (the model is gone, the disk is
    /// full). `message` says what happened and what to do; the log keeps all that was done.
    fn stalled(&self, session: &SessionId, message: &str) {
        let _ = (session, message);
    }
}

/// Tells `sink` what the provider streams about one attempt.
pub(super) fn stream_to(sink: Arc<dyn ProgressSink>, begin: StageProgress) -> StreamSink {
    let latest = Mutex::new(begin);
    StreamSink::new(move |event| {
        let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut thinking, mut text) = (String::new(), String::new());
        match event {
            StreamEvent::Prompt { done, total } => {
                latest.prompt_done = done;
                latest.prompt_total = total;
            }
            StreamEvent::Thinking { text: more, tokens } => {
                latest.prompt_done = latest.prompt_total;
                latest.tokens = tokens;
                latest.thinking_tokens = tokens;
                thinking = more;
            }
            StreamEvent::Text { text: more, tokens } => {
                latest.prompt_done = latest.prompt_total;
                latest.tokens = tokens;
                text = more;
            }
        }
        sink.progress(StageProgress { thinking, text, ..latest.clone() });
    })
}
