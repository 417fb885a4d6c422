//! A file becomes a model where it lies.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::records::{LibraryError, sha256_of, slug};
use super::{Installed, InstalledFile, Library, Origin};
use crate::download::Check;

/// Why a file could not be imported. Nothing was changed.
#[derive(Debug, Error)]
pub enum ImportError {
    /// It is no model, or a damaged one.
    #[error(transparent)]
    NoModel(#[from] correx_gguf::InspectError),
    /// It is a model that cannot be used here.
    #[error("{}: this model cannot be used here: {reason}", path.display())]
    Unsuitable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It has another name already.
    #[error(
        "{} is imported already, as {id}. Forget that first (`correx model delete {id}`; the file stays), or leave the name out",
        path.display()
    )]
    Named {
        /// The file.
        path: PathBuf,
        /// The id that it has.
        id: String,
    },
    /// It was stopped.
    #[error("the import was stopped")]
    Stopped,
    /// The record could not be written, or the file not be read.
    #[error(transparent)]
    Library(#[from] LibraryError),
}

impl Library {
    /// Enters the model at `path` without copying it: its header is checked, its bytes are summed
    /// up, and a record is made that points to it. Of a split model any file will do. `on` hears how
    /// many bytes are read and says whether to go on.
    pub fn import(
        &self,
        path: &Path,
        name: Option<&str>,
        check: &Check,
        on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Installed, ImportError> {
        // A relative path would mean something else tomorrow.
        let path = std::path::absolute(path).map_err(LibraryError::file(path))?;
        let gguf = correx_gguf::inspect(&path)?;
        if let (Some(name), Some(earlier)) = (name, self.by_path(&gguf.path))
            && slug(name) != earlier.id
        {
            return Err(ImportError::Named { path, id: earlier.id });
        }
        check(&gguf).map_err(|reason| ImportError::Unsuitable { path: path.clone(), reason })?;
        let mut files = Vec::new();
        let mut done = 0;
        for part in &gguf.parts {
            let path = &part.path;
            let mut block = || {
                done += 1 << 20;
                on(done)
            };
            let sha256 = sha256_of(path, &mut block)
                .map_err(LibraryError::file(path))?
                .ok_or(ImportError::Stopped)?;
            files.push(InstalledFile {
                path: path.clone(),
                size_bytes: part.bytes,
                sha256,
                etag: None,
                modified: None,
                ours: false,
            });
        }
        let stem = gguf.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = name.map(str::to_owned).or(stem).unwrap_or_default();
        Ok(self.enter(Some(&name), &name, Origin::Imported, files)?)
    }
}

impl ImportError {
    /// Whether there is nothing at the path.
    pub fn is_missing(&self) -> bool {
        match self {
            ImportError::NoModel(error) => matches!(error.problem, correx_gguf::Problem::Missing),
            ImportError::Library(LibraryError::File { error, .. }) => {
                error.kind() == io::ErrorKind::NotFound
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use correx_gguf::testing::Writer;

    use super::*;
    use crate::testing::small_model;

    fn import(library: &Library, path: &Path) -> Result<Installed, ImportError> {
        library.import(path, None, &|_| Ok(()), &mut |_| true)
    }

    #[test]
    fn a_file_is_imported_where_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        let library = Library::in_data_dir(&dir.path().join("data"));
        let path = dir.path().join("mein Modell ü.gguf");
        fs::write(&path, small_model(1000)).unwrap();
        let installed = import(&library, &path).unwrap();
        assert_eq!(installed.path(), Some(&*path));
        assert_eq!(installed.id, "mein-modell-ü");
        assert_eq!(library.list(), std::slice::from_ref(&installed));
        assert_eq!(import(&library, &path).unwrap(), installed, "twice is once");
        let named = |name| library.import(&path, Some(name), &|_| Ok(()), &mut |_| true);
        let refused = named("Another").unwrap_err();
        assert!(refused.to_string().contains("already, as mein-modell-ü"), "{refused}");
        assert_eq!(named("Mein Modell ü").unwrap().id, installed.id);
        library.put(&installed).unwrap();
        let copies: Vec<_> = fs::read_dir(dir.path().join("data/models")).unwrap().collect();
        assert_eq!(copies.len(), 1, "only the records");
    }

    #[test]
    fn a_split_model_is_imported_by_any_of_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let library = Library::in_data_dir(&dir.path().join("data"));
        let model = Writer::new().entry("general.architecture", "llama");
        let model = model.f32("a", &[2], &[1.0, 2.0]).f32("b", &[2], &[3.0, 4.0]);
        let parts = model.write_split(dir.path(), "m", &[1, 1]).unwrap();
        let installed = import(&library, &parts[1]).unwrap();
        assert_eq!(
            installed.files.iter().map(|file| &file.path).collect::<Vec<_>>(),
            [&parts[0], &parts[1]]
        );
        fs::remove_file(&parts[1]).unwrap();
        assert!(import(&library, &parts[0]).is_err());
    }

    #[test]
    fn what_is_no_model_or_unsuitable_is_refused_and_nothing_is_entered() {
        let dir = tempfile::tempdir().unwrap();
        let library = Library::in_data_dir(dir.path());
        assert!(import(&library, &dir.path().join("x.gguf")).unwrap_err().is_missing());
        let page = dir.path().join("page.gguf");
        fs::write(&page, "<!doctype html>").unwrap();
        assert!(matches!(import(&library, &page), Err(ImportError::NoModel(_))));
        let one = dir.path().join("one.gguf");
        fs::write(&one, small_model(1000)).unwrap();
        let refused = library.import(&one, None, &|_| Err("too new".into()), &mut |_| true);
        assert!(
            matches!(refused, Err(ImportError::Unsuitable { reason, .. }) if reason == "too new")
        );
        assert!(library.list().is_empty());
    }
}
