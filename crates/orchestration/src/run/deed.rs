//! What a `command`, `write` or `read` stage wants to do, and what policy says of it.

use std::path::{Path, PathBuf};

use correx_effects::{
    Approval, Before, CommandRequest, Decided, Decision, Launch, ReadTarget, Verdict, WriteTarget,
};
use correx_events::BlobHash;

use super::policy::Rules;
use crate::{CommandStep, Existing, ReadStep, Source, Step, Template, TemplateValues, WriteStep};

/// What may be done now.
#[derive(Debug)]
pub(super) enum Deed {
    Command { launch: Launch, stdin: String },
    Write { target: WriteTarget, content: String },
    Read { targets: Vec<ReadTarget> },
}

/// What a person is asked about; an approval is for exactly this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proposal {
    /// In the words of policy.
    pub(super) action: String,
    /// What is written into the file or read by the program.
    pub(super) content: Option<BlobHash>,
    /// What the file holds that would be replaced.
    pub(super) before: Option<BlobHash>,
}

/// What policy says.
pub(super) struct Considered {
    pub(super) proposal: Proposal,
    /// One for each thing that is wanted.
    pub(super) decisions: Vec<Decision>,
    /// There exactly when nothing stands against it.
    pub(super) deed: Option<Deed>,
    /// The text of `proposal.content`.
    pub(super) content: Option<String>,
    /// The file that would be replaced.
    pub(super) replaces: Option<PathBuf>,
}

impl Considered {
    /// The decision that forbids it.
    pub(super) fn denial(&self) -> Option<&Decision> {
        self.decisions.iter().find(|decision| decision.verdict == Verdict::Denied)
    }

    /// The decision that wants a person's yes.
    pub(super) fn question(&self) -> Option<&Decision> {
        self.decisions.iter().find(|decision| decision.verdict == Verdict::NeedsApproval)
    }
}

/// Asks policy about what `step` wants with `values`. `approved` is what a person said yes to. Blocks
/// on the file system. Errors say why there is nothing to ask about.
pub(super) fn consider(
    step: &Step,
    values: &TemplateValues,
    rules: &Rules,
    approved: Option<&Proposal>,
) -> Result<Considered, String> {
    match step {
        Step::Command(step) => command(step, values, rules, approved),
        Step::Write(step) => write(step, values, rules, approved),
        Step::Read(step) => read(step, values, rules, approved),
        Step::Generate(_) | Step::Map(_) | Step::Reduce(_) | Step::Choose(_) | Step::Approve(_) => {
            Err("it does nothing outside of Correx".to_owned())
        }
    }
}

fn command(
    step: &CommandStep,
    values: &TemplateValues,
    rules: &Rules,
    approved: Option<&Proposal>,
) -> Result<Considered, String> {
    let args = step.args.iter().map(|arg| text_of(arg, values)).collect::<Result<_, _>>()?;
    let cwd = step.cwd.as_ref().map(|cwd| text_of(cwd, values)).transpose()?;
    let env = step
        .env
        .iter()
        .map(|(name, value)| Ok((name.clone(), text_of(value, values)?)))
        .collect::<Result<_, String>>()?;
    let stdin = step.stdin.as_ref().map(|source| source_of(source, values)).transpose()?;
    let request =
        CommandRequest { program: step.program.clone(), args, cwd: cwd.map(Into::into), env };
    let decided = rules.policy.decide_command(&request, &rules.folders);
    let proposal = Proposal {
        action: decided.decision.action.clone(),
        content: stdin.as_ref().map(|text| BlobHash::of(text.as_bytes())),
        before: None,
    };
    let content = stdin.clone();
    let deed = |launches: Vec<Launch>| {
        let launch = launches.into_iter().next()?;
        Some(Deed::Command { launch, stdin: stdin.unwrap_or_default() })
    };
    Ok(considered(vec![decided], proposal, content, None, approved, deed))
}

fn write(
    step: &WriteStep,
    values: &TemplateValues,
    rules: &Rules,
    approved: Option<&Proposal>,
) -> Result<Considered, String> {
    let content = source_of(&step.from, values)?;
    let path = text_of(&step.path, values)?;
    let path = path.trim();
    if path.is_empty() {
        return Err("the path to write to is empty".to_owned());
    }
    let decided = rules.policy.decide_write(Path::new(path), &rules.folders);
    let before = decided.proposed().and_then(|target| match target.before() {
        Before::File { sha256, .. } => Some(BlobHash::from(sha256.as_str())),
        Before::Absent => None,
    });
    if step.existing == Existing::Fail
        && let (Some(target), Some(_)) = (decided.proposed(), &before)
    {
        return Err(format!(
            "{} is there already, and the workflow says existing = \"fail\". The file was left as it is; \
             move it away, or choose another name",
            target.path().display()
        ));
    }
    let replaced = decided.proposed().filter(|_| before.is_some());
    let replaces = replaced.map(|target| target.path().to_owned());
    let hash = BlobHash::of(content.as_bytes());
    let action = decided.decision.action.clone();
    let proposal = Proposal { action, content: Some(hash), before };
    let text = content.clone();
    let deed = |targets: Vec<WriteTarget>| {
        let target = targets.into_iter().next()?;
        Some(Deed::Write { target, content })
    };
    Ok(considered(vec![decided], proposal, Some(text), replaces, approved, deed))
}

fn read(
    step: &ReadStep,
    values: &TemplateValues,
    rules: &Rules,
    approved: Option<&Proposal>,
) -> Result<Considered, String> {
    let mut decided = Vec::new();
    for path in &step.paths {
        let path = text_of(path, values)?;
        // A path that a condition or a choice leaves empty is none.
        if !path.trim().is_empty() {
            decided.push(rules.policy.decide_read(Path::new(path.trim()), &rules.folders));
        }
    }
    if decided.is_empty() {
        return Err("all of its paths are empty: there is nothing to read".to_owned());
    }
    let actions: Vec<&str> = decided.iter().map(|one| one.decision.action.as_str()).collect();
    let proposal = Proposal { action: actions.join(", "), content: None, before: None };
    let deed = |targets| Some(Deed::Read { targets });
    Ok(considered(decided, proposal, None, None, approved, deed))
}

fn considered<T>(
    decided: Vec<Decided<T>>,
    proposal: Proposal,
    content: Option<String>,
    replaces: Option<PathBuf>,
    approved: Option<&Proposal>,
    deed: impl FnOnce(Vec<T>) -> Option<Deed>,
) -> Considered {
    let approval = match approved == Some(&proposal) {
        true => Approval::Given,
        false => Approval::None,
    };
    let decisions = decided.iter().map(|one| one.decision.clone()).collect();
    let granted: Option<Vec<T>> =
        decided.into_iter().map(|one| one.permitted(approval).ok()).collect();
    Considered { proposal, decisions, deed: granted.and_then(deed), content, replaces }
}

fn text_of(template: &Template, values: &TemplateValues) -> Result<String, String> {
    let segments = template.render(values).map_err(|error| error.to_string())?;
    Ok(segments.into_iter().map(|segment| segment.text).collect())
}

fn source_of(source: &Source, values: &TemplateValues) -> Result<String, String> {
    let text = match source {
        Source::Input(name) => values.inputs.get(name),
        Source::Artifact(name) => values.artifacts.get(name),
    };
    text.cloned().ok_or_else(|| format!("there is no {source}"))
}
