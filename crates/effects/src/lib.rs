//! What a workflow does to the world outside: running programs, writing files, and the policy that
//! says what of it is allowed.
//!
//! # Layout
//!
//! - [`Policy`]: the person's rules, from `policy.toml`; every decision names the rule that made it.
//!   Nothing is run or written without a grant ([`Launch`], [`WriteTarget`]), and only a policy makes
//!   one.
//! - [`run_command`]: a program without a shell, with limits, ended with everything it started.
//! - [`write_file`]: a file as a whole or not at all, below the folder that was allowed.
//! - [`real_path`]: what a path really is, links and `..` resolved.
//!
//! This crate knows neither events nor sessions; what it decides and does is recorded by whoever asks.

mod command;
mod executable;
mod folder;
mod paths;
mod pattern;
mod policy;
mod program;
mod read;
mod write;

pub use command::{
    CommandEnd, CommandError, CommandLimits, CommandOutcome, CommandSpec, OutputPiece, Stream,
    end_leftovers, run_command,
};
pub use executable::Unrunnable;
pub use folder::FolderError;
pub use paths::{Kind, PathProblem, RealPath, real_path};
pub use pattern::{ArgumentPattern, NamePattern, PatternProblem};
pub use policy::{
    Approval, CommandRequest, Decided, Decision, Launch, POLICY_FILE, POLICY_TEMPLATE, Policy,
    PolicyError, PolicyErrors, PolicyProblem, SessionFolders, Verdict,
};
pub use read::{ReadError, ReadTarget};
pub use write::{
    Before, Existing, WriteError, WriteTarget, Written, digest, remove_leftovers, write_file,
};
