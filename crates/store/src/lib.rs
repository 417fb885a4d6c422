//! Everything that Correx keeps on disk, in one redb file: the event log, blobs, conversations and
//! the catalogue of sessions. The format is written down in `FORMAT.md` beside this crate.
//!
//! # Layout
//! - [`Store`]: the handle; cheap to clone. It is an [`EventStore`](correx_events::EventStore), a
//!   [`BlobStore`](correx_events::BlobStore) and a
//!   [`TranscriptStore`](correx_router::TranscriptStore).
//! - `open`: the data directory, its lock, the format version.
//! - `tables`: every table with its key and value types.
//! - `database`: the open file; reads from any thread.
//! - `quiet`: panics that are caught, and are no news to anybody.
//! - `writer`: the one thread that writes; everything that waits shares one commit.
//! - `events`, `blobs`, `transcripts`, `catalogue`: what is written and read, by noun.
//!
//! # Invariants
//! - A call that writes returns after its commit reached the disk, or changed nothing.
//! - Reads see the last commit and never wait for the writer.
//! - A record that cannot be read hides nothing but itself.
//! - A deleted session stays deleted: nothing can be written to it again.

mod blobs;
mod catalogue;
mod database;
mod diagnostics;
mod error;
mod events;
#[cfg(test)]
mod failing;
mod open;
mod quiet;
mod store;
mod tables;
mod transcripts;
mod writer;

pub use catalogue::{SessionRecord, Shelf};
pub use diagnostics::Diagnostics;
pub use error::{CatalogueError, OpenError};
pub use open::{FORMAT_VERSION, STORE_FILE};
pub use store::Store;
