//! The model: found, loaded in the background, lent out, changed.
//!
//! - this file: [`Engine`], the seam between the application and whatever answers prompts.
//! - [`manager`]: [`ModelManager`], one model at a time.
//! - [`lent`]: a model that can be taken away.
//! - [`stages`]: stages that have a model.
//! - [`source`]: [`ModelSource`], where models come from; [`in_process`]: from files.

mod in_process;
mod lent;
mod manager;
mod source;
mod stages;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use correx_inference::{InferenceProvider, InferenceRouter, SingleProvider};
use correx_protocol::ModelView;
use tokio::sync::watch;

pub use in_process::{InProcess, LoadingSettings, not_here, unknown};
pub use manager::ModelManager;
pub use source::{Candidate, Chosen, DEFAULT, LoadedModel, ModelSource};

use crate::view;

/// Something that can run inference, and what is known of its model as it changes. The seam
/// between the application and whatever answers prompts.
#[derive(Clone)]
pub struct Engine {
    /// Finds a provider; may wait until one is there.
    pub inference: Arc<dyn InferenceRouter>,
    /// The model's state, kept up to date.
    pub model: watch::Receiver<ModelView>,
    /// Loads and changes it; `None`: it is what it is.
    pub manager: Option<ModelManager>,
}

impl Engine {
    /// An engine around a provider that is there already.
    pub fn ready(provider: Arc<dyn InferenceProvider>) -> Self {
        let view = view::model(&provider.describe());
        // Without its sender a watched value just stays as it is.
        let (_, model) = watch::channel(view);
        Self { inference: Arc::new(SingleProvider::new(provider)), model, manager: None }
    }

    /// An engine whose model can be changed; loaded in the background, when `loading` says.
    pub fn managed(manager: ModelManager, loading: Loading) -> Self {
        if loading == Loading::AtStart {
            manager.wake();
        }
        let model = manager.watch();
        Self { inference: Arc::new(manager.clone()), model, manager: Some(manager) }
    }

    /// Begins to load the model, if nobody has tried to yet.
    pub fn wake(&self) {
        if let Some(manager) = &self.manager {
            manager.wake();
        }
    }
}

/// When the model is loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Loading {
    /// In the background, from the start.
    #[default]
    AtStart,
    /// When something needs it.
    WhenNeeded,
}
