//! What deleting a model means, and doing it. Only files that Correx downloaded are deleted; what
//! somebody else put where it lies is forgotten and stays.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::records::LibraryError;
use super::{Installed, Library};

/// The most files that are looked at to see what else needs a blob.
const MOST: usize = 10_000;

/// What deleting a model means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The model.
    pub installed: Installed,
    /// What is deleted.
    pub deletes: Vec<PathBuf>,
    /// Bytes that become free.
    pub frees: u64,
    /// What stays although it belongs to the model, and why.
    pub stays: Vec<String>,
}

impl Library {
    /// What deleting the model would do.
    pub fn removal(&self, id: &str) -> Result<Removal, LibraryError> {
        let installed = self.get(id)?;
        let others: Vec<Installed> =
            self.list().into_iter().filter(|other| other.id != id).collect();
        let (mut deletes, mut frees, mut stays) = (Vec::new(), 0, Vec::new());
        for file in &installed.files {
            let path = &file.path;
            let shown = path.display();
            if fs::symlink_metadata(path).is_err() {
                continue;
            }
            if !file.ours {
                stays.push(format!("{shown} stays: Correx did not put it there"));
                continue;
            }
            if let Some(other) =
                others.iter().find(|other| other.files.iter().any(|file| file.path == *path))
            {
                stays.push(format!("{shown} stays: {} uses it too", other.name));
                continue;
            }
            deletes.push(path.clone());
            let Ok(blob) = path.canonicalize() else { continue };
            if blob == *path || fs::symlink_metadata(path).is_ok_and(|about| !about.is_symlink()) {
                frees += file.size_bytes;
                continue;
            }
            let needed = pointers_to(&blob, path);
            if needed.is_empty() {
                frees += file.size_bytes;
                deletes.push(blob);
            } else {
                let needed: Vec<String> =
                    needed.iter().map(|path| path.display().to_string()).collect();
                stays.push(format!("{} stays: {} uses it too", blob.display(), needed.join(", ")));
            }
        }
        Ok(Removal { installed, deletes, frees, stays })
    }

    /// Deletes the model. What is already gone is no error.
    pub fn remove(&self, removal: &Removal) -> Result<(), LibraryError> {
        for path in &removal.deletes {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(LibraryError::File { path: path.clone(), error });
                }
                _ => remove_empty_folders(path),
            }
        }
        self.forget(&removal.installed.id)
    }
}

/// The other pointers in the repository's folder that lead to `blob`.
fn pointers_to(blob: &Path, pointer: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let Some(repo) = blob.parent().and_then(Path::parent) else { return found };
    let mut open = vec![repo.join("snapshots")];
    let mut looked = 0;
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            looked += 1;
            if looked > MOST {
                // Rather too much stays than too little.
                found.insert(folder);
                return found;
            }
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(path),
                Ok(_)
                    if path.canonicalize().is_ok_and(|to| to == blob) && !same(&path, pointer) =>
                {
                    found.insert(path);
                }
                _ => {}
            }
        }
    }
    found
}

/// Whether two paths are the same entry of the same folder.
fn same(a: &Path, b: &Path) -> bool {
    let entry =
        |path: &Path| Some((path.parent()?.canonicalize().ok()?, path.file_name()?.to_owned()));
    matches!((entry(a), entry(b)), (Some(a), Some(b)) if a == b)
}

/// Removes the folders above `path` that a snapshot leaves empty.
fn remove_empty_folders(path: &Path) {
    for folder in path.ancestors().skip(1) {
        let inside = folder
            .ancestors()
            .skip(1)
            .any(|above| above.file_name().is_some_and(|name| name == "snapshots"));
        if !inside || fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::{HubFile, Place};
    use crate::library::{InstalledFile, Origin};

    struct Given {
        dir: tempfile::TempDir,
        library: Library,
        file: HubFile,
    }

    fn given() -> Given {
        let dir = tempfile::tempdir().unwrap();
        let library = Library::in_data_dir(&dir.path().join("data"));
        Given { dir, library, file: HubFile::new("a/b", "q/m.gguf", None).unwrap() }
    }

    impl Given {
        fn place(&self, commit: char) -> Place {
            let commit = commit.to_string().repeat(40);
            let place =
                Place::new(self.dir.path(), &self.file, self.file.file(), &commit, "abc").unwrap();
            fs::create_dir_all(place.part.parent().unwrap()).unwrap();
            if !place.blob.exists() {
                fs::write(&place.part, "GGUF").unwrap();
            }
            place.finish(self.dir.path(), &self.file, &commit).unwrap();
            place
        }

        fn enter(&self, path: &Path, ours: bool) -> Installed {
            let origin = Origin::Hub { file: self.file.clone(), commit: "c".into() };
            let file = InstalledFile {
                path: path.to_owned(),
                size_bytes: 4,
                sha256: String::new(),
                etag: None,
                modified: None,
                ours,
            };
            self.library.enter(None, "M", origin, vec![file]).unwrap()
        }
    }

    #[test]
    fn a_downloaded_model_is_deleted_with_its_blob() {
        let given = given();
        let place = given.place('1');
        let installed = given.enter(&place.pointer, true);
        let removal = given.library.removal(&installed.id).unwrap();
        assert_eq!((removal.frees, removal.deletes.len()), (4, 2));
        assert!(place.blob.exists(), "only asked so far");
        given.library.remove(&removal).unwrap();
        assert!(!place.blob.exists() && !place.pointer.parent().unwrap().exists());
        assert!(given.library.list().is_empty());
    }

    #[test]
    fn a_blob_that_another_revision_needs_stays() {
        let given = given();
        let (place, other) = (given.place('1'), given.place('2'));
        let installed = given.enter(&place.pointer, true);
        let removal = given.library.removal(&installed.id).unwrap();
        assert_eq!((removal.frees, &removal.deletes), (0, &vec![place.pointer.clone()]));
        assert!(removal.stays[0].contains(&"2".repeat(40)), "{:?}", removal.stays);
        given.library.remove(&removal).unwrap();
        assert_eq!(fs::read(&other.pointer).unwrap(), b"GGUF");
    }

    #[test]
    fn what_others_put_there_is_forgotten_and_stays() {
        let given = given();
        let place = given.place('1');
        let installed = given.enter(&place.pointer, false);
        let removal = given.library.removal(&installed.id).unwrap();
        assert!(removal.deletes.is_empty() && removal.stays[0].contains("did not put it there"));
        given.library.remove(&removal).unwrap();
        assert!(place.pointer.exists() && given.library.list().is_empty());
    }
}
