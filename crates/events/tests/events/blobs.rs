//! Content by address.

use correx_events::{BlobHash, BlobStore, MemoryBlobStore, SessionId};

#[test]
fn an_address_is_the_sha_256_of_the_bytes_in_lower_case_hexadecimal() {
    assert_eq!(
        BlobHash::of(b"abc").as_str(),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(
        BlobHash::of(b"").as_str(),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
}

#[tokio::test]
async fn kept_bytes_come_back_under_their_address() {
    let blobs = MemoryBlobStore::default();
    let session = SessionId::new("a");
    let first = blobs.put(&session, b"first".to_vec()).await.unwrap();
    let second = blobs.put(&session, vec![0, 159, 146, 150]).await.unwrap();
    assert_eq!(first, BlobHash::of(b"first"));
    assert_eq!(blobs.get(&first).await.unwrap(), Some(b"first".to_vec()));
    assert_eq!(blobs.get(&second).await.unwrap(), Some(vec![0, 159, 146, 150]));
    assert_eq!(blobs.get(&BlobHash::of(b"never kept")).await.unwrap(), None);
}

#[tokio::test]
async fn only_the_sessions_that_kept_a_blob_hold_it() {
    let blobs = MemoryBlobStore::default();
    let [a, b, c] = ["a", "b", "c"].map(SessionId::new);
    let hash = blobs.put(&a, b"shared".to_vec()).await.unwrap();
    assert!(blobs.holds(&a, &hash).await.unwrap());
    assert!(!blobs.holds(&b, &hash).await.unwrap());

    assert_eq!(blobs.put(&b, b"shared".to_vec()).await.unwrap(), hash);
    assert!(blobs.holds(&a, &hash).await.unwrap());
    assert!(blobs.holds(&b, &hash).await.unwrap());
    assert!(!blobs.holds(&c, &hash).await.unwrap());
    assert!(!blobs.holds(&a, &BlobHash::of(b"other")).await.unwrap());
}
