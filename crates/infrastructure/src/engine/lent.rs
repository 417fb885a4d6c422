//! A model that is lent out, and can be taken away.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use correx_context::PromptEncoder;
use correx_inference::{
    FinishReason, InferenceCancellationToken, InferenceError, InferenceProvider, InferenceRequest,
    InferenceResponse, ModelCapability, ModelDescription, StreamSink, ThinkingMode,
};

/// A provider as the router hands it out. Once it is withdrawn, nobody who still has it keeps the
/// weights in memory, and whatever it is asked ends as cancelled.
pub(super) struct Lent {
    description: ModelDescription,
    capabilities: Vec<ModelCapability>,
    encoder: Arc<dyn PromptEncoder>,
    /// The encoders that switch the model's thinking off and on.
    switched: [Arc<dyn PromptEncoder>; 2],
    window: usize,
    withdrawn: InferenceCancellationToken,
    held: Mutex<Held>,
    ended: Condvar,
    /// Hears of a notice that came up while it was used.
    noticed: Box<dyn Fn(Option<String>) + Send + Sync>,
}

struct Held {
    provider: Option<Arc<dyn InferenceProvider>>,
    /// Inferences at work.
    running: usize,
    used: Instant,
}

impl Lent {
    pub(super) fn new(
        provider: Arc<dyn InferenceProvider>,
        noticed: impl Fn(Option<String>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            description: provider.describe(),
            capabilities: provider.capabilities().to_vec(),
            encoder: provider.encoder(),
            switched: [ThinkingMode::Off, ThinkingMode::On].map(|mode| provider.encoder_for(mode)),
            window: provider.context_window(),
            withdrawn: InferenceCancellationToken::new(),
            held: Mutex::new(Held { provider: Some(provider), running: 0, used: Instant::now() }),
            ended: Condvar::new(),
            noticed: Box::new(noticed),
        }
    }

    /// Notes that somebody is about to use it; `false` when it is gone.
    pub(super) fn touch(&self) -> bool {
        let mut held = self.held();
        held.used = Instant::now();
        held.provider.is_some()
    }

    /// Takes the model away and frees it: stops what is at work, waits for that, and drops the
    /// provider. Blocks.
    pub(super) fn withdraw(&self) {
        self.withdrawn.cancel();
        let mut held = self.held();
        let provider = held.provider.take();
        while held.running > 0 {
            held = self.ended.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        drop(held);
        // The last one: its memory is free when this returns.
        drop(provider);
    }

    /// The same, when nobody used it for `idle`; whether that was so.
    pub(super) fn withdraw_after(&self, idle: Duration) -> bool {
        let mut held = self.held();
        if held.running > 0 || held.used.elapsed() < idle {
            return false;
        }
        let provider = held.provider.take();
        drop(held);
        self.withdrawn.cancel();
        drop(provider);
        true
    }

    /// How long it has not been used; `None` while it is.
    pub(super) fn idle(&self) -> Option<Duration> {
        let held = self.held();
        (held.running == 0).then(|| held.used.elapsed())
    }

    fn begin(&self) -> Option<Work<'_>> {
        let mut held = self.held();
        let provider = held.provider.clone()?;
        held.running += 1;
        Some(Work { provider: Some(provider), lent: self })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An inference at work.
struct Work<'a> {
    provider: Option<Arc<dyn InferenceProvider>>,
    lent: &'a Lent,
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        // Before it counts as ended.
        self.provider = None;
        let mut held = self.lent.held();
        held.running -= 1;
        held.used = Instant::now();
        self.lent.ended.notify_all();
    }
}

#[async_trait]
impl InferenceProvider for Lent {
    fn describe(&self) -> ModelDescription {
        let provider = self.held().provider.clone();
        provider.map_or_else(|| self.description.clone(), |provider| provider.describe())
    }

    fn capabilities(&self) -> &[ModelCapability] {
        &self.capabilities
    }

    fn encoder(&self) -> Arc<dyn PromptEncoder> {
        self.encoder.clone()
    }

    fn encoder_for(&self, thinking: ThinkingMode) -> Arc<dyn PromptEncoder> {
        match thinking {
            ThinkingMode::Auto => self.encoder.clone(),
            ThinkingMode::Off => self.switched[0].clone(),
            ThinkingMode::On => self.switched[1].clone(),
        }
    }

    fn context_window(&self) -> usize {
        self.window
    }

    fn is_withdrawn(&self) -> bool {
        self.withdrawn.is_cancelled()
    }

    async fn infer(
        &self,
        request: InferenceRequest,
        cancel: InferenceCancellationToken,
        sink: StreamSink,
    ) -> Result<InferenceResponse, InferenceError> {
        let work = self.begin();
        let Some(provider) = work.as_ref().and_then(|work| work.provider.as_ref()) else {
            return Ok(self.nothing_said(request));
        };
        let notice = provider.describe().notice;
        if notice != self.description.notice {
            (self.noticed)(notice);
        }
        let stop = cancel.child();
        let inference = provider.infer(request, stop.clone(), sink);
        tokio::pin!(inference);
        tokio::select! {
            biased;
            response = &mut inference => response,
            () = self.withdrawn.cancelled() => {
                stop.cancel();
                inference.await
            }
        }
    }
}

impl Lent {
    fn nothing_said(&self, request: InferenceRequest) -> InferenceResponse {
        InferenceResponse {
            text: String::new(),
            thinking: None,
            finish_reason: FinishReason::Cancelled,
            prompt_ids: request.context_pack.prompt.ids,
            reused_tokens: 0,
            output_tokens: 0,
            prompt_ms: 0,
            reply_ms: 0,
            device: self.description.device.clone(),
        }
    }
}
