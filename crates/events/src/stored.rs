//! A payload with its place in the log.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _};
use serde_json::value::RawValue;

use crate::{EventId, EventPayload, SessionId, codec};

/// One event as the log holds it. As JSON: `{"event_id", "session_id", "sequence", "timestamp",
/// "payload"}`, the payload's text verbatim. An unknown payload whose text is no JSON becomes a JSON
/// string of it, so that one damaged record cannot stop an export.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// Who, where, when.
    pub metadata: EventMetadata,
    /// What.
    pub payload: EventPayload,
}

/// An event's place in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventMetadata {
    /// Unique over all sessions.
    pub event_id: EventId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// Its number in the session, from 1, without gaps.
    pub sequence: u64,
    /// When it was appended.
    pub timestamp: Timestamp,
}

#[derive(Serialize)]
struct Line<M> {
    #[serde(flatten)]
    metadata: M,
    payload: Box<RawValue>,
}

impl Serialize for StoredEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = codec::encode(&self.payload).map_err(S::Error::custom)?;
        let payload = RawValue::from_string(text)
            .or_else(|error| match &self.payload {
                EventPayload::Unknown(damaged) => serde_json::value::to_raw_value(&damaged.json),
                _ => Err(error),
            })
            .map_err(S::Error::custom)?;
        Line { metadata: &self.metadata, payload }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StoredEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Flat {
            event_id: EventId,
            session_id: SessionId,
            sequence: u64,
            timestamp: Timestamp,
            payload: Box<RawValue>,
        }
        let flat = Flat::deserialize(deserializer).map_err(D::Error::custom)?;
        let payload = codec::decode(flat.payload.get(), &flat.event_id);
        let metadata = EventMetadata {
            event_id: flat.event_id,
            session_id: flat.session_id,
            sequence: flat.sequence,
            timestamp: flat.timestamp,
        };
        Ok(Self { metadata, payload })
    }
}
