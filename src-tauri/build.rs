//! Reads `tauri.conf.json` and the capabilities into the program.

fn main() {
    tauri_build::build();
}
