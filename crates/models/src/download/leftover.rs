//! Parts that lie about: downloads that were paused, that failed, or whose program is gone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::part::Mark;
use crate::hub::{HubFile, Place, place};

/// The most repositories and blobs that are looked at.
const MOST: usize = 10_000;

/// A part without anybody at work on it, or with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The part's file.
    pub part: PathBuf,
    /// What is known of it; `None` when nothing can be understood: then it can only be deleted.
    pub mark: Option<Mark>,
    /// Bytes that it takes on the disk.
    pub bytes: u64,
}

impl Leftover {
    /// Deletes it and what is known of it.
    pub fn remove(&self) -> io::Result<()> {
        let name = self.part.to_string_lossy();
        let mark = name.strip_suffix(place::PART).map(|stem| format!("{stem}{}", place::MARK));
        if let Some(mark) = mark {
            let _ = fs::remove_file(mark);
        }
        fs::remove_file(&self.part)
    }
}

/// The parts in the cache, by path.
pub fn leftovers(cache: &Path) -> Vec<Leftover> {
    let mut found = Vec::new();
    for repo in entries(cache) {
        let is_model =
            repo.file_name().is_some_and(|name| name.to_string_lossy().starts_with("models--"));
        if !is_model {
            continue;
        }
        for part in entries(&repo.join("blobs")) {
            let name = part.to_string_lossy().into_owned();
            let Some(stem) = name.strip_suffix(place::PART) else { continue };
            let mark = Mark::read(Path::new(&format!("{stem}{}", place::MARK)));
            let bytes = part.metadata().map_or(0, |about| about.len());
            found.push(Leftover { part, mark, bytes });
        }
    }
    found.sort_by(|a, b| a.part.cmp(&b.part));
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.take(MOST).filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Deletes the parts of `path` that belong to another content than `etag`: the file has changed on
/// the hub. Returns whether there were any.
pub(super) fn remove_superseded(place: &Place, model: &HubFile, path: &str, etag: &str) -> bool {
    let Some(blobs) = place.part.parent() else { return false };
    let mut removed = false;
    for mark_path in entries(blobs) {
        let name = mark_path.to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(place::MARK) else { continue };
        let Some(mark) = Mark::read(&mark_path) else { continue };
        if mark.model == *model && mark.path == path && mark.etag != etag {
            let part = PathBuf::from(format!("{stem}{}", place::PART));
            let _ = fs::remove_file(&mark_path);
            removed |= fs::remove_file(part).is_ok() && mark.trusted > 0;
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_also_when_nothing_is_known_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let model = HubFile::new("a/b", "ein modell.gguf", None).unwrap();
        let commit = "0".repeat(40);
        let place = Place::new(dir.path(), &model, model.file(), &commit, "abc").unwrap();
        fs::create_dir_all(place.part.parent().unwrap()).unwrap();
        fs::write(&place.part, "GGUF").unwrap();
        let mark = Mark { trusted: 4, ..Mark::new(&model, model.file(), &commit, "abc", 9) };
        fs::write(&place.mark, serde_json::to_string(&mark).unwrap()).unwrap();
        let orphan = Place::new(dir.path(), &model, model.file(), &commit, "def").unwrap();
        fs::write(&orphan.part, "GG").unwrap();
        fs::write(dir.path().join("stray.correx.part"), "").unwrap();

        let found = leftovers(dir.path());
        let known: Vec<_> = found.iter().map(|left| (left.mark.clone(), left.bytes)).collect();
        assert_eq!(known, [(Some(mark), 4), (None, 2)]);
        for left in &found {
            left.remove().unwrap();
        }
        assert!(leftovers(dir.path()).is_empty() && !place.mark.exists());
        assert!(leftovers(&dir.path().join("nowhere")).is_empty());
    }
}
