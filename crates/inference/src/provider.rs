//! What can run inference.

use std::sync::Arc;

use async_trait::async_trait;
use correx_context::PromptEncoder;
use serde::{Deserialize, Serialize};

use crate::{
    InferenceCancellationToken, InferenceError, InferenceRequest, InferenceResponse, StreamSink,
    ThinkingMode,
};

/// Something a stage may need of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelCapability {
    /// Answers chat messages.
    Chat,
    /// Decodes several sequences at once.
    Batch,
    /// Keeps a shared prefix between prompts by cutting its cache back.
    CutBack,
    /// Can be stopped in the middle of a prompt.
    CancelInPrompt,
    /// Holds a reply to a grammar.
    Constrained,
}

/// What is loaded, where it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelDescription {
    /// A name for people, from the file or its name.
    pub name: String,
    /// SHA-256 of the weights in lower-case hexadecimal, when known.
    pub sha256: Option<String>,
    /// The file or endpoint.
    pub location: String,
    /// For example `llama`.
    pub architecture: String,
    /// For example `Q4_1`.
    pub quantization: String,
    /// The device that really runs it, for example `CPU (2 threads)`.
    pub device: String,
    /// The largest prompt plus reply, in tokens.
    pub context_window: usize,
    /// The number of weights.
    pub parameters: u64,
    /// The size of the file in bytes.
    pub file_bytes: u64,
    /// Something a person should know, such as a built-in template in place of a broken one.
    pub notice: Option<String>,
}

/// An engine that answers prompts.
#[async_trait]
pub trait InferenceProvider: Send + Sync {
    /// What is loaded.
    fn describe(&self) -> ModelDescription;

    /// What it can do.
    fn capabilities(&self) -> &[ModelCapability];

    /// Counts and encodes as this provider's model does.
    fn encoder(&self) -> Arc<dyn PromptEncoder>;

    /// The same, for prompts that switch the model's thinking on or off. Where that cannot be
    /// switched it is [`encoder`](Self::encoder).
    fn encoder_for(&self, thinking: ThinkingMode) -> Arc<dyn PromptEncoder> {
        let _ = thinking;
        self.encoder()
    }

    /// The largest prompt plus reply, in tokens.
    fn context_window(&self) -> usize;

    /// Whether its model was taken away for another one: what it is asked ends as cancelled, and
    /// whoever goes on asks the router again.
    fn is_withdrawn(&self) -> bool {
        false
    }

    /// Runs one inference to its end.
    ///
    /// Text streams to `sink` as it comes; the response is the authority. Cancelling is no error:
    /// the response then holds what was generated, with [`FinishReason::Cancelled`].
    ///
    /// [`FinishReason::Cancelled`]: crate::FinishReason::Cancelled
    async fn infer(
        &self,
        request: InferenceRequest,
        cancel: InferenceCancellationToken,
        sink: StreamSink,
    ) -> Result<InferenceResponse, InferenceError>;
}
