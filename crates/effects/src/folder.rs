//! Folders by their handle: what is opened below one cannot be moved elsewhere in between.

use std::io;
use std::path::{Component, Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use thiserror::Error;

/// What is done about a folder that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is made.
    Make,
    /// It is an error.
    Refuse,
}

/// Why a folder could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FolderError {
    /// What is there is another thing than when it was allowed.
    #[error("{} is not the folder any more that was allowed", .0.display())]
    Changed(PathBuf),
    /// It is not there.
    #[error("there is no folder {}", .0.display())]
    Absent(PathBuf),
    /// The system would not.
    #[error("the folder {} cannot be opened: {reason}", .path.display())]
    System {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

impl FolderError {
    fn of(path: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Absent(path.to_owned()),
            _ => Self::System { path: path.to_owned(), reason: error.to_string() },
        }
    }
}

/// Opens a folder whose path is a real one. No link is followed on the way.
pub(crate) fn open(path: &Path, missing: Missing) -> Result<Dir, FolderError> {
    let mut here = PathBuf::new();
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            other => here.push(other),
        }
    }
    // Where only the whole may be opened (folders above need not be readable), its path is compared.
    if !cfg!(target_os = "linux") {
        if missing == Missing::Make {
            std::fs::create_dir_all(path).map_err(|error| FolderError::of(path, &error))?;
        }
        let real = std::fs::canonicalize(path).map_err(|error| FolderError::of(path, &error))?;
        if real != path {
            return Err(FolderError::Changed(path.to_owned()));
        }
        return Dir::open_ambient_dir(path, ambient_authority())
            .map_err(|error| FolderError::of(path, &error));
    }
    let root = Dir::open_ambient_dir(&here, ambient_authority())
        .map_err(|error| FolderError::of(&here, &error))?;
    descend(root, here, &names, missing)
}

/// Opens the folder `below` an open one. No link is followed on the way.
pub(crate) fn open_below(
    root: Dir,
    root_path: &Path,
    below: &Path,
    missing: Missing,
) -> Result<Dir, FolderError> {
    let names: Vec<_> = below.iter().collect();
    descend(root, root_path.to_owned(), &names, missing)
}

fn descend(
    root: Dir,
    mut here: PathBuf,
    names: &[&std::ffi::OsStr],
    missing: Missing,
) -> Result<Dir, FolderError> {
    let mut folder = root;
    for name in names {
        here.push(name);
        if missing == Missing::Make {
            match folder.create_dir(name) {
                Ok(()) => sync(&folder).map_err(|error| FolderError::of(&here, &error))?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // A folder that is there may lie in one that may not be changed.
                Err(_) if folder.is_dir(name) => {}
                Err(error) => return Err(FolderError::of(&here, &error)),
            }
        }
        folder = folder.open_dir_nofollow(name).map_err(|error| {
            let is_other = folder.symlink_metadata(name).is_ok_and(|found| !found.is_dir());
            match is_other {
                true => FolderError::Changed(here.clone()),
                false => FolderError::of(&here, &error),
            }
        })?;
    }
    Ok(folder)
}

/// Has the disk hold what the folder says: which names are in it.
pub(crate) fn sync(folder: &Dir) -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::fs::{Mode, OFlags};
        // A handle for looking up names only cannot be synced, so the folder is opened once more.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(folder, ".", flags, Mode::empty()) {
            Ok(readable) => rustix::fs::fsync(readable)?,
            // A folder that may be changed but not listed: the system writes it in its own time.
            Err(rustix::io::Errno::ACCESS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}
