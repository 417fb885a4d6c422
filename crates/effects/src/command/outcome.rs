//! How a command ended.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::executable::Unrunnable;

/// Where a command writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// What becomes the artifact (stdout).
    Output,
    /// Its messages (stderr).
    Messages,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    /// By itself, with this code; 0 is success.
    Exited(i32),
    /// By a signal that did not come from here.
    Signalled(i32),
    /// Somebody stopped it.
    Cancelled,
    /// It took longer than this.
    TimedOut(Duration),
    /// It wrote more than this many bytes.
    TooMuchOutput {
        /// Where to.
        stream: Stream,
        /// The most bytes.
        limit: usize,
    },
}

impl fmt::Display for CommandEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(0) => f.write_str("ended successfully"),
            Self::Exited(code) => write!(f, "ended with code {code}, which says that it failed"),
            Self::Signalled(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "was ended by the signal {name}"),
                None => write!(f, "was ended by signal {signal}"),
            },
            Self::Cancelled => f.write_str("was stopped, as asked"),
            Self::TimedOut(limit) => {
                write!(f, "was stopped because it took longer than {}", in_words(*limit))
            }
            Self::TooMuchOutput { stream, limit } => {
                let what = match stream {
                    Stream::Output => "output",
                    Stream::Messages => "messages",
                };
                write!(f, "was stopped because it wrote more than {limit} bytes of {what}")
            }
        }
    }
}

/// A command that has ended, with everything that it started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// The program, as it was called.
    pub program: String,
    /// How it ended.
    pub end: CommandEnd,
    /// What it wrote to its output, up to the limit.
    pub stdout: Vec<u8>,
    /// The end of its messages.
    pub error_tail: Vec<u8>,
    /// How many bytes its messages were in all.
    pub error_bytes: u64,
    /// How long it ran.
    pub ran_for: Duration,
    /// How many processes that it had started were still running when it ended by itself; they were
    /// ended as well.
    pub left_behind: usize,
    /// Processes that could not be ended.
    pub unended: Vec<u32>,
}

impl CommandOutcome {
    /// Whether the program itself said that it succeeded.
    pub fn is_success(&self) -> bool {
        self.end == CommandEnd::Exited(0)
    }
}

impl fmt::Display for CommandOutcome {
    /// What happened, what was kept, what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.program, self.end)?;
        match self.end {
            CommandEnd::Exited(0) => {}
            CommandEnd::Exited(_) | CommandEnd::Signalled(_) => {
                write!(f, "; its output ({} bytes) was kept but not used", self.stdout.len())?;
                f.write_str(", correct what its messages say and run the stage again")?;
            }
            CommandEnd::Cancelled => {
                write!(f, "; what it had written ({} bytes) was kept", self.stdout.len())?;
            }
            CommandEnd::TimedOut(_) => f.write_str(
                "; what it had written was kept but not used, give the stage a longer timeout or the \
                 program less to do",
            )?,
            CommandEnd::TooMuchOutput { .. } => f.write_str(
                "; the beginning was kept but not used, have the program write less, or into a file",
            )?,
        }
        if self.left_behind > 0 {
            let left = self.left_behind;
            write!(f, "; {left} of its processes were still running and were ended")?;
        }
        if !self.unended.is_empty() {
            write!(f, "; these processes could not be ended: {:?}", self.unended)?;
        }
        if !self.is_success() && !self.error_tail.is_empty() {
            let messages = String::from_utf8_lossy(&self.error_tail);
            let cut = self.error_bytes > self.error_tail.len() as u64;
            let lead = if cut { "\nThe end of its messages:\n" } else { "\nIts messages:\n" };
            write!(f, "{lead}{}", messages.trim_end())?;
        }
        Ok(())
    }
}

/// Why a command did not begin. Nothing was run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandError {
    /// The program has gone since it was decided.
    #[error("{} was not run: it is not there any more; install it and run the stage again", .0.display())]
    Absent(PathBuf),
    /// The system does not run it.
    #[error("{} was not run: it is no program that this system can run ({reason})", .path.display())]
    NotExecutable {
        /// The program.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It is no program any more that the system itself runs.
    #[error("the command was not run: {0}")]
    Unrunnable(Unrunnable),
    /// More arguments than the system takes.
    #[error("{} was not run: its arguments are too long; give it the text as input instead", .0.display())]
    ArgumentsTooLong(PathBuf),
    /// Where it was to work cannot be used.
    #[error("the command was not run: its working folder {} cannot be used: {reason}", .path.display())]
    WorkingFolder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Something else.
    #[error("{} was not run: {reason}", .path.display())]
    System {
        /// The program.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

/// Names of the signals by which programs end, the same on Linux and macOS but for SIGBUS.
fn signal_name(signal: i32) -> Option<&'static str> {
    let name = match signal {
        1 => "SIGHUP (hang-up)",
        2 => "SIGINT (interrupted)",
        3 => "SIGQUIT (quit)",
        4 => "SIGILL (an instruction that this processor does not have)",
        6 => "SIGABRT (it gave up)",
        7 if cfg!(target_os = "linux") => "SIGBUS (a memory error)",
        10 if cfg!(target_os = "macos") => "SIGBUS (a memory error)",
        8 => "SIGFPE (an arithmetic error)",
        9 => "SIGKILL (killed, by a person or for want of memory)",
        11 => "SIGSEGV (a memory error)",
        13 => "SIGPIPE (nobody read its output)",
        14 => "SIGALRM (its own time limit)",
        15 => "SIGTERM (asked to end)",
        24 => "SIGXCPU (processor time limit)",
        25 => "SIGXFSZ (file size limit)",
        _ => return None,
    };
    Some(name)
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds if seconds >= 120 && seconds.is_multiple_of(60) => {
            format!("{} minutes", seconds / 60)
        }
        seconds => format!("{seconds} s"),
    }
}
