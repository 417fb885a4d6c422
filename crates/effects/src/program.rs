//! Which file a program's name means.

use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::executable::{Unrunnable, interpreters};

/// The longest chain of links that is followed.
const MOST_LINKS: usize = 40;

/// A program that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// Where it was found, then every file that the links from there lead over; the last one is no
    /// link. The folders of all are real.
    hops: Vec<PathBuf>,
    /// What runs it, when it is a script.
    interpreters: Vec<PathBuf>,
}

impl Program {
    /// The file that is run.
    pub(crate) fn real(&self) -> &Path {
        self.hops.last().map_or(Path::new(""), PathBuf::as_path)
    }

    /// What it is told that it was called as: some programs are many, told apart by that name.
    pub(crate) fn called(&self) -> &Path {
        self.hops.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Every file that leads to it.
    pub(crate) fn hops(&self) -> &[PathBuf] {
        &self.hops
    }

    /// Every file that decides what is run.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.hops.iter().chain(&self.interpreters)
    }

    /// Whether both are one file called by one name.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.real() == other.real() && self.name() == other.name()
    }

    /// Whether one could be run by naming the other: for denials, which rather forbid too much.
    pub(crate) fn touches(&self, other: &Self) -> bool {
        self.hops.iter().any(|hop| other.hops.contains(hop))
    }

    fn name(&self) -> String {
        bare_name(&self.called().to_string_lossy())
    }
}

/// A program's name without folders, and without what the system adds to it.
pub(crate) fn bare_name(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    if cfg!(windows) {
        let lower = name.to_lowercase();
        lower.trim_end_matches(".exe").trim_end_matches(".com").to_owned()
    } else {
        name.to_owned()
    }
}

/// Why a name means no program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ProgramProblem {
    #[error("no program was named")]
    Empty,
    #[error(
        "\"{0}\" is neither a bare name nor an absolute path; write one of these, without a shell's words"
    )]
    Form(String),
    #[error(
        "no program \"{name}\" was found in {folders}; install it, or name it by its absolute path"
    )]
    NotFound { name: String, folders: String },
    #[error("there is no program {}; install it, or correct the path", .0.display())]
    Absent(PathBuf),
    #[error("{} is no file that can be run", .0.display())]
    NotExecutable(PathBuf),
    #[error(transparent)]
    Unrunnable(#[from] Unrunnable),
    #[error("{} is a script for the Windows shell, which is never used", .0.display())]
    ShellScript(PathBuf),
    #[error("{} cannot be looked at: {reason}", .path.display())]
    Unreadable { path: PathBuf, reason: String },
}

/// The folders in which bare names are looked for: always the same ones, whatever `PATH` says.
pub(crate) fn search_path() -> Vec<PathBuf> {
    if cfg!(windows) {
        let root = std::env::var_os("SystemRoot")
            .map_or_else(|| PathBuf::from(r"C:\Windows"), PathBuf::from);
        return vec![root.join("System32"), root];
    }
    let mut folders: Vec<&str> = vec!["/usr/local/bin", "/usr/bin", "/bin"];
    if cfg!(target_os = "macos") {
        folders.insert(0, "/opt/homebrew/bin");
    }
    folders.into_iter().map(PathBuf::from).collect()
}

/// The program that `name` means.
pub(crate) fn find(name: &str, search: &[PathBuf]) -> Result<Program, ProgramProblem> {
    if name.trim().is_empty() {
        return Err(ProgramProblem::Empty);
    }
    let form = || ProgramProblem::Form(name.escape_debug().to_string());
    if name.chars().any(char::is_control) || matches!(name, "." | "..") {
        return Err(form());
    }
    if !name.contains(['/', '\\']) {
        if cfg!(windows) && name.contains(':') {
            return Err(form());
        }
        let places = search.iter().flat_map(|folder| endings(&folder.join(name)));
        for place in places {
            if is_runnable(&place) {
                return follow(place);
            }
        }
        let folders: Vec<String> =
            search.iter().map(|folder| folder.display().to_string()).collect();
        return Err(ProgramProblem::NotFound {
            name: name.to_owned(),
            folders: folders.join(", "),
        });
    }
    let path = Path::new(name);
    if !path.is_absolute() {
        return Err(form());
    }
    for place in endings(path) {
        if is_runnable(&place) {
            return follow(place);
        }
    }
    match path.metadata() {
        Ok(_) => Err(ProgramProblem::NotExecutable(path.to_owned())),
        Err(_) => Err(ProgramProblem::Absent(path.to_owned())),
    }
}

/// The files that may be meant: Windows leaves the ending of programs out.
fn endings(path: &Path) -> Vec<PathBuf> {
    if cfg!(windows) && path.extension().is_none() {
        return ["exe", "com"].iter().map(|ending| path.with_extension(ending)).collect();
    }
    vec![path.to_owned()]
}

fn is_runnable(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return false };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    metadata.is_file() && may_run
}

fn follow(start: PathBuf) -> Result<Program, ProgramProblem> {
    let unreadable =
        |path: &Path, reason: String| ProgramProblem::Unreadable { path: path.to_owned(), reason };
    let mut hops = Vec::new();
    let mut next = start;
    loop {
        let (Some(folder), Some(name)) = (next.parent(), next.file_name()) else {
            return Err(ProgramProblem::NotExecutable(next));
        };
        let folder =
            fs::canonicalize(folder).map_err(|error| unreadable(folder, error.to_string()))?;
        let here = folder.join(name);
        let target = match here.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                Some(here.read_link().map_err(|error| unreadable(&here, error.to_string()))?)
            }
            Ok(_) => None,
            Err(error) => return Err(unreadable(&here, error.to_string())),
        };
        let Some(target) = target else {
            // The name as the file system has it.
            let real =
                fs::canonicalize(&here).map_err(|error| unreadable(&here, error.to_string()))?;
            if hops.is_empty() && real.file_name() != here.file_name() {
                hops.push(here);
            }
            let lower = real.to_string_lossy().to_lowercase();
            if lower.ends_with(".bat") || lower.ends_with(".cmd") {
                return Err(ProgramProblem::ShellScript(real));
            }
            let interpreters = interpreters(&real)?;
            hops.push(real);
            return Ok(Program { hops, interpreters });
        };
        if hops.len() == MOST_LINKS {
            return Err(unreadable(&here, "too many links".to_owned()));
        }
        next = folder.join(target);
        hops.push(here);
    }
}
