//! The log, as a trait.

use std::sync::Arc;

use async_trait::async_trait;
use thiserror::Error;
use tokio::sync::broadcast;

use crate::{ClientMessageId, EventPayload, SessionId, StoredEvent};

/// An append-only log of events per session.
#[async_trait]
pub trait EventStore: Send + Sync {
    /// Appends payloads in order, all or none. When it returns `Ok`, they are durable.
    ///
    /// With a client message id that this session has already seen, nothing is appended and the
    /// events of the first time are returned.
    async fn append(&self, append: Append) -> Result<Vec<StoredEvent>, AppendError>;

    /// The session's events with a sequence number of at least `from`, in order. A session that
    /// does not exist has none.
    async fn read(&self, session: &SessionId, from: u64) -> Result<Vec<StoredEvent>, ReadError>;

    /// Every event appended from now on, in order. A receiver that lags learns so from the
    /// channel and catches up by [`EventStore::read`].
    fn subscribe(&self) -> broadcast::Receiver<Arc<StoredEvent>>;
}

/// What to append, and under which condition.
#[derive(Debug, Clone)]
pub struct Append {
    /// The session.
    pub session: SessionId,
    /// The condition.
    pub expected: ExpectedVersion,
    /// What happened, in order.
    pub payloads: Vec<EventPayload>,
    /// Makes the append idempotent.
    pub client_message_id: Option<ClientMessageId>,
}

impl Append {
    /// Appends whatever the version is.
    pub fn any(session: SessionId, payloads: Vec<EventPayload>) -> Self {
        Self { session, expected: ExpectedVersion::Any, payloads, client_message_id: None }
    }

    /// Appends only if the session's last sequence number is `version`.
    pub fn at(session: SessionId, version: u64, payloads: Vec<EventPayload>) -> Self {
        Self {
            session,
            expected: ExpectedVersion::Exactly(version),
            payloads,
            client_message_id: None,
        }
    }

    /// The same, acting once for `id`.
    pub fn once(mut self, id: Option<ClientMessageId>) -> Self {
        self.client_message_id = id;
        self
    }
}

/// Optimistic concurrency: what the log must look like for an append to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedVersion {
    /// Anything.
    Any,
    /// The session's last sequence number is this one; 0 for a session without events.
    Exactly(u64),
}

/// Why nothing was appended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AppendError {
    /// Somebody else appended in between: read on and decide again.
    #[error("the session is at event {actual}, not {expected}")]
    VersionConflict {
        /// What the caller knew.
        expected: u64,
        /// What is so.
        actual: u64,
    },
    /// The store could not write. Nothing was changed.
    #[error("the event log could not be written: {0}")]
    Storage(String),
}

/// Why the log could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the event log could not be read: {0}")]
pub struct ReadError(pub String);
