//! The models that Correx knows.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::hub::HubFile;

const EMBEDDED: &str = include_str!("../../../models/catalog.toml");

/// The known models, in the catalogue's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    models: Vec<ModelEntry>,
    default: usize,
}

/// The context, in tokens, for which [`ModelEntry::about_memory`] is.
pub const ABOUT_CONTEXT: u32 = 4096;

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
    /// The file's exact size, where it is known beforehand.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// Its size as its documentation says, in millions of bytes.
    #[serde(default)]
    pub size_about_mb: Option<u64>,
    /// SHA-256 of the file, in lower-case hexadecimal, where it is known beforehand. For a file of
    /// the hub it is not: the hub's own answer is recorded when it is downloaded.
    #[serde(default)]
    pub sha256: Option<String>,
    /// How large it is, among models.
    pub class: SizeClass,
    /// The architecture that its file names, for example `qwen3`.
    pub architecture: String,
    /// SPDX expression of the weights' licence, or its name where SPDX has none.
    pub licence: String,
    /// Where the licence can be read, where SPDX does not say.
    #[serde(default)]
    pub licence_url: Option<String>,
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

/// How large a model is, among models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeClass {
    /// Up to 0.6 thousand million weights.
    Tiny,
    /// 1 to 2.
    Small,
    /// 3 to 4.
    Medium,
    /// 7 to 9.
    Large,
    /// 12 to 14.
    Larger,
}

impl SizeClass {
    /// Its name in files and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            SizeClass::Tiny => "tiny",
            SizeClass::Small => "small",
            SizeClass::Medium => "medium",
            SizeClass::Large => "large",
            SizeClass::Larger => "larger",
        }
    }
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
    /// A file in a repository of the hub, by the name `file`.
    Hub {
        /// Owner and name.
        repo: String,
    },
}

impl ModelEntry {
    /// The file's size in bytes: exactly, or as its documentation says.
    pub fn about_bytes(&self) -> Option<u64> {
        self.size_bytes.or(self.size_about_mb.map(|mb| mb * 1_000_000))
    }

    /// Bytes of memory that it takes, roughly, before its header is here to be measured: the
    /// weights once, a sixth for keys and values of [`ABOUT_CONTEXT`] tokens, and 150 MB to work in.
    pub fn about_memory(&self) -> Option<u64> {
        self.about_bytes().map(|bytes| bytes + bytes / 6 + 150_000_000)
    }

    /// The file on the hub; `None` when it comes from elsewhere.
    pub fn hub_file(&self) -> Option<HubFile> {
        match &self.source {
            ModelSource::Hub { repo } => HubFile::new(repo, &self.file, None).ok(),
            ModelSource::Pypi { .. } => None,
        }
    }
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
    /// Something in it cannot be.
    #[error("the model {id} in the catalogue: {problem}")]
    Senseless {
        /// The model.
        id: String,
        /// What cannot be.
        problem: String,
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
            if let Err(problem) = sensible(model) {
                return Err(CatalogueError::Senseless { id: model.id.clone(), problem });
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
        self.models.iter().find(|model| model.file == file && model.size_bytes == Some(size_bytes))
    }

    /// The model with this id.
    pub fn by_id(&self, id: &str) -> Option<&ModelEntry> {
        self.models.iter().find(|model| model.id == id)
    }

    /// The model that this file of the hub is.
    pub fn by_hub_file(&self, file: &HubFile) -> Option<&ModelEntry> {
        self.models.iter().find(|model| {
            matches!(&model.source, ModelSource::Hub { repo } if repo == file.repo())
                && model.file == file.file()
        })
    }
}

/// Rules that go beyond one key.
fn sensible(model: &ModelEntry) -> Result<(), String> {
    match &model.source {
        ModelSource::Pypi { .. } if model.size_bytes.is_none() || model.sha256.is_none() => {
            Err("a file from a package needs its size and its SHA-256".into())
        }
        ModelSource::Pypi { .. } => Ok(()),
        ModelSource::Hub { repo } => {
            HubFile::new(repo, &model.file, None).map(|_| ()).map_err(|error| error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, file: &str, default: bool) -> String {
        format!(
            "[[model]]\nid = {id:?}\nname = \"N\"\nfile = {file:?}\nsize_bytes = 3\nsha256 = \"00\"\n\
             class = \"tiny\"\narchitecture = \"llama\"\nlicence = \"MIT\"\ncontext_length = 64\ndefault = {default}\ngood_for = \"tests\"\n\
             source = {{ kind = \"pypi\", package = \"p\", version = \"1\", member = \"m\" }}\n"
        )
    }

    #[test]
    fn the_embedded_catalogue_has_a_default_model_with_a_full_checksum() {
        let catalogue = Catalogue::embedded().unwrap();
        let model = catalogue.default_model();
        assert_eq!(model.sha256.as_ref().unwrap().len(), 64);
        assert!(model.file.ends_with(".gguf"));
        let size = model.size_bytes.unwrap();
        assert_eq!(catalogue.by_file(&model.file, size), Some(model));
        assert_eq!(catalogue.by_file(&model.file, size - 1), None);
    }

    #[test]
    fn every_size_is_offered_and_nothing_about_the_hub_is_made_up() {
        let catalogue = Catalogue::embedded().unwrap();
        for class in [
            SizeClass::Tiny,
            SizeClass::Small,
            SizeClass::Medium,
            SizeClass::Large,
            SizeClass::Larger,
        ] {
            assert!(catalogue.models().iter().any(|model| model.class == class), "{class:?}");
        }
        for model in catalogue.models() {
            assert!(!model.good_for.is_empty(), "{}", model.id);
            let ModelSource::Hub { .. } = model.source else { continue };
            // Checksum and exact size come from the hub when the file is downloaded.
            assert_eq!((model.size_bytes, &model.sha256), (None, &None), "{}", model.id);
            let file = model.hub_file().unwrap();
            assert_eq!(catalogue.by_hub_file(&file), Some(model));
            assert_eq!(catalogue.by_id(&model.id), Some(model));
            let spdx = ["Apache-2.0", "MIT"].contains(&model.licence.as_str());
            assert!(spdx || model.licence_url.is_some(), "{}: no way to its licence", model.id);
        }
    }

    #[test]
    fn a_file_from_a_package_without_a_checksum_is_refused() {
        let text = entry("a", "a.gguf", true).replace("sha256 = \"00\"\n", "");
        let Err(CatalogueError::Senseless { problem, .. }) = Catalogue::parse(&text) else {
            panic!("accepted a package's file without a checksum");
        };
        assert!(problem.contains("SHA-256"), "{problem}");
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
