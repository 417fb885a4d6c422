//! Where a model's file lies on this machine.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::ModelEntry;

/// The places to look in, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locations {
    /// The file that a person named; nothing else is looked at then.
    pub named: Option<PathBuf>,
    /// Folders that may hold models, the most personal first.
    pub folders: Vec<PathBuf>,
}

/// Why there is no model file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LocateError {
    /// The file that a person named is not there.
    #[error("the model file {0} does not exist")]
    NamedMissing(PathBuf),
    /// The file that a person named cannot be reached.
    #[error("the model file {path} cannot be read: {reason}")]
    NamedUnreachable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// What a person named is not a file.
    #[error("{0} is not a file, so it cannot be a model")]
    NotAFile(PathBuf),
    /// The default model is in none of the usual places.
    #[error("the model file {file} is in none of the usual places: {}", list(.searched))]
    NotInstalled {
        /// The file's name.
        file: String,
        /// Where it was looked for.
        searched: Vec<PathBuf>,
    },
}

impl LocateError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            LocateError::NamedMissing(_)
            | LocateError::NamedUnreachable { .. }
            | LocateError::NotAFile(_) => {
                "Check the path, or leave it out to use the default model."
            }
            LocateError::NotInstalled { .. } => {
                "Get the default model with `cargo xtask setup`, or name a GGUF file of your own \
                 with `--model FILE` or the variable CORREX_MODEL."
            }
        }
    }
}

impl Locations {
    /// The usual places: the file that a person named, the data directory's `models/`, then
    /// `models/` beside the program (and, inside a macOS bundle, in its resources), then, for
    /// a program that was built in a checkout, the checkout's own `models/`.
    pub fn usual(named: Option<PathBuf>, data_dir: &Path, executable: Option<&Path>) -> Self {
        let mut folders = vec![data_dir.join("models")];
        if let Some(beside) = executable.and_then(Path::parent) {
            folders.push(beside.join("models"));
            if let Some(contents) = beside.parent() {
                folders.push(contents.join("Resources").join("models"));
            }
            let checkout = beside
                .ancestors()
                .map(|folder| folder.join("models"))
                .find(|models| models.join("catalog.toml").is_file());
            folders.extend(checkout);
        }
        Self { named, folders }
    }

    /// The file to load when `wanted` is the model to use.
    pub fn find(&self, wanted: &ModelEntry) -> Result<PathBuf, LocateError> {
        if let Some(named) = &self.named {
            return match named.metadata() {
                Ok(found) if found.is_file() => Ok(named.clone()),
                Ok(_) => Err(LocateError::NotAFile(named.clone())),
                Err(error) => Err(out_of_reach(named, &error)),
            };
        }
        self.folders
            .iter()
            .map(|folder| folder.join(&wanted.file))
            .find(|path| path.is_file())
            .ok_or_else(|| LocateError::NotInstalled {
                file: wanted.file.clone(),
                searched: self.folders.clone(),
            })
    }
}

fn out_of_reach(named: &Path, error: &io::Error) -> LocateError {
    let reason = match error.kind() {
        io::ErrorKind::NotFound if named.is_symlink() => "it is a link that leads nowhere".into(),
        io::ErrorKind::NotFound => return LocateError::NamedMissing(named.to_owned()),
        _ => error.to_string(),
    };
    LocateError::NamedUnreachable { path: named.to_owned(), reason }
}

fn list(folders: &[PathBuf]) -> String {
    let folders: Vec<String> = folders.iter().map(|path| path.display().to_string()).collect();
    folders.join(", ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Catalogue;

    fn model() -> ModelEntry {
        Catalogue::embedded().unwrap().default_model().clone()
    }

    fn put(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"GGUF").unwrap();
    }

    #[test]
    fn a_named_file_wins_and_its_absence_is_not_covered_up() {
        let dir = tempfile::tempdir().unwrap();
        put(&dir.path().join("models").join(model().file));
        let own = dir.path().join("own model ü.gguf");
        let locations = Locations::usual(Some(own.clone()), dir.path(), None);
        assert_eq!(locations.find(&model()), Err(LocateError::NamedMissing(own.clone())));
        put(&own);
        assert_eq!(locations.find(&model()), Ok(own));
        let folder = Locations::usual(Some(dir.path().to_owned()), dir.path(), None);
        assert_eq!(folder.find(&model()), Err(LocateError::NotAFile(dir.path().to_owned())));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_nowhere_or_in_circles_is_called_so() {
        let dir = tempfile::tempdir().unwrap();
        for (name, to, word) in
            [("a.gguf", "nowhere", "leads nowhere"), ("b.gguf", "b.gguf", "cannot be read")]
        {
            let link = dir.path().join(name);
            std::os::unix::fs::symlink(to, &link).unwrap();
            let error = Locations::usual(Some(link), dir.path(), None).find(&model()).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn the_data_directory_comes_before_what_lies_beside_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let (data, program) = (dir.path().join("data"), dir.path().join("bin/correx"));
        let beside = dir.path().join("bin/models").join(model().file);
        put(&beside);
        let locations = Locations::usual(None, &data, Some(&program));
        assert_eq!(locations.find(&model()), Ok(beside));
        let personal = data.join("models").join(model().file);
        put(&personal);
        assert_eq!(locations.find(&model()), Ok(personal));
    }

    #[test]
    fn a_program_built_in_a_checkout_finds_the_checkouts_models() {
        let dir = tempfile::tempdir().unwrap();
        put(&dir.path().join("models/catalog.toml"));
        let file = dir.path().join("models").join(model().file);
        put(&file);
        let program = dir.path().join("target/debug/correx");
        let locations = Locations::usual(None, &dir.path().join("data"), Some(&program));
        assert_eq!(locations.find(&model()), Ok(file));
    }

    #[test]
    fn a_missing_model_says_where_it_was_looked_for_and_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let error = Locations::usual(None, dir.path(), None).find(&model()).unwrap_err();
        assert!(error.to_string().contains(&dir.path().join("models").display().to_string()));
        assert!(error.hint().contains("cargo xtask setup"));
        assert!(error.hint().contains("--model FILE"));
    }
}
