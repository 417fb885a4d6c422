//! The owner's side of the socket.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::tasks::Tasks;
use correx_protocol::{
    ErrorCode, FrameError, ProtocolError, ServerFrame, ServerMessage, decode_client, encode_server,
};
use interprocess::local_socket::tokio::prelude::*;
use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::{GenericFilePath, ListenerOptions, Name};
use tokio::io::{AsyncWriteExt, BufReader, ReadHalf, WriteHalf};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::address;
use super::lines::{self, Line};
use crate::app::App;

/// The longest message that a client may send, in bytes: the largest input as JSON, and room.
pub(super) const LONGEST_MESSAGE: usize = 32 * 1024 * 1024;
/// Requests of one client that are worked on at once.
const OPEN_REQUESTS: usize = 64;
/// Lines that wait for a client to read them.
const WAITING_LINES: usize = 256;

/// Listens for clients until it is stopped.
pub(super) struct Host {
    address: PathBuf,
    stop: CancellationToken,
    tasks: Tasks,
}

impl Host {
    /// Listens for the clients of `app`. The caller holds the data directory, so whatever lies at
    /// the address is left over from an owner that is gone.
    pub(super) fn listen(app: App, data_dir: &Path) -> io::Result<Self> {
        let mut refused = io::Error::new(io::ErrorKind::Unsupported, "no place for a socket");
        for address in address::addresses(data_dir) {
            match bind(&address, data_dir) {
                Ok(listener) => {
                    let (stop, tasks) = (CancellationToken::new(), Tasks::new());
                    tasks.spawn(accept(listener, app, stop.clone(), tasks.clone()));
                    return Ok(Self { address, stop, tasks });
                }
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// Lets every client go and removes the socket.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        self.tasks.ended().await;
        if cfg!(unix) {
            // Gone already when the listener removed it.
            let _ = std::fs::remove_file(&self.address);
        }
    }
}

/// The address as the socket library names it.
pub(super) fn name(address: &Path) -> io::Result<Name<'_>> {
    address.to_fs_name::<GenericFilePath>()
}

#[cfg(unix)]
fn bind(address: &Path, data_dir: &Path) -> io::Result<Listener> {
    use std::os::unix::fs::PermissionsExt;

    use interprocess::os::unix::local_socket::ListenerOptionsExt;

    address::prepare(address, data_dir)?;
    match std::fs::remove_file(address) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let options = || Ok::<_, io::Error>(ListenerOptions::new().name(name(address)?));
    let listener = match options()?.mode(0o600).create_tokio() {
        // A system that cannot set the mode beforehand; until it is set below, the user of every
        // connection is looked at all the same.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => options()?.create_tokio()?,
        created => created?,
    };
    std::fs::set_permissions(address, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// A pipe made with the default rights lets only its owner (and the system's administrators) write.
#[cfg(not(unix))]
fn bind(address: &Path, _data_dir: &Path) -> io::Result<Listener> {
    ListenerOptions::new().name(name(address)?).create_tokio()
}

async fn accept(listener: Listener, app: App, stop: CancellationToken, tasks: Tasks) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(stream) if is_ours(&stream) => {
                tasks.spawn(serve(stream, app.clone(), stop.clone()));
            }
            Ok(_) => tracing::warn!("another user's program tried to connect; it was refused"),
            Err(error) => {
                tracing::warn!(%error, "a client could not be let in");
                // For example too many open files: it passes.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

/// Whether the program at the other end runs for our own user.
#[cfg(unix)]
fn is_ours(stream: &Stream) -> bool {
    let us = rustix::process::geteuid().as_raw();
    match stream.peer_creds() {
        Ok(peer) => peer.euid().is_none_or(|user| user == us || user == 0),
        // A system that does not tell: the socket's mode is what protects.
        Err(_) => true,
    }
}

#[cfg(not(unix))]
fn is_ours(_stream: &Stream) -> bool {
    true
}

/// Serves one client until it goes or the host stops.
async fn serve(stream: Stream, app: App, stop: CancellationToken) {
    let (read, write) = tokio::io::split(stream);
    let (lines, waiting) = mpsc::channel(WAITING_LINES);
    let pushing = tokio::spawn(push(app.clone(), lines.clone()));
    let writing = tokio::spawn(write_lines(write, waiting));
    tokio::select! {
        () = stop.cancelled() => {}
        () = read_requests(read, app, lines) => {}
    }
    pushing.abort();
    writing.abort();
    // Both end at once; what matters is that they hold nothing of the application any more.
    let _ = tokio::join!(pushing, writing);
}

async fn read_requests(read: ReadHalf<Stream>, app: App, lines: mpsc::Sender<String>) {
    let mut reader = BufReader::new(read);
    let open = Arc::new(Semaphore::new(OPEN_REQUESTS));
    let mut requests = tokio::task::JoinSet::new();
    loop {
        while requests.try_join_next().is_some() {}
        let unreadable = match lines::next(&mut reader, LONGEST_MESSAGE).await {
            Ok(Line::Text(line)) if line.is_empty() => continue,
            Ok(Line::Text(line)) => match decode_client(&line) {
                Ok(frame) => {
                    // Closed never: the semaphore lives as long as this function.
                    let Ok(permit) = open.clone().acquire_owned().await else { return };
                    let (app, lines) = (app.clone(), lines.clone());
                    requests.spawn(async move {
                        let message = app.handle(frame.message).await;
                        reply(&lines, frame.id, message).await;
                        drop(permit);
                    });
                    continue;
                }
                Err(FrameError { id, source }) => {
                    (id, format!("the message could not be understood: {source}"))
                }
            },
            Ok(Line::TooLong) => {
                (0, format!("the message is longer than {LONGEST_MESSAGE} bytes; it was skipped"))
            }
            Ok(Line::NotText) => (0, "the message is not UTF-8 text; it was skipped".to_owned()),
            Ok(Line::End) | Err(_) => return,
        };
        let (id, message) = unreadable;
        let error = ProtocolError::new(ErrorCode::BadMessage, message)
            .kept("Nothing was done; the connection goes on.")
            .hint("Both programs should be of one version.");
        reply(&lines, id, ServerMessage::Error(error)).await;
    }
}

async fn reply(lines: &mpsc::Sender<String>, id: u64, message: ServerMessage) {
    send(lines, &ServerFrame::Reply { id, message }).await;
}

/// Queues a frame. A client that does not read is waited for; one that is gone hears nothing.
async fn send(lines: &mpsc::Sender<String>, frame: &ServerFrame) -> bool {
    match encode_server(frame) {
        Ok(line) => lines.send(line).await.is_ok(),
        Err(error) => {
            tracing::error!(%error, "a message could not be written");
            true
        }
    }
}

async fn push(app: App, lines: mpsc::Sender<String>) {
    let mut pushes = app.subscribe();
    loop {
        match pushes.recv().await {
            Ok(message) => {
                if !send(&lines, &ServerFrame::Push { message }).await {
                    return;
                }
            }
            Err(RecvError::Lagged(_)) => app.tell_everything().await,
            Err(RecvError::Closed) => return,
        }
    }
}

async fn write_lines(mut write: WriteHalf<Stream>, mut waiting: mpsc::Receiver<String>) {
    while let Some(mut line) = waiting.recv().await {
        line.push('\n');
        if write.write_all(line.as_bytes()).await.is_err() || write.flush().await.is_err() {
            return;
        }
    }
}
