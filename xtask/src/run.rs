//! `cargo xtask run`: from a fresh clone to the running program.

use std::ffi::OsString;

use crate::ChoreError;
use crate::programs::{self, Profile, Program};
use crate::setup::{self, Scope};
use crate::step::Step;
use crate::ui;
use crate::workspace::Workspace;

/// Whether a window can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Display {
    Present,
    Absent,
}

impl Display {
    /// On Linux a variable names the display; macOS and Windows always have one.
    fn detect(os: &str, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let named = |name| variable(name).is_some_and(|value| !value.is_empty());
        if os != "linux" || named("DISPLAY") || named("WAYLAND_DISPLAY") {
            Self::Present
        } else {
            Self::Absent
        }
    }
}

/// Sets up, builds, and starts the desktop app, or without a display the first example in the
/// terminal. `args` go to the program that is started.
pub(crate) fn run(workspace: &Workspace, args: &[OsString]) -> Result<(), ChoreError> {
    let ready = setup::setup(workspace, Scope::Running)?;
    ui::build(workspace, &ready.node)?;
    println!("\n── build (the first one takes several minutes) ──");
    let [cli, desktop] =
        programs::build(workspace, Profile::Dev, [Program::Cli, Program::Desktop])?;

    let step = match Display::detect(std::env::consts::OS, |name| std::env::var_os(name)) {
        Display::Present => {
            println!("\n── Correx opens its window; close it to come back here ──\n");
            Step::new("the desktop app", desktop)
        }
        Display::Absent => {
            println!(
                "\n── There is no display (neither DISPLAY nor WAYLAND_DISPLAY is set), so no window can \
                 open.\n   Instead, the first example runs here in the terminal: correx demo ──\n"
            );
            Step::new("the first example", cli).args(["demo"])
        }
    };
    // A person's own choice of model stands.
    let step = match std::env::var_os("CORREX_MODEL") {
        Some(_) => step,
        None => step.env("CORREX_MODEL", &ready.model),
    };
    step.args(args).dir(workspace.root()).interactive().run()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(os: &str, set: &[(&str, &str)]) -> Display {
        Display::detect(os, |name| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn linux_has_a_display_when_x_or_wayland_names_one() {
        assert_eq!(detect("linux", &[("DISPLAY", ":0")]), Display::Present);
        assert_eq!(detect("linux", &[("WAYLAND_DISPLAY", "wayland-0")]), Display::Present);
    }

    #[test]
    fn linux_has_no_display_when_the_variables_are_unset_or_empty() {
        assert_eq!(detect("linux", &[]), Display::Absent);
        assert_eq!(detect("linux", &[("DISPLAY", ""), ("WAYLAND_DISPLAY", "")]), Display::Absent);
    }

    #[test]
    fn other_systems_always_have_one() {
        assert_eq!(detect("macos", &[]), Display::Present);
        assert_eq!(detect("windows", &[]), Display::Present);
    }
}
