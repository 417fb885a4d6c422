//! A disk that fails on demand.

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use correx_events::{
    Append, AppendError, BlobStore, Clock, EventPayload, EventStore, IdSource, RandomIds,
    SessionId, SystemClock, WorkflowCompleted,
};
use redb::backends::FileBackend;
use redb::{BackendError, Builder, StorageBackend};

use crate::open::{self, STORE_FILE};
use crate::store::Store;

const HEALTHY: u8 = 0;
/// Blocks that were never written cannot be written now; as on a real full disk the file may be
/// made longer all the same.
const FULL: u8 = 1;
/// Nothing can be written.
const DEAD: u8 = 4;
const PANICKING: u8 = 2;
/// A sync fails although everything was written: this one, with `LYING + 1` the next one, ….
const LYING: u8 = 10;

#[derive(Debug)]
struct FailingDisk {
    file: FileBackend,
    mood: Arc<AtomicU8>,
    /// The file's length when it was opened: that much is on the disk.
    allocated: u64,
}

impl FailingDisk {
    fn check(&self) -> Result<(), BackendError> {
        match self.mood.load(Ordering::SeqCst) {
            DEAD => Err(io::Error::from(io::ErrorKind::ReadOnlyFilesystem).into()),
            PANICKING => {
                self.mood.store(HEALTHY, Ordering::SeqCst);
                panic!("the disk is on fire")
            }
            _ => Ok(()),
        }
    }
}

impl StorageBackend for FailingDisk {
    fn len(&self) -> Result<u64, io::Error> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.check()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        self.check()?;
        self.file.sync_data()?;
        match self.mood.load(Ordering::SeqCst) {
            LYING => {
                self.mood.store(HEALTHY, Ordering::SeqCst);
                return Err(io::Error::other("the cable came loose"));
            }
            later @ LYING.. => self.mood.store(later - 1, Ordering::SeqCst),
            _ => {}
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.check()?;
        if self.mood.load(Ordering::SeqCst) == FULL && offset + data.len() as u64 > self.allocated {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.file.write(offset, data)
    }

    fn close(&self) -> Result<(), io::Error> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

fn sources() -> (Arc<dyn Clock>, Arc<dyn IdSource>) {
    (Arc::new(SystemClock), Arc::new(RandomIds))
}

/// A store over a disk whose mood can be set.
fn store_on(dir: &Path, mood: &Arc<AtomicU8>) -> Store {
    let (clock, ids) = sources();
    drop(Store::open(dir, clock.clone(), ids.clone()).unwrap());
    let (path, mood) = (dir.to_owned(), Arc::clone(mood));
    let opener = Box::new(move || {
        open::open_with(&path, || {
            let file = File::options().read(true).write(true).open(path.join(STORE_FILE))?;
            let allocated = file.metadata()?.len();
            let disk =
                FailingDisk { file: FileBackend::new(file)?, mood: Arc::clone(&mood), allocated };
            Builder::new().create_with_backend(disk)
        })
    });
    Store::open_by(dir, opener, clock, ids).unwrap()
}

fn done(duration_ms: u64) -> Vec<EventPayload> {
    vec![WorkflowCompleted { duration_ms }.into()]
}

fn session() -> SessionId {
    SessionId::new("s")
}

async fn count(store: &Store) -> usize {
    store.read(&session(), 1).await.unwrap().len()
}

#[tokio::test]
async fn on_a_full_disk_a_write_fails_reads_go_on_and_so_do_writes_when_there_is_space_again() {
    let dir = tempfile::tempdir().unwrap();
    let mood = Arc::new(AtomicU8::new(HEALTHY));
    let store = store_on(dir.path(), &mood);
    EventStore::append(&store, Append::any(session(), done(1))).await.unwrap();

    mood.store(FULL, Ordering::SeqCst);
    let error = store.put(&session(), vec![7; 8 << 20]).await.unwrap_err();
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert_eq!(count(&store).await, 1, "what was there can be read on the full disk");

    mood.store(HEALTHY, Ordering::SeqCst);
    let append = Append::at(session(), 1, done(3));
    let stored = EventStore::append(&store, append).await.unwrap();
    assert_eq!(stored[0].metadata.sequence, 2);
    let hash = store.put(&session(), vec![7; 8 << 20]).await.unwrap();
    drop(store);
    let (clock, ids) = sources();
    let store = Store::open(dir.path(), clock, ids).unwrap();
    assert_eq!(count(&store).await, 2);
    assert_eq!(store.get(&hash).await.unwrap().unwrap().len(), 8 << 20);
}

#[tokio::test]
async fn a_disk_that_comes_back_is_written_to_again_without_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let mood = Arc::new(AtomicU8::new(HEALTHY));
    let store = store_on(dir.path(), &mood);
    EventStore::append(&store, Append::any(session(), done(1))).await.unwrap();

    mood.store(DEAD, Ordering::SeqCst);
    for _ in 0..2 {
        let append = Append::at(session(), 1, done(2));
        let error = EventStore::append(&store, append).await.unwrap_err();
        assert!(matches!(error, AppendError::Storage(_)), "{error}");
    }

    mood.store(HEALTHY, Ordering::SeqCst);
    let append = Append::at(session(), 1, done(3));
    let stored = EventStore::append(&store, append).await.unwrap();
    assert_eq!(stored[0].metadata.sequence, 2, "the failed appends left no gap");
    assert_eq!(count(&store).await, 2);
}

#[tokio::test]
async fn a_panic_in_the_writer_fails_the_write_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let mood = Arc::new(AtomicU8::new(HEALTHY));
    let store = store_on(dir.path(), &mood);
    store.append(Append::any(session(), done(1))).await.unwrap();

    mood.store(PANICKING, Ordering::SeqCst);
    let error = store.append(Append::any(session(), done(2))).await.unwrap_err();
    assert!(error.to_string().contains("the disk is on fire"), "{error}");

    assert_eq!(count(&store).await, 1);
    let stored = store.append(Append::at(session(), 1, done(3))).await.unwrap();
    assert_eq!(stored[0].metadata.sequence, 2);
    assert_eq!(store.diagnostics().reopenings, 1);
}

#[tokio::test]
async fn an_unclear_commit_is_answered_by_what_is_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mood = Arc::new(AtomicU8::new(HEALTHY));
    let store = store_on(dir.path(), &mood);
    let mut feed = store.subscribe();
    let (mut appended, mut kept_in_spite, mut failed) = (0, 0, 0);
    for syncs_before in [0, 1, 0, 1] {
        let reopenings = store.diagnostics().reopenings;
        mood.store(LYING + syncs_before, Ordering::SeqCst);
        let answer =
            EventStore::append(&store, Append::any(session(), done(syncs_before.into()))).await;
        let reopened = store.diagnostics().reopenings > reopenings;
        match answer {
            Ok(_) => appended += 1,
            Err(_) => failed += 1,
        }
        kept_in_spite += usize::from(answer.is_ok() && reopened);
        assert_eq!(count(&store).await, appended, "an answer that the file contradicts");
    }
    assert!(failed > 0 && kept_in_spite > 0, "{failed} failed, {kept_in_spite} kept");
    for sequence in 1..=appended as u64 {
        assert_eq!(feed.recv().await.unwrap().metadata.sequence, sequence);
    }
    assert!(feed.try_recv().is_err(), "a failed append must not be announced");
}

#[tokio::test]
async fn one_failing_write_does_not_fail_those_that_share_its_commit() {
    let dir = tempfile::tempdir().unwrap();
    let mood = Arc::new(AtomicU8::new(HEALTHY));
    let store = store_on(dir.path(), &mood);
    store.append(Append::any(session(), done(0))).await.unwrap();

    // The panic strikes the first commit of these, whichever and however many it carries.
    mood.store(PANICKING, Ordering::SeqCst);
    let appends = (0..32).map(|n| {
        let store = store.clone();
        tokio::spawn(
            async move { EventStore::append(&store, Append::any(session(), done(n))).await },
        )
    });
    let mut kept = 1;
    for append in appends.collect::<Vec<_>>() {
        kept += usize::from(append.await.unwrap().is_ok());
    }
    assert!(
        kept >= 32,
        "at most the one that was alone with the panic may fail, {kept} of 33 kept"
    );
    assert_eq!(count(&store).await, kept);
}

#[tokio::test]
async fn a_blob_whose_bytes_changed_on_disk_is_not_handed_out() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, ids) = sources();
    let store = Store::open(dir.path(), clock.clone(), ids.clone()).unwrap();
    let hash = store.put(&session(), b"as it was".to_vec()).await.unwrap();
    drop(store);
    let database = redb::Database::open(dir.path().join(STORE_FILE)).unwrap();
    let tx = database.begin_write().unwrap();
    tx.open_table(crate::tables::BLOBS)
        .unwrap()
        .insert(hash.as_str(), b"as it is".as_slice())
        .unwrap();
    tx.commit().unwrap();
    drop(database);
    let store = Store::open(dir.path(), clock, ids).unwrap();
    let error = store.get(&hash).await.map_err(|error| error.to_string()).unwrap_err();
    assert!(error.contains("damaged"), "{error}");
}
