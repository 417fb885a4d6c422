//! Running a program: without a shell, within limits, and ended with everything that it started.

mod outcome;
mod run;
mod tree;

use std::time::Duration;

pub use outcome::{CommandEnd, CommandError, CommandOutcome, Stream};
pub use run::run_command;
pub use tree::end_leftovers;

use crate::Launch;

/// The variable by which the processes of a command are found, wherever they went.
pub(crate) const MARKER: &str = "CORREX_COMMAND";

/// What is run, and within which limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// What a policy let through.
    pub launch: Launch,
    /// Names this run: no other has it. Its processes carry it in a variable.
    pub id: String,
    /// What it reads. It need not read all of it.
    pub stdin: Vec<u8>,
    /// How far it may go.
    pub limits: CommandLimits,
}

impl CommandSpec {
    /// With nothing to read, and the usual limits.
    pub fn new(launch: Launch, id: impl Into<String>) -> Self {
        Self { launch, id: id.into(), stdin: Vec::new(), limits: CommandLimits::default() }
    }
}

/// How far a command may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLimits {
    /// How long it may take.
    pub time: Duration,
    /// The most bytes that it may write to its output, and to its messages (stderr) as well.
    pub output: usize,
    /// How many bytes of the end of its messages are kept.
    pub error_tail: usize,
}

impl Default for CommandLimits {
    /// Ten minutes, 16 MiB of output, 16 KiB of messages.
    fn default() -> Self {
        Self { time: Duration::from_secs(600), output: 16 << 20, error_tail: 16 << 10 }
    }
}

/// Some bytes that a command wrote, as they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputPiece<'b> {
    /// Where it wrote them.
    pub stream: Stream,
    /// The bytes; a character may be cut in two.
    pub bytes: &'b [u8],
}
