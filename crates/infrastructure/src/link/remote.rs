//! A client's side of the socket.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use correx_protocol::{
    ClientFrame, ClientMessage, ErrorCode, ProtocolError, ServerFrame, ServerMessage,
};
use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::tokio::prelude::*;
use tokio::io::{AsyncWriteExt, BufReader, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::address;
use super::host::{self, LONGEST_MESSAGE};
use super::lines::{self, Line};
use crate::pushes::Pushes;

/// The longest line taken from the owner: a whole log can be one.
const LONGEST_REPLY: usize = 1024 * 1024 * 1024;
/// Requests that wait to be written.
const WAITING_REQUESTS: usize = 64;

/// A connection to the owner.
pub(super) struct Remote {
    requests: mpsc::Sender<String>,
    open: Arc<Mutex<Open>>,
    closed: CancellationToken,
}

#[derive(Default)]
struct Open {
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<ServerMessage>>,
    /// Nobody will answer any more.
    over: bool,
}

impl Remote {
    /// Connects to the owner of `data_dir`, if one listens. What it pushes goes to `pushes`.
    pub(super) async fn connect(data_dir: &Path, pushes: Pushes) -> io::Result<Self> {
        let mut refused = io::Error::new(io::ErrorKind::NotFound, "no owner listens");
        for address in address::addresses(data_dir) {
            match Stream::connect(host::name(&address)?).await {
                Ok(stream) => return Ok(Self::over(stream, pushes)),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn over(stream: Stream, pushes: Pushes) -> Self {
        let (read, write) = tokio::io::split(stream);
        let (requests, waiting) = mpsc::channel(WAITING_REQUESTS);
        let open: Arc<Mutex<Open>> = Arc::default();
        let closed = CancellationToken::new();
        let (of_reader, until) = (open.clone(), closed.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = until.cancelled() => {}
                () = read_frames(read, &of_reader, &pushes) => {}
                () = write_requests(write, waiting) => {}
            }
            until.cancel();
            let mut open = lock(&of_reader);
            open.over = true;
            // Whoever waits learns that its answer will not come.
            open.waiting.clear();
        });
        Self { requests, open, closed }
    }

    /// Asks the owner; an error when it ended before it answered.
    pub(super) async fn request(
        &self,
        message: ClientMessage,
    ) -> Result<ServerMessage, OwnerEnded> {
        let (answer, waiting) = oneshot::channel();
        let id = {
            let mut open = lock(&self.open);
            if open.over {
                return Err(OwnerEnded);
            }
            open.last += 1;
            let id = open.last;
            open.waiting.insert(id, answer);
            id
        };
        let line = match serde_json::to_string(&ClientFrame { id, message }) {
            Ok(line) if line.len() <= LONGEST_MESSAGE => line,
            Ok(line) => return Ok(self.give_up(id, too_long(line.len()))),
            Err(error) => {
                let error = ProtocolError::new(ErrorCode::BadMessage, error.to_string());
                return Ok(self.give_up(id, error));
            }
        };
        if self.requests.send(line).await.is_err() {
            return Err(OwnerEnded);
        }
        waiting.await.map_err(|_| OwnerEnded)
    }

    fn give_up(&self, id: u64, error: ProtocolError) -> ServerMessage {
        lock(&self.open).waiting.remove(&id);
        ServerMessage::Error(error)
    }

    /// Whether the owner is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Waits until the owner is gone.
    pub(super) fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// Hangs up.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn read_frames(read: ReadHalf<Stream>, open: &Mutex<Open>, pushes: &Pushes) {
    let mut reader = BufReader::new(read);
    loop {
        let line = match lines::next(&mut reader, LONGEST_REPLY).await {
            Ok(Line::Text(line)) => line,
            Ok(Line::TooLong | Line::NotText) => continue,
            Ok(Line::End) | Err(_) => return,
        };
        match serde_json::from_str(&line) {
            Ok(ServerFrame::Reply { id, message }) => {
                if let Some(waiting) = lock(open).waiting.remove(&id) {
                    // Whoever asked may have gone.
                    let _ = waiting.send(message);
                }
            }
            Ok(ServerFrame::Push { message }) => pushes.tell(message),
            Err(error) => {
                tracing::warn!(%error, "a message of the owner could not be understood");
                answer_unreadable(&line, open);
            }
        }
    }
}

/// A reply of an unknown kind (the owner is newer) still ends its request.
fn answer_unreadable(line: &str, open: &Mutex<Open>) {
    #[derive(serde::Deserialize)]
    struct Number {
        id: u64,
    }
    let Ok(Number { id }) = serde_json::from_str(line) else { return };
    if let Some(waiting) = lock(open).waiting.remove(&id) {
        let error = ProtocolError::new(
            ErrorCode::BadMessage,
            "the process that owns the data directory answered in a form that this one does not know",
        )
        .hint("Both programs should be of one version.");
        let _ = waiting.send(ServerMessage::Error(error));
    }
}

async fn write_requests(mut write: WriteHalf<Stream>, mut waiting: mpsc::Receiver<String>) {
    while let Some(mut line) = waiting.recv().await {
        line.push('\n');
        if write.write_all(line.as_bytes()).await.is_err() || write.flush().await.is_err() {
            return;
        }
    }
}

fn too_long(bytes: usize) -> ProtocolError {
    ProtocolError::new(
        ErrorCode::InputTooLong,
        format!("the message has {bytes} bytes; at most {LONGEST_MESSAGE} can be sent"),
    )
    .kept("Nothing was sent or stored.")
    .hint("Give long texts as files.")
}

/// The owner ended before it answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnerEnded;

impl From<OwnerEnded> for ProtocolError {
    fn from(OwnerEnded: OwnerEnded) -> Self {
        ProtocolError::new(
            ErrorCode::Internal,
            "the process that owned the data directory has ended before it answered",
        )
        .kept("Everything that it had acknowledged was kept.")
        .hint("Try again: this process takes over.")
    }
}
