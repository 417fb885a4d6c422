//! The event log: appending, reading, the index by kind.

use std::sync::Arc;

use async_trait::async_trait;
use correx_events::{
    Append, AppendError, EventId, EventMetadata, EventPayload, EventStore, ExpectedVersion,
    ReadError, SessionId, StoredEvent, Timestamp, UnknownPayload, UnknownReason,
};
use redb::{ReadableTable, StorageError, WriteTransaction};
use tokio::sync::broadcast;

use crate::catalogue::{self, Absent};
use crate::error::WriteError;
use crate::store::Store;
use crate::tables::{CLIENT_MESSAGES, EVENTS, EVENTS_BY_KIND, Numbered};
use crate::writer::{Feed, Sources, Write};

struct AppendEvents(Append);

struct Appended {
    events: Vec<StoredEvent>,
    novelty: Novelty,
}

enum Novelty {
    New,
    /// The client message was seen before; subscribers know its events.
    Repeated,
}

impl Write for AppendEvents {
    type Output = Appended;

    fn apply(&self, tx: &WriteTransaction, sources: &Sources) -> Result<Appended, WriteError> {
        let append = &self.0;
        let session = append.session.as_str();
        catalogue::refuse_deleted(tx, &append.session)?;
        let mut events = tx.open_table(EVENTS)?;
        let mut messages = tx.open_table(CLIENT_MESSAGES)?;
        if let Some(id) = &append.client_message_id {
            let seen = messages.get((session, id.as_str()))?.map(|range| range.value());
            if let Some((first, count)) = seen {
                let events = range(&events, session, first, first.saturating_add(count))?;
                return Ok(Appended { events, novelty: Novelty::Repeated });
            }
        }
        let actual = last_sequence(&events, session)?;
        if let ExpectedVersion::Exactly(expected) = append.expected
            && expected != actual
        {
            return Err(WriteError::Conflict { expected, actual });
        }
        let timestamp = sources.clock.now();
        let stored = number(append, actual + 1, timestamp, sources);
        let lines = stored.iter().map(encode).collect::<Result<Vec<_>, _>>()?;

        // Nothing is refused from here on.
        let mut by_kind = tx.open_table(EVENTS_BY_KIND)?;
        for (event, line) in stored.iter().zip(&lines) {
            let sequence = event.metadata.sequence;
            events.insert((session, sequence), line.as_bytes())?;
            by_kind.insert((session, event.payload.kind(), sequence), ())?;
        }
        if let Some(id) = &append.client_message_id {
            messages.insert((session, id.as_str()), (actual + 1, stored.len() as u64))?;
        }
        drop(events);
        if !stored.is_empty() {
            let title = stored.iter().find_map(|event| match &event.payload {
                EventPayload::SessionCreated(created) => Some(created.title.as_str()),
                _ => None,
            });
            catalogue::touch(tx, &append.session, timestamp, Absent::Add { title })?;
        }
        Ok(Appended { events: stored, novelty: Novelty::New })
    }

    fn publish(output: &Appended, feed: &Feed) {
        if matches!(output.novelty, Novelty::New) {
            for event in &output.events {
                // Fails only when nobody listens.
                let _ = feed.send(Arc::new(event.clone()));
            }
        }
    }
}

fn number(
    append: &Append,
    first: u64,
    timestamp: Timestamp,
    sources: &Sources,
) -> Vec<StoredEvent> {
    (first..)
        .zip(&append.payloads)
        .map(|(sequence, payload)| StoredEvent {
            metadata: EventMetadata {
                event_id: EventId::new(sources.ids.next_id()),
                session_id: append.session.clone(),
                sequence,
                timestamp,
            },
            payload: payload.clone(),
        })
        .collect()
}

fn encode(event: &StoredEvent) -> Result<String, WriteError> {
    serde_json::to_string(event).map_err(|error| {
        WriteError::Refused(format!(
            "the event {} cannot be written as JSON: {error}",
            event.payload.kind()
        ))
    })
}

/// Reads a stored line. One that is not what its key says comes back as an unknown event that
/// carries the line.
pub(crate) fn decode(session: &str, sequence: u64, line: &[u8]) -> StoredEvent {
    let problem = match serde_json::from_slice::<StoredEvent>(line) {
        Ok(event) => {
            let metadata = &event.metadata;
            if metadata.sequence == sequence && metadata.session_id.as_str() == session {
                return event;
            }
            format!("it names event {} of session {}", metadata.sequence, metadata.session_id)
        }
        Err(error) => error.to_string(),
    };
    tracing::warn!(session, sequence, problem, "a stored event cannot be read");
    StoredEvent {
        metadata: EventMetadata {
            event_id: EventId::new(format!("unreadable-{session}-{sequence}")),
            session_id: SessionId::new(session),
            sequence,
            timestamp: Timestamp::UNIX_EPOCH,
        },
        payload: EventPayload::Unknown(UnknownPayload {
            kind: String::new(),
            json: String::from_utf8_lossy(line).into_owned(),
            reason: UnknownReason::Unreadable(problem),
        }),
    }
}

/// The session's last sequence number; 0 when it has no events.
pub(crate) fn last_sequence(
    events: &impl ReadableTable<Numbered, &'static [u8]>,
    session: &str,
) -> Result<u64, StorageError> {
    match events.range((session, 0)..=(session, u64::MAX))?.next_back() {
        Some(entry) => Ok(entry?.0.value().1),
        None => Ok(0),
    }
}

/// The events from `from` up to, not including, `until`.
fn range(
    events: &impl ReadableTable<Numbered, &'static [u8]>,
    session: &str,
    from: u64,
    until: u64,
) -> Result<Vec<StoredEvent>, StorageError> {
    events
        .range((session, from)..(session, until))?
        .map(|entry| {
            let (key, line) = entry?;
            Ok(decode(session, key.value().1, line.value()))
        })
        .collect()
}

#[async_trait]
impl EventStore for Store {
    async fn append(&self, append: Append) -> Result<Vec<StoredEvent>, AppendError> {
        Ok(self.write(AppendEvents(append)).await?.events)
    }

    async fn read(&self, session: &SessionId, from: u64) -> Result<Vec<StoredEvent>, ReadError> {
        let session = session.clone();
        let read = self
            .database()
            .read(move |tx| Ok(range(&tx.open_table(EVENTS)?, session.as_str(), from, u64::MAX)?));
        Ok(read.await?)
    }

    fn subscribe(&self) -> broadcast::Receiver<Arc<StoredEvent>> {
        self.feed().subscribe()
    }
}

impl Store {
    /// The stored lines of the session's events from sequence number `from` on, in order, exactly
    /// as they lie in the file: what an export writes.
    pub async fn read_lines(
        &self,
        session: &SessionId,
        from: u64,
    ) -> Result<Vec<String>, ReadError> {
        let session = session.clone();
        let read = self.database().read(move |tx| {
            let events = tx.open_table(EVENTS)?;
            let mut lines = Vec::new();
            for entry in events.range((session.as_str(), from)..=(session.as_str(), u64::MAX))? {
                lines.push(String::from_utf8_lossy(entry?.1.value()).into_owned());
            }
            Ok(lines)
        });
        Ok(read.await?)
    }

    /// The kinds of events that the session has, sorted.
    pub async fn event_kinds(&self, session: &SessionId) -> Result<Vec<String>, ReadError> {
        let session = session.clone();
        let read = self.database().read(move |tx| {
            let session = session.as_str();
            let by_kind = tx.open_table(EVENTS_BY_KIND)?;
            let mut kinds = Vec::<String>::new();
            loop {
                // One look per kind, however many events it has.
                let next = match kinds.last() {
                    None => by_kind.range((session, "", 0)..)?.next(),
                    Some(kind) => by_kind.range((session, kind.as_str(), u64::MAX)..)?.next(),
                };
                let Some(entry) = next else { break };
                let (key, _) = entry?;
                let (owner, kind, _) = key.value();
                if owner != session {
                    break;
                }
                kinds.push(kind.to_owned());
            }
            Ok(kinds)
        });
        Ok(read.await?)
    }

    /// The session's events of one kind, in order.
    pub async fn read_kind(
        &self,
        session: &SessionId,
        kind: &str,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        let (session, kind) = (session.clone(), kind.to_owned());
        let read = self.database().read(move |tx| {
            let (session, kind) = (session.as_str(), kind.as_str());
            let by_kind = tx.open_table(EVENTS_BY_KIND)?;
            let events = tx.open_table(EVENTS)?;
            let mut found = Vec::new();
            for entry in by_kind.range((session, kind, 0)..=(session, kind, u64::MAX))? {
                let sequence = entry?.0.value().2;
                if let Some(line) = events.get((session, sequence))? {
                    found.push(decode(session, sequence, line.value()));
                }
            }
            Ok(found)
        });
        Ok(read.await?)
    }
}
