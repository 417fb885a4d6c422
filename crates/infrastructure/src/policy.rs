//! The person's policy, as it lies in the data directory.

use std::path::{Path, PathBuf};

use correx_effects::{Policy, SessionFolders};
use correx_events::SessionId;
use correx_orchestration::{PolicySource, Rules};

/// The policy file of a data directory, read anew each time: a person may change it during a run.
#[derive(Debug, Clone)]
pub struct OwnPolicy {
    data_dir: PathBuf,
}

impl OwnPolicy {
    /// The policy of this data directory.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: data_dir.into() }
    }
}

/// Where the files of a session go that its workflow writes.
pub fn output_folder(data_dir: &Path, session: &SessionId) -> PathBuf {
    // Ids are made here; one that came from elsewhere must not lead out of the folder.
    let name: String = session
        .as_str()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .collect();
    data_dir.join("output").join(if name.is_empty() { "_".to_owned() } else { name })
}

impl PolicySource for OwnPolicy {
    fn rules(&self, session: &SessionId, given: Vec<PathBuf>) -> Rules {
        let output = output_folder(&self.data_dir, session);
        let policy = Policy::load(&self.data_dir);
        Rules { policy, folders: SessionFolders { output, given } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sessions_folder_lies_in_the_output_folder_whatever_its_id_is() {
        let folder = |id: &str| output_folder(Path::new("data"), &SessionId::new(id));
        assert_eq!(folder("0197-ab"), Path::new("data/output/0197-ab"));
        for odd in ["", ".", "..", "../..", "a/b", "a\\b", "/", "~"] {
            let found = folder(odd);
            assert_eq!(found.parent(), Some(Path::new("data/output")), "{odd}");
            assert_eq!(found.components().count(), 3, "{odd}");
        }
    }
}
