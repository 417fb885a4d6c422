//! Time, ids and names.

use std::collections::BTreeSet;

use correx_events::{Clock, IdSource, RandomIds, SessionId, StageId, SystemClock, Timestamp};

#[test]
fn random_ids_are_never_the_same_and_sort_by_the_time_they_were_made() {
    let made: Vec<String> = (0..1_000).map(|_| RandomIds.next_id()).collect();
    let sorted: Vec<String> = made.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(made, sorted);
}

#[test]
fn the_machines_clock_tells_the_present() {
    let before = Timestamp::now();
    let told = SystemClock.now();
    assert!(before <= told && told <= Timestamp::now());
}

#[test]
fn an_id_is_a_plain_string_on_the_wire() {
    let session = SessionId::new("a \"session\"");
    assert_eq!(serde_json::to_string(&session).unwrap(), r#""a \"session\"""#);
    assert_eq!(serde_json::from_str::<SessionId>(r#""a \"session\"""#).unwrap(), session);
    assert_eq!(session.to_string(), "a \"session\"");
    assert_eq!(StageId::from("summary"), StageId::from("summary".to_owned()));
    assert_ne!(StageId::from("summary"), StageId::from("Summary"));
}
