//! The Python that fetches what comes as a wheel.

use std::path::Path;

use crate::step::{Step, StepError};

/// The name under which Python 3 is started here.
pub(crate) const PYTHON: &str = if cfg!(windows) { "python" } else { "python3" };

/// Whether Python 3 and its pip can be started.
pub(crate) fn has_pip() -> bool {
    Step::new("look for pip", PYTHON).args(["-m", "pip", "--version"]).ask().yes
}

/// Downloads one wheel, without what it depends on, into `folder`. It works in environments that
/// their distribution manages too, because nothing is installed.
pub(crate) fn download(package: &str, version: &str, folder: &Path) -> Result<(), StepError> {
    Step::new(format!("download {package} {version}"), PYTHON)
        .args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"])
        .args(["--no-input", "--disable-pip-version-check", "--dest"])
        .args([folder])
        .args([format!("{package}=={version}")])
        .run()
        .map(|_| ())
}

/// Unpacks one wheel, without what it depends on, into `folder`, beside every Python environment.
pub(crate) fn unpack(package: &str, version: &str, folder: &Path) -> Result<(), StepError> {
    Step::new(format!("fetch {package} {version}"), PYTHON)
        .args(["-m", "pip", "install", "--no-deps", "--only-binary=:all:", "--no-cache-dir"])
        .args(["--no-input", "--disable-pip-version-check", "--no-compile", "--quiet"])
        .args(["--root-user-action=ignore", "--target"])
        .args([folder])
        .args([format!("{package}=={version}")])
        .run()
        .map(|_| ())
}

/// Copies one member of a zip file (a wheel is one) to `target`.
pub(crate) fn extract(archive: &Path, member: &str, target: &Path) -> Result<(), StepError> {
    const SCRIPT: &str = "import shutil, sys, zipfile\n\
        archive, member, target = sys.argv[1:]\n\
        with zipfile.ZipFile(archive) as z, z.open(member) as src, open(target, 'wb') as dst:\n\
        \x20   shutil.copyfileobj(src, dst, 1 << 20)\n";
    Step::new(format!("take {member} out of its package"), PYTHON)
        .args(["-c", SCRIPT])
        .args([archive])
        .args([member])
        .args([target])
        .run()
        .map(|_| ())
}
