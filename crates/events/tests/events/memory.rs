//! The log in memory: the rules that every log keeps.

use std::sync::Arc;

use correx_events::testing::{CountingIds, FixedClock, samples};
use correx_events::{
    Append, AppendError, ClientMessageId, Clock as _, EventPayload, EventStore, MemoryEventStore,
    OrchestrationResumed, SessionId, StageStarted, StoredEvent,
};
use proptest::prelude::*;
use tokio::sync::broadcast::error::TryRecvError;

fn log() -> MemoryEventStore {
    MemoryEventStore::new(Arc::new(FixedClock::default()), Arc::new(CountingIds::default()))
}

fn session(name: &str) -> SessionId {
    SessionId::new(name)
}

/// `count` payloads that can be told apart.
fn starts(count: u32) -> Vec<EventPayload> {
    (1..=count).map(|attempt| StageStarted { stage_id: "a".into(), attempt }.into()).collect()
}

fn once(name: &str, message: &str, payloads: Vec<EventPayload>) -> Append {
    Append::any(session(name), payloads).once(Some(ClientMessageId::new(message)))
}

fn sequences(events: &[StoredEvent]) -> Vec<u64> {
    events.iter().map(|event| event.metadata.sequence).collect()
}

#[tokio::test]
async fn events_are_numbered_from_one_without_gaps_in_each_session() {
    let log = log();
    let first = log.append(Append::any(session("a"), starts(2))).await.unwrap();
    let other = log.append(Append::any(session("b"), starts(1))).await.unwrap();
    let second = log.append(Append::any(session("a"), starts(3))).await.unwrap();
    assert_eq!(sequences(&first), [1, 2]);
    assert_eq!(sequences(&other), [1]);
    assert_eq!(sequences(&second), [3, 4, 5]);
    let all = log.read(&session("a"), 1).await.unwrap();
    assert_eq!(all, [first, second].concat());
    assert_eq!(log.read(&session("b"), 1).await.unwrap(), other);
}

#[tokio::test]
async fn an_event_gets_its_session_time_and_an_id_of_its_own() {
    let log = log();
    let events = log.append(Append::any(session("a"), starts(2))).await.unwrap();
    let ids: Vec<&str> = events.iter().map(|event| event.metadata.event_id.as_str()).collect();
    assert_eq!(ids, ["id-1", "id-2"]);
    for event in &events {
        assert_eq!(event.metadata.session_id, session("a"));
        assert_eq!(event.metadata.timestamp, FixedClock::default().now());
    }
    let payloads: Vec<EventPayload> = events.into_iter().map(|event| event.payload).collect();
    assert_eq!(payloads, starts(2));
}

#[tokio::test]
async fn reading_starts_at_the_number_asked_for() {
    let log = log();
    log.append(Append::any(session("a"), starts(3))).await.unwrap();
    for (from, expected) in
        [(0, vec![1, 2, 3]), (1, vec![1, 2, 3]), (2, vec![2, 3]), (3, vec![3]), (4, vec![])]
    {
        let read = log.read(&session("a"), from).await.unwrap();
        assert_eq!(sequences(&read), expected, "from {from}");
    }
    assert_eq!(log.read(&session("a"), u64::MAX).await.unwrap(), []);
    assert_eq!(log.read(&session("nobody"), 1).await.unwrap(), []);
}

#[tokio::test]
async fn an_append_at_another_version_is_refused_and_changes_nothing() {
    let log = log();
    for (expected, actual) in [(1, 0), (u64::MAX, 0)] {
        assert_eq!(
            log.append(Append::at(session("a"), expected, starts(1))).await,
            Err(AppendError::VersionConflict { expected, actual })
        );
    }
    log.append(Append::at(session("a"), 0, starts(2))).await.unwrap();
    for expected in [0, 1, 3] {
        assert_eq!(
            log.append(Append::at(session("a"), expected, starts(1))).await,
            Err(AppendError::VersionConflict { expected, actual: 2 })
        );
    }
    assert_eq!(log.read(&session("a"), 1).await.unwrap().len(), 2);
    let third = log.append(Append::at(session("a"), 2, starts(1))).await.unwrap();
    assert_eq!(sequences(&third), [3]);
    // Another session has a version of its own.
    log.append(Append::at(session("b"), 0, starts(1))).await.unwrap();
}

#[tokio::test]
async fn a_client_message_sent_twice_acts_once() {
    let log = log();
    let first = log.append(once("a", "m-1", starts(2))).await.unwrap();
    log.append(Append::any(session("a"), vec![OrchestrationResumed {}.into()])).await.unwrap();
    let mut feed = log.subscribe();

    let again = log.append(once("a", "m-1", starts(5))).await.unwrap();
    assert_eq!(again, first);
    // Also where the version would be refused by now: it has happened already.
    let late = Append::at(session("a"), 0, starts(2)).once(Some(ClientMessageId::new("m-1")));
    assert_eq!(log.append(late).await.unwrap(), first);
    assert_eq!(log.read(&session("a"), 1).await.unwrap().len(), 3);
    assert_eq!(feed.try_recv().unwrap_err(), TryRecvError::Empty);

    let other = log.append(once("a", "m-2", starts(1))).await.unwrap();
    assert_eq!(sequences(&other), [4]);
    let elsewhere = log.append(once("b", "m-1", starts(1))).await.unwrap();
    assert_eq!(sequences(&elsewhere), [1]);
}

#[tokio::test]
async fn a_refused_client_message_may_come_again() {
    let log = log();
    let refused = Append::at(session("a"), 7, starts(1)).once(Some(ClientMessageId::new("m-1")));
    log.append(refused).await.unwrap_err();
    let accepted = log.append(once("a", "m-1", starts(1))).await.unwrap();
    assert_eq!(sequences(&accepted), [1]);
}

#[tokio::test]
async fn a_subscriber_hears_every_later_event_in_order() {
    let log = log();
    log.append(Append::any(session("a"), starts(1))).await.unwrap();
    let mut feed = log.subscribe();
    let mut expected = log.append(Append::any(session("a"), samples())).await.unwrap();
    expected.extend(log.append(Append::any(session("b"), starts(2))).await.unwrap());
    log.append(Append::at(session("b"), 0, starts(1))).await.unwrap_err();
    for event in expected {
        assert_eq!(*feed.try_recv().unwrap(), event);
    }
    assert_eq!(feed.try_recv().unwrap_err(), TryRecvError::Empty);
}

#[tokio::test]
async fn a_subscriber_that_falls_behind_learns_so_and_catches_up_by_reading() {
    let log = log();
    let mut feed = log.subscribe();
    log.append(Append::any(session("a"), starts(10_000))).await.unwrap();
    assert!(matches!(feed.try_recv(), Err(TryRecvError::Lagged(_))));
    let next = feed.try_recv().unwrap().metadata.sequence;
    assert!(next > 1);
    let missed = log.read(&session("a"), 1).await.unwrap();
    assert_eq!(missed[..next as usize - 1].len(), next as usize - 1);
    assert_eq!(missed.len(), 10_000);
}

proptest! {
    /// Whatever is appended to whichever session, every session holds its own, in order, numbered
    /// from one without a gap.
    #[test]
    fn sessions_never_mix(appends in prop::collection::vec((0..3_usize, 0..4_u32), 0..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let log = log();
            let mut expected = vec![Vec::new(); 3];
            for (which, count) in appends {
                let stored = log.append(Append::any(session(&which.to_string()), starts(count)));
                expected[which].extend(stored.await.unwrap());
            }
            for (which, expected) in expected.into_iter().enumerate() {
                let read = log.read(&session(&which.to_string()), 1).await.unwrap();
                assert!(read.iter().all(|event| event.metadata.session_id.as_str() == which.to_string()));
                assert_eq!(sequences(&read), (1..=read.len() as u64).collect::<Vec<_>>());
                assert_eq!(read, expected);
            }
        });
    }
}
