//! What the window can call.

use correx_protocol::{ClientMessage, ProtocolError, ServerMessage};
use serde::Serialize;
use tauri::{State, ipc::Channel};
use tokio::sync::broadcast::error::RecvError;

use crate::engine::Engine;

/// What the window hears unasked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Arrival {
    /// Something is new.
    Push {
        /// What.
        message: Box<ServerMessage>,
    },
    /// The window was too slow and pushes were lost: it must read again what it shows.
    Missed,
}

/// Returns once the engine can be asked. After a failure it may be called again.
#[tauri::command]
pub async fn connect(engine: State<'_, Engine>) -> Result<(), ProtocolError> {
    engine.client().await.map(drop)
}

/// Passes one request on. Errors of the request come as [`ServerMessage::Error`]; the command
/// itself fails only while there is no engine.
#[tauri::command]
pub async fn request(
    engine: State<'_, Engine>,
    message: ClientMessage,
) -> Result<ServerMessage, ProtocolError> {
    Ok(engine.client().await?.request(message).await)
}

/// Sends every push from now on to the window, until the window is gone. Returns at once.
#[tauri::command]
pub async fn subscribe(
    engine: State<'_, Engine>,
    channel: Channel<Arrival>,
) -> Result<(), ProtocolError> {
    let mut pushes = engine.client().await?.subscribe();
    tauri::async_runtime::spawn(async move {
        loop {
            let arrival = match pushes.recv().await {
                Ok(message) => Arrival::Push { message: Box::new(message) },
                Err(RecvError::Lagged(_)) => Arrival::Missed,
                Err(RecvError::Closed) => break,
            };
            if channel.send(arrival).is_err() {
                break;
            }
        }
    });
    Ok(())
}
