//! Lines that are typed.

use std::io::BufRead;
use std::sync::OnceLock;
use std::thread;

use tokio::sync::{Mutex, mpsc};

/// The standard input, line by line. Read on a thread of its own: a line that is never typed
/// holds nothing up.
pub struct Lines;

static LINES: OnceLock<Mutex<mpsc::Receiver<String>>> = OnceLock::new();

impl Lines {
    /// The one standard input of this process.
    pub fn standard_input() -> Self {
        Self
    }

    /// The next line without its newline; `None` at the end.
    pub async fn next(&self) -> Option<String> {
        LINES.get_or_init(|| Mutex::new(read())).lock().await.recv().await
    }
}

fn read() -> mpsc::Receiver<String> {
    // One line ahead at most, so that what is not wanted here stays for others.
    let (lines, read) = mpsc::channel(1);
    thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            // What is not UTF-8 is shown as such, and the rest is kept.
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']).to_owned();
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    read
}
