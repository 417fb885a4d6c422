//! The `correx` program as a person uses it, on a data directory of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::place;

/// A data directory and the program that works on it.
pub struct Terminal {
    data: TempDir,
}

impl Default for Terminal {
    fn default() -> Self {
        Self { data: TempDir::new().expect("a temporary folder") }
    }
}

impl Terminal {
    /// The data directory.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// The program with these arguments, ready to start.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(place::program("correx"));
        command
            .args(arguments)
            .env("CORREX_DATA_DIR", self.data())
            .env("CORREX_MODEL", place::model())
            .stdin(Stdio::null());
        command
    }

    /// Runs to the end, whatever it is.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    /// Runs to a good end; standard output as text.
    ///
    /// # Panics
    /// When it ends badly, with what it said.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`correx {}`: {error}", arguments.join(" "));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Runs to a good end; standard output as JSON Lines.
    pub fn json(&self, arguments: &[&str]) -> Vec<Value> {
        lines(&self.ok(arguments))
    }

    /// The session's events.
    pub fn events(&self, session: &str) -> Vec<Value> {
        self.json(&["events", session])
    }

    /// Starts it, with standard output to read from.
    pub fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let stdout = child.stdout.take().expect("standard output is piped");
        Running { child, lines: BufReader::new(stdout) }
    }
}

/// JSON Lines as values.
pub fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// The kinds of events, in order.
pub fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["payload"]["type"].as_str()).collect()
}

/// A program that is still running; killed with this value.
pub struct Running {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Running {
    /// The next line that it prints; `None` at its end.
    pub fn next_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).expect("standard output can be read");
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// Ends it at once, as `kill -9` does.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
