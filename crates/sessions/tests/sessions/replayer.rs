//! Rebuilding from the log: whole and incremental replay are the same.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use correx_events::testing::{CountingIds, FixedClock};
use correx_events::{
    Append, AppendError, EventPayload, EventStore, MemoryEventStore, ReadError, SessionId,
    StoredEvent,
};
use correx_sessions::{
    DefaultEventReplayer, EventReplayer, IncrementalReplayer, ReplayError, RunReducer, RunState,
    WorkflowStatus,
};
use proptest::prelude::*;
use tokio::sync::broadcast;

use crate::given::{any_payload, begin, complete, run, started};

/// A log that remembers from where it was read, and fails when told to.
struct WatchedLog {
    inner: MemoryEventStore,
    failures: AtomicU64,
    reads: Mutex<Vec<u64>>,
}

impl WatchedLog {
    fn new() -> Arc<Self> {
        let clock = Arc::new(FixedClock::default());
        Arc::new(Self {
            inner: MemoryEventStore::new(clock, Arc::new(CountingIds::default())),
            failures: AtomicU64::new(0),
            reads: Mutex::default(),
        })
    }

    fn fail_next_read(&self) {
        self.failures.store(1, Ordering::Relaxed);
    }

    fn reads(&self) -> Vec<u64> {
        std::mem::take(&mut *self.reads.lock().unwrap())
    }
}

#[async_trait]
impl EventStore for WatchedLog {
    async fn append(&self, append: Append) -> Result<Vec<StoredEvent>, AppendError> {
        self.inner.append(append).await
    }

    async fn read(&self, session: &SessionId, from: u64) -> Result<Vec<StoredEvent>, ReadError> {
        self.reads.lock().unwrap().push(from);
        if self.failures.swap(0, Ordering::Relaxed) > 0 {
            return Err(ReadError("the disk is gone".into()));
        }
        self.inner.read(session, from).await
    }

    fn subscribe(&self) -> broadcast::Receiver<Arc<StoredEvent>> {
        self.inner.subscribe()
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn append(log: &WatchedLog, session: &str, payloads: Vec<EventPayload>) {
    block_on(log.append(Append::any(session.into(), payloads))).unwrap();
}

fn both(
    log: &Arc<WatchedLog>,
) -> (DefaultEventReplayer<RunReducer>, IncrementalReplayer<RunReducer>) {
    (
        DefaultEventReplayer::new(log.clone(), RunReducer),
        IncrementalReplayer::new(log.clone(), RunReducer),
    )
}

#[test]
fn an_empty_log_gives_the_initial_state_at_version_zero() {
    let (whole, incremental) = both(&WatchedLog::new());
    let replayers: [&dyn EventReplayer<RunState>; 2] = [&whole, &incremental];
    for replayer in replayers {
        let found = block_on(replayer.rebuild_versioned(&"s".into())).unwrap();
        assert_eq!((found.state, found.version), (RunState::default(), 0));
    }
}

#[test]
fn a_rebuilt_state_is_the_fold_of_the_log_with_its_last_number_as_version() {
    let log = WatchedLog::new();
    append(&log, "s", vec![started(&["a", "b"]), begin("a", 1), complete("a", Some("b"))]);
    let (whole, incremental) = both(&log);
    let replayers: [&dyn EventReplayer<RunState>; 2] = [&whole, &incremental];
    for replayer in replayers {
        let found = block_on(replayer.rebuild_versioned(&"s".into())).unwrap();
        assert_eq!(found.version, 3);
        assert_eq!(found.state.status, WorkflowStatus::Running);
        assert_eq!(found.state.current_stage, Some("b".into()));
        assert_eq!(block_on(replayer.rebuild(&"s".into())).unwrap(), found.state);
    }
}

#[test]
fn an_incremental_replay_reads_only_what_is_new() {
    let log = WatchedLog::new();
    let (whole, incremental) = both(&log);
    append(&log, "s", vec![started(&["a"]), begin("a", 1)]);
    block_on(incremental.rebuild(&"s".into())).unwrap();
    block_on(incremental.rebuild(&"s".into())).unwrap();
    append(&log, "s", vec![complete("a", None)]);
    block_on(incremental.rebuild(&"s".into())).unwrap();
    block_on(incremental.rebuild(&"s".into())).unwrap();
    assert_eq!(log.reads(), [1, 3, 3, 4]);
    block_on(whole.rebuild(&"s".into())).unwrap();
    block_on(whole.rebuild(&"s".into())).unwrap();
    assert_eq!(log.reads(), [1, 1]);
}

#[test]
fn a_forgotten_session_is_replayed_from_the_start_and_the_others_are_not() {
    let log = WatchedLog::new();
    let (_, incremental) = both(&log);
    for session in ["s", "t"] {
        append(&log, session, vec![started(&["a"])]);
        block_on(incremental.rebuild(&session.into())).unwrap();
    }
    log.reads();
    block_on(incremental.forget(&"s".into()));
    let found = block_on(incremental.rebuild_versioned(&"s".into())).unwrap();
    assert_eq!((found.version, found.state.status), (1, WorkflowStatus::Running));
    block_on(incremental.rebuild(&"t".into())).unwrap();
    assert_eq!(log.reads(), [1, 2]);
}

#[test]
fn a_failed_read_is_reported_and_forgets_nothing() {
    let log = WatchedLog::new();
    let (whole, incremental) = both(&log);
    append(&log, "s", vec![started(&["a", "b"]), begin("a", 1)]);
    let before = block_on(incremental.rebuild_versioned(&"s".into())).unwrap();
    append(&log, "s", vec![complete("a", Some("b"))]);

    log.fail_next_read();
    let error = block_on(incremental.rebuild(&"s".into())).unwrap_err();
    assert_eq!(error, ReplayError(ReadError("the disk is gone".into())));
    assert!(error.to_string().contains("the disk is gone"));
    log.fail_next_read();
    assert_eq!(block_on(whole.rebuild(&"s".into())).unwrap_err(), error);

    log.reads();
    let after = block_on(incremental.rebuild_versioned(&"s".into())).unwrap();
    assert_eq!(log.reads(), [before.version + 1], "what was known is still known");
    assert_eq!(after, block_on(whole.rebuild_versioned(&"s".into())).unwrap());
}

/// What happens to the logs of three sessions.
#[derive(Debug, Clone)]
enum Step {
    Append(usize, Vec<EventPayload>),
    Read(usize),
    FailingRead(usize),
    Forget(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    let payloads = prop::collection::vec(any_payload(), 0..5);
    prop_oneof![
        4 => (0..3_usize, payloads).prop_map(|(session, payloads)| Step::Append(session, payloads)),
        3 => (0..3_usize).prop_map(Step::Read),
        1 => (0..3_usize).prop_map(Step::FailingRead),
        1 => (0..3_usize).prop_map(Step::Forget),
    ]
}

proptest! {
    #[test]
    fn incremental_replay_equals_full_replay_whenever_it_is_asked(
        steps in prop::collection::vec(any_step(), 0..30)
    ) {
        let sessions = ["s", "t", "u"].map(SessionId::new);
        let log = WatchedLog::new();
        let (whole, incremental) = both(&log);
        let compare = |session: &SessionId| {
            let expected = block_on(whole.rebuild_versioned(session)).unwrap();
            let found = block_on(incremental.rebuild_versioned(session)).unwrap();
            prop_assert_eq!(found, expected);
            Ok(())
        };
        for step in steps {
            match step {
                Step::Append(session, payloads) => append(&log, sessions[session].as_str(), payloads),
                Step::Read(session) => compare(&sessions[session])?,
                Step::FailingRead(session) => {
                    log.fail_next_read();
                    prop_assert!(block_on(incremental.rebuild(&sessions[session])).is_err());
                }
                Step::Forget(session) => block_on(incremental.forget(&sessions[session])),
            }
        }
        for session in &sessions {
            compare(session)?;
        }
    }

    /// Each session's state is what its own events give, however the appends were mixed.
    #[test]
    fn sessions_never_mix(
        appends in prop::collection::vec((0..2_usize, any_payload()), 0..30)
    ) {
        let log = WatchedLog::new();
        let (_, incremental) = both(&log);
        let mut own = [Vec::new(), Vec::new()];
        for (session, payload) in appends {
            append(&log, ["s", "t"][session], vec![payload.clone()]);
            own[session].push(payload);
            block_on(incremental.rebuild(&["s", "t"][session].into())).unwrap();
        }
        for (session, payloads) in ["s", "t"].into_iter().zip(own) {
            let found = block_on(incremental.rebuild(&session.into())).unwrap();
            let expected = run(payloads);
            prop_assert_eq!(found.version, expected.version);
            prop_assert_eq!(&found.stages.iter().map(|stage| stage.status).collect::<Vec<_>>(),
                &expected.stages.iter().map(|stage| stage.status).collect::<Vec<_>>());
            prop_assert_eq!(found.status, expected.status);
            prop_assert_eq!(found.current_stage, expected.current_stage);
            prop_assert_eq!(found.session_id, expected.session_id.map(|_| session.into()));
            prop_assert_eq!(found.notes.all().len(), expected.notes.all().len());
        }
    }
}
