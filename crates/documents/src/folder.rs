//! The files of a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders inside folders that are looked into.
pub const MAX_DEPTH: usize = 8;
/// Files that one folder may hold in all.
pub const MAX_FILES: usize = 10_000;

/// What a folder holds, relative to it and sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Its files.
    pub files: Vec<PathBuf>,
    /// What is there and was not looked at, each with the reason.
    pub left_out: Vec<String>,
}

/// Lists the files under `folder`, at most `max_depth` folders deep, and the first `max_files` of them. Hidden
/// files are left alone; links are named but not followed, so that the folder is all that is read.
/// Blocks.
pub fn walk(folder: &Path, max_depth: usize, max_files: usize) -> io::Result<Found> {
    let mut found = Found::default();
    let mut open = vec![(PathBuf::new(), 0)];
    while let Some((inside, depth)) = open.pop() {
        let entries = match fs::read_dir(folder.join(&inside)) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                found.left_out.push(format!("{} ({error})", inside.display()));
                continue;
            }
        };
        for entry in entries {
            let kind = entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?)));
            let (name, kind) = match kind {
                Ok(known) => known,
                Err(error) => {
                    found.left_out.push(format!("something in {} ({error})", inside.display()));
                    continue;
                }
            };
            let path = inside.join(&name);
            if name.to_string_lossy().starts_with('.') {
                continue;
            }
            let why = if kind.is_file() {
                found.files.push(path);
                continue;
            } else if kind.is_symlink() {
                "a link"
            } else if !kind.is_dir() {
                "not a file"
            } else if depth >= max_depth {
                "too deep"
            } else {
                open.push((path, depth + 1));
                continue;
            };
            found.left_out.push(format!("{} ({why})", path.display()));
        }
    }
    found.files.sort();
    found.left_out.sort();
    let surplus = found.files.len().saturating_sub(max_files);
    if surplus > 0 {
        found.files.truncate(max_files);
        found.left_out.push(format!("{surplus} more files (the most is {max_files})"));
    }
    Ok(found)
}
