//! The models that Correx knows.

use serde::{Deserialize, Serialize};
use thiserror::Error;

const EMBEDDED: &str = include_str!("../../../models/catalog.toml");

/// The known models, in the catalogue's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    models: Vec<ModelEntry>,
    default: usize,
}

/// What is known of one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// Its stable name.
    pub id: String,
    /// What people read.
    pub name: String,
    /// The name of its GGUF file.
    pub file: String,
    /// The file's exact size.
    pub size_bytes: u64,
    /// SHA-256 of the file, in lower-case hexadecimal.
    pub sha256: String,
    /// SPDX expression of the weights' licence.
    pub licence: String,
    /// Tokens that it was trained to hold.
    pub context_length: u32,
    /// Whether a new installation uses it.
    #[serde(default)]
    pub default: bool,
    /// One line that helps a person choose.
    pub good_for: String,
    /// Where it comes from.
    pub source: ModelSource,
}

/// Where a model comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ModelSource {
    /// A file inside a Python wheel.
    Pypi {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// The path inside the wheel.
        member: String,
    },
}

/// Why a catalogue could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CatalogueError {
    /// It is not TOML, or not of this form.
    #[error("the model catalogue cannot be read: {0}")]
    Syntax(String),
    /// Not exactly one model is the default.
    #[error("the model catalogue names {0} default models; it must name exactly one")]
    Defaults(usize),
    /// Two models have one id.
    #[error("the model catalogue has two models with the id {0}")]
    Duplicate(String),
    /// A file name that leads elsewhere.
    #[error("the model {id} has the file name {file:?}; it must be a bare file name")]
    FileName {
        /// The model.
        id: String,
        /// What it says.
        file: String,
    },
}

impl Catalogue {
    /// The catalogue that this program was built with.
    pub fn embedded() -> Result<Self, CatalogueError> {
        Self::parse(EMBEDDED)
    }

    /// Reads a catalogue.
    pub fn parse(text: &str) -> Result<Self, CatalogueError> {
        #[derive(Deserialize)]
        struct File {
            model: Vec<ModelEntry>,
        }
        let File { model: models } =
            toml::from_str(text).map_err(|error| CatalogueError::Syntax(error.to_string()))?;
        for (index, model) in models.iter().enumerate() {
            if models[..index].iter().any(|earlier| earlier.id == model.id) {
                return Err(CatalogueError::Duplicate(model.id.clone()));
            }
            let bare = !model.file.is_empty()
                && !model.file.contains(['/', '\\', ':'])
                && model.file != "."
                && model.file != "..";
            if !bare {
                let (id, file) = (model.id.clone(), model.file.clone());
                return Err(CatalogueError::FileName { id, file });
            }
        }
        let defaults = models.iter().filter(|model| model.default).count();
        match models.iter().position(|model| model.default) {
            Some(default) if defaults == 1 => Ok(Self { models, default }),
            _ => Err(CatalogueError::Defaults(defaults)),
        }
    }

    /// Every model.
    pub fn models(&self) -> &[ModelEntry] {
        &self.models
    }

    /// The model that a new installation uses.
    pub fn default_model(&self) -> &ModelEntry {
        &self.models[self.default]
    }

    /// The model whose file has this name and size. A file by that name with another size is
    /// something else.
    pub fn by_file(&self, file: &str, size_bytes: u64) -> Option<&ModelEntry> {
        self.models.iter().find(|model| model.file == file && model.size_bytes == size_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, file: &str, default: bool) -> String {
        format!(
            "[[model]]\nid = {id:?}\nname = \"N\"\nfile = {file:?}\nsize_bytes = 3\nsha256 = \"00\"\n\
             licence = \"MIT\"\ncontext_length = 64\ndefault = {default}\ngood_for = \"tests\"\n\
             source = {{ kind = \"pypi\", package = \"p\", version = \"1\", member = \"m\" }}\n"
        )
    }

    #[test]
    fn the_embedded_catalogue_has_a_default_model_with_a_full_checksum() {
        let catalogue = Catalogue::embedded().unwrap();
        let model = catalogue.default_model();
        assert_eq!(model.sha256.len(), 64);
        assert!(model.file.ends_with(".gguf"));
        assert_eq!(catalogue.by_file(&model.file, model.size_bytes), Some(model));
        assert_eq!(catalogue.by_file(&model.file, model.size_bytes - 1), None);
    }

    #[test]
    fn a_catalogue_without_exactly_one_default_is_refused() {
        let none = Catalogue::parse(&entry("a", "a.gguf", false));
        assert_eq!(none, Err(CatalogueError::Defaults(0)));
        let two = entry("a", "a.gguf", true) + &entry("b", "b.gguf", true);
        assert_eq!(Catalogue::parse(&two), Err(CatalogueError::Defaults(2)));
    }

    #[test]
    fn two_models_cannot_share_an_id_and_no_file_name_can_leave_the_folder() {
        let twice = entry("a", "a.gguf", true) + &entry("a", "b.gguf", false);
        assert_eq!(Catalogue::parse(&twice), Err(CatalogueError::Duplicate("a".into())));
        for file in ["../a.gguf", "a/b.gguf", "", "..", "c:\\a.gguf"] {
            let parsed = Catalogue::parse(&entry("a", file, true));
            assert!(matches!(parsed, Err(CatalogueError::FileName { .. })), "{file:?}");
        }
    }

    #[test]
    fn an_unknown_key_is_named() {
        let text = entry("a", "a.gguf", true) + "colour = \"red\"\n";
        let Err(CatalogueError::Syntax(message)) = Catalogue::parse(&text) else {
            panic!("accepted an unknown key");
        };
        assert!(message.contains("colour"), "{message}");
    }
}
