//! An event with its place in the log, as JSON.

use correx_events::testing::{samples, stored};
use correx_events::{
    EventPayload, StageStarted, StoredEvent, UnknownPayload, UnknownReason, codec,
};
use proptest::prelude::*;

fn unknown(json: &str) -> StoredEvent {
    let payload = UnknownPayload {
        kind: "stage_dreamt".into(),
        json: json.into(),
        reason: UnknownReason::NewKind,
    };
    stored("s", 3, EventPayload::Unknown(payload))
}

fn there_and_back(event: &StoredEvent) -> (String, StoredEvent) {
    let line = serde_json::to_string(event).unwrap();
    let back = serde_json::from_str(&line).unwrap();
    (line, back)
}

#[test]
fn an_event_is_a_flat_object_with_its_payload_inside() {
    let event = stored("s", 3, StageStarted { stage_id: "summary".into(), attempt: 2 });
    assert_eq!(
        serde_json::to_string(&event).unwrap(),
        r#"{"event_id":"s-3","session_id":"s","sequence":3,"timestamp":"1970-01-01T00:00:03Z","payload":{"type":"stage_started","stage_id":"summary","attempt":2}}"#
    );
}

#[test]
fn every_kind_survives_as_a_stored_event() {
    for (sequence, sample) in (1..).zip(samples()) {
        let event = stored("s", sequence, sample);
        let (line, back) = there_and_back(&event);
        assert_eq!(back, event);
        assert_eq!(serde_json::to_string(&back).unwrap(), line);
        assert_eq!(
            serde_json::from_value::<StoredEvent>(serde_json::to_value(&event).unwrap()).unwrap(),
            event
        );
    }
}

#[test]
fn an_unknown_payload_survives_byte_for_byte() {
    for json in [
        r#"{ "z":1 , "type":"stage_dreamt",  "a":[ ] }"#,
        r#"{"type":"stage_dreamt","n":123456789012345678901234567890.10,"twice":1,"twice":2}"#,
        r#"{"type":"stage_dreamt","text":"\u00e9é"}"#,
        r#"{"type":"stage_dreamt","n":1e999}"#,
    ] {
        let (line, back) = there_and_back(&unknown(json));
        assert!(line.contains(json), "{line}");
        let EventPayload::Unknown(kept) = &back.payload else { panic!("{json} became known") };
        assert_eq!(kept.json, json);
        assert_eq!(kept.kind, "stage_dreamt");
        assert_eq!(serde_json::to_string(&back).unwrap(), line);
    }
}

#[test]
fn a_damaged_payload_is_exported_as_a_string_and_stops_nothing() {
    for text in ["", "{\"type\":", "\u{1} not \"JSON\"\n"] {
        let event = unknown(text);
        let (line, back) = there_and_back(&event);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["payload"], text);
        assert_eq!(back.metadata, event.metadata);
        assert_eq!(serde_json::to_string(&back).unwrap(), line);
    }
}

#[test]
fn an_old_note_is_named_after_the_event_that_carries_it() {
    let line = r#"{"event_id":"e-9","session_id":"s","sequence":9,"timestamp":"2026-05-20T08:00:00Z","payload":{"type":"steering_note_added","session_id":"s","content":"Shorter."}}"#;
    let event: StoredEvent = serde_json::from_str(line).unwrap();
    let EventPayload::SteeringNoteAdded(note) = event.payload else { panic!("not a note") };
    assert_eq!(note.note_id.as_str(), "note-of-e-9");
}

#[test]
fn an_event_without_its_place_in_the_log_is_an_error() {
    for line in [
        r#"{"session_id":"s","sequence":9,"timestamp":"2026-05-20T08:00:00Z","payload":{}}"#,
        r#"{"event_id":"e","session_id":"s","timestamp":"2026-05-20T08:00:00Z","payload":{}}"#,
        r#"{"event_id":"e","session_id":"s","sequence":9,"timestamp":"yesterday","payload":{}}"#,
        r#"{"event_id":"e","session_id":"s","sequence":9,"timestamp":"2026-05-20T08:00:00Z"}"#,
    ] {
        assert!(serde_json::from_str::<StoredEvent>(line).is_err(), "{line}");
    }
}

proptest! {
    #[test]
    fn writing_reading_and_writing_again_changes_nothing(text in any::<String>()) {
        let (line, back) = there_and_back(&unknown(&text));
        prop_assert_eq!(serde_json::to_string(&back).unwrap(), line);
    }

    #[test]
    fn an_object_of_an_unknown_kind_keeps_its_text(key in "[a-z]{1,8}", spaces in "[ \t\n\r]{0,6}", value in any::<String>()) {
        let value = serde_json::to_string(&value).unwrap();
        let json = format!(r#"{{{spaces}"{key}"{spaces}:{spaces}{value},"type":"stage_dreamt"{spaces}}}"#);
        let (_, back) = there_and_back(&unknown(&json));
        prop_assert_eq!(codec::encode(&back.payload).unwrap(), json);
    }
}
