//! Where the socket of a data directory's owner lies.

use std::io;
use std::path::{Path, PathBuf};

use correx_events::BlobHash;

/// The longest path that a Unix socket can have on every system that we run on (macOS: 104
/// bytes with the final zero).
const LONGEST_PATH: usize = 100;

/// The places where the owner of `data_dir` may listen, the preferred one first: in the data
/// directory itself; or, where that is impossible (its path is too long, its file system has no
/// sockets), in a private folder of this user, under a name made from the data directory's.
pub(super) fn addresses(data_dir: &Path) -> Vec<PathBuf> {
    // However the directory is spelled, it is one directory.
    let data_dir = data_dir.canonicalize().unwrap_or_else(|_| data_dir.to_owned());
    let name = BlobHash::of(data_dir.as_os_str().as_encoded_bytes());
    let name = &name.as_str()[..32];
    if cfg!(windows) {
        return vec![PathBuf::from(format!(r"\\.\pipe\correx-{name}"))];
    }
    let inside = data_dir.join("correx.sock");
    let outside = runtime_folder().join(format!("{name}.sock"));
    [inside, outside].into_iter().filter(|path| path.as_os_str().len() <= LONGEST_PATH).collect()
}

/// A folder of this user's own: the session's runtime folder, or one in the folder for temporary
/// files that bears the user's number.
fn runtime_folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match runtime.filter(|folder| folder.is_absolute() && folder.is_dir()) {
        Some(folder) => folder.join("correx"),
        None => std::env::temp_dir().join(format!("correx-{}", user())),
    }
}

#[cfg(unix)]
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn user() -> u32 {
    0
}

/// Makes the folder that holds `address` private, if it is one that we make ourselves.
#[cfg(unix)]
pub(super) fn prepare(address: &Path, data_dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};

    let Some(folder) = address.parent() else { return Ok(()) };
    if folder == data_dir || data_dir.canonicalize().is_ok_and(|data_dir| folder == data_dir) {
        return Ok(());
    }
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Somebody else may have made it first, or made it a link to elsewhere.
    let found = std::fs::symlink_metadata(folder)?;
    if !found.is_dir() || found.uid() != user() || found.mode() & 0o077 != 0 {
        let message = format!("{} is not a private folder of this user", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn prepare(_address: &Path, _data_dir: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_short_data_directory_holds_its_own_socket() {
        let dir = tempfile::tempdir().unwrap();
        let found = addresses(dir.path());
        assert_eq!(found[0], dir.path().canonicalize().unwrap().join("correx.sock"));
        assert!(found.iter().all(|path| path.as_os_str().len() <= LONGEST_PATH));
    }

    #[test]
    fn a_deep_data_directory_has_its_socket_elsewhere_under_one_name() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("ü".repeat(60));
        std::fs::create_dir(&deep).unwrap();
        let found = addresses(&deep);
        assert_eq!(found.len(), 1);
        assert!(!found[0].starts_with(&deep));
        let otherwise_spelled = dir.path().join(".").join("ü".repeat(60));
        assert_eq!(addresses(&otherwise_spelled), found);
        assert_ne!(addresses(dir.path()).last(), found.last());
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("correx");
        let address = folder.join("a.sock");
        prepare(&address, Path::new("/data")).unwrap();
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        let refused = prepare(&address, Path::new("/data")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }
}
