//! The one thread that writes. Whatever waits when it begins a transaction shares one commit.

use std::sync::{Arc, mpsc};

use correx_events::{Clock, IdSource, StoredEvent};
use redb::{Durability, ReadableTable, WriteTransaction};
use tokio::sync::{broadcast, oneshot};

use crate::database::SharedDatabase;
use crate::diagnostics::Counters;
use crate::error::{StorageFailure, WriteError};
use crate::quiet;
use crate::tables::{META, meta};

/// The most writes in one commit, so that the first of a flood need not wait for all of it.
const MAX_BATCH: usize = 256;

/// Where subscribers listen.
pub(crate) type Feed = broadcast::Sender<Arc<StoredEvent>>;

/// Where a write takes time and names from.
pub(crate) struct Sources {
    /// Time.
    pub(crate) clock: Arc<dyn Clock>,
    /// Event ids.
    pub(crate) ids: Arc<dyn IdSource>,
}

/// One kind of change.
pub(crate) trait Write: Send + 'static {
    /// What the caller gets.
    type Output: Send + 'static;

    /// Makes the change. Either it refuses before it writes anything, or it fails with
    /// [`WriteError::Storage`] and the whole transaction is thrown away. It may run more than
    /// once, but at most one run is committed.
    fn apply(&self, tx: &WriteTransaction, sources: &Sources) -> Result<Self::Output, WriteError>;

    /// Tells subscribers; called once, after the commit, in commit order.
    fn publish(_output: &Self::Output, _feed: &Feed) {}
}

/// A change with somebody waiting for it.
pub(crate) trait Job: Send {
    /// Runs the change and keeps its outcome. `Ok(true)` if it is to be committed, `Ok(false)` if
    /// it was refused.
    fn apply(&mut self, tx: &WriteTransaction, sources: &Sources) -> Result<bool, StorageFailure>;
    /// The outcome holds: tell everybody.
    fn settle(self: Box<Self>, feed: &Feed);
    /// Nothing was changed: tell the caller.
    fn fail(self: Box<Self>, failure: StorageFailure);
}

struct Pending<W: Write> {
    write: W,
    outcome: Option<Result<W::Output, WriteError>>,
    reply: oneshot::Sender<Result<W::Output, WriteError>>,
}

impl<W: Write> Job for Pending<W> {
    fn apply(&mut self, tx: &WriteTransaction, sources: &Sources) -> Result<bool, StorageFailure> {
        match self.write.apply(tx, sources) {
            Err(WriteError::Storage(failure)) => Err(failure),
            outcome => {
                let accepted = outcome.is_ok();
                self.outcome = Some(outcome);
                Ok(accepted)
            }
        }
    }

    fn settle(self: Box<Self>, feed: &Feed) {
        let Some(outcome) = self.outcome else { return };
        if let Ok(output) = &outcome {
            W::publish(output, feed);
        }
        // The caller may have gone; the change stays.
        let _ = self.reply.send(outcome);
    }

    fn fail(self: Box<Self>, failure: StorageFailure) {
        let _ = self.reply.send(Err(failure.into()));
    }
}

/// The way to the writer.
pub(crate) struct WriteQueue {
    jobs: mpsc::Sender<Box<dyn Job>>,
}

impl WriteQueue {
    /// Sends a change and waits until it is on the disk. A caller that stops waiting does not stop
    /// the change.
    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Output, WriteError> {
        let stopped = || StorageFailure::new("the store was closed");
        let (reply, answer) = oneshot::channel();
        self.jobs.send(Box::new(Pending { write, outcome: None, reply })).map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

/// The writer's own state.
pub(crate) struct Writer {
    /// The file.
    pub(crate) database: Arc<SharedDatabase>,
    /// Time and ids.
    pub(crate) sources: Sources,
    /// Subscribers.
    pub(crate) feed: Feed,
    /// Counts.
    pub(crate) counters: Arc<Counters>,
}

impl Writer {
    /// A queue and the end of it that [`Writer::run`] serves.
    pub(crate) fn queue() -> (WriteQueue, mpsc::Receiver<Box<dyn Job>>) {
        let (jobs, receiver) = mpsc::channel();
        (WriteQueue { jobs }, receiver)
    }

    /// Serves the queue until its last sender is gone, then closes the file.
    pub(crate) fn run(self, queue: &mpsc::Receiver<Box<dyn Job>>) {
        while let Ok(first) = queue.recv() {
            let mut batch = vec![first];
            batch.extend(queue.try_iter().take(MAX_BATCH - 1));
            self.commit(batch);
        }
        self.database.close();
    }

    /// Commits a batch. When that fails each job is tried alone, so that a failure reaches only
    /// the job that caused it.
    fn commit(&self, mut batch: Vec<Box<dyn Job>>) {
        match self.attempt(&mut batch) {
            Ok(()) => batch.into_iter().for_each(|job| job.settle(&self.feed)),
            Err(Failed::NothingChanged(failure)) if batch.len() > 1 => {
                tracing::warn!(%failure, writes = batch.len(), "a commit failed; trying one by one");
                batch.into_iter().for_each(|job| self.commit(vec![job]));
            }
            Err(Failed::NothingChanged(failure) | Failed::Uncertain(failure)) => {
                tracing::error!(%failure, writes = batch.len(), "a write failed");
                batch.into_iter().for_each(|job| job.fail(failure.clone()));
            }
        }
    }

    fn attempt(&self, batch: &mut [Box<dyn Job>]) -> Result<(), Failed> {
        let mut reached = None;
        let result = quiet::catch(|| self.transact(batch, &mut reached))
            .unwrap_or_else(|panic| Err(StorageFailure(panic_text(panic.as_ref()))));
        let Err(failure) = result else { return Ok(()) };
        self.counters.reopened();
        let reopened = self.database.reopen();
        let Some(Reached { number, accepted }) = reached else {
            return Err(Failed::NothingChanged(failure));
        };
        // A commit that reported an error may have reached the disk all the same: the file knows.
        match reopened.and_then(|()| self.commits_in_file()) {
            Ok(found) if found == number => {
                self.counters.committed(accepted);
                Ok(())
            }
            Ok(_) => Err(Failed::NothingChanged(failure)),
            Err(error) => Err(Failed::Uncertain(StorageFailure(format!(
                "{failure}; whether this was kept shows at the next start ({error})"
            )))),
        }
    }

    fn transact(
        &self,
        batch: &mut [Box<dyn Job>],
        reached: &mut Option<Reached>,
    ) -> Result<(), StorageFailure> {
        let mut tx = self.database.begin_write()?;
        tx.set_durability(Durability::Immediate)?;
        // Opening after a crash then takes no walk over the whole file.
        tx.set_quick_repair(true);
        let mut accepted = 0;
        for job in batch.iter_mut() {
            if job.apply(&tx, &self.sources)? {
                accepted += 1;
            }
        }
        if accepted == 0 {
            return Ok(tx.abort()?);
        }
        let number = {
            let mut table = tx.open_table(META)?;
            let number = table.get(meta::COMMITS)?.map_or(0, |count| count.value()) + 1;
            table.insert(meta::COMMITS, number)?;
            number
        };
        *reached = Some(Reached { number, accepted });
        tx.commit()?;
        self.counters.committed(accepted);
        Ok(())
    }

    fn commits_in_file(&self) -> Result<u64, StorageFailure> {
        self.database.read_here(|tx| {
            Ok(tx.open_table(META)?.get(meta::COMMITS)?.map_or(0, |count| count.value()))
        })
    }
}

/// A commit that was begun.
struct Reached {
    /// Its number in the file.
    number: u64,
    /// The writes that it carries.
    accepted: usize,
}

/// How an attempt failed.
enum Failed {
    /// The file is as it was: the jobs can be tried again.
    NothingChanged(StorageFailure),
    /// The commit may be in the file, which cannot be asked: trying again could do things twice.
    Uncertain(StorageFailure),
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    format!("the write broke off, so nothing was changed ({text})")
}
