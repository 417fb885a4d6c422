//! Files, written as a whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, OpenOptions};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::folder::{self, FolderError, Missing};
use crate::paths::{half_written_name, is_half_written};

/// What is done about a file that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and nothing is written.
    Refuse,
    /// It is replaced, if it still is what was looked at.
    Replace,
}

/// What a file was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    /// Not there.
    Absent,
    /// A file.
    File {
        /// SHA-256 of its bytes, in hexadecimal digits.
        sha256: String,
        /// How many they were.
        bytes: u64,
    },
}

impl Before {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        match File::open(path) {
            Ok(file) => Self::of_file(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::Absent),
            Err(error) => Err(error),
        }
    }

    fn of_file(mut file: impl Read) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        let mut bytes = 0;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    hasher.update(&buffer[..read]);
                    bytes += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self::File { sha256: hex::encode(hasher.finalize()), bytes })
    }

    /// Whether it is a file with exactly these bytes.
    pub fn holds(&self, content: &[u8]) -> bool {
        matches!(self, Self::File { sha256, .. } if *sha256 == digest(content))
    }
}

/// SHA-256 in hexadecimal digits.
pub fn digest(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}

/// A file that a policy lets be written, and what was there when it decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteTarget {
    /// The allowed folder's real path.
    pub(crate) root: PathBuf,
    /// The way from there: names only.
    pub(crate) below: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) existing: Existing,
    pub(crate) before: Before,
}

impl WriteTarget {
    /// The file's real path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a file there is replaced.
    pub fn existing(&self) -> Existing {
        self.existing
    }

    /// What was there when it was decided.
    pub fn before(&self) -> &Before {
        &self.before
    }

    /// What is there now: after a crash, whether a write that was begun has happened
    /// ([`Before::holds`]) or not ([`WriteTarget::before`]).
    pub fn now(&self) -> Result<Before, WriteError> {
        let folder = match self.folder(Missing::Refuse) {
            Ok(folder) => folder,
            Err(WriteError::Folder { error: FolderError::Absent(_), .. }) => {
                return Ok(Before::Absent);
            }
            Err(error) => return Err(error),
        };
        self.look(&folder)
    }

    fn name(&self) -> &OsStr {
        self.below.file_name().unwrap_or_default()
    }

    fn folder(&self, missing: Missing) -> Result<Dir, WriteError> {
        let above = self.below.parent().unwrap_or(Path::new(""));
        folder::open(&self.root, missing)
            .and_then(|root| folder::open_below(root, &self.root, above, missing))
            .map_err(|error| WriteError::Folder { path: self.path.clone(), error })
    }

    fn look(&self, folder: &Dir) -> Result<Before, WriteError> {
        match folder.symlink_metadata(self.name()) {
            Ok(found) if found.is_file() => {
                let mut options = OpenOptions::new();
                options.read(true).follow(FollowSymlinks::No);
                let read = || Before::of_file(folder.open_with(self.name(), &options)?);
                read().map_err(|error| self.failed(&error))
            }
            Ok(_) => Err(WriteError::NotAFile(self.path.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Before::Absent),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&self, error: &io::Error) -> WriteError {
        let path = self.path.clone();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => WriteError::Full(path),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                WriteError::NoPermission { path, reason: error.to_string() }
            }
            io::ErrorKind::InvalidFilename => WriteError::Name(path),
            _ => WriteError::System { path, reason: error.to_string() },
        }
    }
}

/// A file that was written, and is on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its real path.
    pub path: PathBuf,
    /// SHA-256 of what was written, in hexadecimal digits.
    pub sha256: String,
    /// How many bytes.
    pub bytes: u64,
    /// What was replaced.
    pub before: Before,
}

/// Why nothing was written. The file, if there was one, is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WriteError {
    /// Its folder is not what was allowed.
    #[error("{} was not written: {error}", .path.display())]
    Folder {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: FolderError,
    },
    /// Something that is no file is there.
    #[error(
        "{} was not written: what is there is no file; it was left as it is, choose another name",
        .0.display()
    )]
    NotAFile(PathBuf),
    /// A file appeared since it was decided.
    #[error(
        "{} was not written: a file of this name has appeared in the meantime; it was left as it is, \
         run the stage again to be asked about it",
        .0.display()
    )]
    Appeared(PathBuf),
    /// The file is another one than was decided about.
    #[error(
        "{} was not written: the file there was changed in the meantime; it was left as it is, run the \
         stage again to be asked about it",
        .0.display()
    )]
    Changed(PathBuf),
    /// The file is marked as not to be changed.
    #[error(
        "{} was not written: the file there is write-protected; take the protection away or choose \
         another name",
        .0.display()
    )]
    Protected(PathBuf),
    /// No room.
    #[error(
        "{} was not written: the disk is full; nothing was changed, make room and run the stage again",
        .0.display()
    )]
    Full(PathBuf),
    /// The folder may not be changed.
    #[error("{} was not written: {reason}; choose another folder", .path.display())]
    NoPermission {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The system takes no such name.
    #[error("{} was not written: the system takes no such name; choose a shorter one", .0.display())]
    Name(PathBuf),
    /// Something else.
    #[error("{} was not written: {reason}; nothing was changed", .path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

/// Writes `content` into the file of `target`, as a whole or not at all.
///
/// Missing folders are made. The bytes go to a file beside it, which takes the name when they are on
/// the disk; where nothing may be replaced, in such a way that a file which appears in between stays.
/// A file that is replaced keeps its permissions. Blocks.
pub fn write_file(target: &WriteTarget, content: &[u8]) -> Result<Written, WriteError> {
    let folder = target.folder(Missing::Make)?;
    sweep(&folder);
    let now = target.look(&folder)?;
    match (target.existing, &now) {
        (Existing::Refuse, Before::File { .. }) => {
            return Err(WriteError::Appeared(target.path.clone()));
        }
        (Existing::Replace, now) if *now != target.before => {
            return Err(WriteError::Changed(target.path.clone()));
        }
        _ => {}
    }
    let part = Part::create(&folder).map_err(|error| target.failed(&error))?;
    let fill = || {
        let mut file = &part.file;
        if now != Before::Absent {
            let permissions = folder.symlink_metadata(target.name())?.permissions();
            if permissions.readonly() {
                return Ok(false);
            }
            folder.set_permissions(&part.name, permissions)?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        Ok(true)
    };
    match fill() {
        Ok(true) => {}
        Ok(false) => return Err(WriteError::Protected(target.path.clone())),
        Err(error) => return Err(target.failed(&error)),
    }
    match target.existing {
        Existing::Replace => part.replace(target.name()).map_err(|error| target.failed(&error))?,
        Existing::Refuse => part.settle(target.name()).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => WriteError::Appeared(target.path.clone()),
            _ => target.failed(&error),
        })?,
    }
    folder::sync(&folder).map_err(|error| target.failed(&error))?;
    Ok(Written {
        path: target.path.clone(),
        sha256: digest(content),
        bytes: content.len() as u64,
        before: now,
    })
}

/// Removes what writes that were cut off by a crash left in a folder, and says how many it were. What
/// is being written at this moment stays.
pub fn remove_leftovers(folder: &Path) -> io::Result<usize> {
    Ok(sweep(&Dir::open_ambient_dir(folder, cap_std::ambient_authority())?))
}

fn sweep(folder: &Dir) -> usize {
    // What cannot be listed or removed now is left to the next time.
    let Ok(entries) = folder.entries() else { return 0 };
    let leftovers = entries.flatten().filter(|entry| {
        entry.file_name().to_str().is_some_and(is_half_written)
            && entry.file_type().is_ok_and(|kind| kind.is_file())
    });
    let mut removed = 0;
    for entry in leftovers {
        let name = entry.file_name();
        let mut options = OpenOptions::new();
        options.write(true).follow(FollowSymlinks::No);
        let Ok(file) = folder.open_with(&name, &options) else { continue };
        // Whoever is writing one holds its lock.
        let is_abandoned = file.into_std().try_lock().is_ok();
        if is_abandoned && folder.remove_file(&name).is_ok() {
            removed += 1;
        }
    }
    removed
}

/// Tells apart the files that this process writes at once.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file that is being written. Gone when it is dropped, unless it took its name.
struct Part<'f> {
    folder: &'f Dir,
    name: OsString,
    /// Held locked, which tells it from what a crash left.
    file: File,
    is_settled: bool,
}

impl<'f> Part<'f> {
    fn create(folder: &'f Dir) -> io::Result<Self> {
        const ATTEMPTS: usize = 100;
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..ATTEMPTS {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = OsString::from(half_written_name(process::id(), number));
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            let file = match folder.open_with(&name, &options) {
                Ok(file) => file.into_std(),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    last = error;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let part = Self { folder, name, file, is_settled: false };
            // Somebody who cleans up may have been quicker; then it is theirs to remove. File systems
            // without locks have nobody who could hold one.
            match part.file.try_lock() {
                Err(std::fs::TryLockError::WouldBlock) => continue,
                Ok(()) | Err(std::fs::TryLockError::Error(_))
                    if folder.symlink_metadata(&part.name).is_err() => {}
                Ok(()) | Err(std::fs::TryLockError::Error(_)) => return Ok(part),
            }
        }
        Err(last)
    }

    /// Takes the name of whatever has it.
    fn replace(mut self, name: &OsStr) -> io::Result<()> {
        self.folder.rename(&self.name, self.folder, name)?;
        self.is_settled = true;
        Ok(())
    }

    /// Takes a name that nothing has; `AlreadyExists` if something has it.
    fn settle(mut self, name: &OsStr) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        {
            use rustix::fs::RenameFlags;
            use rustix::io::Errno;
            let (from, to) = (self.name.as_os_str(), name);
            match rustix::fs::renameat_with(
                self.folder,
                from,
                self.folder,
                to,
                RenameFlags::NOREPLACE,
            ) {
                Ok(()) => {
                    self.is_settled = true;
                    return Ok(());
                }
                // File systems that cannot do this can make a second name.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match self.folder.hard_link(&self.name, self.folder, name) {
            // Its first name goes when it is dropped.
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // Neither: the name is taken with an empty file, which is then replaced.
            Err(_) => {
                let mut options = OpenOptions::new();
                options.write(true).create_new(true);
                self.folder.open_with(name, &options)?;
                self.folder.rename(&self.name, self.folder, name)?;
                self.is_settled = true;
                Ok(())
            }
        }
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            // What cannot be removed is recognised the next time.
            let _ = self.folder.remove_file(&self.name);
        }
    }
}
