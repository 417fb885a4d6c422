//! Rebuilding a state from the log.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use correx_events::{EventStore, ReadError, SessionId};
use thiserror::Error;
use tokio::sync::Mutex;

use crate::Projection;

/// Why a state could not be rebuilt.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(transparent)]
pub struct ReplayError(#[from] pub ReadError);

/// A state and the sequence number of the last event in it: the version for an append that must
/// only happen if nothing else did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned<S> {
    /// The state.
    pub state: S,
    /// The last event folded; 0 for none.
    pub version: u64,
}

/// Rebuilds a session's state.
#[async_trait]
pub trait EventReplayer<S: Send>: Send + Sync {
    /// The state after every event that the log holds now, with its version.
    async fn rebuild_versioned(&self, session: &SessionId) -> Result<Versioned<S>, ReplayError>;

    /// The state after every event that the log holds now.
    async fn rebuild(&self, session: &SessionId) -> Result<S, ReplayError> {
        Ok(self.rebuild_versioned(session).await?.state)
    }
}

/// Folds the whole log at every call.
pub struct DefaultEventReplayer<P> {
    store: Arc<dyn EventStore>,
    projection: P,
}

impl<P> DefaultEventReplayer<P> {
    /// Replays `store` through `projection`.
    pub fn new(store: Arc<dyn EventStore>, projection: P) -> Self {
        Self { store, projection }
    }
}

#[async_trait]
impl<P: Projection> EventReplayer<P::State> for DefaultEventReplayer<P>
where
    P::State: Send + 'static,
{
    async fn rebuild_versioned(
        &self,
        session: &SessionId,
    ) -> Result<Versioned<P::State>, ReplayError> {
        let events = self.store.read(session, 1).await?;
        let version = events.last().map_or(0, |event| event.metadata.sequence);
        let state = events
            .iter()
            .fold(self.projection.initial(), |state, event| self.projection.apply(state, event));
        Ok(Versioned { state, version })
    }
}

/// Remembers each session's state and folds only what is new. Equal to a full replay, because a
/// log only ever grows.
pub struct IncrementalReplayer<P: Projection> {
    store: Arc<dyn EventStore>,
    projection: P,
    known: Mutex<HashMap<SessionId, Versioned<P::State>>>,
}

impl<P: Projection> IncrementalReplayer<P> {
    /// Replays `store` through `projection`.
    pub fn new(store: Arc<dyn EventStore>, projection: P) -> Self {
        Self { store, projection, known: Mutex::default() }
    }

    /// Forgets what is known of a session (it was deleted).
    pub async fn forget(&self, session: &SessionId) {
        self.known.lock().await.remove(session);
    }
}

#[async_trait]
impl<P: Projection> EventReplayer<P::State> for IncrementalReplayer<P>
where
    P::State: Clone + Send + Sync + 'static,
{
    async fn rebuild_versioned(
        &self,
        session: &SessionId,
    ) -> Result<Versioned<P::State>, ReplayError> {
        let mut known = self.known.lock().await;
        let from = known.get(session).map_or(1, |known| known.version + 1);
        let events = self.store.read(session, from).await?;
        // Taken out only after the read, so that a failed read forgets nothing.
        let Versioned { mut state, mut version } = known
            .remove(session)
            .unwrap_or_else(|| Versioned { state: self.projection.initial(), version: 0 });
        for event in &events {
            state = self.projection.apply(state, event);
            version = event.metadata.sequence;
        }
        let now = Versioned { state, version };
        known.insert(session.clone(), now.clone());
        Ok(now)
    }
}
