//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// An offline workflow assistant: runs workflows with a model on this machine, talks about them
/// while they run, and lets you steer them.
#[derive(Debug, Parser)]
#[command(name = "correx", version, propagate_version = true)]
pub struct Cli {
    /// What to do with everything it can be done to.
    #[command(flatten)]
    pub common: Common,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The heading of the options that every command has.
const EVERYWHERE: &str = "Options of every command";

/// Options that every command has.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Write JSON, one object per line; errors too, on the error output
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub json: bool,
    /// Where sessions are kept [also: CORREX_DATA_DIR]
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// A GGUF file in place of the default model [also: CORREX_MODEL]
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// How many threads compute [also: CORREX_THREADS]
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        value_name = "N",
        value_parser = at_least_one
    )]
    pub threads: Option<usize>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a workflow to its end; its results go to the output
    Run(RunArgs),
    /// Go on with a run that was paused, interrupted or never started
    Resume(WatchArgs),
    /// Pause a run; `resume` goes on with it
    Pause(SessionArg),
    /// End a run for good
    Cancel(SessionArg),
    /// Agree to what a stage asks, or refuse; then watch the run go on
    Approve(ApproveArgs),
    /// Run an ended run again from one of its stages
    Rerun(RerunArgs),
    /// Talk about a run, or just talk
    Chat(ChatArgs),
    /// List the sessions
    Sessions,
    /// Print a session's events, as they are stored, as JSON Lines
    Events(EventsArgs),
    /// Print what a run has produced, or put it into files
    Artifacts(ArtifactsArgs),
    /// Delete everything about a session
    Delete(SessionArg),
    /// Begin a workflow of your own from an example; without a name, list the examples
    New(NewArgs),
    /// Work with workflow files
    #[command(subcommand)]
    Workflow(WorkflowCommand),
    /// Look at the model, or measure one
    #[command(subcommand)]
    Model(ModelCommand),
    /// Show what Correx does: an example run, a question, a steering note and its effect
    Demo(DemoArgs),
}

/// `correx run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A workflow file, or the name of an example (`correx new` lists them)
    pub workflow: String,
    /// An input from a file or folder; without a name it is for the only input, or the first file or folder
    #[arg(long, value_name = "[NAME=]FILE")]
    pub input: Vec<String>,
    /// An input as text
    #[arg(long, value_name = "NAME=TEXT", value_parser = name_and_text)]
    pub text: Vec<(String, String)>,
    /// The session's title
    #[arg(long)]
    pub title: Option<String>,
    /// A steering note for every stage, given before the start
    #[arg(long, value_name = "NOTE")]
    pub steer: Vec<String>,
    /// Sample with this seed, in place of the workflow's
    #[arg(long)]
    pub seed: Option<u64>,
    /// How to watch.
    #[command(flatten)]
    pub watch: WatchOptions,
}

/// `correx resume`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Which session.
    #[command(flatten)]
    pub session: SessionArg,
    /// How to watch.
    #[command(flatten)]
    pub watch: WatchOptions,
}

/// How a run is watched.
#[derive(Debug, Clone, Copy, Args)]
pub struct WatchOptions {
    /// Agree to what the workflow's own questions ask; what policy wants to be asked still waits
    #[arg(long)]
    pub yes: bool,
}

/// A session.
#[derive(Debug, Clone, Args)]
pub struct SessionArg {
    /// A session's id, the beginning or end of it, or `last`
    pub session: String,
}

/// `correx approve`.
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// Which session.
    #[command(flatten)]
    pub session: SessionArg,
    /// Refuse, for this reason; the run ends
    #[arg(long, value_name = "REASON")]
    pub deny: Option<String>,
    /// A remark to keep
    #[arg(long, conflicts_with = "deny")]
    pub comment: Option<String>,
    /// Put this file's text in the place of what is shown
    #[arg(long, value_name = "FILE", conflicts_with = "deny")]
    pub edited: Option<std::path::PathBuf>,
    /// How to watch the run afterwards.
    #[command(flatten)]
    pub watch: WatchOptions,
}

/// `correx rerun`.
#[derive(Debug, Args)]
pub struct RerunArgs {
    /// Which session.
    #[command(flatten)]
    pub session: SessionArg,
    /// The stage that runs anew first, by its id; those that need it run anew as well
    pub stage: String,
    /// How to watch the run afterwards.
    #[command(flatten)]
    pub watch: WatchOptions,
}

/// `correx chat`.
#[derive(Debug, Args)]
pub struct ChatArgs {
    /// A session's id, the beginning or end of it, `last`, or `new`
    pub session: String,
    /// Show what the model thinks before it answers, where it does
    #[arg(long)]
    pub show_thinking: bool,
}

/// `correx events`.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Which session.
    #[command(flatten)]
    pub session: SessionArg,
    /// Begin with this event
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub from: u32,
}

/// `correx artifacts`.
#[derive(Debug, Args)]
pub struct ArtifactsArgs {
    /// Which session.
    #[command(flatten)]
    pub session: SessionArg,
    /// Put them into files in this folder; existing files are left alone
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `correx new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// The example to copy
    pub example: Option<String>,
    /// A new folder for it and its sample inputs, or a new `.toml` file for the workflow alone;
    /// a folder of the example's name unless it is given. Nothing is overwritten
    pub place: Option<PathBuf>,
}

/// `correx workflow`.
#[derive(Debug, Subcommand)]
pub enum WorkflowCommand {
    /// Check a workflow file without running it; every mistake is named
    Check {
        /// A workflow file, or the name of an example
        workflow: String,
    },
    /// Print the JSON Schema of workflow files, by which editors complete and check them
    Schema,
}

/// `correx model`.
#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Which model is used, from where, whether it is in memory and how much of that it takes;
    /// loads nothing
    #[command(visible_alias = "status")]
    Show,
    /// What a model file says about itself, and whether it can be run here; nothing is loaded
    Inspect {
        /// Its id, or a GGUF file (of a split model, any of them); the model that is used when absent
        #[arg(id = "wanted", value_name = "ID|FILE")]
        model: Option<PathBuf>,
    },
    /// Use another model from now on
    Use {
        /// Its id, a GGUF file, or `default`
        #[arg(id = "wanted", value_name = "ID|FILE")]
        model: String,
        /// What to do while something is being generated: wait for its end, or change at once (a
        /// running stage begins again, no retry is used up)
        #[arg(long, value_name = "WHEN")]
        when: Option<When>,
    },
    /// Load the model, when it is not in memory
    Load,
    /// Free the model's memory; the next use loads it again
    Unload,
    /// Whether a model fits into memory, and with which context; reads no weights
    Fit {
        /// Its id, or a GGUF file; the default model when absent
        #[arg(id = "wanted", value_name = "ID|FILE")]
        model: Option<PathBuf>,
        /// The context in tokens; what would be used when absent
        #[arg(long, value_name = "N", value_parser = at_least_one)]
        context: Option<usize>,
    },
    /// The models that are known, here, being downloaded, or held by other programs
    List,
    /// Look for models that other programs hold: Ollama, LM Studio, Jan, GPT4All, the hub's tools
    Find,
    /// Download a model, or go on with it; Ctrl-C pauses. Opens a connection to the hub
    Download(DownloadArgs),
    /// Use a GGUF file where it lies; nothing is copied
    Import(ImportArgs),
    /// Delete a model: its file if Correx downloaded it, else only what is known of it
    Delete(DeleteArgs),
    /// Measure how fast a model is here
    Bench {
        /// Its id, or a GGUF file; the model that is used when absent
        #[arg(value_name = "ID|FILE")]
        file: Option<PathBuf>,
        /// Tokens of the prompt
        #[arg(long, default_value_t = 512, value_parser = at_least_one)]
        prompt: usize,
        /// Tokens of each reply
        #[arg(long, default_value_t = 128, value_parser = at_least_one)]
        reply: usize,
        /// The rule by which the model splits text, whatever its file says
        #[arg(long, value_name = "NAME", value_parser = pre_tokenizer)]
        pre_tokenizer: Option<&'static str>,
    },
    /// Turn the text on the standard input into token ids: no template, nothing added
    Tokenize {
        /// Its id, or a GGUF file; the model that is used when absent
        #[arg(value_name = "ID|FILE")]
        file: Option<PathBuf>,
        /// The rule by which the model splits text, whatever its file says
        #[arg(long, value_name = "NAME", value_parser = pre_tokenizer)]
        pre_tokenizer: Option<&'static str>,
    },
    /// Go on from the raw prompt on the standard input
    Generate {
        /// Its id, or a GGUF file; the model that is used when absent
        #[arg(value_name = "ID|FILE")]
        file: Option<PathBuf>,
        /// Always take the likeliest token
        #[arg(long)]
        greedy: bool,
        /// The most tokens to generate
        #[arg(short = 'n', long = "tokens", default_value_t = 64, value_parser = at_least_one)]
        tokens: usize,
        /// The seed when not greedy
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Print ids in place of text
        #[arg(long)]
        ids: bool,
        /// Hold the reply to the JSON Schema in this file
        #[arg(long, value_name = "FILE", group = "form")]
        json_schema: Option<PathBuf>,
        /// Hold the reply to one of these texts, separated by commas
        #[arg(long, value_name = "A,B", value_delimiter = ',', group = "form")]
        choice: Option<Vec<String>>,
        /// Hold the reply to this regular expression
        #[arg(long, value_name = "REGEX", group = "form")]
        regex: Option<String>,
        /// The rule by which the model splits text, whatever its file says
        #[arg(long, value_name = "NAME", value_parser = pre_tokenizer)]
        pre_tokenizer: Option<&'static str>,
    },
}

impl ModelCommand {
    /// Whether it is about a model file itself, and needs no data directory.
    pub fn is_on_file(&self) -> bool {
        !matches!(
            self,
            ModelCommand::Show
                | ModelCommand::Use { .. }
                | ModelCommand::Load
                | ModelCommand::Unload
                | ModelCommand::List
                | ModelCommand::Find
                | ModelCommand::Download(_)
                | ModelCommand::Import(_)
                | ModelCommand::Delete(_)
        )
    }
}

/// When another model takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// When what is being generated has ended
    AfterRun,
    /// At once
    Now,
}

/// `correx model download`.
#[derive(Debug, Args)]
pub struct DownloadArgs {
    /// An id of the catalogue, hf:OWNER/REPOSITORY/FILE.gguf, or the file's address on the hub
    #[arg(id = "wanted", value_name = "ID|hf:REPO/FILE")]
    pub model: String,
    /// A branch, tag or commit in place of the main branch
    #[arg(long)]
    pub revision: Option<String>,
}

/// `correx model import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The GGUF file; of a model in several files, any of them
    pub file: PathBuf,
    /// What to call it; made from the file's name when absent
    #[arg(long)]
    pub name: Option<String>,
}

/// `correx model delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Its id, or the path of the rest of a download
    #[arg(id = "wanted", value_name = "ID|FILE")]
    pub model: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// `correx demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Which example to run
    #[arg(long, default_value = "meeting-notes")]
    pub example: String,
    /// The steering note to give
    #[arg(long)]
    pub note: Option<String>,
}

/// A rule's name as the vocabulary knows it.
fn pre_tokenizer(name: &str) -> Result<&'static str, String> {
    let mut names = correx_candle::tokenizer::pre_tokenizer_names();
    names.find(|known| *known == name).ok_or_else(|| {
        let names: Vec<&str> = correx_candle::tokenizer::pre_tokenizer_names().collect();
        format!("no rule has this name. There are: {}", names.join(", "))
    })
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(number) => Ok(number),
        Err(_) => Err("must be a whole number".into()),
    }
}

fn name_and_text(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, text)) if !name.is_empty() => Ok((name.to_owned(), text.to_owned())),
        _ => Err("must be NAME=TEXT".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_run_takes_inputs_notes_and_global_options_anywhere() {
        let cli = parse(
            "correx run w.toml --input notes=a.txt --text tone=kind --steer Hurry --steer Up \
             --data-dir /d --seed 7 --yes --json",
        )
        .unwrap();
        assert!(cli.common.json);
        assert_eq!(cli.common.data_dir, Some("/d".into()));
        let Command::Run(run) = cli.command else { panic!() };
        assert_eq!(run.text, [("tone".to_owned(), "kind".to_owned())]);
        assert_eq!((run.steer.len(), run.seed, run.watch.yes), (2, Some(7), true));
    }

    #[test]
    fn the_benchmark_is_typed_as_the_documentation_says() {
        let line = "correx model bench m.gguf --prompt 512 --reply 128 --threads 2 --json";
        let cli = parse(line).unwrap();
        assert_eq!(cli.common.threads, Some(2));
        let Command::Model(ModelCommand::Bench { file, prompt, reply, .. }) = cli.command else {
            panic!()
        };
        assert_eq!((file, prompt, reply), (Some("m.gguf".into()), 512, 128));
        let generate = parse("correx model generate m.gguf --greedy -n 5 --ids").unwrap();
        assert!(matches!(
            generate.command,
            Command::Model(ModelCommand::Generate { greedy: true, tokens: 5, ids: true, .. })
        ));
    }

    #[test]
    fn models_are_got_and_deleted_as_the_documentation_says() {
        let cli = parse("correx model download hf:a/b/c.gguf --revision v1 --json").unwrap();
        let Command::Model(ModelCommand::Download(args)) = cli.command else { panic!() };
        assert_eq!((args.model.as_str(), args.revision.as_deref()), ("hf:a/b/c.gguf", Some("v1")));
        let cli = parse("correx model delete qwen3-4b-q4_k_m --yes").unwrap();
        assert!(matches!(
            cli.command,
            Command::Model(ModelCommand::Delete(DeleteArgs { yes: true, .. }))
        ));
        assert!(parse("correx model import m.gguf --name Mine").is_ok());
    }

    #[test]
    fn senseless_numbers_and_nameless_texts_are_usage_errors() {
        for line in [
            "correx model bench m.gguf --threads 0",
            "correx model bench m.gguf --prompt few",
            "correx model generate --choice a,b --regex a",
            "correx model tokenize --pre-tokenizer nothing",
            "correx run w.toml --text nothing",
            "correx run w.toml --text =x",
            "correx approve last --deny no --comment yes",
            "correx",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }
}
