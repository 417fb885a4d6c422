//! `cargo xtask bench`: what Correx does on this machine, in figures. A frame so far: what is not
//! measured yet says so.

use crate::ChoreError;
use crate::programs::{self, Profile, Program};
use crate::setup::{self, Scope};
use crate::step::Step;
use crate::workspace::Workspace;

/// What is measured.
#[derive(Debug, Clone, clap::Subcommand)]
pub(crate) enum Subject {
    /// Speed, load time and memory of the default model; prints one JSON line
    Inference {
        /// Tokens of the prompt
        #[arg(long, default_value_t = 512)]
        prompt: u32,
        /// Tokens of the reply
        #[arg(long, default_value_t = 128)]
        reply: u32,
        /// Threads that compute
        #[arg(long, default_value_t = 2)]
        threads: u32,
        /// How `correx` is compiled
        #[arg(long, value_enum, default_value_t = Profile::Release)]
        profile: Profile,
    },
    /// Packing of the context (not measured yet)
    Context,
    /// A router exchange without the model's share (not measured yet)
    Router,
    /// Appending to and reading from the event log (not measured yet)
    Store,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error("`bench {0}` is not measured yet; only `bench inference` is")]
    NotMeasured(&'static str),
}

/// Measures one subject.
pub(crate) fn bench(workspace: &Workspace, subject: &Subject) -> Result<(), ChoreError> {
    let not_measured = |name| Err(BenchError::NotMeasured(name).into());
    match subject {
        Subject::Inference { prompt, reply, threads, profile } => {
            let ready = setup::setup(workspace, Scope::Running)?;
            let [cli] = programs::build(workspace, *profile, [Program::Cli])?;
            Step::new("measure inference", cli)
                .args(["model", "bench"])
                .args([&ready.model])
                .args(["--prompt", &prompt.to_string(), "--reply", &reply.to_string()])
                .args(["--threads", &threads.to_string(), "--json"])
                .run()?;
            Ok(())
        }
        Subject::Context => not_measured("context"),
        Subject::Router => not_measured("router"),
        Subject::Store => not_measured("store"),
    }
}
