//! The desktop program.

#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

use std::process::ExitCode;

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    match correx_desktop::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "the window could not be opened");
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!(
                    "Correx could not open its window: {error}\n\
                     Is there a display? The same sessions can be used with the program `correx`.\n"
                ),
            );
            ExitCode::FAILURE
        }
    }
}
