//! Pure folds over events.

use correx_events::StoredEvent;

/// Decides what one event does to a state. No I/O, no clock: equal events give equal states.
pub trait Reducer: Send + Sync {
    /// What is folded.
    type State;

    /// The state before any event.
    fn initial(&self) -> Self::State;

    /// The state after `event`.
    fn reduce(&self, state: Self::State, event: &StoredEvent) -> Self::State;
}

/// A state as a replayer sees it.
pub trait Projection: Send + Sync {
    /// What is folded.
    type State;

    /// The state before any event.
    fn initial(&self) -> Self::State;

    /// The state after `event`.
    fn apply(&self, state: Self::State, event: &StoredEvent) -> Self::State;
}

/// The projection that a reducer defines.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReducerProjection<R>(pub R);

impl<R: Reducer> Projection for ReducerProjection<R> {
    type State = R::State;

    fn initial(&self) -> Self::State {
        self.0.initial()
    }

    fn apply(&self, state: Self::State, event: &StoredEvent) -> Self::State {
        self.0.reduce(state, event)
    }
}
