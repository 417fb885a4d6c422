//! Content by address.

use correx_events::{BlobHash, BlobStore};

use crate::support::{append, new_store, open, session};

#[tokio::test]
async fn a_blob_is_kept_under_its_hash_across_reopening() {
    let (dir, store) = new_store();
    let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    let hash = store.put(&session("a"), bytes.clone()).await.unwrap();
    let empty = store.put(&session("a"), Vec::new()).await.unwrap();
    assert_eq!(hash, BlobHash::of(&bytes));
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.get(&hash).await.unwrap(), Some(bytes));
    assert_eq!(store.get(&empty).await.unwrap(), Some(Vec::new()));
    assert_eq!(store.get(&BlobHash::of(b"never put")).await.unwrap(), None);
}

#[tokio::test]
async fn a_session_holds_only_what_it_put_itself() {
    let (_dir, store) = new_store();
    let hash = store.put(&session("a"), b"shared".to_vec()).await.unwrap();
    assert!(store.holds(&session("a"), &hash).await.unwrap());
    assert!(!store.holds(&session("b"), &hash).await.unwrap());
    store.put(&session("b"), b"shared".to_vec()).await.unwrap();
    assert!(store.holds(&session("b"), &hash).await.unwrap());
}

#[tokio::test]
async fn a_blob_goes_with_the_last_session_that_holds_it() {
    let (_dir, store) = new_store();
    let shared = store.put(&session("a"), b"shared".to_vec()).await.unwrap();
    store.put(&session("a"), b"shared".to_vec()).await.unwrap();
    store.put(&session("b"), b"shared".to_vec()).await.unwrap();
    let own = store.put(&session("a"), b"own".to_vec()).await.unwrap();
    append(&store, &session("a"), &[1]).await;

    store.delete_session(&session("a")).await.unwrap();
    assert_eq!(store.get(&own).await.unwrap(), None);
    assert_eq!(store.get(&shared).await.unwrap().as_deref(), Some(b"shared".as_slice()));
    assert!(!store.holds(&session("a"), &shared).await.unwrap());

    store.delete_session(&session("b")).await.unwrap();
    assert_eq!(store.get(&shared).await.unwrap(), None);

    store.put(&session("c"), b"shared".to_vec()).await.unwrap();
    assert_eq!(store.get(&shared).await.unwrap().as_deref(), Some(b"shared".as_slice()));
}

#[tokio::test]
async fn putting_the_same_content_again_costs_no_commit() {
    let (_dir, store) = new_store();
    store.put(&session("a"), b"once".to_vec()).await.unwrap();
    let before = store.diagnostics().commits;
    store.put(&session("a"), b"once".to_vec()).await.unwrap();
    assert_eq!(store.diagnostics().commits, before);
}
