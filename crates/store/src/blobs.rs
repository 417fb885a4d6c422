//! Content by address, counted by the sessions that hold it.

use async_trait::async_trait;
use correx_events::{BlobError, BlobHash, BlobStore, SessionId};
use redb::{ReadableTable, WriteTransaction};

use crate::catalogue;
use crate::error::{StorageFailure, WriteError};
use crate::store::Store;
use crate::tables::{BLOB_COUNTS, BLOB_REFERENCES, BLOBS, after};
use crate::writer::{Sources, Write};

struct PutBlob {
    session: SessionId,
    hash: BlobHash,
    bytes: Vec<u8>,
}

impl Write for PutBlob {
    type Output = ();

    fn apply(&self, tx: &WriteTransaction, _sources: &Sources) -> Result<(), WriteError> {
        let hash = self.hash.as_str();
        catalogue::refuse_deleted(tx, &self.session)?;
        if tx.open_table(BLOB_REFERENCES)?.insert((self.session.as_str(), hash), ())?.is_some() {
            return Ok(());
        }
        let mut counts = tx.open_table(BLOB_COUNTS)?;
        let count = counts.get(hash)?.map_or(0, |count| count.value());
        counts.insert(hash, count + 1)?;
        if count == 0 {
            tx.open_table(BLOBS)?.insert(hash, self.bytes.as_slice())?;
        }
        Ok(())
    }
}

/// Takes the session's hold off all its blobs; those that nobody else holds go.
pub(crate) fn release_all(tx: &WriteTransaction, session: &str) -> Result<(), StorageFailure> {
    let end = after(session);
    let range = (session, "")..(end.as_str(), "");
    let mut references = tx.open_table(BLOB_REFERENCES)?;
    let mut counts = tx.open_table(BLOB_COUNTS)?;
    let mut blobs = tx.open_table(BLOBS)?;
    for entry in references.range(range.clone())? {
        let (key, ()) = entry.map(|(key, _)| (key, ()))?;
        let hash = key.value().1;
        let count = counts.get(hash)?.map_or(0, |count| count.value());
        if count > 1 {
            counts.insert(hash, count - 1)?;
        } else {
            counts.remove(hash)?;
            blobs.remove(hash)?;
        }
    }
    references.retain_in(range, |_, ()| false)?;
    Ok(())
}

#[async_trait]
impl BlobStore for Store {
    async fn put(&self, session: &SessionId, bytes: Vec<u8>) -> Result<BlobHash, BlobError> {
        let (hash, bytes) = tokio::task::spawn_blocking(move || (BlobHash::of(&bytes), bytes))
            .await
            .map_err(|stopped| BlobError(stopped.to_string()))?;
        // What the session already holds costs no commit.
        if !self.holds(session, &hash).await? {
            let write = PutBlob { session: session.clone(), hash: hash.clone(), bytes };
            self.write(write).await?;
        }
        Ok(hash)
    }

    async fn get(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, BlobError> {
        let wanted = hash.clone();
        let read = self.database().read(move |tx| {
            let Some(bytes) = tx.open_table(BLOBS)?.get(wanted.as_str())? else { return Ok(None) };
            let bytes = bytes.value().to_vec();
            if BlobHash::of(&bytes) != wanted {
                return Err(StorageFailure(format!("the content {wanted} is damaged")));
            }
            Ok(Some(bytes))
        });
        Ok(read.await?)
    }

    async fn holds(&self, session: &SessionId, hash: &BlobHash) -> Result<bool, BlobError> {
        let (session, hash) = (session.clone(), hash.clone());
        let read = self.database().read(move |tx| {
            let references = tx.open_table(BLOB_REFERENCES)?;
            Ok(references.get((session.as_str(), hash.as_str()))?.is_some())
        });
        Ok(read.await?)
    }
}
