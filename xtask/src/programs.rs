//! Builds the two programs that a person starts.

use std::path::PathBuf;

use serde::Deserialize;

use crate::step::{Step, StepError};
use crate::workspace::{Workspace, cargo};

/// Why the programs are not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramsError {
    #[error(transparent)]
    Build(#[from] StepError),
    #[error("cargo built everything but named no program `{0}`")]
    NotNamed(String),
}

/// How the programs are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Profile {
    /// Quick to build; what does the arithmetic is optimized.
    Dev,
    /// As people get it.
    Release,
}

impl Profile {
    /// What cargo calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Release => "release",
        }
    }
}

/// A program of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// The command line, `correx`.
    Cli,
    /// The desktop window, `correx-desktop`.
    Desktop,
}

impl Program {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cli => "correx",
            Self::Desktop => "correx-desktop",
        }
    }
}

/// Builds the programs in one go and returns where each of them lies, in the same order.
pub(crate) fn build<const N: usize>(
    workspace: &Workspace,
    profile: Profile,
    programs: [Program; N],
) -> Result<[PathBuf; N], ProgramsError> {
    let messages = step(workspace, profile, &programs)
        .args(["--message-format=json-render-diagnostics"])
        .capture()?;
    let mut found = [const { PathBuf::new() }; N];
    for (place, program) in found.iter_mut().zip(programs) {
        *place = executable(&messages, program.name())
            .ok_or_else(|| ProgramsError::NotNamed(program.name().to_owned()))?;
    }
    Ok(found)
}

/// Builds the program that comparisons with other programs ask, an example of `correx-candle`.
pub(crate) fn build_peer(
    workspace: &Workspace,
    profile: Profile,
) -> Result<PathBuf, ProgramsError> {
    const NAME: &str = "peer";
    let messages = Step::new("build what answers the comparisons", cargo())
        .args(["build", "--package", "correx-candle", "--example", NAME])
        .args(["--profile", profile.name(), "--message-format=json-render-diagnostics"])
        .dir(workspace.root())
        .capture()?;
    executable(&messages, NAME).ok_or_else(|| ProgramsError::NotNamed(NAME.to_owned()))
}

/// The step that builds them. It selects the whole workspace, so that the features of dependencies
/// are the same as in a test run and nothing is compiled twice.
pub(crate) fn step(workspace: &Workspace, profile: Profile, programs: &[Program]) -> Step {
    let names: Vec<_> = programs.iter().map(|program| program.name()).collect();
    Step::new(format!("build {}", names.join(" and ")), cargo())
        .args(["build", "--workspace", "--profile", profile.name()])
        .args(names.iter().flat_map(|name| ["--bin", name]))
        .dir(workspace.root())
}

/// Where cargo's messages (one JSON object a line) say that a program was put.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        target: Target,
        executable: Option<PathBuf>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
    }
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.target.name == name)
        .find_map(|message| message.executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = r#"{"reason":"build-script-executed","package_id":"x"}
{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"correx"},"executable":null}
{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"correx-desktop"},"executable":"/t/debug/correx-desktop"}
{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"correx"},"executable":"/t/debug/correx"}
not json
{"reason":"build-finished","success":true}"#;

    #[test]
    fn a_program_is_where_cargo_says_it_put_it() {
        assert_eq!(executable(MESSAGES, "correx"), Some(PathBuf::from("/t/debug/correx")));
        assert_eq!(executable(MESSAGES, "other"), None);
    }

    #[test]
    fn both_programs_are_built_by_one_cargo() {
        let workspace = Workspace::at(std::path::Path::new("."));
        let step = step(&workspace, Profile::Dev, &[Program::Cli, Program::Desktop]);
        let line = step.command_line();
        assert!(
            line.ends_with("build --workspace --profile dev --bin correx --bin correx-desktop"),
            "{line}"
        );
    }
}
