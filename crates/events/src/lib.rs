//! What happened, as data: ids, event payloads, their stored form, and the trait of the log.
//!
//! # Layout
//! - [`ids`]: the newtypes that name things; transparent strings on every wire.
//! - [`payload`]: [`EventPayload`], one variant per kind of fact, one file per family.
//! - [`stored`]: [`StoredEvent`], a payload with its place in the log.
//! - [`codec`]: the stored text of a payload; unknown kinds survive verbatim; upcasters.
//! - [`blob`]: the [`BlobStore`] trait, content by address.
//! - [`store`]: the [`EventStore`] trait; [`memory`] is the store that keeps nothing on disk.
//! - [`clock`]: time and ids as arguments.
//!
//! This crate does no I/O.

pub mod blob;
pub mod clock;
pub mod codec;
pub mod ids;
pub mod memory;
pub mod payload;
pub mod store;
pub mod stored;
#[cfg(feature = "testing")]
pub mod testing;

pub use blob::{BlobError, BlobStore, MemoryBlobStore};
pub use clock::{Clock, IdSource, RandomIds, SystemClock};
pub use ids::{
    ArtifactName, BlobHash, ClientMessageId, EventId, NoteId, SessionId, StageId, TurnId,
};
pub use jiff::Timestamp;
pub use memory::MemoryEventStore;
pub use payload::*;
pub use store::{Append, AppendError, EventStore, ExpectedVersion, ReadError};
pub use stored::{EventMetadata, StoredEvent};
