//! A provider for tests: it says what it is told to, and remembers what it was shown.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use correx_context::PromptEncoder;
use correx_context::testing::WordEncoder;

use crate::{
    FinishReason, InferenceCancellationToken, InferenceError, InferenceProvider, InferenceRequest,
    InferenceResponse, ModelCapability, ModelDescription, StreamEvent, StreamSink, Thinking,
    ThinkingMode,
};

/// What to do at one inference.
#[derive(Debug, Clone)]
pub enum Script {
    /// Say this.
    Say(String),
    /// Say this, then wait until cancelled.
    SayAndWait(String),
    /// Think this, then say that.
    Think {
        /// The thinking.
        thinking: String,
        /// The answer.
        say: String,
    },
    /// Think this until the reply is as long as it may be.
    ThinkTooLong(String),
    /// Think this, then wait until cancelled.
    ThinkAndWait(String),
    /// Fail with this.
    Fail(String),
}

/// Follows a script, one entry per inference; after its end it says `ok`.
pub struct ScriptedProvider {
    encoder: Arc<WordEncoder>,
    window: usize,
    script: Mutex<VecDeque<Script>>,
    requests: Mutex<Vec<InferenceRequest>>,
    thinking: Mutex<Vec<ThinkingMode>>,
}

impl ScriptedProvider {
    /// A provider with a window of `window` tokens.
    pub fn new(window: usize, script: impl IntoIterator<Item = Script>) -> Self {
        Self {
            encoder: Arc::default(),
            window,
            script: Mutex::new(script.into_iter().collect()),
            requests: Mutex::default(),
            thinking: Mutex::default(),
        }
    }

    /// Every request so far, oldest first.
    pub fn requests(&self) -> Vec<InferenceRequest> {
        self.requests.lock().expect("no test panics while holding it").clone()
    }

    /// What the prompts that were made said about thinking, oldest first.
    pub fn thinking_asked(&self) -> Vec<ThinkingMode> {
        self.thinking.lock().expect("no test panics while holding it").clone()
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
        // Whoever wrote the script answers for the form of what it says.
        &[ModelCapability::Chat, ModelCapability::CancelInPrompt, ModelCapability::Constrained]
    }

    fn encoder(&self) -> Arc<dyn PromptEncoder> {
        self.encoder.clone()
    }

    fn encoder_for(&self, thinking: ThinkingMode) -> Arc<dyn PromptEncoder> {
        self.thinking.lock().expect("no test panics while holding it").push(thinking);
        self.encoder()
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
        let none = String::new;
        let (thinking, text, finish_reason) = match next.unwrap_or_else(|| Script::Say("ok".into()))
        {
            Script::Fail(message) => return Err(InferenceError::Engine(message)),
            Script::Say(text) => (none(), text, FinishReason::Stop),
            Script::SayAndWait(text) => (none(), text, FinishReason::Cancelled),
            Script::Think { thinking, say } => (thinking, say, FinishReason::Stop),
            Script::ThinkTooLong(thinking) => (thinking, none(), FinishReason::Length),
            Script::ThinkAndWait(thinking) => (thinking, none(), FinishReason::Cancelled),
        };
        let total = prompt_ids.len();
        sink.send(StreamEvent::Prompt { done: total, total });
        let mut output_tokens = 0;
        for piece in thinking.split_inclusive(' ') {
            output_tokens += 1;
            sink.send(StreamEvent::Thinking { text: piece.to_owned(), tokens: output_tokens });
        }
        let thinking =
            (!thinking.is_empty()).then_some(Thinking { text: thinking, tokens: output_tokens });
        for piece in text.split_inclusive(' ') {
            output_tokens += 1;
            sink.send(StreamEvent::Text { text: piece.to_owned(), tokens: output_tokens });
        }
        if finish_reason == FinishReason::Cancelled {
            cancel.cancelled().await;
        }
        Ok(InferenceResponse {
            text,
            thinking,
            finish_reason,
            prompt_ids,
            reused_tokens: 0,
            output_tokens,
            prompt_ms: 1,
            reply_ms: 1,
            device: "test".into(),
        })
    }
}
