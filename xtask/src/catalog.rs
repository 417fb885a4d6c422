//! `models/catalog.toml`: the models that Correx knows. `models/README.md` explains its keys.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Why the catalogue cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CatalogError {
    #[error("the model catalogue {path} cannot be read: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("the model catalogue is not valid:\n{0}")]
    Syntax(#[from] toml::de::Error),
    #[error("the model catalogue is not valid: model `{id}`: {problem}")]
    Model { id: String, problem: &'static str },
    #[error("the model catalogue names {0} default models; it must name exactly one")]
    Defaults(usize),
}

/// All models, exactly one of them the default.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Catalog {
    #[serde(rename = "model")]
    models: Vec<Model>,
}

/// One model file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "every key is parsed, so that a mistake in any is found here")]
pub(crate) struct Model {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) file: String,
    /// Zero where only the source knows it.
    #[serde(default)]
    pub(crate) size_bytes: u64,
    #[serde(default)]
    pub(crate) size_about_mb: Option<u64>,
    /// Empty where only the source knows it.
    #[serde(default)]
    pub(crate) sha256: String,
    pub(crate) class: String,
    pub(crate) architecture: String,
    pub(crate) licence: String,
    #[serde(default)]
    pub(crate) licence_url: Option<String>,
    pub(crate) context_length: u32,
    #[serde(default)]
    pub(crate) default: bool,
    pub(crate) good_for: String,
    pub(crate) source: Source,
}

/// Where a model file comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Source {
    /// A file inside a Python wheel.
    Pypi { package: String, version: String, member: String },
    /// A file in a repository of the hub. The program downloads those when it is asked to.
    Hub { repo: String },
}

impl Catalog {
    pub(crate) fn read(path: &Path) -> Result<Self, CatalogError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| CatalogError::Read { path: path.to_path_buf(), source })?;
        Self::parse(&text)
    }

    pub(crate) fn parse(text: &str) -> Result<Self, CatalogError> {
        let catalog: Self = toml::from_str(text)?;
        let mut ids = BTreeSet::new();
        for model in &catalog.models {
            let fail = |problem| CatalogError::Model { id: model.id.clone(), problem };
            model.check().map_err(fail)?;
            if !ids.insert(&model.id) {
                return Err(fail("another model has the same id"));
            }
        }
        match catalog.models.iter().filter(|model| model.default).count() {
            1 => Ok(catalog),
            count => Err(CatalogError::Defaults(count)),
        }
    }

    /// The model that a new installation uses.
    pub(crate) fn default_model(&self) -> &Model {
        // `parse` has counted exactly one.
        self.models.iter().find(|model| model.default).unwrap_or(&self.models[0])
    }
}

impl Model {
    fn check(&self) -> Result<(), &'static str> {
        let hex_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        match &self.source {
            Source::Hub { .. } if self.default => {
                return Err("the default model must come from a package: setup uses no hub");
            }
            Source::Hub { .. } if self.size_bytes != 0 || !self.sha256.is_empty() => {
                return Err("`size_bytes` and `sha256` of a file of the hub are the hub's to say");
            }
            Source::Hub { .. } => return self.check_common(),
            Source::Pypi { .. } => {}
        }
        if self.sha256.len() != 64 || !self.sha256.chars().all(hex_digit) {
            return Err("`sha256` must be 64 lower-case hex digits");
        }
        if self.size_bytes == 0 {
            return Err("`size_bytes` must be the size of the file");
        }
        self.check_common()
    }

    fn check_common(&self) -> Result<(), &'static str> {
        if self.context_length == 0 {
            return Err("`context_length` must be at least 1");
        }
        if self.file.is_empty() || self.file.starts_with('.') || self.file.contains(['/', '\\']) {
            return Err("`file` must be a bare file name");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = r#"
        [[model]]
        id = "small"
        name = "Small"
        file = "small.gguf"
        size_bytes = 3
        sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        class = "tiny"
        architecture = "llama"
        licence = "Apache-2.0"
        context_length = 8
        default = true
        good_for = "tests"
        source = { kind = "pypi", package = "p", version = "1", member = "p/small.gguf" }
    "#;

    fn refused(text: &str) -> String {
        Catalog::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn the_catalogue_of_the_repository_is_valid_and_has_its_default_model() {
        let workspace = crate::workspace::Workspace::locate();
        let catalog = Catalog::read(&workspace.catalog()).unwrap();
        assert_eq!(catalog.default_model().id, "smollm2-135m-instruct-q4_1");
    }

    #[test]
    fn the_default_model_is_the_marked_one_not_the_first() {
        let other = MODEL.replace("\"small\"", "\"other\"").replace("default = true", "");
        let catalog = Catalog::parse(&format!("{other}{MODEL}")).unwrap();
        assert_eq!(catalog.default_model().id, "small");
    }

    #[test]
    fn none_or_two_default_models_are_refused() {
        assert!(refused(&MODEL.replace("default = true", "")).contains("names 0 default models"));
        let two = format!("{MODEL}{}", MODEL.replace("\"small\"", "\"other\""));
        assert!(refused(&two).contains("names 2 default models"));
    }

    #[test]
    fn two_models_with_one_id_are_refused() {
        let two = format!("{MODEL}{}", MODEL.replace("default = true", ""));
        assert!(refused(&two).contains("same id"));
    }

    #[test]
    fn a_file_name_cannot_lead_out_of_the_models_folder() {
        for name in ["../small.gguf", "/tmp/small.gguf", "a\\\\b.gguf", "..", ""] {
            let text = MODEL.replace("\"small.gguf\"", &format!("\"{name}\""));
            assert!(refused(&text).contains("bare file name"), "{name}");
        }
    }

    #[test]
    fn a_checksum_that_is_not_one_is_refused() {
        assert!(refused(&MODEL.replace("ba7816", "BA7816")).contains("sha256"));
        assert!(refused(&MODEL.replace("ba7816", "ba781")).contains("sha256"));
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let message = refused(&MODEL.replace("licence", "license"));
        assert!(message.contains("license") && message.contains("line 10"), "{message}");
    }

    #[test]
    fn a_file_of_the_hub_has_no_checksum_here_and_is_no_default() {
        let source = MODEL.find("source").unwrap();
        let hub = format!("{}source = {{ kind = \"hub\", repo = \"a/b\" }}\n", &MODEL[..source]);
        assert!(refused(&hub).contains("must come from a package"));
        let other = hub.replace("default = true", "").replace("\"small\"", "\"other\"");
        assert!(refused(&format!("{MODEL}{other}")).contains("the hub's to say"));
        let lines =
            other.lines().filter(|line| !line.contains("size_") && !line.contains("sha256"));
        let plain: String = lines.map(|line| format!("{line}\n")).collect();
        assert_eq!(Catalog::parse(&format!("{MODEL}{plain}")).unwrap().default_model().id, "small");
    }

    #[test]
    fn an_unknown_kind_of_source_is_refused_by_name() {
        assert!(refused(&MODEL.replace("pypi", "carrier-pigeon")).contains("carrier-pigeon"));
    }
}
