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

/// Rebuilds a session's state.
#[async_trait]
pub trait EventReplayer<S>: Send + Sync {
    /// The state after every event that the log holds now.
    async fn rebuild(&self, session: &SessionId) -> Result<S, ReplayError>;
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
    P::State: Send,
{
    async fn rebuild(&self, session: &SessionId) -> Result<P::State, ReplayError> {
        let events = self.store.read(session, 1).await?;
        Ok(events
            .iter()
            .fold(self.projection.initial(), |state, event| self.projection.apply(state, event)))
    }
}

/// Remembers each session's state and folds only what is new. Equal to a full replay, because a
/// log only ever grows.
pub struct IncrementalReplayer<P: Projection> {
    store: Arc<dyn EventStore>,
    projection: P,
    known: Mutex<HashMap<SessionId, Known<P::State>>>,
}

struct Known<S> {
    state: S,
    last_sequence: u64,
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
    P::State: Clone + Send + Sync,
{
    async fn rebuild(&self, session: &SessionId) -> Result<P::State, ReplayError> {
        let mut known = self.known.lock().await;
        let from = known.get(session).map_or(1, |known| known.last_sequence + 1);
        let events = self.store.read(session, from).await?;
        // Taken out only after the read, so that a failed read forgets nothing.
        let Known { mut state, mut last_sequence } = known
            .remove(session)
            .unwrap_or_else(|| Known { state: self.projection.initial(), last_sequence: 0 });
        for event in &events {
            state = self.projection.apply(state, event);
            last_sequence = event.metadata.sequence;
        }
        known.insert(session.clone(), Known { state: state.clone(), last_sequence });
        Ok(state)
    }
}
