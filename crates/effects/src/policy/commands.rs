//! Decisions about running programs.

use std::ffi::OsString;
use std::path::PathBuf;

use super::decision::{CommandRequest, Decided, Decision, Launch, SessionFolders, Verdict};
use super::files::{asked, real_folder};
use super::{CommandRule, POLICY_FILE, Policy, ProgramRule};
use crate::Kind;
use crate::paths::is_within;
use crate::program::{Program, bare_name, find, search_path};

/// Variables of Correx's own that every program gets, where they are set.
const BASE: &[&str] = if cfg!(windows) {
    &["SystemRoot", "SystemDrive", "USERPROFILE", "TEMP", "TMP", "LANG", "TZ"]
} else {
    &["HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"]
};

impl Policy {
    /// Whether a workflow may run a program with these arguments, in this folder, with these
    /// variables.
    ///
    /// What is compared and run is the file that the name really means: a bare name is looked for in
    /// fixed folders, and links are followed.
    pub fn decide_command(
        &self,
        request: &CommandRequest,
        folders: &SessionFolders,
    ) -> Decided<Launch> {
        let action = action(request, folders);
        let search = search_path();
        let program = match find(&request.program, &search) {
            Ok(program) => program,
            Err(problem) => {
                // Whether it would have been allowed is worth knowing all the same.
                let rule = self
                    .commands
                    .iter()
                    .find(|rule| rule.program.wanted == request.program)
                    .map_or_else(|| self.general_rule(), CommandRule::rule);
                return Decided::denied(rule, action, problem.to_string());
            }
        };
        if let Some(denied) = held_back(&self.deny.programs, &program, &search) {
            let rule = format!("{POLICY_FILE}: [deny] programs {denied:?}");
            let reason = "this program is never run, also not after an approval";
            return Decided::denied(rule, action, reason);
        }
        if request.args.iter().any(|argument| argument.contains('\0')) {
            return Decided::denied(
                "what holds for every command".to_owned(),
                action,
                "an argument has a zero character in it, which ends texts for programs",
            );
        }
        let named: Vec<&CommandRule> = self
            .commands
            .iter()
            .filter(|rule| {
                find(&rule.program.wanted, &search).is_ok_and(|allowed| allowed.is(&program))
            })
            .collect();
        if named.is_empty() {
            let reason = format!(
                "no command is allowed that runs {}; {}",
                program.real().display(),
                self.unless_added("add a [[command]] for it")
            );
            return Decided::denied(self.general_rule(), action, reason);
        }
        let matching: Vec<&CommandRule> = named
            .iter()
            .copied()
            .filter(|rule| rule.arguments.iter().any(|pattern| pattern.matches(&request.args)))
            .collect();
        // Of several, the strictest: a general entry does not undo a careful one.
        let Some(rule) = matching
            .iter()
            .copied()
            .find(|rule| rule.approval)
            .or_else(|| matching.first().copied())
        else {
            let allowed: Vec<String> = named
                .iter()
                .flat_map(|rule| rule.arguments.iter().map(ToString::to_string))
                .collect();
            let reason = format!(
                "its arguments are none of the allowed ones: {}; {}",
                allowed.join(" or "),
                self.unless_added("add them to \"arguments\"")
            );
            return Decided::denied(named[0].rule(), action, reason);
        };
        let cwd = match self.working_folder(request, rule, folders) {
            Ok(cwd) => cwd,
            Err((rule, reason)) => return Decided::denied(rule, action, reason),
        };
        if let Some(folder) = program.files().find_map(|file| self.writable(file, folders)) {
            let reason = format!(
                "workflows may write to {}, where the program lies, so they could replace it; keep it in \
                 another folder",
                folder.display()
            );
            return Decided::denied(rule.rule(), action, reason);
        }
        let env = match environment(request, rule, &search) {
            Ok(env) => env,
            Err(reason) => return Decided::denied(rule.rule(), action, reason),
        };
        let asks = held_back(&self.approval.programs, &program, &search);
        let (verdict, by, reason) = match (asks, rule.approval) {
            (Some(asks), _) => (
                Verdict::NeedsApproval,
                format!("{POLICY_FILE}: [approval] programs {asks:?}"),
                "it is only run after you said yes",
            ),
            (None, true) => (
                Verdict::NeedsApproval,
                format!("{}: approval = true", rule.rule()),
                "it is only run after you said yes",
            ),
            (None, false) => {
                (Verdict::Allowed, rule.rule(), "the program and its arguments are allowed")
            }
        };
        let launch = Launch {
            program: program.real().to_owned(),
            called: program.called().as_os_str().to_owned(),
            args: request.args.clone(),
            cwd,
            env,
        };
        let decision = Decision { verdict, rule: by, action, reason: reason.to_owned() };
        Decided::granted(decision, launch)
    }

    /// Where the command runs, or the rule and the reason why not there.
    fn working_folder(
        &self,
        request: &CommandRequest,
        rule: &CommandRule,
        folders: &SessionFolders,
    ) -> Result<PathBuf, (String, String)> {
        let wanted = request.cwd.clone().unwrap_or_default();
        let real = if wanted.as_os_str().is_empty() {
            crate::paths::resolve(&folders.output)
        } else {
            asked(&wanted, folders)
        };
        let real =
            real.map_err(|problem| (rule.rule(), format!("its working folder: {problem}")))?;
        if let Some(denied) = self.denied_folder::<()>(&real.path, "") {
            return Err((denied.decision.rule, "its working folder is denied".to_owned()));
        }
        let output = real_folder(&folders.output);
        let in_output = is_within(&real.path, &output);
        let allowed = in_output
            || rule.folders.iter().any(|folder| is_within(&real.path, &real_folder(&folder.path)));
        if !allowed {
            let reason = format!(
                "it may not work in {}; {}",
                real.path.display(),
                self.unless_added("add the folder to the command's \"folders\"")
            );
            return Err((rule.rule(), reason));
        }
        if !in_output && let Some(own) = self.own_folder(&real.path, folders) {
            return Err((rule.rule(), own));
        }
        match real.kind {
            Kind::Folder => Ok(real.path),
            Kind::Absent if in_output => Ok(real.path),
            _ => {
                let reason = format!("its working folder {} is no folder", real.path.display());
                Err((rule.rule(), reason))
            }
        }
    }
}

/// The entry of a list that holds a program back, as it is written: by its file, or, where it is a
/// bare name, by any name that leads to the file.
fn held_back(list: &[ProgramRule], program: &Program, search: &[PathBuf]) -> Option<String> {
    let hit = list.iter().find(|held| {
        let by_file = find(&held.wanted, search).is_ok_and(|found| found.touches(program));
        let name = bare_name(&held.wanted).to_lowercase();
        let by_name = !held.wanted.contains(['/', '\\'])
            && program
                .hops()
                .iter()
                .any(|hop| bare_name(&hop.to_string_lossy()).to_lowercase() == name);
        by_file || by_name
    })?;
    Some(hit.written.clone())
}

fn environment(
    request: &CommandRequest,
    rule: &CommandRule,
    search: &[PathBuf],
) -> Result<Vec<(String, OsString)>, String> {
    let same = |one: &str, other: &str| {
        if cfg!(windows) { one.eq_ignore_ascii_case(other) } else { one == other }
    };
    for (name, value) in &request.env {
        let allowed = rule.environment.iter().find(|variable| same(&variable.name, name));
        match allowed {
            None => {
                return Err(format!(
                    "the workflow may not set the variable {name:?}; to allow it, add it to the command's \
                     \"environment\" in {POLICY_FILE}"
                ));
            }
            Some(variable) if variable.value.as_ref().is_some_and(|fixed| fixed != value) => {
                return Err(format!(
                    "the variable {name:?} has a fixed value in {POLICY_FILE}, and the workflow sets \
                     another one"
                ));
            }
            Some(_) if value.contains('\0') => {
                return Err(format!("the value of {name:?} has a zero character in it"));
            }
            Some(_) => {}
        }
    }
    let mut env: Vec<(String, OsString)> = Vec::new();
    if let Ok(path) = std::env::join_paths(search) {
        env.push(("PATH".to_owned(), path));
    }
    for name in BASE {
        if let Some(value) = std::env::var_os(name) {
            env.push(((*name).to_owned(), value));
        }
    }
    for variable in &rule.environment {
        let given = request.env.iter().find(|(name, _)| same(name, &variable.name));
        let value = match (&variable.value, given) {
            (Some(fixed), _) => Some(fixed.into()),
            (None, Some((_, value))) => Some(value.into()),
            (None, None) => std::env::var_os(&variable.name),
        };
        if let Some(value) = value {
            env.retain(|(name, _)| !same(name, &variable.name));
            env.push((variable.name.clone(), value));
        }
    }
    Ok(env)
}

/// `run pandoc --to html "my notes.md" in /out`
fn action(request: &CommandRequest, folders: &SessionFolders) -> String {
    let word = |text: &String| {
        let plain = !text.is_empty()
            && text.chars().all(|c| c.is_alphanumeric() || "-_./=:,+@%".contains(c));
        if plain { text.clone() } else { format!("{text:?}") }
    };
    let mut words = vec![word(&request.program)];
    words.extend(request.args.iter().map(word));
    let cwd = match &request.cwd {
        Some(cwd) => folders.output.join(cwd),
        None => folders.output.clone(),
    };
    format!("run {} in {}", words.join(" "), cwd.display())
}
