//! The `correx` program: the product's operations from a terminal.
//!
//! # Layout
//! - [`args`]: what can be typed; [`choice`]: from that to what is asked.
//! - [`connection`]: a data directory, as its owner or through its owner.
//! - [`run`], [`chat`], [`sessions`], [`artifacts`], [`model`], [`library`], [`inspect`], [`demo`]: the
//!   commands.
//! - [`watch`], [`display`]: a run, followed and told.
//! - [`output`]: everything that is printed; [`terminal`]: lines that are typed.
//! - [`outcome`]: how a command ends: 0 as wanted, 1 not, 2 typed wrongly.

pub mod args;
pub mod artifacts;
pub mod chat;
pub mod choice;
pub mod connection;
pub mod demo;
pub mod display;
pub mod inspect;
pub mod library;
pub mod model;
pub mod new;
pub mod outcome;
pub mod output;
pub mod run;
pub mod sessions;
pub mod terminal;
pub mod watch;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use correx_infrastructure::Loading;
use correx_protocol::{ErrorCode, ProtocolError};

use args::{Cli, Command, Common, ModelCommand, WorkflowCommand};
use connection::Connection;
use outcome::{Ending, Outcome};
use output::{Format, Output, Story};

/// Does what the command line says.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(if cli.common.json { Format::Json } else { Format::Text });
    // What goes wrong is reported by whoever asked; the log is for those who ask for it.
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("CORREX_LOG")
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("off")),
        )
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let outcome = start(cli, &output).unwrap_or_else(|error| {
        output.error(&error);
        Ending::Failed
    });
    ExitCode::from(outcome.code())
}

fn start(cli: Cli, output: &Output) -> Outcome {
    let internal = |error: std::io::Error| {
        ProtocolError::new(ErrorCode::Internal, format!("the program could not start: {error}"))
    };
    match cli.command {
        Command::Model(command) if command.is_on_file() => {
            model::on_file(command, &cli.common, output)
        }
        Command::Workflow(WorkflowCommand::Schema) => sessions::schema(output),
        Command::New(args) => new::begin(args, output),
        command => {
            let runtime = tokio::runtime::Runtime::new().map_err(internal)?;
            let outcome = runtime.block_on(connected(command, &cli.common, output.clone()));
            // A line that was never typed is not waited for.
            runtime.shutdown_background();
            outcome
        }
    }
}

/// A command that needs a data directory.
async fn connected(command: Command, common: &Common, output: Output) -> Outcome {
    let output = match &command {
        Command::Demo(_) => output.telling(Story::Result),
        _ => output,
    };
    let connection = Connection::open(common, loading(&command), output).await?;
    let outcome = match command {
        Command::Run(args) => run::run(&connection, args).await,
        Command::Resume(args) => run::resume(&connection, args).await,
        Command::Pause(args) => run::pause(&connection, &args.session).await,
        Command::Cancel(args) => run::cancel(&connection, &args.session).await,
        Command::Approve(args) => run::approve(&connection, args).await,
        Command::Rerun(args) => run::rerun(&connection, args).await,
        Command::Chat(args) => chat::chat(&connection, args).await,
        Command::Sessions => sessions::list(&connection).await,
        Command::Events(args) => sessions::events(&connection, args).await,
        Command::Artifacts(args) => artifacts::artifacts(&connection, args).await,
        Command::Delete(args) => sessions::delete(&connection, &args.session).await,
        Command::Workflow(WorkflowCommand::Check { workflow }) => {
            sessions::check(&connection, &workflow).await
        }
        Command::Workflow(WorkflowCommand::Schema) => sessions::schema(&connection.output),
        Command::New(args) => new::begin(args, &connection.output),
        Command::Model(ModelCommand::List) => library::list(&connection).await,
        Command::Model(ModelCommand::Find) => library::find(&connection).await,
        Command::Model(ModelCommand::Download(args)) => library::download(&connection, args).await,
        Command::Model(ModelCommand::Import(args)) => library::import(&connection, args).await,
        Command::Model(ModelCommand::Delete(args)) => library::delete(&connection, args).await,
        Command::Model(command) => model::of_data_dir(&connection, command, common).await,
        Command::Demo(args) => demo::demo(&connection, args).await,
    };
    connection.close().await;
    outcome
}

/// Commands that only look do not load a model.
fn loading(command: &Command) -> Loading {
    match command {
        Command::Run(_)
        | Command::Resume(_)
        | Command::Approve(_)
        | Command::Rerun(_)
        | Command::Chat(_)
        | Command::Model(ModelCommand::Load)
        | Command::Demo(_) => Loading::AtStart,
        Command::Pause(_)
        | Command::Cancel(_)
        | Command::Sessions
        | Command::Events(_)
        | Command::Artifacts(_)
        | Command::Delete(_)
        | Command::Workflow(_)
        | Command::New(_)
        | Command::Model(_) => Loading::WhenNeeded,
    }
}
