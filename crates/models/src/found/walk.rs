//! A walk through a folder that ends, whatever is in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How deep it goes.
const DEEPEST: usize = 8;
/// How many entries it looks at.
const MOST: usize = 50_000;

/// The files below `folder`, by path; also those that a link leads to. A link to a folder is
/// followed only at the top (people move these folders to other disks), so that no loop is walked.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut visited = BTreeSet::new();
    let mut open = vec![(folder.to_owned(), 0)];
    let mut looked = 0;
    while let Some((folder, depth)) = open.pop() {
        let Ok(real) = folder.canonicalize() else { continue };
        if !visited.insert(real) {
            continue;
        }
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            looked += 1;
            if looked > MOST {
                found.sort();
                return found;
            }
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            if kind.is_dir() || (kind.is_symlink() && depth == 0 && path.is_dir()) {
                if depth + 1 < DEEPEST {
                    open.push((path, depth + 1));
                }
            } else if kind.is_file() || (kind.is_symlink() && path.is_file()) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
