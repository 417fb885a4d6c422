//! A provider for tests: it says what it is told to, and remembers what it was shown.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use correx_context::PromptEncoder;
use correx_context::testing::WordEncoder;

use crate::{
    FinishReason, InferenceCancellationToken, InferenceError, InferenceProvider, InferenceRequest,
    InferenceResponse, ModelCapability, ModelDescription, StreamEvent, StreamSink,
};

/// What to do at one inference.
#[derive(Debug, Clone)]
pub enum Script {
    /// Say this.
    Say(String),
    /// Say this, then wait until cancelled.
    SayAndWait(String),
    /// Fail with this.
    Fail(String),
}

/// Follows a script, one entry per inference; after its end it says `ok`.
pub struct ScriptedProvider {
    encoder: Arc<WordEncoder>,
    window: usize,
    script: Mutex<VecDeque<Script>>,
    requests: Mutex<Vec<InferenceRequest>>,
}

impl ScriptedProvider {
    /// A provider with a window of `window` tokens.
    pub fn new(window: usize, script: impl IntoIterator<Item = Script>) -> Self {
        Self {
            encoder: Arc::default(),
            window,
            script: Mutex::new(script.into_iter().collect()),
            requests: Mutex::default(),
        }
    }

    /// Every request so far, oldest first.
    pub fn requests(&self) -> Vec<InferenceRequest> {
        self.requests.lock().expect("no test panics while holding it").clone()
    }

    /// What the model was fed at inference number `index`, as words.
    pub fn fed(&self, index: usize) -> String {
        self.encoder.decode(&self.requests()[index].context_pack.prompt.ids)
    }
}

#[async_trait]
impl InferenceProvider for ScriptedProvider {
    fn describe(&self) -> ModelDescription {
        ModelDescription {
            name: "scripted".into(),
            sha256: None,
            location: "test".into(),
            architecture: "test".into(),
            quantization: "none".into(),
            device: "test".into(),
            context_window: self.window,
            parameters: 0,
            file_bytes: 0,
            notice: None,
        }
    }

    fn capabilities(&self) -> &[ModelCapability] {
        &[ModelCapability::Chat, ModelCapability::CancelInPrompt]
    }

    fn encoder(&self) -> Arc<dyn PromptEncoder> {
        self.encoder.clone()
    }

    fn context_window(&self) -> usize {
        self.window
    }

    async fn infer(
        &self,
        request: InferenceRequest,
        cancel: InferenceCancellationToken,
        sink: StreamSink,
    ) -> Result<InferenceResponse, InferenceError> {
        let prompt_ids = request.context_pack.prompt.ids.clone();
        self.requests.lock().expect("no test panics while holding it").push(request);
        let next = self.script.lock().expect("no test panics while holding it").pop_front();
        let (text, wait) = match next.unwrap_or_else(|| Script::Say("ok".into())) {
            Script::Fail(message) => return Err(InferenceError::Engine(message)),
            Script::Say(text) => (text, false),
            Script::SayAndWait(text) => (text, true),
        };
        let total = prompt_ids.len();
        sink.send(StreamEvent::Prompt { done: total, total });
        let mut output_tokens = 0;
        for piece in text.split_inclusive(' ') {
            output_tokens += 1;
            sink.send(StreamEvent::Text { text: piece.to_owned(), tokens: output_tokens });
        }
        if wait {
            cancel.cancelled().await;
        }
        Ok(InferenceResponse {
            text,
            finish_reason: if wait { FinishReason::Cancelled } else { FinishReason::Stop },
            prompt_ids,
            reused_tokens: 0,
            output_tokens,
            prompt_ms: 1,
            reply_ms: 1,
            device: "test".into(),
        })
    }
}
