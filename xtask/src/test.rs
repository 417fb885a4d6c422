//! `cargo xtask test`: formatting, lints and every test, the desktop window among them.

use std::time::Instant;

use crate::ChoreError;
use crate::programs::{self, Profile, Program};
use crate::setup::{self, Scope};
use crate::step::{self, Step};
use crate::ui;
use crate::workspace::{Workspace, cargo};

/// Which tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// All but those in modules named `long`.
    Usual,
    /// Those too.
    Long,
}

/// What runs Rust's tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runner {
    Nextest,
    /// Where nextest is not installed: the same tests, without its time limits.
    Cargo,
}

/// Where the window of the desktop test opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Screen {
    /// On a display without a screen.
    Virtual,
    /// On the one that is there.
    Real,
}

/// Whether an automatic check runs this, or a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    Person,
    Ci,
}

/// Runs everything; the first failure ends it.
pub(crate) fn test(workspace: &Workspace, length: Length) -> Result<(), ChoreError> {
    let started = Instant::now();
    let ready = setup::setup(workspace, Scope::Everything)?;
    let npm = |name: &str, script: &str| {
        ready.node.npm(&format!("front end: {name}"), workspace).args(["run", script])
    };
    step::run_all(&[
        Step::new("formatting", cargo()).args(["fmt", "--all", "--check"]).dir(workspace.root()),
        npm("lint", "lint"),
        npm("types", "check"),
        npm("tests", "test"),
    ])?;
    ui::build(workspace, &ready.node)?;

    let nextest = Step::new("look for nextest", cargo()).args(["nextest", "--version"]).ask().yes;
    let runner = if nextest { Runner::Nextest } else { Runner::Cargo };
    if runner == Runner::Cargo {
        println!("\ncargo-nextest is not installed: using `cargo test`, which has no time limits");
    }
    let screen = if cfg!(target_os = "linux") { Screen::Virtual } else { Screen::Real };
    let audience = if std::env::var_os("CI").is_some() { Audience::Ci } else { Audience::Person };
    step::run_all(&[
        Step::new("lints", cargo())
            .args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
            .dir(workspace.root()),
        programs::step(workspace, Profile::Dev, &[Program::Cli, Program::Desktop]),
        rust_tests(workspace, runner, length, screen, audience),
    ])?;
    println!("\nEverything passed in {}.", step::duration(started.elapsed()));
    Ok(())
}

fn rust_tests(
    workspace: &Workspace,
    runner: Runner,
    length: Length,
    screen: Screen,
    audience: Audience,
) -> Step {
    let step = Step::new("tests", cargo()).dir(workspace.root());
    let step = match runner {
        Runner::Nextest => {
            let profile = match (length, audience) {
                (Length::Long, _) => "long",
                (Length::Usual, Audience::Ci) => "ci",
                (Length::Usual, Audience::Person) => "default",
            };
            step.args(["nextest", "run", "--workspace", "--profile", profile])
        }
        Runner::Cargo => {
            let step = step.args(["test", "--workspace", "--no-fail-fast"]);
            match length {
                Length::Long => step,
                Length::Usual => step.args(["--", "--skip", "long::"]),
            }
        }
    };
    match screen {
        Screen::Virtual => step.under("xvfb-run", ["-a", "-s", "-screen 0 1280x900x24"]),
        Screen::Real => step,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(runner: Runner, length: Length, screen: Screen, audience: Audience) -> String {
        let workspace = Workspace::at(std::path::Path::new("."));
        rust_tests(&workspace, runner, length, screen, audience).command_line()
    }

    #[test]
    fn on_linux_the_tests_get_a_display_of_their_own() {
        let line = line(Runner::Nextest, Length::Usual, Screen::Virtual, Audience::Person);
        assert!(line.starts_with("xvfb-run -a -s '-screen 0 1280x900x24' "), "{line}");
        assert!(line.ends_with("nextest run --workspace --profile default"), "{line}");
    }

    #[test]
    fn the_check_uses_its_own_profile_and_long_runs_use_theirs() {
        let ci = line(Runner::Nextest, Length::Usual, Screen::Real, Audience::Ci);
        assert!(ci.ends_with("--profile ci"), "{ci}");
        let long = line(Runner::Nextest, Length::Long, Screen::Real, Audience::Ci);
        assert!(long.ends_with("--profile long"), "{long}");
    }

    #[test]
    fn without_nextest_cargo_test_runs_the_same_tests() {
        let usual = line(Runner::Cargo, Length::Usual, Screen::Real, Audience::Person);
        assert!(usual.ends_with("test --workspace --no-fail-fast -- --skip long::"), "{usual}");
        let long = line(Runner::Cargo, Length::Long, Screen::Real, Audience::Person);
        assert!(long.ends_with("test --workspace --no-fail-fast"), "{long}");
    }

    #[test]
    fn the_profiles_that_are_used_are_declared() {
        let file = Workspace::locate().root().join(".config/nextest.toml");
        let config: toml::Table = std::fs::read_to_string(file).unwrap().parse().unwrap();
        for profile in ["default", "ci", "long"] {
            assert!(config["profile"].get(profile).is_some(), "{profile}");
        }
    }
}
