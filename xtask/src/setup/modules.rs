//! The npm modules of the front end, exactly as its lock file says.

use std::path::PathBuf;

use super::node::Node;
use crate::digest;
use crate::step::StepError;
use crate::workspace::Workspace;

/// Why the npm modules are not in place.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModulesError {
    #[error(
        "{path} cannot be read: {source}. It is part of the repository; is the clone complete?"
    )]
    Lock { path: PathBuf, source: std::io::Error },
    #[error(
        "{0}\nThe npm modules are not in place. Is the network reachable? Running this again starts afresh."
    )]
    Install(#[source] StepError),
    #[error("{path} cannot be written: {source}")]
    Write { path: PathBuf, source: std::io::Error },
}

/// Runs `npm ci` unless the modules that are there were installed from the same lock file.
pub(crate) fn install(workspace: &Workspace, node: &Node) -> Result<(), ModulesError> {
    let lock = workspace.ui().join("package-lock.json");
    let wanted = digest::of_file(&lock)
        .map_err(|source| ModulesError::Lock { path: lock.clone(), source })?;
    // npm ci removes the whole folder first, so the mark cannot outlive the modules.
    let mark = workspace.ui().join("node_modules").join(".installed-from");
    if std::fs::read_to_string(&mark).is_ok_and(|found| found == wanted) {
        println!("   npm modules: up to date");
        return Ok(());
    }
    node.npm("install npm modules", workspace)
        .args(["ci", "--no-audit", "--no-fund"])
        .run()
        .map_err(ModulesError::Install)?;
    std::fs::write(&mark, wanted).map_err(|source| ModulesError::Write { path: mark, source })
}
