//! The event log.

use std::sync::{Arc, Mutex, mpsc};

use correx_events::{
    Append, AppendError, ClientMessageId, Clock, EventPayload, EventStore, ExpectedVersion,
    MemoryEventStore, RandomIds, Timestamp, UnknownPayload, UnknownReason, codec,
};
use correx_store::Store;
use proptest::prelude::*;
use tokio::sync::broadcast::error::RecvError;

use crate::samples::one_of_each;
use crate::support::{
    CountedIds, StoppedClock, all, append, new_store, number_of, numbered, open, session,
};

#[tokio::test]
async fn events_come_back_in_order_numbered_from_one_without_gaps() {
    let (_dir, store) = new_store();
    append(&store, &session("a"), &[10, 11]).await;
    append(&store, &session("b"), &[20]).await;
    append(&store, &session("a"), &[12]).await;

    let events = all(&store, &session("a")).await;
    assert_eq!(events.iter().map(number_of).collect::<Vec<_>>(), [10, 11, 12]);
    assert_eq!(events.iter().map(|e| e.metadata.sequence).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(events.iter().all(|e| e.metadata.session_id == session("a")));
    assert_eq!(store.read(&session("a"), 3).await.unwrap(), events[2..]);
    assert_eq!(store.read(&session("a"), 0).await.unwrap(), events);
    assert!(store.read(&session("a"), 4).await.unwrap().is_empty());
    assert!(store.read(&session("nobody"), 1).await.unwrap().is_empty());
}

#[tokio::test]
async fn sessions_whose_names_begin_alike_do_not_mix() {
    let (_dir, store) = new_store();
    for name in ["s", "s1", "s\0", "s\u{10ffff}", ""] {
        append(&store, &session(name), &[name.len() as u64]).await;
    }
    for name in ["s", "s1", "s\0", "s\u{10ffff}", ""] {
        let events = all(&store, &session(name)).await;
        assert_eq!(events.iter().map(number_of).collect::<Vec<_>>(), [name.len() as u64]);
    }
    store.delete_session(&session("s")).await.unwrap();
    for name in ["s1", "s\0", "s\u{10ffff}", ""] {
        assert_eq!(all(&store, &session(name)).await.len(), 1, "{name:?}");
    }
}

#[tokio::test]
async fn an_append_at_an_old_version_is_refused_and_changes_nothing() {
    let (_dir, store) = new_store();
    let a = session("a");
    let first = Append::at(a.clone(), 0, vec![numbered(1), numbered(2)]);
    EventStore::append(&store, first).await.unwrap();

    for expected in [0, 1, 3] {
        let stale = Append::at(a.clone(), expected, vec![numbered(9)]);
        let error = EventStore::append(&store, stale).await.unwrap_err();
        assert_eq!(error, AppendError::VersionConflict { expected, actual: 2 });
    }
    assert_eq!(all(&store, &a).await.len(), 2);
    EventStore::append(&store, Append::at(a.clone(), 2, vec![numbered(3)])).await.unwrap();
    assert_eq!(all(&store, &a).await.len(), 3);
}

#[tokio::test]
async fn of_many_appends_at_one_version_exactly_one_wins() {
    let (_dir, store) = new_store();
    let rivals: Vec<_> = (0..32)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                EventStore::append(&store, Append::at(session("a"), 0, vec![numbered(n)])).await
            })
        })
        .collect();
    let mut winners = 0;
    for rival in rivals {
        match rival.await.unwrap() {
            Ok(_) => winners += 1,
            Err(error) => {
                assert_eq!(error, AppendError::VersionConflict { expected: 0, actual: 1 });
            }
        }
    }
    assert_eq!(winners, 1);
    assert_eq!(all(&store, &session("a")).await.len(), 1);
}

#[tokio::test]
async fn a_client_message_acts_once_also_after_reopening() {
    let (dir, store) = new_store();
    let id = || Some(ClientMessageId::new("m1"));
    let send = |session_name: &str, number| {
        Append::any(session(session_name), vec![numbered(number), numbered(number)]).once(id())
    };
    let first = EventStore::append(&store, send("a", 1)).await.unwrap();
    append(&store, &session("a"), &[5]).await;
    assert_eq!(EventStore::append(&store, send("a", 2)).await.unwrap(), first);
    drop(store);

    let store = open(dir.path());
    assert_eq!(EventStore::append(&store, send("a", 3)).await.unwrap(), first);
    assert_eq!(all(&store, &session("a")).await.len(), 3);
    let other = EventStore::append(&store, send("b", 4)).await.unwrap();
    assert_eq!(number_of(&other[0]), 4, "the id belongs to its session");
}

#[tokio::test]
async fn a_repeated_client_message_is_not_announced_again() {
    let (_dir, store) = new_store();
    let mut feed = store.subscribe();
    for _ in 0..2 {
        let append = Append::any(session("a"), vec![numbered(1)]);
        EventStore::append(&store, append.once(Some("m1".into()))).await.unwrap();
    }
    append(&store, &session("a"), &[2]).await;
    assert_eq!(number_of(&feed.recv().await.unwrap()), 1);
    assert_eq!(number_of(&feed.recv().await.unwrap()), 2);
}

#[tokio::test]
async fn appends_that_come_together_share_commits() {
    let (_dir, store) = new_store();
    let before = store.diagnostics();
    let appends: Vec<_> = (0..64)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(
                async move { append(&store, &session(&format!("s{}", n % 4)), &[n]).await },
            )
        })
        .collect();
    for append in appends {
        append.await.unwrap();
    }
    let after = store.diagnostics();
    assert_eq!(after.writes - before.writes, 64);
    let commits = after.commits - before.commits;
    assert!(commits <= 16, "64 appends took {commits} commits");
}

#[tokio::test]
async fn subscribers_see_every_event_once_in_the_order_of_the_log() {
    let (_dir, store) = new_store();
    let mut feed = store.subscribe();
    let appends: Vec<_> = (0..50)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { append(&store, &session("a"), &[n, 1000 + n]).await })
        })
        .collect();
    for append in appends {
        append.await.unwrap();
    }
    let log = all(&store, &session("a")).await;
    assert_eq!(log.len(), 100);
    for event in &log {
        assert_eq!(*feed.recv().await.unwrap(), *event);
    }
    assert!(feed.try_recv().is_err());
}

#[tokio::test]
async fn an_announced_event_can_already_be_read() {
    let (_dir, store) = new_store();
    let mut feed = store.subscribe();
    let writer = store.clone();
    let appending = tokio::spawn(async move {
        for n in 0..20 {
            append(&writer, &session("a"), &[n]).await;
        }
    });
    for _ in 0..20 {
        let announced = feed.recv().await.unwrap();
        let read = store.read(&session("a"), announced.metadata.sequence).await.unwrap();
        assert_eq!(read.first(), Some(&*announced));
    }
    appending.await.unwrap();
}

#[tokio::test]
async fn a_subscriber_that_lags_is_told_and_catches_up_by_reading() {
    let (_dir, store) = new_store();
    let mut feed = store.subscribe();
    let numbers: Vec<u64> = (1..=5000).collect();
    append(&store, &session("a"), &numbers).await;

    let missed = match feed.recv().await {
        Err(RecvError::Lagged(missed)) => missed,
        other => panic!("{other:?}"),
    };
    let mut seen: Vec<u64> = Vec::new();
    while let Ok(event) = feed.try_recv() {
        seen.push(event.metadata.sequence);
    }
    assert_eq!(seen.len() as u64 + missed, 5000);
    let caught_up = all(&store, &session("a")).await;
    assert_eq!(caught_up.iter().map(number_of).collect::<Vec<_>>(), numbers);
}

/// Holds the writer inside its transaction, where it asks for the time, until it is told to go on.
struct HeldClock {
    entered: mpsc::SyncSender<()>,
    go_on: Mutex<mpsc::Receiver<()>>,
}

impl Clock for HeldClock {
    fn now(&self) -> Timestamp {
        self.entered.send(()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap();
        Timestamp::UNIX_EPOCH
    }
}

#[tokio::test]
async fn reads_do_not_wait_for_a_writer_that_is_busy() {
    let dir = tempfile::tempdir().unwrap();
    append(&open(dir.path()), &session("a"), &[1]).await;
    let (entered, has_entered) = mpsc::sync_channel(1);
    let (go, go_on) = mpsc::channel();
    let clock = HeldClock { entered, go_on: Mutex::new(go_on) };
    let store = Store::open(dir.path(), Arc::new(clock), Arc::new(RandomIds)).unwrap();

    let writer = store.clone();
    let busy = tokio::spawn(async move { append(&writer, &session("a"), &[2]).await });
    tokio::task::spawn_blocking(move || has_entered.recv().unwrap()).await.unwrap();
    assert_eq!(all(&store, &session("a")).await.len(), 1, "the last commit is what is read");
    assert!(!busy.is_finished());
    go.send(()).unwrap();
    busy.await.unwrap();
    assert_eq!(all(&store, &session("a")).await.len(), 2);
}

#[tokio::test]
async fn every_event_variant_survives_the_store_byte_for_byte() {
    let (dir, store) = new_store();
    let payloads = one_of_each();
    let append = Append::any(session("a"), payloads.clone());
    let stored = EventStore::append(&store, append).await.unwrap();
    drop(store);

    let store = open(dir.path());
    let read = all(&store, &session("a")).await;
    assert_eq!(read, stored);
    for (event, payload) in read.iter().zip(&payloads) {
        assert_eq!(&event.payload, payload);
        assert_eq!(codec::encode(&event.payload).unwrap(), codec::encode(payload).unwrap());
    }
    let lines = store.read_lines(&session("a"), 1).await.unwrap();
    for (event, line) in read.iter().zip(&lines) {
        assert_eq!(&serde_json::to_string(event).unwrap(), line);
    }
}

#[tokio::test]
async fn an_unknown_kind_is_appended_and_read_byte_for_byte() {
    let (dir, store) = new_store();
    let json = r#"{ "z":1.50, "type":"from_the_future","a":[ 1e2 , {"é":"\u00e9"}],"z":2 }"#;
    let unknown = EventPayload::Unknown(UnknownPayload {
        kind: "from_the_future".into(),
        json: json.into(),
        reason: UnknownReason::NewKind,
    });
    EventStore::append(&store, Append::any(session("a"), vec![unknown.clone()])).await.unwrap();
    drop(store);
    let store = open(dir.path());
    assert_eq!(all(&store, &session("a")).await[0].payload, unknown);
    assert!(store.read_lines(&session("a"), 1).await.unwrap()[0].contains(json));
}

#[tokio::test]
async fn a_damaged_text_that_is_imported_is_kept_as_a_json_string() {
    let (_dir, store) = new_store();
    let damaged = EventPayload::Unknown(UnknownPayload {
        kind: "x".into(),
        json: "{\"type\":\"x\",".into(),
        reason: UnknownReason::NewKind,
    });
    let append = Append::any(session("a"), vec![damaged, numbered(1)]);
    EventStore::append(&store, append).await.unwrap();
    let log = all(&store, &session("a")).await;
    let EventPayload::Unknown(kept) = &log[0].payload else { panic!("{:?}", log[0]) };
    assert_eq!(kept.json, r#""{\"type\":\"x\",""#);
    assert_eq!(number_of(&log[1]), 1);
}

#[tokio::test]
async fn events_are_found_by_their_kind() {
    let (_dir, store) = new_store();
    let payloads = one_of_each();
    for _ in 0..3 {
        let append = Append::any(session("a"), payloads.clone());
        EventStore::append(&store, append).await.unwrap();
    }
    append(&store, &session("b"), &[1]).await;
    let mut kinds = EventPayload::KINDS.to_vec();
    kinds.sort_unstable();
    assert_eq!(store.event_kinds(&session("a")).await.unwrap(), kinds);
    assert_eq!(store.event_kinds(&session("b")).await.unwrap(), ["workflow_completed"]);
    assert!(store.event_kinds(&session("nobody")).await.unwrap().is_empty());

    let log = all(&store, &session("a")).await;
    for kind in kinds {
        let expected: Vec<_> = log.iter().filter(|e| e.payload.kind() == kind).cloned().collect();
        assert_eq!(expected.len(), 3);
        assert_eq!(store.read_kind(&session("a"), kind).await.unwrap(), expected);
    }
    assert!(store.read_kind(&session("a"), "workflow").await.unwrap().is_empty());
}

#[derive(Debug, Clone)]
struct Step {
    session: u8,
    /// How far the expected version is from the real one; `None` appends whatever it is.
    off: Option<i8>,
    payloads: Vec<usize>,
    message: Option<u8>,
}

fn step() -> impl Strategy<Value = Step> {
    let payloads = prop::collection::vec(0..EventPayload::KINDS.len(), 0..4);
    (0..3_u8, prop::option::of(-1..=1_i8), payloads, prop::option::of(0..4_u8))
        .prop_map(|(session, off, payloads, message)| Step { session, off, payloads, message })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_store_behaves_like_the_store_in_memory(steps in prop::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let ids = || Arc::new(CountedIds::default());
            let store = Store::open(dir.path(), Arc::new(StoppedClock), ids()).unwrap();
            let memory = MemoryEventStore::new(Arc::new(StoppedClock), ids());
            let (mut feed, mut memory_feed) = (store.subscribe(), memory.subscribe());
            let samples = one_of_each();
            for step in steps {
                let name = session(&format!("s{}", step.session));
                let version = memory.read(&name, 1).await.unwrap().len() as u64;
                let append = Append {
                    session: name.clone(),
                    expected: match step.off {
                        None => ExpectedVersion::Any,
                        Some(off) => {
                            ExpectedVersion::Exactly(version.saturating_add_signed(off.into()))
                        }
                    },
                    payloads: step.payloads.iter().map(|&kind| samples[kind].clone()).collect(),
                    client_message_id: step.message.map(|id| format!("m{id}").into()),
                };
                prop_assert_eq!(
                    EventStore::append(&store, append.clone()).await,
                    memory.append(append).await
                );
                for from in [0, 1, version, version + 1] {
                    prop_assert_eq!(store.read(&name, from).await, memory.read(&name, from).await);
                }
            }
            while let Ok(event) = memory_feed.try_recv() {
                prop_assert_eq!(feed.recv().await.unwrap(), event);
            }
            prop_assert!(feed.try_recv().is_err());
            Ok(())
        })?;
    }
}
