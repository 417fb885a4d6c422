//! Where things lie in the repository.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The repository and the folders that the chores use.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
    models: PathBuf,
}

impl Workspace {
    /// The repository that this program was built from. Cargo names the folder of the package at run
    /// time, so a repository that was moved after the build is found too.
    pub(crate) fn locate() -> Self {
        let package = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        Self::at(package.parent().unwrap_or(&package))
    }

    /// The repository in the folder `root`.
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_path_buf(), models: root.join("models") }
    }

    /// The same repository with its model files elsewhere; the catalogue stays where it is.
    pub(crate) fn with_models(self, folder: PathBuf) -> Self {
        Self { models: folder, ..self }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The web front end.
    pub(crate) fn ui(&self) -> PathBuf {
        self.root.join("ui")
    }

    /// The folder of the model files.
    pub(crate) fn models(&self) -> &Path {
        &self.models
    }

    /// The catalogue of models.
    pub(crate) fn catalog(&self) -> PathBuf {
        self.root.join("models").join("catalog.toml")
    }

    /// Tools that setup fetched for this repository alone; git ignores the folder.
    pub(crate) fn tools(&self) -> PathBuf {
        self.root.join("target").join("tools")
    }
}

/// The cargo that runs this program, so that every chore uses the same toolchain.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"))
}
