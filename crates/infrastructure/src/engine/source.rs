//! Where models come from.

use std::path::PathBuf;
use std::sync::Arc;

use correx_inference::{InferenceCancellationToken, InferenceProvider};
use correx_protocol::{MemoryView, ModelChoice, ProtocolError};

/// The word for the model of a new installation, where a model is named.
pub const DEFAULT: &str = "default";

/// Which model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Chosen {
    /// The one of a new installation.
    #[default]
    Default,
    /// A known one.
    Id(String),
    /// A file of the person's own.
    File(PathBuf),
}

/// What is known of a model before it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Which one.
    pub chosen: Chosen,
    /// For people.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
}

impl Candidate {
    /// What settings call it.
    pub fn remembered(&self) -> String {
        match &self.chosen {
            Chosen::Id(id) => id.clone(),
            Chosen::Default => DEFAULT.to_owned(),
            Chosen::File(_) => self.path.display().to_string(),
        }
    }
}

/// A model that was loaded.
pub struct LoadedModel {
    /// It.
    pub provider: Arc<dyn InferenceProvider>,
    /// What it needs, when that is known.
    pub memory: Option<MemoryView>,
}

/// Finds and loads models. Every method blocks.
pub trait ModelSource: Send + Sync {
    /// What `chosen` is called until its file says it.
    fn name(&self, chosen: &Chosen) -> String;

    /// Where the file of `chosen` lies, or why it is not to be found.
    fn place(&self, _chosen: &Chosen) -> Result<PathBuf, ProtocolError> {
        Ok(PathBuf::new())
    }

    /// Every model that can be used or got; `used` is the one that is used now.
    fn list(&self, used: &Chosen) -> Vec<ModelChoice>;

    /// The model that a person names by id or path.
    fn find(&self, typed: &str) -> Result<Chosen, ProtocolError>;

    /// Whether both are the same model.
    fn is_same(&self, one: &Chosen, other: &Chosen) -> bool {
        one == other
    }

    /// Whether `chosen` can be loaded, as far as its file's header and the memory say, when
    /// `given_back` bytes that are held now are free before. Reads no weights.
    fn check(&self, chosen: &Chosen, given_back: u64) -> Result<Candidate, ProtocolError>;

    /// Loads it. `report` hears how far that is, from 0 to 1; `cancel` stops it.
    fn load(
        &self,
        chosen: &Chosen,
        cancel: &InferenceCancellationToken,
        report: &dyn Fn(f32),
    ) -> Result<LoadedModel, ProtocolError>;
}
