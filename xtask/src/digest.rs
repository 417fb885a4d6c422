//! SHA-256 of files and folders, as lower-case hex.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The hash of a file's bytes. Reads in pieces, so that a large model costs no memory.
pub(crate) fn of_file(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    feed(&mut hash, path)?;
    Ok(hex::encode(hash.finalize()))
}

/// One hash over all files below `folder`, their names included, in name order. Entries directly in
/// `folder` whose name is in `without` are left out.
pub(crate) fn of_folder(folder: &Path, without: &[&str]) -> io::Result<String> {
    let mut files = Vec::new();
    for entry in folder.read_dir()? {
        let entry = entry?;
        if !without.iter().any(|name| entry.file_name() == *name) {
            collect(&entry.path(), &mut files)?;
        }
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let name = file.strip_prefix(folder).unwrap_or(&file).to_string_lossy().into_owned();
        // Lengths before contents: otherwise bytes could move from one file to the next unseen.
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(&name);
        hash.update(file.metadata()?.len().to_le_bytes());
        feed(&mut hash, &file)?;
    }
    Ok(hex::encode(hash.finalize()))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in path.read_dir()? {
            collect(&entry?.path(), files)?;
        }
    } else if path.is_file() {
        files.push(path.to_path_buf());
    }
    Ok(())
}

fn feed(hash: &mut Sha256, path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut piece = vec![0; 1 << 18];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(()),
            read => hash.update(&piece[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_file_is_the_well_known_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("abc");
        std::fs::write(&file, "abc").unwrap();
        assert_eq!(
            of_file(&file).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_folder_hash_changes_with_any_content_or_name_but_not_with_what_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("src")).unwrap();
        std::fs::create_dir(at("dist")).unwrap();
        std::fs::write(at("src/a"), "1").unwrap();
        let hash = || of_folder(folder.path(), &["dist"]).unwrap();
        let first = hash();

        std::fs::write(at("dist/out"), "built").unwrap();
        assert_eq!(hash(), first);
        std::fs::write(at("src/a"), "2").unwrap();
        let second = hash();
        assert_ne!(second, first);
        std::fs::rename(at("src/a"), at("src/b")).unwrap();
        assert_ne!(hash(), second);
    }
}
