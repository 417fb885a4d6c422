//! One command that is run for the person, with its name and duration.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Why a step did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error("{name}: the program `{program}` is not installed or not in PATH")]
    NotFound { name: String, program: String },
    #[error("{name}: `{program}` could not be started: {source}")]
    Start { name: String, program: String, source: std::io::Error },
    #[error("{name} failed{}; its own message is above. The command was:\n  {command}", ending(*code))]
    Failed { name: String, command: String, code: Option<i32> },
}

fn ending(code: Option<i32>) -> String {
    code.map_or_else(|| " (ended by a signal)".to_owned(), |code| format!(" (exit code {code})"))
}

/// A named command. Its output goes to the terminal as it is; it gets no standard input unless
/// [`Step::interactive`] says so, because a chore must never stop to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    name: String,
    program: OsString,
    args: Vec<OsString>,
    dir: Option<PathBuf>,
    env: Vec<(OsString, OsString)>,
    interactive: bool,
}

impl Step {
    pub(crate) fn new(name: impl Into<String>, program: impl AsRef<OsStr>) -> Self {
        Self {
            name: name.into(),
            program: program.as_ref().to_os_string(),
            args: Vec::new(),
            dir: None,
            env: Vec::new(),
            interactive: false,
        }
    }

    pub(crate) fn args<I, S>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_os_string()));
        self
    }

    pub(crate) fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.dir = Some(dir.as_ref().to_path_buf());
        self
    }

    pub(crate) fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((key.as_ref().to_os_string(), value.as_ref().to_os_string()));
        self
    }

    /// The program may read what the person types.
    pub(crate) fn interactive(mut self) -> Self {
        self.interactive = true;
        self
    }

    /// The same step started by another program, which gets this one's command line as its last
    /// arguments.
    pub(crate) fn under<const N: usize>(mut self, program: &str, leading: [&str; N]) -> Self {
        let inner = std::mem::replace(&mut self.program, OsString::from(program));
        let mut args: Vec<OsString> = leading.iter().map(OsString::from).collect();
        args.push(inner);
        args.append(&mut self.args);
        self.args = args;
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The command as a person would type it.
    pub(crate) fn command_line(&self) -> String {
        std::iter::once(&self.program)
            .chain(&self.args)
            .map(|word| quoted(&word.to_string_lossy()))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Runs it to its end.
    pub(crate) fn run(&self) -> Result<Duration, StepError> {
        let started = Instant::now();
        let mut command = self.command();
        if !self.interactive {
            command.stdin(Stdio::null());
        }
        let status = command.status().map_err(|source| self.not_started(source))?;
        if status.success() { Ok(started.elapsed()) } else { Err(self.failed(status.code())) }
    }

    /// Runs it to its end and returns what it wrote to standard output.
    pub(crate) fn capture(&self) -> Result<String, StepError> {
        let output = self
            .command()
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|source| self.not_started(source))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(self.failed(output.status.code()))
        }
    }

    /// Asks the machine something: whether the command succeeded and what it wrote to standard output.
    /// One that cannot be started is a no.
    pub(crate) fn ask(&self) -> Answer {
        match self.command().stdin(Stdio::null()).stderr(Stdio::null()).output() {
            Ok(output) => Answer {
                yes: output.status.success(),
                text: String::from_utf8_lossy(&output.stdout).into_owned(),
            },
            Err(_) => Answer { yes: false, text: String::new() },
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).envs(self.env.iter().map(|(key, value)| (key, value)));
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command
    }

    fn not_started(&self, source: std::io::Error) -> StepError {
        let name = self.name.clone();
        let program = self.program.to_string_lossy().into_owned();
        if source.kind() == std::io::ErrorKind::NotFound {
            StepError::NotFound { name, program }
        } else {
            StepError::Start { name, program, source }
        }
    }

    fn failed(&self, code: Option<i32>) -> StepError {
        StepError::Failed { name: self.name.clone(), command: self.command_line(), code }
    }
}

/// What a command answered that was only asked something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// It ran and ended with success.
    pub(crate) yes: bool,
    /// Its standard output.
    pub(crate) text: String,
}

/// Runs steps in order, with a heading before and a duration after each; the first failure ends it.
pub(crate) fn run_all(steps: &[Step]) -> Result<(), StepError> {
    for (index, step) in steps.iter().enumerate() {
        println!("\n── [{}/{}] {} ──", index + 1, steps.len(), step.name());
        println!("   {}", step.command_line());
        let took = step.run()?;
        println!("── {}: done in {} ──", step.name(), duration(took));
    }
    Ok(())
}

/// A duration for people: `0.4 s`, `12 s`, `3 min 05 s`.
pub(crate) fn duration(took: Duration) -> String {
    let seconds = took.as_secs();
    if seconds < 10 {
        format!("{:.1} s", took.as_secs_f64())
    } else if seconds < 60 {
        format!("{seconds} s")
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=+./:,@%\\".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_pasted_into_a_shell() {
        let step = Step::new("say", "echo").args(["two words", "it's", "--flag=1"]);
        assert_eq!(step.command_line(), r"echo 'two words' 'it'\''s' --flag=1");
    }

    #[test]
    fn a_step_under_another_program_keeps_its_arguments_and_their_order() {
        let step = Step::new("test", "cargo").args(["nextest", "run"]).under("xvfb-run", ["-a"]);
        assert_eq!(step.command_line(), "xvfb-run -a cargo nextest run");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Step::new("look", "no-such-program-anywhere").run().unwrap_err();
        assert!(matches!(error, StepError::NotFound { .. }));
        assert!(error.to_string().contains("no-such-program-anywhere"));
    }

    #[test]
    fn a_failing_step_reports_its_name_command_and_exit_code() {
        let cargo = crate::workspace::cargo();
        let error = Step::new("odd wish", cargo)
            .args(["no-such-subcommand-anywhere"])
            .capture()
            .unwrap_err();
        let StepError::Failed { name, command, code } = error else { panic!("{error}") };
        assert_eq!(name, "odd wish");
        assert!(command.ends_with("no-such-subcommand-anywhere"));
        assert_ne!(code, Some(0));
    }

    #[test]
    fn the_steps_after_a_failing_one_are_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let cargo = crate::workspace::cargo();
        let made = folder.path().join("made");
        let steps = [
            Step::new("fails", &cargo).args(["no-such-subcommand-anywhere"]),
            Step::new("must not run", &cargo).args(["new", "--quiet", "--vcs=none"]).args([&made]),
        ];
        assert!(run_all(&steps).is_err());
        assert!(!made.exists());
    }

    #[test]
    fn durations_read_like_durations() {
        assert_eq!(duration(Duration::from_millis(440)), "0.4 s");
        assert_eq!(duration(Duration::from_secs(12)), "12 s");
        assert_eq!(duration(Duration::from_secs(185)), "3 min 05 s");
    }
}
