//! `cargo xtask peer`: what Correx says beside what llama.cpp says, on the same files.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::ChoreError;
use crate::programs::{self, Profile};
use crate::setup::{self, PYTHON, Scope};
use crate::step::{Step, StepError};
use crate::workspace::Workspace;

/// The release of the peer's Python package.
const PACKAGE: &str = "llama-cpp-python==0.3.36";
/// Names a Python that has the package already.
const PYTHON_VARIABLE: &str = "CORREX_PEER_PYTHON";

/// What is compared.
#[derive(Debug, Clone, clap::Subcommand)]
pub(crate) enum Subject {
    /// Token ids of varied texts and prompts, replies of single tokens, stop tokens
    Tokens {
        /// GGUF files; the default model when absent
        files: Vec<PathBuf>,
        /// How many texts
        #[arg(long, default_value_t = 2300)]
        texts: u32,
        /// Also with every other rule of splitting text that a file could name
        #[arg(long)]
        variants: bool,
        /// Also texts of a megabyte
        #[arg(long)]
        long: bool,
    },
    /// Logits behind every token of a text
    Logits {
        /// A GGUF file; the default model when absent
        file: Option<PathBuf>,
        /// The text; the README when absent
        text: Option<PathBuf>,
    },
    /// Greedy replies to twenty prompts
    Replies {
        /// A GGUF file; the default model when absent
        file: Option<PathBuf>,
    },
    /// Greedy answers to ten questions, asked through the file's chat template
    Chat {
        /// A GGUF file; the default model when absent
        file: Option<PathBuf>,
    },
}

impl Subject {
    /// Its script in `tests/peer`.
    fn script(&self) -> &'static str {
        match self {
            Self::Tokens { .. } => "tokens.py",
            Self::Logits { .. } => "logits.py",
            Self::Replies { .. } => "replies.py",
            Self::Chat { .. } => "chat.py",
        }
    }

    /// What its script is told behind the program; `model` is the default model.
    fn args(&self, model: PathBuf) -> Vec<OsString> {
        match self {
            Self::Tokens { files, texts, variants, long } => {
                let mut args: Vec<OsString> = vec!["--texts".into(), texts.to_string().into()];
                args.extend(variants.then(|| "--variants".into()));
                args.extend(long.then(|| "--long".into()));
                match files.is_empty() {
                    true => args.push(model.into()),
                    false => args.extend(files.iter().map(OsString::from)),
                }
                args
            }
            Self::Logits { file, text } => {
                let file = file.clone().unwrap_or(model);
                std::iter::once(file).chain(text.clone()).map(OsString::from).collect()
            }
            Self::Replies { file } | Self::Chat { file } => {
                vec![file.clone().unwrap_or(model).into()]
            }
        }
    }

    /// How the program that answers is compiled: whole models are too slow otherwise.
    fn profile(&self) -> Profile {
        match self {
            Self::Tokens { .. } => Profile::Dev,
            Self::Logits { .. } | Self::Replies { .. } | Self::Chat { .. } => Profile::Release,
        }
    }
}

/// Compares one subject.
pub(crate) fn peer(workspace: &Workspace, subject: &Subject) -> Result<(), ChoreError> {
    let ready = setup::setup(workspace, Scope::Running)?;
    let python = python(workspace)?;
    let program = programs::build_peer(workspace, subject.profile())?;
    Step::new("compare with llama.cpp", python)
        .args([workspace.root().join("tests").join("peer").join(subject.script())])
        .args([program])
        .args(subject.args(ready.model))
        .run()?;
    Ok(())
}

/// A Python with the peer's package, in an environment of its own that is made when it is missing.
fn python(workspace: &Workspace) -> Result<PathBuf, StepError> {
    if let Some(named) = std::env::var_os(PYTHON_VARIABLE).filter(|named| !named.is_empty()) {
        return Ok(named.into());
    }
    let environment = workspace.root().join("target").join("peer");
    let python = if cfg!(windows) {
        environment.join("Scripts").join("python.exe")
    } else {
        environment.join("bin").join("python")
    };
    if !Step::new("look for the peer", &python).args(["-c", "import llama_cpp"]).ask().yes {
        Step::new("make a Python environment", PYTHON)
            .args(["-m", "venv"])
            .args([&environment])
            .run()?;
        println!("   {PACKAGE} is compiled now; that takes 10 to 20 minutes.");
        Step::new("install the peer", &python)
            .args([
                "-m",
                "pip",
                "install",
                "--no-input",
                "--disable-pip-version-check",
                "numpy",
                PACKAGE,
            ])
            .run()?;
    }
    Ok(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(files: &[&str]) -> Subject {
        let files = files.iter().map(PathBuf::from).collect();
        Subject::Tokens { files, texts: 9, variants: true, long: false }
    }

    #[test]
    fn every_subject_has_its_script() {
        let folder = Workspace::locate().root().join("tests").join("peer");
        let logits = Subject::Logits { file: None, text: None };
        for subject in [tokens(&[]), logits, Subject::Replies { file: None }] {
            assert!(folder.join(subject.script()).is_file(), "{subject:?}");
        }
    }

    #[test]
    fn the_default_model_is_compared_unless_files_are_named() {
        assert_eq!(tokens(&[]).args("m.gguf".into()), ["--texts", "9", "--variants", "m.gguf"]);
        let named = tokens(&["a.gguf", "b.gguf"]).args("m.gguf".into());
        assert_eq!(named[3..], ["a.gguf", "b.gguf"]);
    }
}
