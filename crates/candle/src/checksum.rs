//! A model file's SHA-256.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

/// The SHA-256 of a file in lower-case hexadecimal.
pub fn sha256_of(path: &Path) -> io::Result<String> {
    Ok(sha256_while(&[path], || true)?.unwrap_or_default())
}

/// The same of several files one after another, as if they were one, as long as `wanted` says so;
/// `None` when it did not to the end.
fn sha256_while(
    paths: &[impl AsRef<Path>],
    wanted: impl Fn() -> bool,
) -> io::Result<Option<String>> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    for path in paths {
        let mut file = File::open(path)?;
        loop {
            if !wanted() {
                return Ok(None);
            }
            match file.read(&mut buffer)? {
                0 => break,
                read => hasher.update(&buffer[..read]),
            }
        }
    }
    Ok(Some(hex::encode(hasher.finalize())))
}

/// Fills `into` with the SHA-256 of a model's files when it is known, and gives up when nobody else holds `into` any more. A file that
/// cannot be read leaves it empty.
pub(crate) fn compute_in_background(paths: Vec<PathBuf>, into: &Arc<OnceLock<String>>) {
    let into = Arc::downgrade(into);
    let compute = move || match sha256_while(&paths, || into.strong_count() > 0) {
        Ok(hash) => {
            if let (Some(into), Some(hash)) = (into.upgrade(), hash) {
                let _ = into.set(hash);
            }
        }
        Err(error) => tracing::warn!(%error, "the model file's checksum could not be computed"),
    };
    if let Err(error) = std::thread::Builder::new().name("correx-checksum".into()).spawn(compute) {
        tracing::warn!(%error, "the model file's checksum is not computed");
    }
}
