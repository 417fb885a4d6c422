//! Which sessions there are.

use correx_events::{EventPayload, SessionId, Timestamp};
use redb::{ReadTransaction, ReadableTable, StorageError, WriteTransaction};
use serde::{Deserialize, Serialize};

use crate::blobs;
use crate::error::{CatalogueError, StorageFailure, WriteError};
use crate::events;
use crate::store::Store;
use crate::tables::{
    BLOB_REFERENCES, CLIENT_MESSAGES, DELETED_SESSIONS, EVENTS, EVENTS_BY_KIND, HEADS, Numbered,
    SESSIONS, TURN_CHILDREN, TURNS, after,
};
use crate::writer::{Sources, Write};

/// One session, for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Which.
    pub session_id: SessionId,
    /// For people; empty when nobody gave it one.
    pub title: String,
    /// When it was registered or got its first event.
    pub created_at: Timestamp,
    /// When an event, a turn or its title was last written.
    pub updated_at: Timestamp,
    /// Its last event; 0 when it has none.
    pub last_sequence: u64,
    /// In the list or put away.
    pub shelf: Shelf,
}

/// Where a session is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shelf {
    /// In the list.
    #[default]
    Active,
    /// Put away, whole.
    Archived,
}

/// A catalogue row as stored. What a newer version added is carried along.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Row {
    #[serde(default)]
    title: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(default)]
    shelf: Shelf,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

impl Row {
    fn new(title: &str, now: Timestamp) -> Self {
        let rest = serde_json::Map::new();
        Self {
            title: title.to_owned(),
            created_at: now,
            updated_at: now,
            shelf: Shelf::Active,
            rest,
        }
    }

    /// A row that cannot be read is put together from what the session's events say.
    fn read(
        bytes: &[u8],
        session: &str,
        log: &impl ReadableTable<Numbered, &'static [u8]>,
    ) -> Result<Self, StorageError> {
        let problem = match serde_json::from_slice(bytes) {
            Ok(row) => return Ok(row),
            Err(error) => error,
        };
        tracing::warn!(session, %problem, "a catalogue row cannot be read; the events say what is known");
        let mut row = Self::new("", Timestamp::UNIX_EPOCH);
        let mut entries = log.range((session, 0)..=(session, u64::MAX))?;
        if let Some(entry) = entries.next() {
            let (key, line) = entry?;
            let first = events::decode(session, key.value().1, line.value());
            row.created_at = first.metadata.timestamp;
            row.updated_at = first.metadata.timestamp;
            if let EventPayload::SessionCreated(created) = first.payload {
                row.title = created.title;
            }
        }
        if let Some(entry) = entries.next_back() {
            let (key, line) = entry?;
            row.updated_at =
                events::decode(session, key.value().1, line.value()).metadata.timestamp;
        }
        Ok(row)
    }

    fn into_record(self, session: &str, last_sequence: u64) -> SessionRecord {
        SessionRecord {
            session_id: SessionId::new(session),
            title: self.title,
            created_at: self.created_at,
            updated_at: self.updated_at,
            last_sequence,
            shelf: self.shelf,
        }
    }
}

/// What [`touch`] does with a session that the catalogue does not have.
pub(crate) enum Absent<'a> {
    /// Adds it. The title is also given to a row that has none.
    Add { title: Option<&'a str> },
    /// Leaves it so.
    Ignore,
}

/// Notes that the session was written to at `now`.
pub(crate) fn touch(
    tx: &WriteTransaction,
    session: &SessionId,
    now: Timestamp,
    absent: Absent<'_>,
) -> Result<(), WriteError> {
    let mut row = match (find(tx, session)?, &absent) {
        (Some(row), _) => row,
        (None, Absent::Add { .. }) => Row::new("", now),
        (None, Absent::Ignore) => return Ok(()),
    };
    if let Absent::Add { title: Some(title) } = absent
        && row.title.is_empty()
    {
        title.clone_into(&mut row.title);
    }
    row.updated_at = row.updated_at.max(now);
    insert(tx, session, &row)
}

/// Refuses a late writer's work on a deleted session.
pub(crate) fn refuse_deleted(tx: &WriteTransaction, session: &SessionId) -> Result<(), WriteError> {
    match tx.open_table(DELETED_SESSIONS)?.get(session.as_str())? {
        Some(_) => Err(WriteError::Deleted(session.clone())),
        None => Ok(()),
    }
}

fn find(tx: &WriteTransaction, session: &SessionId) -> Result<Option<Row>, WriteError> {
    let sessions = tx.open_table(SESSIONS)?;
    let Some(bytes) = sessions.get(session.as_str())? else { return Ok(None) };
    Ok(Some(Row::read(bytes.value(), session.as_str(), &tx.open_table(EVENTS)?)?))
}

fn existing(tx: &WriteTransaction, session: &SessionId) -> Result<Row, WriteError> {
    refuse_deleted(tx, session)?;
    find(tx, session)?.ok_or_else(|| WriteError::UnknownSession(session.clone()))
}

fn insert(tx: &WriteTransaction, session: &SessionId, row: &Row) -> Result<(), WriteError> {
    let bytes = serde_json::to_vec(row).map_err(|error| StorageFailure(error.to_string()))?;
    tx.open_table(SESSIONS)?.insert(session.as_str(), bytes.as_slice())?;
    Ok(())
}

struct Register {
    session: SessionId,
    title: String,
}

impl Write for Register {
    type Output = SessionRecord;

    fn apply(&self, tx: &WriteTransaction, sources: &Sources) -> Result<SessionRecord, WriteError> {
        refuse_deleted(tx, &self.session)?;
        let row = match find(tx, &self.session)? {
            Some(row) => row,
            None => {
                let row = Row::new(&self.title, sources.clock.now());
                insert(tx, &self.session, &row)?;
                row
            }
        };
        let last = events::last_sequence(&tx.open_table(EVENTS)?, self.session.as_str())?;
        Ok(row.into_record(self.session.as_str(), last))
    }
}

struct Rename {
    session: SessionId,
    title: String,
}

impl Write for Rename {
    type Output = ();

    fn apply(&self, tx: &WriteTransaction, sources: &Sources) -> Result<(), WriteError> {
        let mut row = existing(tx, &self.session)?;
        row.title.clone_from(&self.title);
        row.updated_at = row.updated_at.max(sources.clock.now());
        insert(tx, &self.session, &row)
    }
}

struct MoveToShelf {
    session: SessionId,
    shelf: Shelf,
}

impl Write for MoveToShelf {
    type Output = ();

    fn apply(&self, tx: &WriteTransaction, _sources: &Sources) -> Result<(), WriteError> {
        let mut row = existing(tx, &self.session)?;
        row.shelf = self.shelf;
        insert(tx, &self.session, &row)
    }
}

struct Delete(SessionId);

impl Write for Delete {
    type Output = ();

    fn apply(&self, tx: &WriteTransaction, sources: &Sources) -> Result<(), WriteError> {
        let session = self.0.as_str();
        let mut tombstones = tx.open_table(DELETED_SESSIONS)?;
        if tombstones.get(session)?.is_some() {
            return Ok(());
        }
        if !is_known(tx, session)? {
            return Err(WriteError::UnknownSession(self.0.clone()));
        }
        let end = after(session);
        let end = end.as_str();
        tombstones.insert(session, sources.clock.now().to_string().as_str())?;
        tx.open_table(SESSIONS)?.remove(session)?;
        tx.open_table(HEADS)?.remove(session)?;
        tx.open_table(EVENTS)?.retain_in((session, 0)..(end, 0), |_, _| false)?;
        tx.open_table(EVENTS_BY_KIND)?.retain_in((session, "", 0)..(end, "", 0), |_, ()| false)?;
        tx.open_table(CLIENT_MESSAGES)?.retain_in((session, "")..(end, ""), |_, _| false)?;
        tx.open_table(TURNS)?.retain_in((session, "")..(end, ""), |_, _| false)?;
        tx.open_table(TURN_CHILDREN)?.retain_in((session, "", 0)..(end, "", 0), |_, _| false)?;
        Ok(blobs::release_all(tx, session)?)
    }
}

/// A session that only put blobs is not in the list yet, but can be deleted.
fn is_known(tx: &WriteTransaction, session: &str) -> Result<bool, WriteError> {
    let end = after(session);
    let holds_blobs =
        tx.open_table(BLOB_REFERENCES)?.range((session, "")..(end.as_str(), ""))?.next().is_some();
    Ok(holds_blobs
        || tx.open_table(SESSIONS)?.get(session)?.is_some()
        || events::last_sequence(&tx.open_table(EVENTS)?, session)? > 0)
}

fn record(
    tx: &ReadTransaction,
    session: &str,
    bytes: &[u8],
) -> Result<SessionRecord, StorageFailure> {
    let log = tx.open_table(EVENTS)?;
    let row = Row::read(bytes, session, &log)?;
    Ok(row.into_record(session, events::last_sequence(&log, session)?))
}

impl Store {
    /// All sessions, the last changed first.
    pub async fn sessions(&self) -> Result<Vec<SessionRecord>, CatalogueError> {
        let read = self.database().read(|tx| {
            let mut records = Vec::new();
            for entry in tx.open_table(SESSIONS)?.iter()? {
                let (session, bytes) = entry?;
                records.push(record(tx, session.value(), bytes.value())?);
            }
            records.sort_by(|a, b| {
                let key = |record: &SessionRecord| (record.updated_at, record.created_at);
                key(b).cmp(&key(a)).then_with(|| b.session_id.cmp(&a.session_id))
            });
            Ok(records)
        });
        Ok(read.await?)
    }

    /// One session, or `None` when it is not there (or no longer).
    pub async fn session(
        &self,
        session: &SessionId,
    ) -> Result<Option<SessionRecord>, CatalogueError> {
        let session = session.clone();
        let read = self.database().read(move |tx| {
            let sessions = tx.open_table(SESSIONS)?;
            let Some(bytes) = sessions.get(session.as_str())? else { return Ok(None) };
            record(tx, session.as_str(), bytes.value()).map(Some)
        });
        Ok(read.await?)
    }

    /// Puts a session into the catalogue before it has events. One that is there already stays as
    /// it is. Returns what the catalogue holds. Fails for a deleted session.
    pub async fn register_session(
        &self,
        session: &SessionId,
        title: &str,
    ) -> Result<SessionRecord, CatalogueError> {
        Ok(self.write(Register { session: session.clone(), title: title.to_owned() }).await?)
    }

    /// Gives a session another title.
    pub async fn rename_session(
        &self,
        session: &SessionId,
        title: &str,
    ) -> Result<(), CatalogueError> {
        Ok(self.write(Rename { session: session.clone(), title: title.to_owned() }).await?)
    }

    /// Puts a session away, or back into the list. When it was changed stays as it is.
    pub async fn move_session(
        &self,
        session: &SessionId,
        shelf: Shelf,
    ) -> Result<(), CatalogueError> {
        Ok(self.write(MoveToShelf { session: session.clone(), shelf }).await?)
    }

    /// Deletes everything about a session: events, conversation, and the blobs that no other
    /// session holds. What is written to it later is refused. Deleting it again does nothing.
    pub async fn delete_session(&self, session: &SessionId) -> Result<(), CatalogueError> {
        Ok(self.write(Delete(session.clone())).await?)
    }
}
