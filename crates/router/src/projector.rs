//! The reducer as a projection.

use correx_events::StoredEvent;
use correx_sessions::Projection;

use crate::{RouterReducer, RouterState};

/// Replays the router's state through a reducer.
#[derive(Debug, Clone, Copy, Default)]
pub struct RouterProjector<R> {
    reducer: R,
}

impl<R: RouterReducer> RouterProjector<R> {
    /// A projection through `reducer`.
    pub fn new(reducer: R) -> Self {
        Self { reducer }
    }
}

impl<R: RouterReducer> Projection for RouterProjector<R> {
    type State = RouterState;

    fn initial(&self) -> RouterState {
        self.reducer.initial()
    }

    fn apply(&self, state: RouterState, event: &StoredEvent) -> RouterState {
        self.reducer.reduce(state, event)
    }
}
