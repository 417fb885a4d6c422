//! Where the person's rules come from.

use std::path::PathBuf;

use correx_effects::{Policy, SessionFolders};
use correx_events::SessionId;

/// Says what workflows may do outside of Correx, as it holds now.
pub trait PolicySource: Send + Sync {
    /// The rules, and the folders of `session`. `given` is what the person gave as input. Blocks on
    /// the file system.
    fn rules(&self, session: &SessionId, given: Vec<PathBuf>) -> Rules;
}

/// A policy and the folders of the session that it is asked about.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The rules.
    pub policy: Policy,
    /// The session's own folders.
    pub folders: SessionFolders,
}
