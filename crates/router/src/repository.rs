//! The router's state by session.

use std::sync::Arc;

use async_trait::async_trait;
use correx_events::SessionId;
use correx_sessions::{EventReplayer, ReplayError, Versioned};

use crate::RouterState;

/// Where the facade gets its state from, once per message.
#[async_trait]
pub trait RouterRepository: Send + Sync {
    /// The state after every event that the log holds now, with its version.
    async fn get_router_state(
        &self,
        session: &SessionId,
    ) -> Result<Versioned<RouterState>, ReplayError>;
}

/// Rebuilds the state through a replayer.
pub struct DefaultRouterRepository {
    replayer: Arc<dyn EventReplayer<RouterState>>,
}

impl DefaultRouterRepository {
    /// Reads through `replayer`.
    pub fn new(replayer: Arc<dyn EventReplayer<RouterState>>) -> Self {
        Self { replayer }
    }
}

#[async_trait]
impl RouterRepository for DefaultRouterRepository {
    async fn get_router_state(
        &self,
        session: &SessionId,
    ) -> Result<Versioned<RouterState>, ReplayError> {
        self.replayer.rebuild_versioned(session).await
    }
}
