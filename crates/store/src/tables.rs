//! Every table, as `FORMAT.md` describes it.

use redb::{ReadTransaction, TableDefinition, WriteTransaction};

use crate::error::StorageFailure;

/// A session and a number inside it.
pub(crate) type Numbered = (&'static str, u64);
/// A session and a name inside it.
pub(crate) type Named = (&'static str, &'static str);
/// A session, a name inside it and a number under that name.
pub(crate) type NamedNumbered = (&'static str, &'static str, u64);

/// `format` and `commits`.
pub(crate) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
/// session → catalogue row as JSON.
pub(crate) const SESSIONS: TableDefinition<&str, &[u8]> = TableDefinition::new("sessions");
/// session → when it was deleted.
pub(crate) const DELETED_SESSIONS: TableDefinition<&str, &str> =
    TableDefinition::new("deleted_sessions");
/// (session, sequence) → the event's JSON line.
pub(crate) const EVENTS: TableDefinition<Numbered, &[u8]> = TableDefinition::new("events");
/// (session, kind, sequence).
pub(crate) const EVENTS_BY_KIND: TableDefinition<NamedNumbered, ()> =
    TableDefinition::new("events_by_kind");
/// (session, client message id) → (first sequence, count).
pub(crate) const CLIENT_MESSAGES: TableDefinition<Named, (u64, u64)> =
    TableDefinition::new("client_messages");
/// hash → bytes.
pub(crate) const BLOBS: TableDefinition<&str, &[u8]> = TableDefinition::new("blobs");
/// (session, hash).
pub(crate) const BLOB_REFERENCES: TableDefinition<Named, ()> =
    TableDefinition::new("blob_references");
/// hash → how many sessions hold it.
pub(crate) const BLOB_COUNTS: TableDefinition<&str, u64> = TableDefinition::new("blob_counts");
/// (session, turn) → the turn as JSON.
pub(crate) const TURNS: TableDefinition<Named, &[u8]> = TableDefinition::new("turns");
/// (session, parent turn or empty, position) → turn.
pub(crate) const TURN_CHILDREN: TableDefinition<NamedNumbered, &str> =
    TableDefinition::new("turn_children");
/// session → last turn of the current branch.
pub(crate) const HEADS: TableDefinition<&str, &str> = TableDefinition::new("heads");

/// Keys of [`META`].
pub(crate) mod meta {
    /// The format version.
    pub(crate) const FORMAT: &str = "format";
    /// How many commits the file has seen.
    pub(crate) const COMMITS: &str = "commits";
}

macro_rules! all_tables {
    ($($table:ident),* $(,)?) => {
        /// Makes the tables that are not there yet.
        pub(crate) fn create_all(tx: &WriteTransaction) -> Result<(), StorageFailure> {
            $(tx.open_table($table)?;)*
            Ok(())
        }

        /// Fails when a table is missing or of another type.
        pub(crate) fn check_all(tx: &ReadTransaction) -> Result<(), StorageFailure> {
            $(tx.open_table($table)?;)*
            Ok(())
        }
    };
}

all_tables!(
    META,
    SESSIONS,
    DELETED_SESSIONS,
    EVENTS,
    EVENTS_BY_KIND,
    CLIENT_MESSAGES,
    BLOBS,
    BLOB_REFERENCES,
    BLOB_COUNTS,
    TURNS,
    TURN_CHILDREN,
    HEADS,
);

/// The least session name after `session`: the end of its range in a table keyed by session first.
pub(crate) fn after(session: &str) -> String {
    format!("{session}\0")
}
