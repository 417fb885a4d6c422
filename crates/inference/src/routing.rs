//! Which provider serves which stage.

use std::sync::Arc;

use async_trait::async_trait;
use correx_events::StageId;
use thiserror::Error;

use crate::{InferenceProvider, ModelCapability};

/// Why no provider could be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RoutingError {
    /// Nothing can serve the request.
    #[error("no model can do this: it needs {0:?}")]
    NoProvider(Vec<ModelCapability>),
    /// The model could not be loaded. The text says what happened and what to do.
    #[error("{0}")]
    Load(String),
}

/// Chooses a provider. May wait for a model that is being loaded.
#[async_trait]
pub trait InferenceRouter: Send + Sync {
    /// The provider for `stage` (`None`: the conversation) that has all of `required`.
    async fn route(
        &self,
        stage: Option<&StageId>,
        required: &[ModelCapability],
    ) -> Result<Arc<dyn InferenceProvider>, RoutingError>;
}

/// Routes everything to one provider that is already there.
#[derive(Clone)]
pub struct SingleProvider(Arc<dyn InferenceProvider>);

impl SingleProvider {
    /// Routes to `provider`.
    pub fn new(provider: Arc<dyn InferenceProvider>) -> Self {
        Self(provider)
    }
}

#[async_trait]
impl InferenceRouter for SingleProvider {
    async fn route(
        &self,
        _stage: Option<&StageId>,
        required: &[ModelCapability],
    ) -> Result<Arc<dyn InferenceProvider>, RoutingError> {
        if required.iter().all(|needed| self.0.capabilities().contains(needed)) {
            Ok(self.0.clone())
        } else {
            Err(RoutingError::NoProvider(required.to_vec()))
        }
    }
}
