//! Every kind survives its stored text; what cannot be read survives verbatim.

use std::collections::BTreeSet;

use correx_events::codec::{UPCASTERS, decode, encode};
use correx_events::testing::samples;
use correx_events::{
    EventId, EventPayload, InferenceCompleted, NoteId, NoteScope, SteeringNoteAdded,
    UnknownPayload, UnknownReason,
};
use proptest::prelude::*;
use serde_json::Value;

fn read(json: &str) -> EventPayload {
    decode(json, &EventId::new("event-1"))
}

fn unknown(json: &str) -> UnknownPayload {
    match read(json) {
        EventPayload::Unknown(unknown) => unknown,
        known => panic!("{json} was read as {known:?}"),
    }
}

#[test]
fn there_is_one_sample_of_every_kind() {
    let kinds: Vec<String> = samples().iter().map(|sample| sample.kind().to_owned()).collect();
    assert_eq!(kinds, EventPayload::KINDS);
}

#[test]
fn no_two_kinds_share_a_name_and_names_are_snake_case() {
    let distinct: BTreeSet<&str> = EventPayload::KINDS.iter().copied().collect();
    assert_eq!(distinct.len(), EventPayload::KINDS.len());
    for kind in distinct {
        assert!(kind.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{kind}");
    }
}

#[test]
fn the_kinds_that_the_specification_names_are_there() {
    for kind in [
        "workflow_started",
        "workflow_completed",
        "workflow_failed",
        "orchestration_paused",
        "orchestration_resumed",
        "stage_completed",
        "stage_failed",
        "steering_note_added",
    ] {
        assert!(EventPayload::KINDS.contains(&kind), "{kind}");
    }
}

#[test]
fn every_kind_survives_its_stored_text_byte_for_byte() {
    for sample in samples() {
        let text = encode(&sample).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["type"], sample.kind());
        let back = read(&text);
        assert_eq!(back, sample);
        assert_eq!(encode(&back).unwrap(), text);
    }
}

#[test]
fn an_upcaster_changes_nothing_in_todays_form() {
    for sample in samples() {
        let Value::Object(fields) = serde_json::to_value(&sample).unwrap() else {
            panic!("{sample:?} is no object");
        };
        for upcaster in UPCASTERS.iter().filter(|upcaster| upcaster.kind == sample.kind()) {
            let mut lifted = fields.clone();
            (upcaster.lift)(&mut lifted, &EventId::new("event-1"));
            assert_eq!(lifted, fields);
        }
    }
    for upcaster in UPCASTERS {
        assert!(EventPayload::KINDS.contains(&upcaster.kind), "{} lifts nothing", upcaster.kind);
    }
}

#[test]
fn a_note_without_a_name_is_named_after_its_event_and_is_for_its_stage_only() {
    let old = r#"{"type":"steering_note_added","session_id":"s","content":"Shorter."}"#;
    let lifted = |event: &str| match decode(old, &EventId::new(event)) {
        EventPayload::SteeringNoteAdded(note) => note,
        other => panic!("read as {other:?}"),
    };
    assert_eq!(
        lifted("event-7"),
        SteeringNoteAdded {
            session_id: "s".into(),
            note_id: NoteId::new("note-of-event-7"),
            content: "Shorter.".into(),
            stage_id: None,
            scope: NoteScope::Stage,
            replaces: None,
        }
    );
    assert_ne!(lifted("event-7").note_id, lifted("event-8").note_id);
}

#[test]
fn a_kind_that_a_newer_version_wrote_is_kept_verbatim() {
    for json in [
        r#"{"type":"stage_dreamt","of":"sheep"}"#,
        "{ \"z\" : 1 ,\n\t\"type\":\"stage_dreamt\", \"a\":2 }",
        r#"{"type":"stage_dreamt","n":123456789012345678901234567890.10,"e":1E+2}"#,
        r#"{"type":"stage_dreamt","twice":1,"twice":2}"#,
        r#"{"type":"stage_dreamt","text":"\u00e9\/\ud83d\ude42é"}"#,
    ] {
        let kept = unknown(json);
        assert_eq!(kept.kind, "stage_dreamt");
        assert_eq!(kept.json, json);
        assert_eq!(kept.reason, UnknownReason::NewKind);
        let payload = EventPayload::Unknown(kept);
        assert_eq!(payload.kind(), "stage_dreamt");
        assert_eq!(encode(&payload).unwrap(), json);
        assert_eq!(read(&encode(&payload).unwrap()), payload);
    }
}

#[test]
fn a_known_kind_with_an_unreadable_body_is_kept_verbatim_with_the_reason() {
    for (json, named) in [
        (r#"{"type":"stage_started","attempt":1}"#, "stage_id"),
        (r#"{"type":"stage_started","stage_id":"a","attempt":-1}"#, "-1"),
        (r#"{"type":"stage_started","stage_id":"a","attempt":4294967296}"#, "4294967296"),
        (r#"{"type":"orchestration_paused","reason":"eclipse"}"#, "eclipse"),
        (r#"{"type":"steering_note_added","content":7,"session_id":"s"}"#, "7"),
    ] {
        let kept = unknown(json);
        assert!(json.contains(&kept.kind) && !kept.kind.is_empty());
        assert_eq!(kept.json, json);
        let UnknownReason::Unreadable(reason) = &kept.reason else {
            panic!("{json}: {:?}", kept.reason);
        };
        assert!(reason.contains(named), "{reason} does not name {named}");
        assert_eq!(encode(&EventPayload::Unknown(kept)).unwrap(), json);
    }
}

#[test]
fn a_kind_is_known_also_where_the_rest_is_beyond_reading() {
    let deep = format!(r#"{{"type":"stage_dreamt","d":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    for json in [r#"{"type":"stage_dreamt","n":1e999}"#, &deep] {
        let kept = unknown(json);
        assert_eq!(kept.kind, "stage_dreamt");
        assert_eq!(kept.json, json);
        assert!(matches!(kept.reason, UnknownReason::Unreadable(_)));
    }
}

#[test]
fn what_is_no_event_at_all_is_kept_verbatim_without_a_kind() {
    for json in ["", "{", "42", "[1, 2]", "\"stage_started\"", r#"{"type":7}"#, "{}", "\u{0}{}"] {
        let kept = unknown(json);
        assert_eq!(kept.kind, "");
        assert_eq!(kept.json, json);
    }
}

#[test]
fn the_name_of_our_own_unknown_variant_is_no_kind() {
    let json = r#"{"type":"Unknown","kind":"x","json":"{}","reason":"NewKind"}"#;
    assert_eq!(unknown(json).json, json);
    assert_eq!(unknown(json).reason, UnknownReason::NewKind);
}

/// The places of all values in `value` that are no object and no list, the kind's name left out.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter().filter(|(name, _)| !at.is_empty() || *name != "type")
            {
                leaves(field, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                leaves(item, &format!("{at}/{index}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

fn any_leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => any::<String>().prop_map(Value::from),
        2 => any::<u64>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => Just(serde_json::json!({"nested": ["and", {"deeper": 1}]})),
    ]
}

proptest! {
    /// Whatever stands in a field, the payload is either read, and then written as it was, or
    /// kept verbatim. Nothing is lost and nothing fails.
    #[test]
    fn whatever_a_field_holds_comes_back(
        kind in 0..EventPayload::KINDS.len(),
        place in any::<prop::sample::Index>(),
        leaf in any_leaf(),
    ) {
        let mut value = serde_json::to_value(&samples()[kind]).unwrap();
        let mut places = Vec::new();
        leaves(&value, "", &mut places);
        prop_assume!(!places.is_empty());
        *value.pointer_mut(&places[place.index(places.len())]).unwrap() = leaf.clone();
        let text = value.to_string();
        match read(&text) {
            EventPayload::Unknown(kept) => {
                prop_assert_eq!(&kept.json, &text);
                prop_assert_eq!(kept.kind, EventPayload::KINDS[kind]);
                prop_assert_eq!(encode(&read(&text)).unwrap(), text);
            }
            known => {
                prop_assert_eq!(known.kind(), EventPayload::KINDS[kind]);
                let written = encode(&known).unwrap();
                prop_assert_eq!(read(&written), known);
                if leaf.is_string() {
                    prop_assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
                }
            }
        }
    }

    #[test]
    fn any_words_of_a_note_survive_byte_for_byte(
        content in any::<String>(),
        note in any::<String>(),
        stage in any::<Option<String>>(),
    ) {
        let note = EventPayload::from(SteeringNoteAdded {
            session_id: "s".into(),
            note_id: note.into(),
            content,
            stage_id: stage.map(Into::into),
            scope: NoteScope::Run, replaces: None,
        });
        let text = encode(&note).unwrap();
        prop_assert!(!text.contains('\n'), "a stored text is one line");
        prop_assert_eq!(&encode(&read(&text)).unwrap(), &text);
        prop_assert_eq!(read(&text), note);
    }

    /// With up to six decimals, as people write them; the JSON reader may be one bit off on numbers
    /// of seventeen digits.
    #[test]
    fn sampling_settings_come_back_exactly(
        millionths in prop::array::uniform4(0..=2_000_000_u32),
    ) {
        let [temperature, top_p, min_p, repetition_penalty] =
            millionths.map(|share| f64::from(share) / 1_000_000.0);
        let sample = samples().into_iter().find_map(|sample| match sample {
            EventPayload::InferenceCompleted(completed) => Some(completed),
            _ => None,
        });
        let payload = EventPayload::from(InferenceCompleted {
            temperature,
            top_p,
            min_p,
            repetition_penalty,
            ..sample.unwrap()
        });
        prop_assert_eq!(read(&encode(&payload).unwrap()), payload);
    }

    #[test]
    fn reading_any_text_never_fails_and_loses_nothing(text in any::<String>()) {
        prop_assert_eq!(encode(&read(&text)).unwrap(), text);
    }
}
