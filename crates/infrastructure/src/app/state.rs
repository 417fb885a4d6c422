//! A session as its log tells it.

use std::collections::HashMap;
use std::sync::Arc;

use correx_events::{BlobHash, BlobStore, SessionId};
use correx_inference::GenerationConfig;
use correx_orchestration::Workflow;
use correx_sessions::{EventReplayer, IncrementalReplayer, ReplayError, RunReducer, RunState};
use correx_store::Store;
use tokio::sync::Mutex;

use crate::view::Planned;

/// Folded logs, and what their workflows plan.
pub(super) struct Sessions {
    store: Store,
    runs: IncrementalReplayer<RunReducer>,
    planned: Mutex<HashMap<BlobHash, Arc<Planned>>>,
    base: GenerationConfig,
}

impl Sessions {
    pub(super) fn new(store: Store, base: GenerationConfig) -> Self {
        let runs = IncrementalReplayer::new(store.events(), RunReducer);
        Self { store, runs, planned: Mutex::default(), base }
    }

    /// The run after every event that the log holds now.
    pub(super) async fn run(&self, session: &SessionId) -> Result<RunState, ReplayError> {
        self.runs.rebuild(session).await
    }

    /// What the run's workflow plans; nothing when it cannot be read (any more).
    pub(super) async fn planned(&self, state: &RunState) -> Arc<Planned> {
        let Some(workflow) = &state.workflow else { return Arc::default() };
        let mut known = self.planned.lock().await;
        if let Some(planned) = known.get(&workflow.source) {
            return planned.clone();
        }
        let planned = Arc::new(self.read(&workflow.source).await.unwrap_or_default());
        known.insert(workflow.source.clone(), planned.clone());
        planned
    }

    async fn read(&self, source: &BlobHash) -> Option<Planned> {
        let bytes = self.store.get(source).await.ok()??;
        let workflow = Workflow::parse(std::str::from_utf8(&bytes).ok()?).ok()?;
        Some(Planned::of(&workflow, &self.base))
    }

    /// Forgets a session that was deleted.
    pub(super) async fn forget(&self, session: &SessionId) {
        self.runs.forget(session).await;
    }
}
