//! One thread that owns the model and steps sequences.
//!
//! Every live sequence has its own cache, sampler and cancellation token. Sequences that reply
//! are stepped together, one token each; prompts are evaluated in chunks between those steps, and
//! a chunk is paid back with as much time of replying before the next one, so that whoever
//! replies keeps at least half its speed and whoever asks need not wait for the end.
//!
//! - [`sequence`]: one inference on its way.
//! - [`kept`]: caches of finished sequences, for prompts that begin the same.
//! - [`turns`]: whose turn it is.

mod kept;
mod sequence;
mod turns;

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use correx_context::ReplyStart;
use correx_inference::{
    FinishReason, GenerationConfig, InferenceCancellationToken, InferenceError, InferenceResponse,
    StreamSink,
};
use tokio::sync::oneshot;

use crate::constraint::Constraint;
use crate::decoder::{Decoder, Logits, Segment, Step};
use crate::reasoning::Reasoning;
use crate::tokenizer::Vocabulary;
use kept::KeptCaches;
use sequence::{Next, Sequence};
use turns::{Turn, Turns};

/// What the engine is asked to do.
pub(crate) struct Job {
    pub(crate) ids: Vec<u32>,
    pub(crate) reply_start: ReplyStart,
    /// Text that ends the reply, where no token does.
    pub(crate) stop_text: Option<&'static str>,
    pub(crate) generation: GenerationConfig,
    /// What holds the reply to `generation.format`.
    pub(crate) constraint: Option<Constraint>,
    pub(crate) cache_key: String,
    pub(crate) cancel: InferenceCancellationToken,
    pub(crate) sink: StreamSink,
    pub(crate) answer: oneshot::Sender<Result<InferenceResponse, InferenceError>>,
}

/// How replies are to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyForm {
    /// How the model marks its thinking, if it thinks.
    pub(crate) reasoning: Option<Reasoning>,
}

/// The thread's state.
pub(crate) struct Engine {
    decoder: Arc<Decoder>,
    vocabulary: Arc<Vocabulary>,
    reply: ReplyForm,
    device: String,
    window: usize,
    kept: KeptCaches,
    live: Vec<Sequence>,
    turns: Turns,
}

impl Engine {
    /// An engine for prompts and replies of at most `window` tokens together, which keeps at most
    /// `kept_bytes` of caches beside the live ones.
    pub(crate) fn new(
        decoder: Arc<Decoder>,
        vocabulary: Arc<Vocabulary>,
        reply: ReplyForm,
        device: String,
        window: usize,
        kept_bytes: usize,
    ) -> Self {
        Self {
            decoder,
            vocabulary,
            reply,
            device,
            window,
            kept: KeptCaches::new(kept_bytes),
            live: Vec::new(),
            turns: Turns::default(),
        }
    }

    /// Works until every handle is gone.
    pub(crate) fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            if self.live.is_empty() {
                match jobs.recv() {
                    Ok(job) => self.take(job),
                    Err(_) => return,
                }
            }
            while let Ok(job) = jobs.try_recv() {
                self.take(job);
            }
            self.drop_cancelled();
            self.step();
        }
    }

    fn take(&mut self, job: Job) {
        if job.ids.is_empty() {
            let _ = job.answer.send(Err(InferenceError::Engine("the prompt is empty".into())));
            return;
        }
        if job.ids.len() >= self.window {
            let error = InferenceError::TooLong { prompt: job.ids.len(), window: self.window };
            let _ = job.answer.send(Err(error));
            return;
        }
        let (cache, reused) = self
            .kept
            .take(&job.cache_key, &job.ids)
            .unwrap_or_else(|| (self.decoder.new_cache(self.window), 0));
        let reply = self.reply;
        self.live.push(Sequence::new(job, cache, reused, self.window, reply, &self.vocabulary));
    }

    fn drop_cancelled(&mut self) {
        let mut place = 0;
        while place < self.live.len() {
            if self.live[place].is_cancelled() {
                self.finish(place, FinishReason::Cancelled);
            } else {
                place += 1;
            }
        }
    }

    /// Ends a sequence and keeps its cache.
    fn finish(&mut self, place: usize, reason: FinishReason) {
        let sequence = self.live.remove(place);
        let (key, ids, cache) = sequence.finish(reason, &self.device);
        self.kept.put(key, ids, cache);
    }

    fn step(&mut self) {
        match self.turns.next(self.live.iter().map(Sequence::is_replying)) {
            Turn::None => {}
            Turn::Prompt { place, tokens } => self.step_prompt(place, tokens),
            Turn::Replies => self.step_replies(),
        }
    }

    fn step_prompt(&mut self, place: usize, tokens: usize) {
        let begun = Instant::now();
        let sequence = &mut self.live[place];
        let cancel = sequence.cancel_token();
        let (cache, ids, last) = sequence.prompt_chunk(tokens);
        let evaluated = ids.len();
        let logits = if last { Logits::Last } else { Logits::Skip };
        let stepped =
            self.decoder.step(&mut [Segment { cache, ids, logits }], &|| cancel.is_cancelled());
        match stepped {
            Ok(Step::Stopped) => {}
            Ok(Step::Done(mut logits)) => {
                self.turns.prompt_took(evaluated, begun.elapsed());
                let next = sequence.prompt_evaluated(logits.pop().flatten(), &self.vocabulary);
                self.settle(place, next);
            }
            Err(error) => {
                self.live.remove(place).fail(InferenceError::Engine(error.to_string()));
            }
        }
    }

    fn step_replies(&mut self) {
        let begun = Instant::now();
        let places: Vec<usize> =
            (0..self.live.len()).filter(|place| self.live[*place].is_replying()).collect();
        let cancels: Vec<_> = places.iter().map(|place| self.live[*place].cancel_token()).collect();
        let mut segments: Vec<Segment<'_>> = self
            .live
            .iter_mut()
            .filter(|sequence| sequence.is_replying())
            .map(Sequence::reply_segment)
            .collect();
        let stepped = self
            .decoder
            .step(&mut segments, &|| cancels.iter().any(|cancel| cancel.is_cancelled()));
        drop(segments);
        match stepped {
            // Nothing was added to any cache: the others take the same step again.
            Ok(Step::Stopped) => {}
            Ok(Step::Done(logits)) => {
                self.turns.replies_took(begun.elapsed());
                // From the back, so that removing one leaves the other places as they are.
                for (place, logits) in places.into_iter().zip(logits).rev() {
                    let next = self.live[place].token_evaluated(logits, &self.vocabulary);
                    self.settle(place, next);
                }
            }
            Err(error) => {
                for place in places.into_iter().rev() {
                    self.live.remove(place).fail(InferenceError::Engine(error.to_string()));
                }
            }
        }
    }

    fn settle(&mut self, place: usize, next: Next) {
        match next {
            Next::Continue => {}
            Next::Finished(reason) => self.finish(place, reason),
            Next::Failed(error) => self.live.remove(place).fail(error),
        }
    }
}
