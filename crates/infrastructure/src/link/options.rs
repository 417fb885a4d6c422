//! Which data directory, which model.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use correx_protocol::{ErrorCode, ProtocolError};
use directories::ProjectDirs;

use crate::engine::{Engine, Loading};
use crate::holdings::Holdings;

/// How to connect. `Default` is the usual data directory with its own settings.
#[derive(Clone, Default)]
pub struct ConnectOptions {
    /// Where everything is kept; `None`: the usual place of this system.
    pub data_dir: Option<PathBuf>,
    /// A GGUF file in place of the default model. Only an owner loads it.
    pub model: Option<PathBuf>,
    /// How many threads compute; `None`: as the settings or the machine say.
    pub threads: Option<usize>,
    /// When an owner loads the model.
    pub loading: Loading,
    /// What answers prompts, in place of the in-process model.
    pub engine: Option<Engine>,
    /// Which models there are, in place of those of the data directory and the environment.
    pub holdings: Option<Holdings>,
}

impl ConnectOptions {
    /// What the environment says: `CORREX_DATA_DIR`, `CORREX_MODEL`, `CORREX_THREADS`. Empty
    /// variables count as absent; a number of threads that is none is ignored.
    pub fn from_env() -> Self {
        Self::from_variables(|name| env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let threads = set("CORREX_THREADS").and_then(|value| value.to_str()?.trim().parse().ok());
        Self {
            data_dir: set("CORREX_DATA_DIR").map(PathBuf::from),
            model: set("CORREX_MODEL").map(PathBuf::from),
            threads: threads.filter(|threads| *threads > 0),
            ..Self::default()
        }
    }

    /// The data directory.
    pub fn resolve_data_dir(&self) -> Result<PathBuf, ProtocolError> {
        if let Some(data_dir) = &self.data_dir {
            return std::path::absolute(data_dir).map_err(|error| {
                let shown = data_dir.display();
                ProtocolError::new(
                    ErrorCode::Storage,
                    format!("{shown} cannot be a data directory: {error}"),
                )
            });
        }
        ProjectDirs::from("", "", "correx").map(|dirs| dirs.data_dir().to_owned()).ok_or_else(
            || {
                ProtocolError::new(
                    ErrorCode::Storage,
                    "there is no place for the data: this user has no home directory",
                )
                .hint("Choose one with `--data-dir DIR` or the variable CORREX_DATA_DIR.")
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_senseless_variables_count_as_absent() {
        let options = ConnectOptions::from_variables(|name| match name {
            "CORREX_DATA_DIR" => Some("/data".into()),
            "CORREX_MODEL" => Some(OsString::new()),
            "CORREX_THREADS" => Some("many".into()),
            _ => None,
        });
        assert_eq!(options.data_dir, Some(PathBuf::from("/data")));
        assert_eq!(options.model, None);
        assert_eq!(options.threads, None);
        let options = ConnectOptions::from_variables(|_| Some("0".into()));
        assert_eq!(options.threads, None);
    }
}
