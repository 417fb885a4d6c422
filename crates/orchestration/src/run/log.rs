//! The folded log of one session, and appending to it.

use std::sync::Arc;

use correx_events::{Append, AppendError, EventPayload, EventStore, ReadError, SessionId};
use correx_sessions::{Reducer, RunReducer, RunState};

/// Whether an append happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Landed {
    /// It is in the log, and the state has it.
    Yes,
    /// Something came in between; the state has that now. Decide again.
    Overtaken,
}

/// One session's log as one decider sees it.
pub(super) struct SessionLog {
    store: Arc<dyn EventStore>,
    pub(super) session: SessionId,
    pub(super) state: RunState,
}

/// Why the log could not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LogError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{0}")]
    Write(String),
}

impl SessionLog {
    /// A log of which `state` is known.
    pub(super) fn new(store: Arc<dyn EventStore>, session: SessionId, state: RunState) -> Self {
        Self { store, session, state }
    }

    /// Folds what was appended since.
    pub(super) async fn refresh(&mut self) -> Result<(), ReadError> {
        let events = self.store.read(&self.session, self.state.version + 1).await?;
        self.fold(&events);
        Ok(())
    }

    /// Appends what was decided on this state, if it still is the state.
    pub(super) async fn append(&mut self, payloads: Vec<EventPayload>) -> Result<Landed, LogError> {
        let append = Append::at(self.session.clone(), self.state.version, payloads);
        match self.store.append(append).await {
            Ok(events) => {
                self.fold(&events);
                Ok(Landed::Yes)
            }
            Err(AppendError::VersionConflict { .. }) => {
                let seen = self.state.version;
                self.refresh().await?;
                if self.state.version == seen {
                    // Deciding again would go on for ever.
                    return Err(LogError::Write(format!(
                        "the event log of session {} contradicts itself after event {seen}",
                        self.session
                    )));
                }
                Ok(Landed::Overtaken)
            }
            Err(AppendError::Storage(message)) => {
                Err(LogError::Write(format!("the event log could not be written: {message}")))
            }
        }
    }

    fn fold(&mut self, events: &[correx_events::StoredEvent]) {
        let state = std::mem::take(&mut self.state);
        self.state = events.iter().fold(state, |state, event| RunReducer.reduce(state, event));
    }
}
