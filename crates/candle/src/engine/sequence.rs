//! One inference on its way.

use std::time::{Duration, Instant};

use correx_inference::{
    FinishReason, InferenceCancellationToken, InferenceError, InferenceResponse, Split,
    StreamEvent, StreamSink,
};
use tokio::sync::oneshot;

use super::{Job, ReplyForm};
use crate::constraint::{Held, Permitted, Progress};
use crate::decoder::{KvCache, Logits, Segment};
use crate::reasoning::ReplyText;
use crate::sampler::{NoChoice, Sampler};
use crate::tokenizer::Vocabulary;

type Answer = oneshot::Sender<Result<InferenceResponse, InferenceError>>;

/// What comes after an evaluation.
pub(super) enum Next {
    /// More of the prompt, or the token that was chosen.
    Continue,
    /// The sequence is done.
    Finished(FinishReason),
    /// It cannot go on.
    Failed(InferenceError),
}

/// A prompt and its reply so far.
pub(super) struct Sequence {
    prompt: Vec<u32>,
    reply: Vec<u32>,
    cache: KvCache,
    reused: usize,
    most: usize,
    sampler: Sampler,
    held: Option<Held>,
    text: ReplyText,
    key: String,
    cancel: InferenceCancellationToken,
    sink: StreamSink,
    answer: Answer,
    begun: Instant,
    first_token: Option<Instant>,
}

impl Sequence {
    /// `cache` holds the first `reused` ids of the prompt.
    pub(super) fn new(
        job: Job,
        cache: KvCache,
        reused: usize,
        window: usize,
        reply: ReplyForm,
        vocabulary: &Vocabulary,
    ) -> Self {
        let held = job
            .constraint
            .map(|constraint| Held::new(constraint, reply.reasoning, job.reply_start, vocabulary));
        // A form says by itself where it ends.
        let stop_text = job.stop_text.filter(|_| held.is_none());
        let sequence = Self {
            reply: Vec::new(),
            cache,
            reused,
            most: job.generation.max_tokens.min(window.saturating_sub(job.ids.len())),
            sampler: Sampler::new(&job.generation),
            held,
            text: ReplyText::new(reply.reasoning, job.reply_start, stop_text),
            prompt: job.ids,
            key: job.cache_key,
            cancel: job.cancel,
            sink: job.sink,
            answer: job.answer,
            begun: Instant::now(),
            first_token: None,
        };
        sequence.report_prompt();
        sequence
    }

    /// Whether somebody asked to stop, or nobody waits any more.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled() || self.answer.is_closed()
    }

    /// To be asked while a step runs.
    pub(super) fn cancel_token(&self) -> InferenceCancellationToken {
        self.cancel.clone()
    }

    /// Whether its prompt has been evaluated.
    pub(super) fn is_replying(&self) -> bool {
        self.cache.len() >= self.prompt.len()
    }

    /// The next at most `tokens` ids of the prompt, and whether they are the last.
    pub(super) fn prompt_chunk(&mut self, tokens: usize) -> (&mut KvCache, &[u32], bool) {
        let done = self.cache.len();
        let end = self.prompt.len().min(done + tokens.max(1));
        let last = end == self.prompt.len() && self.most > 0;
        (&mut self.cache, &self.prompt[done..end], last)
    }

    /// The token that was chosen last, to be evaluated.
    pub(super) fn reply_segment(&mut self) -> Segment<'_> {
        let from = self.reply.len().saturating_sub(1);
        Segment { cache: &mut self.cache, ids: &self.reply[from..], logits: Logits::Last }
    }

    /// Goes on behind a chunk of the prompt.
    pub(super) fn prompt_evaluated(
        &mut self,
        logits: Option<Vec<f32>>,
        vocabulary: &Vocabulary,
    ) -> Next {
        self.report_prompt();
        if !self.is_replying() {
            return Next::Continue;
        }
        match logits {
            Some(logits) => self.token_evaluated(Some(logits), vocabulary),
            // No token was asked for.
            None => Next::Finished(FinishReason::Length),
        }
    }

    /// Chooses the next token.
    pub(super) fn token_evaluated(
        &mut self,
        logits: Option<Vec<f32>>,
        vocabulary: &Vocabulary,
    ) -> Next {
        let mut logits = logits.unwrap_or_default();
        // Padded rows of the output are no tokens.
        logits.truncate(vocabulary.len());
        let id = match self.choose(&mut logits) {
            Ok(id) => id,
            Err(error) => return Next::Failed(error),
        };
        self.first_token.get_or_insert_with(Instant::now);
        if vocabulary.is_stop(id) {
            return Next::Finished(FinishReason::Stop);
        }
        self.reply.push(id);
        let split = self.text.push(id, vocabulary);
        self.say(split);
        let complete = match &mut self.held {
            Some(held) => match held.take(id, &self.text, vocabulary) {
                Ok(progress) => progress == Progress::Complete,
                Err(stuck) => return Next::Failed(stuck.into()),
            },
            None => false,
        };
        if complete || self.text.has_stopped() {
            return Next::Finished(FinishReason::Stop);
        }
        if self.reply.len() >= self.most {
            return Next::Finished(FinishReason::Length);
        }
        Next::Continue
    }

    fn choose(&mut self, logits: &mut [f32]) -> Result<u32, InferenceError> {
        let Some(held) = &mut self.held else {
            return choice(self.sampler.choose(logits, &self.reply));
        };
        choice(match held.permitted()? {
            Permitted::All => self.sampler.choose(logits, &self.reply),
            Permitted::Only(ids) => self.sampler.choose_among(&ids, logits, held.words(&ids)),
        })
    }

    /// Answers, and hands back what its cache holds under which key.
    pub(super) fn finish(
        mut self,
        reason: FinishReason,
        device: &str,
    ) -> (String, Vec<u32>, KvCache) {
        let rest = self.text.finish();
        self.say(rest);
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let now = Instant::now();
        let first = self.first_token.unwrap_or(now);
        let mut ids = self.prompt.clone();
        ids.extend_from_slice(&self.reply);
        ids.truncate(self.cache.len());
        let (text, thinking) = self.text.into_parts();
        let response = InferenceResponse {
            text,
            thinking,
            finish_reason: reason,
            prompt_ids: self.prompt,
            reused_tokens: self.reused,
            output_tokens: self.reply.len(),
            prompt_ms: milliseconds(first - self.begun),
            reply_ms: milliseconds(now - first),
            device: device.to_owned(),
        };
        // Nobody may be waiting any more; then nobody misses the answer.
        let _ = self.answer.send(Ok(response));
        (self.key, ids, self.cache)
    }

    /// Answers with an error; its cache is not kept.
    pub(super) fn fail(self, error: InferenceError) {
        let _ = self.answer.send(Err(error));
    }

    fn say(&self, split: Split) {
        let tokens = self.reply.len();
        if !split.thinking.is_empty() {
            self.sink.send(StreamEvent::Thinking { text: split.thinking, tokens });
        }
        if !split.answer.is_empty() {
            self.sink.send(StreamEvent::Text { text: split.answer, tokens });
        }
    }

    fn report_prompt(&self) {
        self.sink.send(StreamEvent::Prompt {
            done: self.cache.len().min(self.prompt.len()),
            total: self.prompt.len(),
        });
    }
}

fn choice(chosen: Result<u32, NoChoice>) -> Result<u32, InferenceError> {
    chosen.map_err(|error| InferenceError::Engine(error.to_string()))
}
