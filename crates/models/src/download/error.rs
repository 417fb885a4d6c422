//! Why a download stopped, in words for a person.

use std::io;
use std::path::Path;
use std::time::Duration;

use thiserror::Error;

/// Why a download stopped. The text says what happened; [`DownloadError::hint`] what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DownloadError {
    /// Connections are switched off.
    #[error("downloads are switched off (HF_HUB_OFFLINE)")]
    Offline,
    /// The hub's address is none.
    #[error("{0:?} is not the address of a hub")]
    Endpoint(String),
    /// The model does not come from the hub.
    #[error("{0} does not come from the hub")]
    NotOnHub(String),
    /// There is no such download.
    #[error("there is no download {0}")]
    Unknown(String),
    /// Nobody answers.
    #[error("{host} could not be reached: {reason}")]
    Unreachable {
        /// Who was asked.
        host: String,
        /// What the system said.
        reason: String,
    },
    /// Its name leads nowhere: most likely there is no connection at all.
    #[error("{host} could not be found: no connection?")]
    NoConnection {
        /// Who was to be asked.
        host: String,
    },
    /// Nothing came for too long.
    #[error("nothing came from {host} for {} seconds", .silence.as_secs())]
    Stalled {
        /// Who sent.
        host: String,
        /// For how long.
        silence: Duration,
    },
    /// The connection ended before the file did.
    #[error("the connection to {host} broke off: {reason}")]
    BrokeOff {
        /// Who sent.
        host: String,
        /// What was seen of it.
        reason: String,
    },
    /// No such file, revision or repository.
    #[error("the hub has no {0}")]
    NotFound(String),
    /// What was typed names no model.
    #[error("{0}")]
    Name(String),
    /// A licence is to be accepted first, or a person to be named.
    #[error("{repo} is given only to people who have accepted its licence")]
    Gated {
        /// The repository.
        repo: String,
        /// Where its page is.
        page: String,
    },
    /// The token is not enough, or there is none.
    #[error("the hub refuses access to {repo}")]
    Refused {
        /// The repository.
        repo: String,
        /// Whether a token was sent.
        token: bool,
    },
    /// Too many requests.
    #[error("the hub asks to wait ({} seconds) before asking again", .wait.as_secs())]
    TooMany {
        /// For how long.
        wait: Duration,
    },
    /// The server is out of order.
    #[error("{host} is out of order (status {status})")]
    Server {
        /// Who.
        host: String,
        /// What it answered.
        status: u16,
        /// How long it asks to wait.
        wait: Option<Duration>,
    },
    /// An answer that a hub does not give.
    #[error("{host} does not answer like a hub: {what}")]
    Answer {
        /// Who.
        host: String,
        /// What is odd.
        what: String,
    },
    /// Something else came in place of the model.
    #[error("{host} sent {what} in place of the model")]
    NotAModel {
        /// Who.
        host: String,
        /// What it is.
        what: String,
    },
    /// The header was seen, and the model is of no use here.
    #[error("this model cannot be used here: {reason}")]
    Unsuitable {
        /// Why.
        reason: String,
        /// Bytes that were downloaded until then.
        seen: u64,
    },
    /// The bytes are not the ones that the hub announced.
    #[error(
        "what was downloaded is not the file that the hub announced (its {what} is {found} in place of {expected})"
    )]
    Different {
        /// What was compared.
        what: &'static str,
        /// As announced.
        expected: String,
        /// As it is.
        found: String,
    },
    /// There is not enough space.
    #[error("{} are missing on the disk: {} are needed, {} are free", megabytes(.needed.saturating_sub(*.free)), megabytes(*.needed), megabytes(*.free))]
    DiskFull {
        /// Bytes that are still needed.
        needed: u64,
        /// Bytes that are free.
        free: u64,
        /// Bytes of the file that are here.
        kept: u64,
    },
    /// A file could not be read or written.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// The file is being downloaded by somebody else, who does not finish.
    #[error("another program holds this download")]
    Held,
    /// Tried again and again.
    #[error("{last} (tried {tries} times)")]
    GaveUp {
        /// The last reason.
        last: Box<DownloadError>,
        /// How often.
        tries: u32,
    },
}

impl DownloadError {
    /// Something about a file.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Self::File { path: path.display().to_string(), reason: error.to_string() }
    }

    /// Whether trying again can help.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::NoConnection { .. }
                | Self::Stalled { .. }
                | Self::BrokeOff { .. }
                | Self::TooMany { .. }
                | Self::Server { .. }
        )
    }

    /// How often it is tried at the most where `usual` is usual.
    pub(super) fn most_tries(&self, usual: u32) -> u32 {
        match self {
            Self::NoConnection { .. } => usual.min(2),
            _ => usual,
        }
    }

    /// How long the server asks to wait.
    pub fn asked_wait(&self) -> Option<Duration> {
        match self {
            Self::TooMany { wait } => Some(*wait),
            Self::Server { wait, .. } => *wait,
            _ => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Offline => "Unset HF_HUB_OFFLINE to download.".into(),
            Self::Endpoint(_) => "Check HF_ENDPOINT, or unset it.".into(),
            Self::NotOnHub(_) => "The default model comes with `cargo xtask setup`.".into(),
            Self::Unknown(_) | Self::NotFound(_) | Self::Name(_) => {
                "`correx model list` names the models; check the spelling of repository, file and \
                 revision."
                    .into()
            }
            Self::Unreachable { .. }
            | Self::NoConnection { .. }
            | Self::Stalled { .. }
            | Self::BrokeOff { .. } => {
                "Check the connection (and HTTPS_PROXY, if one is needed), then go on with the same \
                 command."
                    .into()
            }
            Self::Gated { page, .. } => format!(
                "Accept the licence at {page}, then set HF_TOKEN to a token of your account."
            ),
            Self::Refused { token: true, .. } => {
                "Check that HF_TOKEN is valid and may read this repository.".into()
            }
            Self::Refused { token: false, .. } => {
                "Check the name; for a private repository set HF_TOKEN.".into()
            }
            Self::TooMany { .. } | Self::Server { .. } => {
                "Wait a while, then go on with the same command.".into()
            }
            Self::Answer { .. } | Self::NotAModel { .. } => {
                "Something between here and the hub answers in its place (a login page, a proxy), or \
                 HF_ENDPOINT is wrong. Check with a browser."
                    .into()
            }
            Self::Unsuitable { .. } => "Choose another file of the model, or another model.".into(),
            Self::Different { .. } => {
                "Download it again; if it happens twice, tell the owner of the repository.".into()
            }
            Self::DiskFull { .. } => {
                "Make room, or set HF_HUB_CACHE to a folder on another disk; then go on with the same \
                 command."
                    .into()
            }
            Self::File { .. } => "Check the folder's permissions and the disk.".into(),
            Self::Held => "Wait for the other program, or end it.".into(),
            Self::GaveUp { last, .. } => last.hint(),
        }
    }
}

/// A number of bytes for people.
pub fn megabytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_nowhere_is_tried_twice_at_the_most() {
        let nowhere = DownloadError::NoConnection { host: "h".into() };
        assert_eq!((nowhere.most_tries(6), nowhere.most_tries(1)), (2, 1));
        assert!(nowhere.is_passing() && nowhere.to_string().contains("no connection"));
        let silent = DownloadError::Unreachable { host: "h".into(), reason: String::new() };
        assert_eq!(silent.most_tries(6), 6);
    }
}
