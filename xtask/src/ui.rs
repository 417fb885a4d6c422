//! The web front end's build.

use std::path::PathBuf;

use crate::digest;
use crate::setup::Node;
use crate::step::{self, StepError};
use crate::workspace::Workspace;

/// Why the front end was not built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UiError {
    #[error(transparent)]
    Build(#[from] StepError),
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
}

/// What the build reads is everything but these.
const NOT_SOURCES: &[&str] = &["node_modules", "dist"];

/// Builds `ui/dist`, unless it was built from the same sources: a new one makes cargo compile the
/// desktop program again, because it is embedded there.
pub(crate) fn build(workspace: &Workspace, node: &Node) -> Result<(), UiError> {
    let ui = workspace.ui();
    let sources = digest::of_folder(&ui, NOT_SOURCES)
        .map_err(|source| UiError::File { path: ui.clone(), source })?;
    let mark = ui.join("node_modules").join(".built-from");
    let built = ui.join("dist").join("index.html").is_file();
    if built && std::fs::read_to_string(&mark).is_ok_and(|found| found == sources) {
        println!("\n── front end: ui/dist is up to date ──");
        return Ok(());
    }
    step::run_all(&[node.npm("front end: build", workspace).args(["run", "build"])])?;
    std::fs::write(&mark, sources).map_err(|source| UiError::File { path: mark, source })
}
