//! What a policy answers.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a policy says to an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may be done.
    Allowed,
    /// It may be done when a person said yes to this very action.
    NeedsApproval,
    /// It may not be done, whoever says yes.
    Denied,
}

/// A verdict and where it comes from, in words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// The rule that made it, such as `policy.toml: [[command]] 2 (pandoc)` or `the default policy`.
    pub rule: String,
    /// What was wanted, such as `write /srv/out/report.md`.
    pub action: String,
    /// Why, and for a denial what can be done.
    pub reason: String,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Allowed => "allowed",
            Verdict::NeedsApproval => "needs your approval",
            Verdict::Denied => "denied",
        };
        write!(f, "{}: {verdict} by {}: {}", self.action, self.rule, self.reason)
    }
}

/// Whether a person said yes to this very action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// Nobody was asked, or nobody answered.
    None,
    /// A person said yes.
    Given,
}

/// A decision, and what may be done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided<T> {
    /// The decision.
    pub decision: Decision,
    /// There exactly when the verdict is not [`Verdict::Denied`].
    grant: Option<T>,
}

impl<T> Decided<T> {
    pub(super) fn granted(decision: Decision, grant: T) -> Self {
        let grant = (decision.verdict != Verdict::Denied).then_some(grant);
        Self { decision, grant }
    }

    pub(super) fn denied(rule: String, action: String, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        let decision = Decision { verdict: Verdict::Denied, rule, action, reason };
        Self { decision, grant: None }
    }

    /// What it is about, for showing it to whoever is asked; `None` when it is denied.
    pub fn proposed(&self) -> Option<&T> {
        self.grant.as_ref()
    }

    /// The grant, or the decision that stands against it. A denial stays one whatever was approved.
    pub fn permitted(self, approval: Approval) -> Result<T, Decision> {
        match (self.decision.verdict, approval, self.grant) {
            (Verdict::Allowed, _, Some(grant))
            | (Verdict::NeedsApproval, Approval::Given, Some(grant)) => Ok(grant),
            _ => Err(self.decision),
        }
    }
}

/// A command that a workflow wants to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandRequest {
    /// A bare name, which is looked for in the fixed search path, or an absolute path.
    pub program: String,
    /// The arguments, without the program.
    pub args: Vec<String>,
    /// The working folder; relative to the session's output folder. `None`: that folder itself.
    pub cwd: Option<PathBuf>,
    /// Variables that the workflow sets.
    pub env: Vec<(String, String)>,
}

/// The folders that belong to one session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFolders {
    /// Where it writes by default; absolute. It need not exist yet.
    pub output: PathBuf,
    /// Files and folders that the person gave as input.
    pub given: Vec<PathBuf>,
}

impl SessionFolders {
    /// The folders of a session without inputs.
    pub fn new(output: impl Into<PathBuf>) -> Self {
        Self { output: output.into(), given: Vec::new() }
    }
}

/// A command that a policy let through: exactly what is run, and with what around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) called: OsString,
    pub(crate) args: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(String, OsString)>,
}

impl Launch {
    /// The program's real path.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Its arguments.
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// The folder it works in; made when it is missing.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Every variable that it gets.
    pub fn env(&self) -> impl Iterator<Item = (&str, &OsString)> {
        self.env.iter().map(|(name, value)| (name.as_str(), value))
    }
}
