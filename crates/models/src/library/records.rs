//! The records in the data directory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::whole::write_whole;

use super::record::{self, FileState, Installed, InstalledFile, Origin};

/// The records, one file each. Cheap to clone; nothing is kept in memory, because other processes
/// may change them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    folder: PathBuf,
}

/// Why the library could not be used.
#[derive(Debug, Error)]
pub enum LibraryError {
    /// There is no such model.
    #[error("there is no model {0} here")]
    Unknown(String),
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl LibraryError {
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::File { path, error }
    }
}

impl Library {
    /// The library of a data directory. Touches no file.
    pub fn in_data_dir(data_dir: &Path) -> Self {
        Self { folder: data_dir.join("models").join("records") }
    }

    /// Where the records lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All records, by id. One that cannot be read hides no other.
    pub fn list(&self) -> Vec<Installed> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut list: Vec<Installed> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                (path.extension()? == "json").then(|| read(&path))?
            })
            .collect();
        list.sort_by(|a, b| a.id.cmp(&b.id));
        list
    }

    /// The record with this id.
    pub fn get(&self, id: &str) -> Result<Installed, LibraryError> {
        let found = self.list().into_iter().find(|installed| installed.id == id);
        found.ok_or_else(|| LibraryError::Unknown(id.into()))
    }

    /// The record whose first file lies at `path`.
    pub fn by_path(&self, path: &Path) -> Option<Installed> {
        let same = |other: &Path| {
            other == path
                || matches!((other.canonicalize(), path.canonicalize()), (Ok(a), Ok(b)) if a == b)
        };
        self.list().into_iter().find(|installed| installed.path().is_some_and(same))
    }

    /// Enters a model, in place of an earlier record of the same files or the same origin on the
    /// hub. Its id is `wanted`, or made from its file's name.
    pub fn enter(
        &self,
        wanted: Option<&str>,
        name: &str,
        origin: Origin,
        files: Vec<InstalledFile>,
    ) -> Result<Installed, LibraryError> {
        // Until it is written no other program may choose its id, or enter the same model beside it.
        let _alone = self.alone().map_err(LibraryError::file(&self.folder))?;
        let list = self.list();
        let first = files.first().map(|file| file.path.clone()).unwrap_or_default();
        let earlier = list.iter().find(|other| {
            other.path() == Some(&first)
                || matches!(
                    (&other.origin, &origin),
                    (Origin::Hub { file: a, .. }, Origin::Hub { file: b, .. }) if a == b
                )
        });
        let id = match earlier {
            Some(earlier) => earlier.id.clone(),
            None => free_id(wanted, &first, &list),
        };
        let files = files.into_iter().map(|mut file| {
            file.modified = file.modified.or_else(|| record::modified(&file.path));
            // What was downloaded once stays ours when it is found whole later.
            file.ours = file.ours
                || earlier.is_some_and(|earlier| {
                    earlier.files.iter().any(|then| then.path == file.path && then.ours)
                });
            file
        });
        let installed = Installed { id, name: name.to_owned(), origin, files: files.collect() };
        self.put(&installed)?;
        Ok(installed)
    }

    /// Writes a record; it is there as a whole or not at all.
    pub(super) fn put(&self, installed: &Installed) -> Result<(), LibraryError> {
        let path = self.path_of(&installed.id);
        let write = || -> io::Result<()> {
            fs::create_dir_all(&self.folder)?;
            write_whole(&path, &serde_json::to_vec_pretty(installed).map_err(io::Error::other)?)
        };
        write().map_err(LibraryError::file(&path))
    }

    /// Forgets a model; its files stay.
    pub fn forget(&self, id: &str) -> Result<(), LibraryError> {
        let path = self.path_of(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(LibraryError::Unknown(id.into()))
            }
            ended => ended.map_err(LibraryError::file(&path)),
        }
    }

    /// How a model's files compare with what was recorded. Where size or time differ (always, when
    /// `thorough`) the bytes are read; a file that was only touched gets its new time recorded.
    /// `on` says whether to go on reading.
    pub fn compare(
        &self,
        installed: &Installed,
        thorough: bool,
        on: &mut dyn FnMut() -> bool,
    ) -> Result<FileState, LibraryError> {
        let mut known = installed.clone();
        for file in &mut known.files {
            match file.glance() {
                FileState::AsRecorded if !thorough => continue,
                FileState::Gone(path) => return Ok(FileState::Gone(path)),
                _ => {}
            }
            let path = file.path.clone();
            let sum = sha256_of(&path, on).map_err(LibraryError::file(&path))?;
            match sum {
                Some(sum) if sum == file.sha256 => file.modified = record::modified(&path),
                Some(_) => return Ok(FileState::Changed(path)),
                None => return Ok(FileState::Touched(path)),
            }
        }
        if known != *installed {
            self.put(&known)?;
        }
        Ok(FileState::AsRecorded)
    }

    /// Waits until no other program changes the library; it is held while the file is open.
    fn alone(&self) -> io::Result<File> {
        fs::create_dir_all(&self.folder)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.folder.join("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    fn path_of(&self, id: &str) -> PathBuf {
        // Ids come from the catalogue or from `slug`; this is for what a person types.
        self.folder.join(format!("{}.json", slug(id)))
    }
}

fn read(path: &Path) -> Option<Installed> {
    let installed: Installed = match serde_json::from_slice(&fs::read(path).ok()?) {
        Ok(installed) => installed,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a model's record cannot be read");
            return None;
        }
    };
    (slug(&installed.id) == installed.id && !installed.files.is_empty()).then_some(installed)
}

/// SHA-256 of a file, in lower-case hexadecimal; `None` when `on` said not to go on.
pub(super) fn sha256_of(path: &Path, on: &mut dyn FnMut() -> bool) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    let (mut sum, mut block) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        if !on() {
            return Ok(None);
        }
        match file.read(&mut block)? {
            0 => return Ok(Some(hex::encode(sum.finalize()))),
            read => sum.update(&block[..read]),
        }
    }
}

/// An id from a text: letters, digits and `.`, `_`, `-`, nothing else.
pub(super) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            c if c.is_alphanumeric() || c == '_' => slug.push(c),
            '.' if !slug.is_empty() => slug.push('.'),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug: String = slug.chars().take(80).collect();
    match slug.trim_matches(['-', '.']) {
        "" => "model".into(),
        slug => slug.into(),
    }
}

/// An id that no other model has.
fn free_id(wanted: Option<&str>, file: &Path, list: &[Installed]) -> String {
    let stem = || file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let wanted = slug(&wanted.map(str::to_owned).or_else(stem).unwrap_or_default());
    let taken = |id: &str| list.iter().any(|other| other.id == id);
    if !taken(&wanted) {
        return wanted;
    }
    (2_u32..).map(|number| format!("{wanted}-{number}")).find(|id| !taken(id)).unwrap_or(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path, content: &str) -> InstalledFile {
        fs::write(path, content).unwrap();
        InstalledFile {
            path: path.to_owned(),
            size_bytes: content.len() as u64,
            sha256: hex::encode(Sha256::digest(content)),
            etag: None,
            modified: None,
            ours: false,
        }
    }

    #[test]
    fn a_model_is_entered_once_and_found_by_id_and_path() {
        let dir = tempfile::tempdir().unwrap();
        let library = Library::in_data_dir(dir.path());
        assert!(library.list().is_empty());
        let path = dir.path().join("Größe (1).gguf");
        let enter = |path: &Path| {
            library.enter(None, "Größe", Origin::Imported, vec![file(path, "GGUF")]).unwrap()
        };
        let first = enter(&path);
        assert_eq!(first.id, "größe-1");
        assert_eq!(enter(&path).id, first.id);
        let folder = dir.path().join("other");
        fs::create_dir(&folder).unwrap();
        assert_eq!(enter(&folder.join("Größe (1).gguf")).id, "größe-1-2");
        assert_eq!(library.get("größe-1").unwrap().files[0].path, first.files[0].path);
        assert_eq!(library.by_path(&path).unwrap().id, first.id);
        library.forget("größe-1").unwrap();
        assert!(path.exists());
        assert!(matches!(library.forget("größe-1"), Err(LibraryError::Unknown(_))));
        assert!(library.get("../größe-1").is_err());
    }

    #[test]
    fn programs_that_enter_models_at_once_lose_none() {
        let dir = tempfile::tempdir().unwrap();
        let library = Library::in_data_dir(dir.path());
        let enter = |path: &Path, content: &str| {
            let name = content.to_owned();
            library.enter(None, &name, Origin::Imported, vec![file(path, content)]).unwrap()
        };
        // Each of four enters one model that all of them enter, and one of its own with its name.
        let shared = dir.path().join("same.gguf");
        fs::write(&shared, "GGUF").unwrap();
        let about = file(&shared, "GGUF");
        std::thread::scope(|scope| {
            for number in 0..4 {
                let (enter, library, about) = (&enter, &library, &about);
                let folder = dir.path().join(number.to_string());
                scope.spawn(move || {
                    fs::create_dir(&folder).unwrap();
                    for _ in 0..5 {
                        let files = vec![about.clone()];
                        library.enter(None, "same", Origin::Imported, files).unwrap();
                        enter(&folder.join("model.gguf"), &number.to_string());
                    }
                });
            }
        });
        let ids: Vec<String> = library.list().into_iter().map(|model| model.id).collect();
        assert_eq!(ids, ["model", "model-2", "model-3", "model-4", "same"]);
    }

    #[test]
    fn a_record_that_cannot_be_read_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let library = Library::in_data_dir(dir.path());
        library
            .enter(None, "A", Origin::Imported, vec![file(&dir.path().join("a.gguf"), "GGUF")])
            .unwrap();
        fs::write(library.folder().join("b.json"), "{").unwrap();
        assert_eq!(library.list().len(), 1);
    }

    #[test]
    fn a_file_that_is_gone_touched_or_changed_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let library = Library::in_data_dir(dir.path());
        let path = dir.path().join("a.gguf");
        let entered =
            library.enter(None, "A", Origin::Imported, vec![file(&path, "GGUF")]).unwrap();
        let compare =
            |installed: &Installed| library.compare(installed, false, &mut || true).unwrap();
        assert_eq!(compare(&entered), FileState::AsRecorded);

        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
        File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        assert_eq!(entered.glance(), FileState::Touched(path.clone()));
        assert_eq!(compare(&entered), FileState::AsRecorded);
        let known = library.get(&entered.id).unwrap();
        assert_eq!(known.glance(), FileState::AsRecorded, "its new time is recorded");

        fs::write(&path, "FUGG").unwrap();
        assert_eq!(compare(&known), FileState::Changed(path.clone()));
        fs::remove_file(&path).unwrap();
        assert_eq!(compare(&known), FileState::Gone(path));
    }
}
