//! The desktop shell: one window, three commands, nothing of its own to decide.
//!
//! # Layout
//! - [`commands`]: what the window can call. Every wish of a person is one [`commands::request`].
//! - [`engine`]: the connection to the engine, made in the background so that the window is there
//!   at once.

pub mod commands;
pub mod engine;

use correx_infrastructure::ConnectOptions;
use tauri::{Builder, Manager, Runtime};

use engine::Engine;

/// The program without its window: plugins, commands, and the engine being connected.
pub fn builder<R: Runtime>(builder: Builder<R>, options: ConnectOptions) -> Builder<R> {
    builder
        .plugin(tauri_plugin_dialog::init())
        .manage(Engine::new(options))
        .invoke_handler(tauri::generate_handler![
            commands::connect,
            commands::request,
            commands::subscribe
        ])
        .setup(|app| {
            let handle = app.handle().clone();
            tauri::async_runtime::spawn(async move {
                // The window asks again and shows why, if this fails.
                if let Err(error) = handle.state::<Engine>().client().await {
                    tracing::warn!(%error, "the engine could not be started");
                }
            });
            Ok(())
        })
}

/// Opens the window and returns when it is closed. A run that goes on then is interrupted: its log
/// is durable and it can be resumed.
pub fn run() -> tauri::Result<()> {
    builder(Builder::default(), ConnectOptions::from_env()).run(tauri::generate_context!())
}
