//! The catalogue of sessions, and deletion.

use correx_events::{
    Append, AppendError, BlobStore, EventPayload, EventStore, SessionCreated, SessionId,
};
use correx_router::TranscriptStore;
use correx_store::{CatalogueError, Shelf, Store};

use crate::support::{all, append, new_store, open, session};
use crate::transcripts::turn;

fn created(title: &str) -> EventPayload {
    SessionCreated { title: title.into(), workflow: None }.into()
}

async fn titles(store: &Store) -> Vec<String> {
    store.sessions().await.unwrap().into_iter().map(|record| record.title).collect()
}

async fn record(store: &Store, id: &SessionId) -> correx_store::SessionRecord {
    store.session(id).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_session_appears_with_its_first_event_under_the_title_that_it_was_created_with() {
    let (dir, store) = new_store();
    assert!(store.sessions().await.unwrap().is_empty());
    let a = session("a");
    EventStore::append(&store, Append::any(a.clone(), vec![created("Minutes")])).await.unwrap();
    append(&store, &a, &[1, 2]).await;
    drop(store);

    let store = open(dir.path());
    let record = record(&store, &a).await;
    assert_eq!((record.title.as_str(), record.last_sequence), ("Minutes", 3));
    let log = all(&store, &a).await;
    assert_eq!(record.created_at, log[0].metadata.timestamp);
    assert_eq!(record.updated_at, log[2].metadata.timestamp);
    assert_eq!(record.shelf, Shelf::Active);
}

#[tokio::test]
async fn sessions_are_listed_by_their_last_change() {
    let (_dir, store) = new_store();
    for name in ["a", "b", "c"] {
        store.register_session(&session(name), name).await.unwrap();
    }
    assert_eq!(titles(&store).await, ["c", "b", "a"]);
    append(&store, &session("a"), &[1]).await;
    assert_eq!(titles(&store).await, ["a", "c", "b"]);
    TranscriptStore::append(&store, vec![turn("b", "t1", None)]).await.unwrap();
    assert_eq!(titles(&store).await, ["b", "a", "c"]);
    store.update(turn("b", "t1", None)).await.unwrap();
    store.rename_session(&session("c"), "C").await.unwrap();
    assert_eq!(titles(&store).await, ["C", "b", "a"]);
}

#[tokio::test]
async fn a_registered_session_keeps_its_title_when_registered_or_created_again() {
    let (_dir, store) = new_store();
    let first = store.register_session(&session("a"), "First").await.unwrap();
    assert_eq!(store.register_session(&session("a"), "Second").await.unwrap(), first);
    let append = Append::any(session("a"), vec![created("Third")]);
    EventStore::append(&store, append).await.unwrap();
    assert_eq!(titles(&store).await, ["First"]);
}

#[tokio::test]
async fn an_archived_session_is_whole_and_can_come_back() {
    let (_dir, store) = new_store();
    append(&store, &session("a"), &[1]).await;
    let before = record(&store, &session("a")).await;
    store.move_session(&session("a"), Shelf::Archived).await.unwrap();
    let archived = record(&store, &session("a")).await;
    assert_eq!(archived.shelf, Shelf::Archived);
    assert_eq!(archived.updated_at, before.updated_at);
    assert_eq!(all(&store, &session("a")).await.len(), 1);
    store.move_session(&session("a"), Shelf::Active).await.unwrap();
    assert_eq!(record(&store, &session("a")).await, before);
}

#[tokio::test]
async fn deleting_a_session_deletes_everything_about_it_and_nothing_else() {
    let (dir, store) = new_store();
    for name in ["a", "b"] {
        let id = session(name);
        let message = Append::any(id.clone(), vec![created(name)]).once(Some("m1".into()));
        EventStore::append(&store, message).await.unwrap();
        store.put(&id, name.into()).await.unwrap();
        TranscriptStore::append(&store, vec![turn(name, "t1", None)]).await.unwrap();
    }
    let kept = all(&store, &session("b")).await;

    store.delete_session(&session("a")).await.unwrap();
    store.delete_session(&session("a")).await.unwrap();
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.session(&session("a")).await.unwrap(), None);
    assert!(all(&store, &session("a")).await.is_empty());
    assert!(store.event_kinds(&session("a")).await.unwrap().is_empty());
    assert!(store.branch(&session("a")).await.unwrap().is_empty());
    assert!(store.turn_children(&session("a"), None).await.unwrap().is_empty());

    assert_eq!(titles(&store).await, ["b"]);
    assert_eq!(all(&store, &session("b")).await, kept);
    assert_eq!(store.branch(&session("b")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_late_writer_cannot_bring_a_deleted_session_back() {
    let (dir, store) = new_store();
    let a = session("a");
    append(&store, &a, &[1]).await;
    TranscriptStore::append(&store, vec![turn("a", "t1", None)]).await.unwrap();
    store.delete_session(&a).await.unwrap();
    drop(store);
    let store = open(dir.path());

    let error = EventStore::append(&store, Append::any(a.clone(), vec![created("x")])).await;
    let expected = AppendError::Storage("the session was deleted".into());
    assert_eq!(error.unwrap_err(), expected);
    assert!(store.put(&a, b"x".to_vec()).await.is_err());
    assert!(TranscriptStore::append(&store, vec![turn("a", "t2", None)]).await.is_err());
    assert!(store.update(turn("a", "t1", None)).await.is_err());
    assert!(store.set_head(&a, None).await.is_err());
    let deleted = Err(CatalogueError::Deleted(a.clone()));
    assert_eq!(store.rename_session(&a, "x").await, deleted);
    assert_eq!(store.move_session(&a, Shelf::Archived).await, deleted);
    assert_eq!(store.register_session(&a, "x").await, Err(CatalogueError::Deleted(a.clone())));
    assert!(store.sessions().await.unwrap().is_empty());
    assert!(all(&store, &a).await.is_empty());
}

#[tokio::test]
async fn what_is_not_there_cannot_be_renamed_or_deleted() {
    let (_dir, store) = new_store();
    let unknown = Err(CatalogueError::UnknownSession(session("a")));
    assert_eq!(store.rename_session(&session("a"), "x").await, unknown);
    assert_eq!(store.move_session(&session("a"), Shelf::Archived).await, unknown);
    assert_eq!(store.delete_session(&session("a")).await, unknown);
    append(&store, &session("a"), &[1]).await;
}
