//! What the tests share: a store in a directory that goes away, a clock and ids that are known.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use correx_events::{
    Append, Clock, EventPayload, EventStore, IdSource, RandomIds, SessionId, StoredEvent,
    SystemClock, Timestamp, WorkflowCompleted,
};
use correx_store::Store;
use tempfile::TempDir;

/// Ticks one second per look.
#[derive(Default)]
pub(crate) struct TickingClock(AtomicI64);

impl Clock for TickingClock {
    fn now(&self) -> Timestamp {
        let seconds = self.0.fetch_add(1, Ordering::SeqCst);
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }
}

/// Always the same moment.
pub(crate) struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap()
    }
}

/// `e1`, `e2`, …
#[derive(Default)]
pub(crate) struct CountedIds(AtomicU64);

impl IdSource for CountedIds {
    fn next_id(&self) -> String {
        format!("e{}", self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

/// A new store in a new directory.
pub(crate) fn new_store() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Arc::<TickingClock>::default(), Arc::new(RandomIds));
    let store = store.unwrap();
    (dir, store)
}

/// The store in `dir`, with real time and ids.
pub(crate) fn open(dir: &Path) -> Store {
    Store::open(dir, Arc::new(SystemClock), Arc::new(RandomIds)).unwrap()
}

/// A payload that carries a number.
pub(crate) fn numbered(number: u64) -> EventPayload {
    WorkflowCompleted { duration_ms: number }.into()
}

/// The number in such a payload.
pub(crate) fn number_of(event: &StoredEvent) -> u64 {
    match &event.payload {
        EventPayload::WorkflowCompleted(completed) => completed.duration_ms,
        other => panic!("not a numbered payload: {other:?}"),
    }
}

/// Appends payloads with these numbers, whatever the version is.
pub(crate) async fn append(store: &Store, session: &SessionId, numbers: &[u64]) {
    let payloads = numbers.iter().copied().map(numbered).collect();
    EventStore::append(store, Append::any(session.clone(), payloads)).await.unwrap();
}

/// All events of a session.
pub(crate) async fn all(store: &Store, session: &SessionId) -> Vec<StoredEvent> {
    store.read(session, 1).await.unwrap()
}

/// A session by name.
pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name)
}
