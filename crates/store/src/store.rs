//! The handle.

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use correx_events::{BlobStore, Clock, EventStore, IdSource};
use correx_router::TranscriptStore;
use tokio::sync::broadcast;

use crate::database::SharedDatabase;
use crate::diagnostics::{Counters, Diagnostics};
use crate::error::{OpenError, WriteError};
use crate::open::{self, DirectoryLock, Opener};
use crate::writer::{Feed, Sources, Write, WriteQueue, Writer};

/// How far a subscriber may lag before it has to catch up by reading.
const SUBSCRIBER_BUFFER: usize = 4096;

/// A data directory, open. Clones share it; the last one to go closes it, after whatever was
/// still to be written.
///
/// Its methods want a tokio runtime.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    database: Arc<SharedDatabase>,
    feed: Feed,
    counters: Arc<Counters>,
    /// `Some` until the last handle is dropped.
    queue: Option<WriteQueue>,
    writer: Option<JoinHandle<()>>,
    _lock: DirectoryLock,
}

impl Store {
    /// Opens the data directory `dir`, making it and its file if they are not there. Events get
    /// their time from `clock` and their ids from `ids`.
    ///
    /// Blocks for as long as the disk takes; does not read the whole file, also after a crash.
    pub fn open(
        dir: &Path,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Result<Self, OpenError> {
        Self::open_by(dir, open::opener(dir.to_owned()), clock, ids)
    }

    pub(crate) fn open_by(
        dir: &Path,
        opener: Opener,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Result<Self, OpenError> {
        let lock = open::lock(dir)?;
        let database = Arc::new(SharedDatabase::open(opener)?);
        let (feed, _) = broadcast::channel(SUBSCRIBER_BUFFER);
        let counters = Arc::new(Counters::default());
        let (queue, jobs) = Writer::queue();
        let writer = Writer {
            database: Arc::clone(&database),
            sources: Sources { clock, ids },
            feed: feed.clone(),
            counters: Arc::clone(&counters),
        };
        let thread = thread::Builder::new()
            .name("correx-store".to_owned())
            .spawn(move || writer.run(&jobs))
            .map_err(|source| OpenError::Io { path: dir.to_owned(), source })?;
        let inner = Inner {
            database,
            feed,
            counters,
            queue: Some(queue),
            writer: Some(thread),
            _lock: lock,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The event log.
    pub fn events(&self) -> Arc<dyn EventStore> {
        Arc::new(self.clone())
    }

    /// The blobs.
    pub fn blobs(&self) -> Arc<dyn BlobStore> {
        Arc::new(self.clone())
    }

    /// The conversations.
    pub fn transcripts(&self) -> Arc<dyn TranscriptStore> {
        Arc::new(self.clone())
    }

    /// What the store has done since it was opened.
    pub fn diagnostics(&self) -> Diagnostics {
        self.inner.counters.read()
    }

    pub(crate) fn database(&self) -> &Arc<SharedDatabase> {
        &self.inner.database
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.inner.feed
    }

    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Output, WriteError> {
        match &self.inner.queue {
            Some(queue) => queue.write(write).await,
            None => Err(WriteError::Refused("the store was closed".to_owned())),
        }
    }
}

impl Drop for Inner {
    /// The writer finishes what is queued and closes the file; then the directory is free.
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the store's writer ended by a panic");
        }
    }
}
