//! The chores of the repository, as `cargo xtask …`.
//!
//! # Layout
//!
//! - `workspace`: where things lie in the repository
//! - `step`: one command that is run for the person, with its name and duration
//! - `catalog`: `models/catalog.toml`
//! - `setup`: system packages, Node.js and its modules, the default model
//! - `ui`: the web front end's build
//! - `digest`: SHA-256 of files and folders
//! - `programs`: builds `correx` and `correx-desktop`
//! - `run`, `test`, `bench`, `peer`: the chores that stand on those
//!
//! What decides is kept apart from what does: the pure parts take what they found out as arguments
//! and are tested without a machine to change.

// This program's whole output is for the person at the terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod catalog;
mod digest;
mod peer;
mod programs;
mod run;
mod setup;
mod step;
mod test;
mod ui;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::setup::{Scope, SetupError};
use crate::step::StepError;
use crate::workspace::Workspace;

/// Chores of the Correx repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Install what building, running and testing need: system packages, npm modules, the default model
    Setup {
        /// Where the model goes (a rehearsal in another folder than models/)
        #[arg(long, hide = true)]
        models_dir: Option<PathBuf>,
    },
    /// Set up, build, and open the desktop app; with no display, run the first example in the terminal
    Run {
        /// Arguments for the program that is started
        #[arg(last = true)]
        args: Vec<OsString>,
    },
    /// Set up, then formatting, lints and all tests, the desktop window among them
    Test {
        /// Include the tests that take minutes
        #[arg(long)]
        long: bool,
    },
    /// Measure Correx on this machine
    Bench {
        #[command(subcommand)]
        subject: bench::Subject,
    },
    /// Compare with llama.cpp on the same files; compiles its Python package the first time
    Peer {
        #[command(subcommand)]
        subject: peer::Subject,
    },
}

/// Why a chore ended without its result.
#[derive(Debug, thiserror::Error)]
enum ChoreError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Step(#[from] StepError),
    #[error(transparent)]
    Ui(#[from] ui::UiError),
    #[error(transparent)]
    Programs(#[from] programs::ProgramsError),
    #[error(transparent)]
    Bench(#[from] bench::BenchError),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match carry_out(arguments.chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\ncargo xtask: {error}");
            ExitCode::from(exit_code(&error))
        }
    }
}

fn carry_out(chore: Chore) -> Result<(), ChoreError> {
    let workspace = Workspace::locate();
    match chore {
        Chore::Setup { models_dir } => {
            let workspace = match models_dir {
                Some(folder) => workspace.with_models(folder),
                None => workspace,
            };
            setup::setup(&workspace, Scope::Everything)?;
            println!("\nEverything is in place. Next: cargo xtask run");
            Ok(())
        }
        Chore::Run { args } => run::run(&workspace, &args),
        Chore::Test { long } => {
            let length = if long { test::Length::Long } else { test::Length::Usual };
            test::test(&workspace, length)
        }
        Chore::Bench { subject } => bench::bench(&workspace, &subject),
        Chore::Peer { subject } => peer::peer(&workspace, &subject),
    }
}

/// The code of the command that failed where there is one, so that scripts see what it said.
fn exit_code(error: &ChoreError) -> u8 {
    match error {
        ChoreError::Step(StepError::Failed { code: Some(code), .. }) => {
            u8::try_from(*code).ok().filter(|code| *code != 0).unwrap_or(1)
        }
        _ => 1,
    }
}
