//! A log that keeps nothing on disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::{
    Append, AppendError, ClientMessageId, Clock, EventId, EventMetadata, EventStore,
    ExpectedVersion, IdSource, ReadError, SessionId, StoredEvent,
};

const SUBSCRIBER_BUFFER: usize = 4096;

/// An [`EventStore`] in memory: the reference that other stores are compared with.
pub struct MemoryEventStore {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    sessions: Mutex<HashMap<SessionId, Log>>,
    feed: broadcast::Sender<Arc<StoredEvent>>,
}

#[derive(Default)]
struct Log {
    events: Vec<StoredEvent>,
    /// Where each client message's events lie in `events`.
    seen: HashMap<ClientMessageId, std::ops::Range<usize>>,
}

impl MemoryEventStore {
    /// An empty log whose events get their time and ids from `clock` and `ids`.
    pub fn new(clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        let (feed, _) = broadcast::channel(SUBSCRIBER_BUFFER);
        Self { clock, ids, sessions: Mutex::default(), feed }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Log>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl EventStore for MemoryEventStore {
    async fn append(&self, append: Append) -> Result<Vec<StoredEvent>, AppendError> {
        let mut sessions = self.sessions();
        let log = sessions.entry(append.session.clone()).or_default();
        if let Some(range) = append.client_message_id.as_ref().and_then(|id| log.seen.get(id)) {
            return Ok(log.events[range.clone()].to_vec());
        }
        let actual = log.events.len() as u64;
        if let ExpectedVersion::Exactly(expected) = append.expected
            && expected != actual
        {
            return Err(AppendError::VersionConflict { expected, actual });
        }
        let timestamp = self.clock.now();
        let start = log.events.len();
        for (sequence, payload) in (actual + 1..).zip(append.payloads) {
            let metadata = EventMetadata {
                event_id: EventId::new(self.ids.next_id()),
                session_id: append.session.clone(),
                sequence,
                timestamp,
            };
            log.events.push(StoredEvent { metadata, payload });
        }
        let appended = log.events[start..].to_vec();
        if let Some(id) = append.client_message_id {
            log.seen.insert(id, start..log.events.len());
        }
        for event in &appended {
            // Fails only when nobody listens.
            let _ = self.feed.send(Arc::new(event.clone()));
        }
        Ok(appended)
    }

    async fn read(&self, session: &SessionId, from: u64) -> Result<Vec<StoredEvent>, ReadError> {
        let sessions = self.sessions();
        let Some(log) = sessions.get(session) else { return Ok(Vec::new()) };
        let start = usize::try_from(from.saturating_sub(1)).unwrap_or(usize::MAX);
        Ok(log.events.get(start..).unwrap_or_default().to_vec())
    }

    fn subscribe(&self) -> broadcast::Receiver<Arc<StoredEvent>> {
        self.feed.subscribe()
    }
}
