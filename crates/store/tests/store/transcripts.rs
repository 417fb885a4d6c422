//! Conversations.

use correx_events::{Timestamp, TurnId};
use correx_router::{Thinking, TranscriptStore, TranscriptTurn, TurnRole, TurnStatus};
use correx_store::{STORE_FILE, Store};
use redb::TableDefinition;

use crate::support::{new_store, open, session};

/// A person's turn.
pub(crate) fn turn(session_name: &str, id: &str, parent: Option<&str>) -> TranscriptTurn {
    TranscriptTurn {
        turn_id: TurnId::new(id),
        session_id: session(session_name),
        parent: parent.map(TurnId::from),
        role: TurnRole::User,
        thinking: None,
        content: format!("turn {id}"),
        steering: false,
        note_id: None,
        status: TurnStatus::Complete,
        timestamp: Timestamp::from_second(1_700_000_000).unwrap(),
        report: None,
    }
}

async fn ids(store: &Store) -> Vec<String> {
    let branch = store.branch(&session("a")).await.unwrap();
    branch.into_iter().map(|turn| turn.turn_id.as_str().to_owned()).collect()
}

async fn children(store: &Store, parent: Option<&str>) -> Vec<String> {
    let parent = parent.map(TurnId::from);
    let turns = store.turn_children(&session("a"), parent.as_ref()).await.unwrap();
    turns.into_iter().map(|turn| turn.as_str().to_owned()).collect()
}

/// Writes a text under a turn, as damage would.
fn overwrite(dir: &std::path::Path, id: &str, text: &[u8]) {
    let turns: TableDefinition<(&str, &str), &[u8]> = TableDefinition::new("turns");
    let database = redb::Database::open(dir.join(STORE_FILE)).unwrap();
    let tx = database.begin_write().unwrap();
    tx.open_table(turns).unwrap().insert(("a", id), text).unwrap();
    tx.commit().unwrap();
}

/// As it was written before models could think.
#[tokio::test]
async fn a_turn_of_before_thinking_was_kept_has_none() {
    let (dir, store) = new_store();
    TranscriptStore::append(&store, vec![turn("a", "t1", None)]).await.unwrap();
    drop(store);
    let old = r#"{"turn_id":"t1","session_id":"a","parent":null,"role":"ROUTER","content":"Four.","steering":false,"note_id":null,"status":{"kind":"complete"},"timestamp":"2026-01-31T12:00:00Z","report":null}"#;
    overwrite(dir.path(), "t1", old.as_bytes());
    let [turn] = &open(dir.path()).branch(&session("a")).await.unwrap()[..] else {
        panic!("one turn")
    };
    assert_eq!((turn.content.as_str(), &turn.thinking), ("Four.", &None));
    assert_eq!(serde_json::to_string(turn).unwrap(), old);
}

#[tokio::test]
async fn a_conversation_comes_back_whole_after_reopening() {
    let (dir, store) = new_store();
    let answer = TranscriptTurn {
        role: TurnRole::Router,
        thinking: Some(Thinking { text: "Hm.\nWell.".into(), tokens: 4 }),
        status: TurnStatus::Failed { message: "the model file went away".into() },
        ..turn("a", "t2", Some("t1"))
    };
    let turns = vec![turn("a", "t1", None), answer];
    TranscriptStore::append(&store, turns.clone()).await.unwrap();
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.branch(&session("a")).await.unwrap(), turns);
    assert!(store.branch(&session("b")).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_turn_is_written_again_as_its_answer_grows() {
    let (_dir, store) = new_store();
    let mut answer = TranscriptTurn { status: TurnStatus::Pending, ..turn("a", "t1", None) };
    TranscriptStore::append(&store, vec![answer.clone()]).await.unwrap();
    answer.content = "all of it".into();
    answer.status = TurnStatus::Stopped;
    store.update(answer.clone()).await.unwrap();
    assert_eq!(store.branch(&session("a")).await.unwrap(), [answer]);

    assert!(store.update(turn("a", "t9", None)).await.is_err(), "it was never added");
    assert!(store.update(turn("a", "t1", Some("t1"))).await.is_err(), "it cannot be moved");
}

#[tokio::test]
async fn an_edited_message_is_a_branch_and_the_head_chooses_between_them() {
    let (_dir, store) = new_store();
    let add = |id: &'static str, parent: Option<&'static str>| {
        TranscriptStore::append(&store, vec![turn("a", id, parent)])
    };
    add("t1", None).await.unwrap();
    add("t2", Some("t1")).await.unwrap();
    add("t3", Some("t2")).await.unwrap();
    add("t2b", Some("t1")).await.unwrap();
    assert_eq!(ids(&store).await, ["t1", "t2b"]);
    assert_eq!(children(&store, Some("t1")).await, ["t2", "t2b"]);
    add("t0", None).await.unwrap();
    assert_eq!(children(&store, None).await, ["t1", "t0"]);

    store.set_head(&session("a"), Some(&TurnId::new("t3"))).await.unwrap();
    assert_eq!(ids(&store).await, ["t1", "t2", "t3"]);
    assert!(store.set_head(&session("a"), Some(&TurnId::new("t9"))).await.is_err());
    assert_eq!(ids(&store).await, ["t1", "t2", "t3"]);
    store.set_head(&session("a"), None).await.unwrap();
    assert!(ids(&store).await.is_empty());
}

#[tokio::test]
async fn turns_that_do_not_fit_the_tree_are_refused_as_a_whole() {
    let (_dir, store) = new_store();
    TranscriptStore::append(&store, vec![turn("a", "t1", None)]).await.unwrap();
    TranscriptStore::append(&store, vec![turn("b", "b1", None)]).await.unwrap();
    let misfits = [
        vec![turn("a", "t2", Some("t1")), turn("a", "t3", Some("nowhere"))],
        vec![turn("a", "t2", Some("t1")), turn("a", "t2", Some("t1"))],
        vec![turn("a", "t2", Some("t1")), turn("a", "t1", None)],
        vec![turn("a", "t2", Some("t2"))],
        vec![turn("a", "t2", Some("b1"))],
        vec![turn("a", "t2", Some("t3")), turn("a", "t3", Some("t1"))],
        vec![turn("a", "t2", Some("t1")), turn("b", "t3", None)],
        vec![turn("a", "", Some("t1"))],
    ];
    for turns in misfits {
        assert!(TranscriptStore::append(&store, turns.clone()).await.is_err(), "{turns:?}");
    }
    assert_eq!(ids(&store).await, ["t1"]);
    assert!(children(&store, Some("t1")).await.is_empty());
    TranscriptStore::append(&store, Vec::new()).await.unwrap();
    assert_eq!(ids(&store).await, ["t1"]);
}

#[tokio::test]
async fn a_turn_that_cannot_be_read_hides_only_what_comes_before_it() {
    let (dir, store) = new_store();
    let chain = [("t1", None), ("t2", Some("t1")), ("t3", Some("t2")), ("t4", Some("t3"))];
    let turns = chain.map(|(id, parent)| turn("a", id, parent)).to_vec();
    TranscriptStore::append(&store, turns).await.unwrap();
    drop(store);
    overwrite(dir.path(), "t2", b"\xff\0not json");

    let store = open(dir.path());
    assert_eq!(ids(&store).await, ["t3", "t4"]);
    store.update(turn("a", "t2", Some("t1"))).await.unwrap();
    assert_eq!(ids(&store).await, ["t1", "t2", "t3", "t4"], "writing it again repairs it");
}

#[tokio::test]
async fn a_last_turn_that_cannot_be_read_hides_only_itself() {
    let (dir, store) = new_store();
    let turns = vec![turn("a", "t1", None), turn("a", "t2", Some("t1"))];
    TranscriptStore::append(&store, turns).await.unwrap();
    drop(store);
    overwrite(dir.path(), "t2", b"{\"content\":1}");

    let store = open(dir.path());
    assert_eq!(ids(&store).await, ["t1"]);
    TranscriptStore::append(&store, vec![turn("a", "t3", Some("t1"))]).await.unwrap();
    assert_eq!(ids(&store).await, ["t1", "t3"]);
}
