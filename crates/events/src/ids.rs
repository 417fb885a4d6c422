//! The names of things. Each is a transparent string on the wire and in the log.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Names a thing with `value`, taken as it is.
            pub fn new(value: impl Into<String>) -> Self {
                Self(value.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(value: &str) -> Self {
                Self(value.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(value: String) -> Self {
                Self(value)
            }
        }
    };
}

id!(
    /// One workflow run and the conversation about it.
    SessionId
);
id!(
    /// One step of a workflow, unique inside the workflow.
    StageId
);
id!(
    /// One steering note.
    NoteId
);
id!(
    /// One stored event, unique over all sessions.
    EventId
);
id!(
    /// One turn of a conversation.
    TurnId
);
id!(
    /// Chosen by a client for one message, so that sending it twice acts once.
    ClientMessageId
);
id!(
    /// The name under which a stage's output is known to later stages and to people.
    ArtifactName
);
id!(
    /// SHA-256 of a blob's bytes, in lower-case hexadecimal: the address of a blob.
    BlobHash
);

impl BlobHash {
    /// The address of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(hex::encode(Sha256::digest(bytes)))
    }
}
