//! Where a file of the hub lies on this machine: the cache that the hub's tools share.
//!
//! `models--OWNER--NAME/blobs/ETAG` holds the bytes, `snapshots/COMMIT/FILE` points there,
//! `refs/REVISION` names the commit; `.locks/` beside keeps two programs from writing one blob.
//! Beside a blob that is not whole yet lie two files of ours: `ETAG.correx.part`, its first bytes,
//! and `ETAG.correx.json`, which says whose they are and how many of them can be trusted.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use hf_hub::{Cache, Repo, RepoType};
use thiserror::Error;

use crate::hub::HubFile;

/// The ending of a file that is not whole yet.
pub const PART: &str = ".correx.part";
/// The ending of what is known of it.
pub const MARK: &str = ".correx.json";

/// Where one file lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The bytes, when they are whole.
    pub blob: PathBuf,
    /// The first bytes, until then.
    pub part: PathBuf,
    /// What is known of them.
    pub mark: PathBuf,
    /// Held by whoever writes the blob.
    pub lock: PathBuf,
    /// What a person opens.
    pub pointer: PathBuf,
}

/// The hub's answer cannot become a path.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the server answered with {what} {value:?}, which cannot be one")]
pub struct PlaceError {
    what: &'static str,
    value: String,
}

impl Place {
    /// The place of `path` in `file`'s repository, which has the content `etag` at `commit`.
    pub fn new(
        cache: &Path,
        file: &HubFile,
        path: &str,
        commit: &str,
        etag: &str,
    ) -> Result<Self, PlaceError> {
        let refuse = |what, value: &str| PlaceError { what, value: value.to_owned() };
        let plain = |text: &str, most: usize| {
            !text.is_empty()
                && text.len() <= most
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        if !plain(commit, 64) {
            return Err(refuse("the commit", commit));
        }
        if !plain(etag, 128) {
            return Err(refuse("the content's name", etag));
        }
        let repo = repository(file);
        let folder = cache.join(repo.folder_name());
        let blobs = folder.join("blobs");
        let locks = cache.join(".locks").join(repo.folder_name());
        let snapshot = Cache::new(cache.to_owned()).repo(repo).pointer_path(commit);
        Ok(Self {
            blob: blobs.join(etag),
            part: blobs.join(format!("{etag}{PART}")),
            mark: blobs.join(format!("{etag}{MARK}")),
            lock: locks.join(format!("{etag}.lock")),
            pointer: path.split('/').fold(snapshot, |folder, name| folder.join(name)),
        })
    }

    /// Gives the whole part its names: the blob, what points to it, and the revision. Each step can
    /// be done again after a crash.
    pub fn finish(&self, cache: &Path, file: &HubFile, commit: &str) -> io::Result<()> {
        if self.part.exists() {
            fs::rename(&self.part, &self.blob)?;
            sync_folder(&self.blob);
        }
        self.point()?;
        Cache::new(cache.to_owned()).repo(repository(file)).create_ref(commit)?;
        match fs::remove_file(&self.mark) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes the pointer lead to the blob.
    fn point(&self) -> io::Result<()> {
        let Some(folder) = self.pointer.parent() else { return Ok(()) };
        fs::create_dir_all(folder)?;
        if let (Ok(there), Ok(wanted)) = (self.pointer.canonicalize(), self.blob.canonicalize())
            && there == wanted
        {
            return Ok(());
        }
        let new = folder.join(format!(".{}.correx-new", file_name(&self.pointer)));
        let _ = fs::remove_file(&new);
        match link(&relative(&self.blob, folder), &new) {
            Ok(()) => fs::rename(&new, &self.pointer),
            // Where links are not allowed the bytes themselves take the pointer's place, as the
            // hub's own tools do it.
            Err(_) => fs::rename(&self.blob, &self.pointer),
        }?;
        sync_folder(&self.pointer);
        Ok(())
    }
}

fn repository(file: &HubFile) -> Repo {
    Repo::with_revision(file.repo().into(), RepoType::Model, file.revision().into())
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Makes a rename in the folder of `path` durable, where the system lets a folder be synced.
fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent().and_then(|folder| fs::File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
}

/// The way from the folder `from` to `to`; both are absolute or both are not.
fn relative(to: &Path, from: &Path) -> PathBuf {
    let (to_parts, from_parts): (Vec<Component<'_>>, Vec<Component<'_>>) =
        (to.components().collect(), from.components().collect());
    let shared = to_parts.iter().zip(&from_parts).take_while(|(a, b)| a == b).count();
    let up = from_parts[shared..].iter().map(|_| Component::ParentDir);
    up.chain(to_parts[shared..].iter().copied()).collect()
}

#[cfg(unix)]
fn link(to: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, at)
}

#[cfg(windows)]
fn link(to: &Path, at: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(to, at)
}

#[cfg(not(any(unix, windows)))]
fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789012345678901234567890123456789";

    #[test]
    fn a_finished_file_lies_where_the_hubs_tools_look_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("ein Ordner ü");
        let file = HubFile::new("a/b", "q4/m.gguf", None).unwrap();
        let place = Place::new(&cache, &file, file.file(), COMMIT, "abc").unwrap();
        fs::create_dir_all(place.part.parent().unwrap()).unwrap();
        fs::write(&place.part, "GGUF").unwrap();
        fs::write(&place.mark, "{}").unwrap();
        for _ in 0..2 {
            place.finish(&cache, &file, COMMIT).unwrap();
            let repo = Cache::new(cache.clone()).model("a/b".into());
            let found = repo.get("q4/m.gguf").unwrap();
            assert_eq!(fs::read(&found).unwrap(), b"GGUF");
            assert_eq!(found.canonicalize().unwrap(), place.blob.canonicalize().unwrap());
        }
        assert!(!place.part.exists() && !place.mark.exists());
        let way = fs::read_link(&place.pointer).unwrap();
        assert_eq!(way, Path::new("../../../blobs/abc"), "a moved cache still holds together");
    }

    #[test]
    fn an_answer_cannot_lead_out_of_the_cache() {
        let file = HubFile::new("a/b", "m.gguf", None).unwrap();
        for (commit, etag) in
            [("..", "abc"), (COMMIT, "../x"), (COMMIT, ""), ("", "abc"), (COMMIT, "a.b")]
        {
            assert!(Place::new(Path::new("/c"), &file, "m.gguf", commit, etag).is_err());
        }
    }
}
