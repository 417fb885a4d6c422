//! What the operating system must provide.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::Scope;
use super::python;
use crate::step::{Step, StepError};

/// Why the system lacks what is needed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SystemError {
    #[error(
        "this machine lacks:\n{lacks}\nInstalling them needs an administrator. Type:\n\n  {command}\n\nthen run this again."
    )]
    NeedsAdministrator { lacks: String, command: String },
    #[error(
        "this machine lacks:\n{lacks}\nInstall them with the system's own package manager (the names are Debian's), then run this again."
    )]
    Unknown { lacks: String },
    #[error(
        "{0}\nThe system packages could not be installed; what was installed before stays. Is the network reachable?"
    )]
    Apt(#[from] StepError),
    #[error(
        "the packages were installed, but this machine still lacks:\n{lacks}\nIs another version of it earlier in PATH?"
    )]
    StillMissing { lacks: String },
}

/// Whether setup is about to fetch something with pip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetching {
    Nothing,
    WithPip,
}

/// How the presence of a requirement shows. Function goes before package names, so that a compiler
/// or a Python from elsewhere counts too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// A program in PATH.
    Program(&'static str),
    /// A library's development files, by its pkg-config name.
    PkgConfig(&'static str),
    /// A working `python3 -m pip`.
    Pip,
    /// Something that is no program and has no development files: asked of dpkg. Other systems are
    /// not asked, their desktops have it.
    DebianPackage,
}

/// What needs the requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NeededBy {
    Running,
    Tests,
    Fetching,
}

/// One thing that the system must have, by the name of its Debian package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Requirement {
    package: &'static str,
    evidence: Evidence,
    needed_by: NeededBy,
    purpose: &'static str,
}

const fn needs(
    package: &'static str,
    evidence: Evidence,
    needed_by: NeededBy,
    purpose: &'static str,
) -> Requirement {
    Requirement { package, evidence, needed_by, purpose }
}

/// Linux has to bring the web view and the display; macOS and Windows come with theirs, and their
/// linker is there, or this program would not be.
const LINUX: &[Requirement] = &[
    needs("build-essential", Evidence::Program("c++"), NeededBy::Running, "compiles native code"),
    needs("pkg-config", Evidence::Program("pkg-config"), NeededBy::Running, "finds libraries"),
    needs(
        "libwebkit2gtk-4.1-dev",
        Evidence::PkgConfig("webkit2gtk-4.1"),
        NeededBy::Running,
        "the web view of the window",
    ),
    needs("librsvg2-2", Evidence::DebianPackage, NeededBy::Running, "draws icons"),
    needs("fonts-dejavu-core", Evidence::DebianPackage, NeededBy::Running, "letters to draw"),
    needs("xvfb", Evidence::Program("Xvfb"), NeededBy::Tests, "a display without a screen"),
    needs("xauth", Evidence::Program("xauth"), NeededBy::Tests, "lets xvfb-run start"),
    needs(
        "webkit2gtk-driver",
        Evidence::Program("WebKitWebDriver"),
        NeededBy::Tests,
        "drives the window in tests",
    ),
    needs("imagemagick", Evidence::Program("import"), NeededBy::Tests, "takes screenshots"),
    needs("python3", Evidence::Program("python3"), NeededBy::Fetching, "fetches the model"),
    needs("python3-pip", Evidence::Pip, NeededBy::Fetching, "fetches the model"),
];

const ELSEWHERE: &[Requirement] = &[needs(
    "python3-pip",
    Evidence::Pip,
    NeededBy::Fetching,
    "Python 3 with pip: fetches the model",
)];

/// What can be done about missing packages here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    /// Debian's package manager, with the right to use it.
    Apt,
    /// Debian's package manager, but only for an administrator.
    AptForAdministrator,
    /// Nothing that we know how to use.
    Unknown,
}

/// Installs what is missing, where that is possible without asking.
pub(crate) fn install(scope: Scope, fetching: Fetching) -> Result<(), SystemError> {
    let lacking = lacking(scope, fetching);
    if lacking.is_empty() {
        println!("   system packages: nothing missing");
        return Ok(());
    }
    let lacks = listing(&lacking);
    match means() {
        Means::Apt => {
            println!("   this machine lacks:\n{lacks}");
            for step in apt_steps(&lacking) {
                println!("   {}", step.command_line());
                step.run()?;
            }
        }
        Means::AptForAdministrator => {
            return Err(SystemError::NeedsAdministrator { lacks, command: sudo_command(&lacking) });
        }
        Means::Unknown => return Err(SystemError::Unknown { lacks }),
    }
    match self::lacking(scope, fetching).as_slice() {
        [] => Ok(()),
        still => Err(SystemError::StillMissing { lacks: listing(still) }),
    }
}

fn lacking(scope: Scope, fetching: Fetching) -> Vec<Requirement> {
    let table = if cfg!(target_os = "linux") { LINUX } else { ELSEWHERE };
    let wanted = wanted(table, scope, fetching);
    let installed = dpkg_installed(&wanted);
    wanted
        .into_iter()
        .filter(|requirement| match requirement.evidence {
            Evidence::Program(name) => find_program(name, std::env::var_os("PATH")).is_none(),
            Evidence::PkgConfig(name) => {
                !Step::new("look for a library", "pkg-config").args(["--exists", name]).ask().yes
            }
            Evidence::Pip => !python::has_pip(),
            Evidence::DebianPackage => installed
                .as_ref()
                .is_some_and(|names| !names.iter().any(|name| name == requirement.package)),
        })
        .collect()
}

fn wanted(table: &[Requirement], scope: Scope, fetching: Fetching) -> Vec<Requirement> {
    table
        .iter()
        .filter(|requirement| match requirement.needed_by {
            NeededBy::Running => true,
            NeededBy::Tests => scope == Scope::Everything,
            NeededBy::Fetching => fetching == Fetching::WithPip,
        })
        .copied()
        .collect()
}

/// Which of the packages dpkg has; `None` where there is no dpkg.
fn dpkg_installed(requirements: &[Requirement]) -> Option<Vec<String>> {
    find_program("dpkg-query", std::env::var_os("PATH"))?;
    let answer = Step::new("look for packages", "dpkg-query")
        .args(["--show", "--showformat=${Package} ${db:Status-Status}\\n"])
        .args(requirements.iter().map(|requirement| requirement.package))
        .ask();
    Some(parse_dpkg(&answer.text))
}

/// Lines of `package status`; only the status `installed` counts (`config-files` is a removed one).
fn parse_dpkg(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, status)| *status == "installed")
        .map(|(package, _)| package.to_owned())
        .collect()
}

fn means() -> Means {
    let path = std::env::var_os("PATH");
    if !cfg!(target_os = "linux") || find_program("apt-get", path).is_none() {
        Means::Unknown
    } else if Step::new("who am I", "id").args(["-u"]).ask().text.trim() == "0" {
        Means::Apt
    } else {
        Means::AptForAdministrator
    }
}

fn apt_steps(lacking: &[Requirement]) -> [Step; 2] {
    // Another package manager may be at work (a machine that has just started): wait for it.
    let apt = |name: &str| {
        Step::new(name, "apt-get")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["-o", "DPkg::Lock::Timeout=300"])
    };
    [
        apt("update the package lists").args(["update"]),
        apt("install system packages")
            .args(["-o", "Dpkg::Options::=--force-confold"])
            .args(["install", "-y", "--no-install-recommends"])
            .args(lacking.iter().map(|requirement| requirement.package)),
    ]
}

fn sudo_command(lacking: &[Requirement]) -> String {
    let packages: Vec<_> = lacking.iter().map(|requirement| requirement.package).collect();
    format!(
        "sudo apt-get update && sudo apt-get install -y --no-install-recommends {}",
        packages.join(" ")
    )
}

fn listing(lacking: &[Requirement]) -> String {
    lacking
        .iter()
        .map(|requirement| format!("     {} ({})", requirement.package, requirement.purpose))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The first file of that name in the folders of `path`.
pub(crate) fn find_program(name: &str, path: Option<impl AsRef<OsStr>>) -> Option<PathBuf> {
    let path = path?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name).with_extension(std::env::consts::EXE_EXTENSION))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages(requirements: &[Requirement]) -> Vec<&str> {
        requirements.iter().map(|requirement| requirement.package).collect()
    }

    #[test]
    fn a_removed_package_whose_configuration_is_left_does_not_count_as_installed() {
        let text = "xvfb installed\nimagemagick config-files\nlibrsvg2-2 installed\n";
        assert_eq!(parse_dpkg(text), ["xvfb", "librsvg2-2"]);
    }

    #[test]
    fn running_asks_for_no_test_tools_and_without_a_fetch_for_no_python() {
        let asked = wanted(LINUX, Scope::Running, Fetching::Nothing);
        assert!(packages(&asked).contains(&"libwebkit2gtk-4.1-dev"));
        for package in ["xvfb", "webkit2gtk-driver", "python3-pip"] {
            assert!(!packages(&asked).contains(&package), "{package}");
        }
    }

    #[test]
    fn everything_asks_for_the_test_tools_and_a_fetch_for_pip() {
        let asked = wanted(LINUX, Scope::Everything, Fetching::WithPip);
        assert_eq!(asked.len(), LINUX.len());
    }

    #[test]
    fn apt_never_asks_and_installs_only_what_is_missing() {
        let lacking = &LINUX[5..7];
        let [update, install] = apt_steps(lacking);
        assert!(update.command_line().ends_with("update"));
        let line = install.command_line();
        assert!(line.ends_with("install -y --no-install-recommends xvfb xauth"), "{line}");
        assert!(line.contains("--force-confold"), "{line}");
    }

    #[test]
    fn who_is_no_administrator_is_told_what_to_type() {
        assert_eq!(
            sudo_command(&LINUX[2..3]),
            "sudo apt-get update && sudo apt-get install -y --no-install-recommends libwebkit2gtk-4.1-dev"
        );
    }

    #[test]
    fn a_program_is_found_in_the_first_folder_that_has_it() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = second.path().join("xvfb-run").with_extension(std::env::consts::EXE_EXTENSION);
        std::fs::write(&file, "").unwrap();
        let path = std::env::join_paths([first.path(), second.path()]).unwrap();
        assert_eq!(find_program("xvfb-run", Some(&path)), Some(file));
        assert_eq!(find_program("no-such-program", Some(&path)), None);
        assert_eq!(find_program("xvfb-run", None::<&OsStr>), None);
    }
}
