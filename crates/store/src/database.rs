//! The open file. Any thread reads; only the writer's thread begins write transactions.

use std::sync::{Arc, PoisonError, RwLock};

use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};

use crate::error::{OpenError, StorageFailure};
use crate::open::Opener;
use crate::quiet;

/// The database and the way to open it again: after an I/O error the library refuses everything,
/// reads too, until the file is opened anew.
pub(crate) struct SharedDatabase {
    slot: RwLock<Slot>,
    opener: Opener,
}

enum Slot {
    Open(Database),
    /// Why not.
    Closed(String),
}

impl SharedDatabase {
    /// Opens it for the first time.
    pub(crate) fn open(opener: Opener) -> Result<Self, OpenError> {
        let database = opener()?;
        Ok(Self { slot: RwLock::new(Slot::Open(database)), opener })
    }

    /// Runs `read` on the last commit, on a thread for blocking work.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&ReadTransaction) -> Result<T, StorageFailure> + Send + 'static,
    ) -> Result<T, StorageFailure> {
        let shared = Arc::clone(self);
        tokio::task::spawn_blocking(move || quiet::caught_outside(|| shared.read_here(read)))
            .await
            .unwrap_or_else(|stopped| {
                Err(StorageFailure::new(if stopped.is_panic() {
                    // The library's answer to pages that were overwritten.
                    "the store's file is damaged where this was read; the rest of it is kept. \
                 Close Correx and put a copy of the file aside"
                } else {
                    "Correx is closing"
                }))
            })
    }

    /// The same on this thread.
    pub(crate) fn read_here<T>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, StorageFailure>,
    ) -> Result<T, StorageFailure> {
        // Held until the transaction is gone, so that a reopening finds no reader.
        let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Slot::Open(database) => read(&database.begin_read()?),
            Slot::Closed(reason) => Err(StorageFailure(reason.clone())),
        }
    }

    /// Begins a write transaction, opening the file again if the last attempt to do so failed.
    pub(crate) fn begin_write(&self) -> Result<WriteTransaction, StorageFailure> {
        if matches!(*self.slot.read().unwrap_or_else(PoisonError::into_inner), Slot::Closed(_)) {
            self.reopen()?;
        }
        let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Slot::Open(database) => Ok(database.begin_write()?),
            Slot::Closed(reason) => Err(StorageFailure(reason.clone())),
        }
    }

    /// Closes the file and opens it again: what was committed is there, what was not is gone.
    pub(crate) fn reopen(&self) -> Result<(), StorageFailure> {
        let mut slot = self.slot.write().unwrap_or_else(PoisonError::into_inner);
        let broken = std::mem::replace(&mut *slot, Slot::Closed("not open".to_owned()));
        // After a panic in the library its own closing may panic too; the file is let go anyway.
        let _ = quiet::catch(|| drop(broken));
        match (self.opener)() {
            Ok(database) => {
                *slot = Slot::Open(database);
                Ok(())
            }
            Err(error) => {
                let reason =
                    format!("after a failure the store could not be opened again: {error}");
                *slot = Slot::Closed(reason.clone());
                Err(StorageFailure(reason))
            }
        }
    }

    /// Closes the file for good.
    pub(crate) fn close(&self) {
        let mut slot = self.slot.write().unwrap_or_else(PoisonError::into_inner);
        *slot = Slot::Closed("the store was closed".to_owned());
    }
}
