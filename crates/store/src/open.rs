//! The data directory: its lock, its file, its format version.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use redb::{Builder, Database, ReadableDatabase};

use crate::error::{OpenError, StorageFailure};
use crate::quiet;
use crate::tables::{self, META, meta};

/// The name of the store's file in the data directory.
pub const STORE_FILE: &str = "correx.redb";
/// The newest format that this version reads, and the one it writes.
pub const FORMAT_VERSION: u64 = 1;

const LOCK_FILE: &str = "correx.lock";
const UNFINISHED_FILE: &str = "correx.redb.new";
/// Models want the memory more than the page cache does.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// Held as long as the data directory is ours; the system frees it when the process ends.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

/// Makes the directory if needed and takes it for this process.
pub(crate) fn lock(dir: &Path) -> Result<DirectoryLock, OpenError> {
    make_private_directory(dir).map_err(|error| OpenError::from_io(dir, dir, error))?;
    let path = dir.join(LOCK_FILE);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| OpenError::from_io(dir, &path, error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(OpenError::AlreadyOpen { dir: dir.to_owned() });
        }
        // A file system without locks: the database's own lock is what remains.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(OpenError::from_io(dir, &path, error)),
    }
    Ok(DirectoryLock { _file: file })
}

/// Opens the directory's file, making it first if there is none. The caller holds the lock.
pub(crate) fn open_file(dir: &Path) -> Result<Database, OpenError> {
    let path = dir.join(STORE_FILE);
    match fs::symlink_metadata(&path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(dir, &path)?,
        Err(error) => return Err(OpenError::from_io(dir, &path, error)),
    }
    open_with(dir, || builder().open(&path))
}

/// Opens a database by `open` and refuses what is not a store of a known format.
pub(crate) fn open_with(
    dir: &Path,
    open: impl FnOnce() -> Result<Database, redb::DatabaseError>,
) -> Result<Database, OpenError> {
    let path = dir.join(STORE_FILE);
    // The library may panic on a file whose pages were overwritten.
    quiet::catch(|| {
        let database = open().map_err(|error| OpenError::from_redb(dir, &path, error.into()))?;
        check_format(&database, &path)?;
        Ok(database)
    })
    .unwrap_or_else(|_| {
        Err(OpenError::Damaged { path, detail: "its pages contradict each other".to_owned() })
    })
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// The file appears under its name only when it is whole, so that a crash in here leaves nothing
/// that looks like a damaged store.
fn create(dir: &Path, path: &Path) -> Result<(), OpenError> {
    let unfinished = dir.join(UNFINISHED_FILE);
    let io_error = |error| OpenError::from_io(dir, &unfinished, error);
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(error)),
        _ => {}
    }
    let made = write_empty_store(&unfinished).and_then(|()| {
        make_private_file(&unfinished)?;
        fs::rename(&unfinished, path)?;
        sync_directory(dir)?;
        Ok(())
    });
    made.map_err(|error| {
        // What is left over would only be removed at the next start.
        let _ = fs::remove_file(&unfinished);
        OpenError::from_redb(dir, path, error)
    })
}

fn write_empty_store(path: &Path) -> Result<(), redb::Error> {
    let database = builder().create(path)?;
    let tx = database.begin_write()?;
    tables::create_all(&tx).map_err(|StorageFailure(text)| redb::Error::Corrupted(text))?;
    {
        let mut table = tx.open_table(META)?;
        table.insert(meta::FORMAT, FORMAT_VERSION)?;
        table.insert(meta::COMMITS, 0)?;
    }
    tx.commit()?;
    database.close()?;
    Ok(())
}

fn check_format(database: &Database, path: &Path) -> Result<(), OpenError> {
    let damaged = |detail: String| OpenError::Damaged { path: path.to_owned(), detail };
    let tx = database.begin_read().map_err(|error| damaged(error.to_string()))?;
    let found = tx
        .open_table(META)
        .map_err(|error| damaged(error.to_string()))?
        .get(meta::FORMAT)
        .map_err(|error| damaged(error.to_string()))?
        .map(|version| version.value())
        .ok_or_else(|| damaged("it has no format version".to_owned()))?;
    if found > FORMAT_VERSION {
        return Err(OpenError::NewerFormat { path: path.to_owned(), found, known: FORMAT_VERSION });
    }
    tables::check_all(&tx).map_err(|StorageFailure(text)| damaged(text))
}

#[cfg(unix)]
fn make_private_directory(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(not(unix))]
fn make_private_directory(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

#[cfg(unix)]
fn make_private_file(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn make_private_file(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// The new name survives a power loss only when the directory was written too.
#[cfg(unix)]
fn sync_directory(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_dir: &Path) -> io::Result<()> {
    Ok(())
}

/// How a store (re)opens its database.
pub(crate) type Opener = Box<dyn Fn() -> Result<Database, OpenError> + Send + Sync>;

/// The opener of the file in `dir`.
pub(crate) fn opener(dir: PathBuf) -> Opener {
    Box::new(move || open_file(&dir))
}
