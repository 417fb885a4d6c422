//! Files that are there as a whole or not at all.

use std::io::{self, Write};
use std::path::Path;

/// Puts `bytes` into the file at `path`, in place of what was there. Whoever reads it, also after a
/// crash, finds the earlier content or this one; of several writers at once the last one stays.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link stays a link: what it leads to is replaced.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // A name of its own, so that two writers never share an unfinished file.
    let mut new = tempfile::Builder::new()
        .prefix(".")
        .suffix(".new")
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    new.write_all(bytes)?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn many_writers_at_once_leave_one_whole_content_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        std::thread::scope(|scope| {
            for writer in 0..8_u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        write_whole(path, &vec![b'a' + writer; 5000]).unwrap();
                    }
                });
            }
        });
        let content = fs::read(&path).unwrap();
        assert_eq!(content.len(), 5000);
        assert!(content.iter().all(|byte| *byte == content[0]));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no unfinished file is left");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
