//! Content by address: artifacts, drafts, prompts, inputs. Never in the log itself.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use thiserror::Error;

use crate::{BlobHash, SessionId};

/// Keeps bytes under their SHA-256, once for all sessions that hold them.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Keeps `bytes` for `session` as long as the session is there. Durable when it returns.
    async fn put(&self, session: &SessionId, bytes: Vec<u8>) -> Result<BlobHash, BlobError>;

    /// The bytes under `hash`, or `None`.
    async fn get(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, BlobError>;

    /// Whether `session` holds the blob: what it does not hold is not shown to it.
    async fn holds(&self, session: &SessionId, hash: &BlobHash) -> Result<bool, BlobError>;
}

/// Why content could not be kept or read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the content could not be kept or read: {0}")]
pub struct BlobError(pub String);

/// A [`BlobStore`] in memory.
#[derive(Default)]
pub struct MemoryBlobStore {
    blobs: Mutex<HashMap<BlobHash, Held>>,
}

struct Held {
    bytes: Vec<u8>,
    holders: Vec<SessionId>,
}

#[async_trait]
impl BlobStore for MemoryBlobStore {
    async fn put(&self, session: &SessionId, bytes: Vec<u8>) -> Result<BlobHash, BlobError> {
        let hash = BlobHash::of(&bytes);
        let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        let held = blobs.entry(hash.clone()).or_insert_with(|| Held { bytes, holders: Vec::new() });
        if !held.holders.contains(session) {
            held.holders.push(session.clone());
        }
        Ok(hash)
    }

    async fn get(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, BlobError> {
        let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(blobs.get(hash).map(|held| held.bytes.clone()))
    }

    async fn holds(&self, session: &SessionId, hash: &BlobHash) -> Result<bool, BlobError> {
        let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(blobs.get(hash).is_some_and(|held| held.holders.contains(session)))
    }
}
