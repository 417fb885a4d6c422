//! Decisions about writing and reading.

use std::path::{Path, PathBuf};

use super::decision::{Decided, Decision, SessionFolders, Verdict};
use super::{FolderRule, Lists, OverExisting, POLICY_FILE, Policy};
use crate::paths::{RealPath, check_form, is_within, is_within_any_case, resolve};
use crate::write::{Before, Existing, WriteTarget};
use crate::{Kind, PathProblem, ReadTarget};

/// A folder in which something is allowed, and the rule that says so.
struct Ground {
    folder: PathBuf,
    rule: String,
}

impl Policy {
    /// Whether a workflow may write the file `path`; a relative path starts at the session's output
    /// folder. What is there now decides about approval, and is kept in the grant.
    pub fn decide_write(&self, path: &Path, folders: &SessionFolders) -> Decided<WriteTarget> {
        let action = format!("write {}", folders.output.join(path).display());
        let real = match asked(path, folders) {
            Ok(real) => real,
            Err(problem) => return Decided::denied(path_rule(), action, problem.to_string()),
        };
        let action = format!("write {}", real.path.display());
        if let Some(denied) = self.denied_folder(&real.path, &action) {
            return denied;
        }
        let mut grounds = vec![self.output_ground(folders)];
        grounds.extend(self.write.iter().map(|folder| folder.ground("[write]")));
        if let Some(own) = self.own_folder(&real.path, folders) {
            return Decided::denied(own_rule(), action, own);
        }
        let Some(ground) = outermost(grounds, &real.path) else {
            let reason = format!(
                "it lies outside the session's output folder and every folder that may be written to; \
                 {}",
                self.unless_added("add its folder to \"folders\" under [write]")
            );
            return Decided::denied(self.general_rule(), action, reason);
        };
        if let Some(denied) = self.denied_name(&real.path, &ground.folder, &action) {
            return denied;
        }
        let before = match real.kind {
            Kind::Absent => Before::Absent,
            Kind::File => match Before::of(&real.path) {
                Ok(before) => before,
                Err(error) => {
                    let reason = format!("what is there already cannot be read: {error}");
                    return Decided::denied(path_rule(), action, reason);
                }
            },
            Kind::Folder => {
                return Decided::denied(path_rule(), action, "a folder of this name is there");
            }
            Kind::Special => {
                let reason = "a device, a pipe or a socket is there, and no file";
                return Decided::denied(path_rule(), action, reason);
            }
        };
        let below = below(&real.path, &ground.folder);
        let target = |existing| WriteTarget {
            root: ground.folder.clone(),
            below,
            path: real.path.clone(),
            existing,
            before: before.clone(),
        };
        if before != Before::Absent {
            return self.over_existing(action, &ground, target(Existing::Replace));
        }
        let (verdict, rule, reason) = match self.asks_for(&real.path, &ground.folder) {
            Some(rule) => (Verdict::NeedsApproval, rule, "it is only done after you said yes"),
            None => (Verdict::Allowed, ground.rule.clone(), "it is a new file in this folder"),
        };
        let decision = Decision { verdict, rule, action, reason: reason.to_owned() };
        Decided::granted(decision, target(Existing::Refuse))
    }

    fn over_existing(
        &self,
        action: String,
        ground: &Ground,
        target: WriteTarget,
    ) -> Decided<WriteTarget> {
        let action = format!("{action} over the file that is there");
        if self.problem().is_some() {
            let reason = self.unless_added("");
            return Decided::denied(self.general_rule(), action, reason);
        }
        if self.existing == OverExisting::Deny {
            let rule = format!("{POLICY_FILE}: [write] existing = \"deny\"");
            let reason = "files that are there are never replaced; write to another name";
            return Decided::denied(rule, action, reason);
        }
        let rule = self
            .asks_for(&target.path, &ground.folder)
            .unwrap_or_else(|| format!("{}; over existing files with approval", ground.rule));
        let reason = "the file that is there would be replaced".to_owned();
        let decision = Decision { verdict: Verdict::NeedsApproval, rule, action, reason };
        Decided::granted(decision, target)
    }

    /// Whether a workflow may read the file or folder `path`; a relative path starts at the
    /// session's output folder.
    pub fn decide_read(&self, path: &Path, folders: &SessionFolders) -> Decided<ReadTarget> {
        let action = format!("read {}", folders.output.join(path).display());
        let real = match asked(path, folders) {
            Ok(real) => real,
            Err(problem) => return Decided::denied(path_rule(), action, problem.to_string()),
        };
        let action = format!("read {}", real.path.display());
        if let Some(denied) = self.denied_folder(&real.path, &action) {
            return denied;
        }
        let mut grounds = vec![self.output_ground(folders)];
        let mut is_given = false;
        for given in &folders.given {
            let Ok(given) = resolve(given) else { continue };
            if is_within(&real.path, &given.path) {
                is_given = true;
                let rule = "what the person gave as input".to_owned();
                grounds.push(Ground { folder: given.path, rule });
            }
        }
        grounds.extend(self.read.iter().map(|folder| folder.ground("[read]")));
        if !is_given && let Some(own) = self.own_folder(&real.path, folders) {
            return Decided::denied(own_rule(), action, own);
        }
        let Some(ground) = outermost(grounds, &real.path) else {
            let reason = format!(
                "the person did not give it as input, and it lies outside every folder that may be read; \
                 {}",
                self.unless_added("add its folder to \"folders\" under [read]")
            );
            return Decided::denied(self.general_rule(), action, reason);
        };
        if let Some(denied) = self.denied_name(&real.path, &ground.folder, &action) {
            return denied;
        }
        match real.kind {
            Kind::File | Kind::Folder => {}
            Kind::Absent => {
                return Decided::denied(path_rule(), action, "there is no such file or folder");
            }
            Kind::Special => {
                let reason = "it is a device, a pipe or a socket, and no file";
                return Decided::denied(path_rule(), action, reason);
            }
        }
        let (verdict, rule, reason) = match self.asks_for(&real.path, &ground.folder) {
            Some(rule) => (Verdict::NeedsApproval, rule, "it is only done after you said yes"),
            None => (Verdict::Allowed, ground.rule.clone(), "it may be read"),
        };
        let target = ReadTarget::new(&real);
        let decision = Decision { verdict, rule, action, reason: reason.to_owned() };
        Decided::granted(decision, target)
    }

    /// The denial of `[deny] folders` for a real path, if there is one.
    pub(super) fn denied_folder<T>(&self, real: &Path, action: &str) -> Option<Decided<T>> {
        let folder = self.deny.folders.iter().find(|folder| folder.holds(real))?;
        let reason = "nothing in this folder is touched, also not after an approval";
        Some(Decided::denied(folder.rule("[deny]"), action.to_owned(), reason))
    }

    fn denied_name<T>(&self, real: &Path, ground: &Path, action: &str) -> Option<Decided<T>> {
        let rule = self.deny.file(real, ground)?;
        let reason = "no file or folder of such a name is touched, also not after an approval";
        let rule = format!("{POLICY_FILE}: [deny] files {rule}");
        Some(Decided::denied(rule, action.to_owned(), reason))
    }

    /// The rule of `[approval]` for a real path, if there is one.
    fn asks_for(&self, real: &Path, ground: &Path) -> Option<String> {
        if let Some(folder) = self.approval.folders.iter().find(|folder| folder.holds(real)) {
            return Some(folder.rule("[approval]"));
        }
        let rule = self.approval.file(real, ground)?;
        Some(format!("{POLICY_FILE}: [approval] files {rule}"))
    }

    /// Why `real` belongs to Correx itself, if it does.
    pub(super) fn own_folder(&self, real: &Path, folders: &SessionFolders) -> Option<String> {
        let output = real_folder(&folders.output);
        self.protected.iter().find_map(|own| {
            let own = real_folder(own);
            let in_output = is_within(&output, &own) && output != own && is_within(real, &output);
            (is_within_any_case(real, &own) && !in_output).then(|| {
                format!(
                    "{} holds Correx's own files; use the session's output folder or another one",
                    own.display()
                )
            })
        })
    }

    fn output_ground(&self, folders: &SessionFolders) -> Ground {
        let rule = match self.problem() {
            None => "the default policy: the session's output folder",
            Some(_) => "the session's output folder",
        };
        Ground { folder: real_folder(&folders.output), rule: rule.to_owned() }
    }

    /// Whether `[write]` or the session's output folder lets a workflow write to `real`: what could be
    /// replaced by a workflow is not run.
    pub(super) fn writable(&self, real: &Path, folders: &SessionFolders) -> Option<PathBuf> {
        let own = real_folder(&folders.output);
        let others = self.write.iter().map(|folder| real_folder(&folder.path));
        std::iter::once(own).chain(others).find(|folder| is_within(real, folder))
    }
}

/// The real path of what was asked for.
pub(super) fn asked(path: &Path, folders: &SessionFolders) -> Result<RealPath, PathProblem> {
    check_form(path)?;
    resolve(&folders.output.join(path))
}

/// A folder of ours or the person's as it really is; as it is written where that cannot be found out.
pub(super) fn real_folder(path: &Path) -> PathBuf {
    resolve(path).map_or_else(|_| path.to_owned(), |real| real.path)
}

/// The allowed folder around `path`: the session's own, which comes first, or the one that holds the
/// most of the path, so that every name below is looked at.
fn outermost(grounds: Vec<Ground>, path: &Path) -> Option<Ground> {
    let is_own = grounds.first().is_some_and(|own| is_within(path, &own.folder));
    let mut holding = grounds.into_iter().filter(|ground| is_within(path, &ground.folder));
    match is_own {
        true => holding.next(),
        false => holding.min_by_key(|ground| ground.folder.components().count()),
    }
}

fn below(path: &Path, folder: &Path) -> PathBuf {
    path.strip_prefix(folder).map(Path::to_owned).unwrap_or_default()
}

fn path_rule() -> String {
    "what holds for every path".to_owned()
}

fn own_rule() -> String {
    "Correx's own files are never touched by a workflow".to_owned()
}

impl FolderRule {
    fn ground(&self, table: &str) -> Ground {
        Ground { folder: real_folder(&self.path), rule: self.rule(table) }
    }

    /// For rules that hold back: without regard to case, by the real and by the written path.
    fn holds(&self, real: &Path) -> bool {
        is_within_any_case(real, &real_folder(&self.path)) || is_within_any_case(real, &self.path)
    }
}

impl Lists {
    /// The pattern of `files` that a name below `ground` has.
    fn file(&self, real: &Path, ground: &Path) -> Option<String> {
        let below = real.strip_prefix(ground).unwrap_or(real);
        let below = if below.as_os_str().is_empty() { Path::new(real.file_name()?) } else { below };
        let names: Vec<String> =
            below.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        let matching =
            self.files.iter().find(|rule| names.iter().any(|name| rule.pattern.matches(name)))?;
        Some(matching.pattern.to_string())
    }
}
