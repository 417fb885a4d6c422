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
    /// The model that a workflow names cannot be had.
    #[error("the model `{model}` cannot be used: {problem}")]
    Model {
        /// As the workflow names it.
        model: String,
        /// What is wrong, and what to do.
        problem: String,
    },
}

/// What a provider is wanted for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RouteRequest<'a> {
    /// The stage; `None`: the conversation.
    pub stage: Option<&'a StageId>,
    /// What it must be able to do.
    pub required: &'a [ModelCapability],
    /// The model that the workflow names, by its id or its whole path; `None`: whichever the person
    /// uses.
    pub model: Option<&'a str>,
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

    /// The same where a model can be named. Naming another one than the present is a switch, which
    /// waits until no other stage has a provider: whoever is done with one lets go of it before
    /// asking for the next.
    async fn route_to(
        &self,
        request: RouteRequest<'_>,
    ) -> Result<Arc<dyn InferenceProvider>, RoutingError> {
        if let Some(model) = request.model {
            self.check_model(model).await?;
        }
        self.route(request.stage, request.required).await
    }

    /// Whether `model` can be had, as far as that is known without loading it: it is there, it can
    /// be run, and it fits.
    async fn check_model(&self, model: &str) -> Result<(), RoutingError> {
        Err(RoutingError::Model {
            model: model.to_owned(),
            problem: "the model cannot be changed here. Leave `model` out of the workflow"
                .to_owned(),
        })
    }
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

    async fn check_model(&self, model: &str) -> Result<(), RoutingError> {
        let about = self.0.describe();
        if [&about.name, &about.location].iter().any(|known| *known == model) {
            return Ok(());
        }
        let problem = format!(
            "{} is used here and cannot be changed. Leave `model` out of the workflow",
            about.name
        );
        Err(RoutingError::Model { model: model.to_owned(), problem })
    }
}
