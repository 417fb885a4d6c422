//! What the store has done since it was opened.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Diagnostics {
    /// Commits, each with one wait for the disk.
    pub commits: u64,
    /// Writes that those commits carried.
    pub writes: u64,
    /// Times that the file was opened again after a failure.
    pub reopenings: u64,
}

/// The counters behind [`Diagnostics`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    commits: AtomicU64,
    writes: AtomicU64,
    reopenings: AtomicU64,
}

impl Counters {
    /// One commit that carried `writes` writes.
    pub(crate) fn committed(&self, writes: usize) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
    }

    /// The file was opened again.
    pub(crate) fn reopened(&self) {
        self.reopenings.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts now.
    pub(crate) fn read(&self) -> Diagnostics {
        Diagnostics {
            commits: self.commits.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            reopenings: self.reopenings.load(Ordering::Relaxed),
        }
    }
}
