//! Stages that have a model: it is not taken from under them for another stage's.

use std::sync::Arc;

use async_trait::async_trait;
use correx_context::PromptEncoder;
use correx_inference::{
    InferenceCancellationToken, InferenceError, InferenceProvider, InferenceRequest,
    InferenceResponse, ModelCapability, ModelDescription, StreamSink, ThinkingMode,
};
use tokio::sync::watch;

/// Counts them.
#[derive(Clone)]
pub(super) struct Stages(watch::Sender<usize>);

impl Default for Stages {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Stages {
    /// `provider` for a stage, which counts until it is dropped.
    pub(super) fn lend(&self, provider: Arc<dyn InferenceProvider>) -> Arc<dyn InferenceProvider> {
        self.0.send_modify(|count| *count += 1);
        Arc::new(ForStage { provider, stages: self.clone() })
    }

    /// Whether no stage has a model now.
    pub(super) fn none(&self) -> bool {
        *self.0.borrow() == 0
    }

    /// Waits until none has.
    pub(super) async fn wait_for_none(&self) {
        // The sender lives as long as this handle.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

struct ForStage {
    provider: Arc<dyn InferenceProvider>,
    stages: Stages,
}

impl Drop for ForStage {
    fn drop(&mut self) {
        self.stages.0.send_modify(|count| *count -= 1);
    }
}

#[async_trait]
impl InferenceProvider for ForStage {
    fn describe(&self) -> ModelDescription {
        self.provider.describe()
    }

    fn capabilities(&self) -> &[ModelCapability] {
        self.provider.capabilities()
    }

    fn encoder(&self) -> Arc<dyn PromptEncoder> {
        self.provider.encoder()
    }

    fn encoder_for(&self, thinking: ThinkingMode) -> Arc<dyn PromptEncoder> {
        self.provider.encoder_for(thinking)
    }

    fn context_window(&self) -> usize {
        self.provider.context_window()
    }

    fn is_withdrawn(&self) -> bool {
        self.provider.is_withdrawn()
    }

    async fn infer(
        &self,
        request: InferenceRequest,
        cancel: InferenceCancellationToken,
        sink: StreamSink,
    ) -> Result<InferenceResponse, InferenceError> {
        self.provider.infer(request, cancel, sink).await
    }
}
