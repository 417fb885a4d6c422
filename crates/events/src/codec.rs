//! The stored text of a payload.
//!
//! Reading never fails: what this version cannot read becomes [`EventPayload::Unknown`] and is
//! written back byte for byte. Forms that older versions wrote are lifted by [`UPCASTERS`] before
//! they are read.

use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::{EventId, EventPayload, UnknownPayload, UnknownReason};

/// Why a payload could not be written.
#[derive(Debug, Error)]
#[error("the event {kind} could not be written: {source}")]
pub struct EncodeEventError {
    /// The payload's kind.
    pub kind: String,
    /// What the JSON writer said.
    pub source: serde_json::Error,
}

/// The text under which `payload` is stored.
pub fn encode(payload: &EventPayload) -> Result<String, EncodeEventError> {
    match payload {
        EventPayload::Unknown(unknown) => Ok(unknown.json.clone()),
        known => serde_json::to_string(known)
            .map_err(|source| EncodeEventError { kind: known.kind().to_owned(), source }),
    }
}

/// Reads a stored text. `event_id` names what an upcaster has to invent.
pub fn decode(json: &str, event_id: &EventId) -> EventPayload {
    let unknown = |kind: &str, reason| {
        EventPayload::Unknown(UnknownPayload {
            kind: kind.to_owned(),
            json: json.to_owned(),
            reason,
        })
    };
    let mut value: Value = match serde_json::from_str(json) {
        Ok(value) => value,
        Err(error) => {
            let kind =
                serde_json::from_str(json).map_or_else(|_| String::new(), |Tag { kind }| kind);
            return unknown(&kind, UnknownReason::Unreadable(error.to_string()));
        }
    };
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !EventPayload::KINDS.contains(&kind.as_str()) {
        return unknown(&kind, UnknownReason::NewKind);
    }
    if let Some(fields) = value.as_object_mut() {
        for upcaster in UPCASTERS.iter().filter(|upcaster| upcaster.kind == kind) {
            (upcaster.lift)(fields, event_id);
        }
    }
    match serde_json::from_value::<EventPayload>(value) {
        Ok(payload) => payload,
        Err(error) => unknown(&kind, UnknownReason::Unreadable(error.to_string())),
    }
}

/// The kind of a text of which nothing else need be readable: numbers and nesting may be beyond
/// what a [`Value`] holds.
#[derive(Deserialize)]
struct Tag {
    #[serde(rename = "type")]
    kind: String,
}

/// Lifts one kind's older form to today's.
pub struct Upcaster {
    /// The kind whose fields it looks at.
    pub kind: &'static str,
    /// Changes the fields in place; does nothing to today's form.
    pub lift: fn(&mut Map<String, Value>, &EventId),
}

/// All upcasters, oldest first.
pub const UPCASTERS: &[Upcaster] =
    &[Upcaster { kind: "steering_note_added", lift: name_a_nameless_note }];

/// The specification's first form of a note had no id; its event's id is as good.
fn name_a_nameless_note(fields: &mut Map<String, Value>, event_id: &EventId) {
    fields
        .entry("note_id")
        .or_insert_with(|| Value::String(format!("note-of-{}", event_id.as_str())));
}
