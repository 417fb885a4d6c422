//! Messages with a number, so that one connection carries several requests and pushes at once.
//! On a socket: one JSON object per line.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use ts_rs::TS;

use crate::{ClientMessage, ServerMessage};

/// A request with the number that its reply will carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientFrame {
    /// Chosen by the client; unique among its open requests.
    pub id: u64,
    /// The request.
    pub message: ClientMessage,
}

/// A reply or a push.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "frame", rename_all = "snake_case")]
pub enum ServerFrame {
    /// The answer to the request with this number.
    Reply {
        /// The request's number; 0 when it could not be read.
        #[ts(type = "number")]
        id: u64,
        /// The answer.
        message: ServerMessage,
    },
    /// For everybody.
    Push {
        /// What is new.
        message: ServerMessage,
    },
}

/// Why a frame could not be read.
#[derive(Debug, Error)]
#[error("the message could not be read: {source}")]
pub struct FrameError {
    /// The number to answer to, as far as it could be made out.
    pub id: u64,
    /// What the JSON reader said.
    pub source: serde_json::Error,
}

/// Reads a client's frame. A message of an unknown type is an error that still names its number,
/// so that it can be answered.
pub fn decode_client(line: &str) -> Result<ClientFrame, FrameError> {
    #[derive(Deserialize)]
    struct Number {
        id: u64,
    }
    serde_json::from_str(line).map_err(|source| FrameError {
        id: serde_json::from_str::<Number>(line).map(|number| number.id).unwrap_or(0),
        source,
    })
}

/// A server frame as one line, without the newline.
pub fn encode_server(frame: &ServerFrame) -> Result<String, serde_json::Error> {
    serde_json::to_string(frame)
}
