//! The stored format, as `FORMAT.md` says: files that were written once can be read for ever.

use std::fs;
use std::path::{Path, PathBuf};

use correx_events::{
    BlobHash, BlobStore, EventPayload, NoteId, NoteScope, StoredEvent, UnknownReason, codec,
};
use correx_router::TranscriptStore;
use correx_store::{STORE_FILE, Shelf, Store};
use redb::TableDefinition;

use crate::samples::one_of_each;
use crate::support::{all, append, new_store, number_of, open, session};

const EVENTS: TableDefinition<(&str, u64), &[u8]> = TableDefinition::new("events");
const SESSIONS: TableDefinition<&str, &[u8]> = TableDefinition::new("sessions");

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn fixture_lines(name: &str) -> Vec<String> {
    let text = fs::read_to_string(fixture(name)).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Writes lines as events of the session `fixture`, below the store's own code.
fn write_lines(dir: &Path, lines: &[String]) {
    let database = redb::Database::open(dir.join(STORE_FILE)).unwrap();
    let tx = database.begin_write().unwrap();
    let mut table = tx.open_table(EVENTS).unwrap();
    for (sequence, line) in (1..).zip(lines) {
        table.insert(("fixture", sequence), line.as_bytes()).unwrap();
    }
    drop(table);
    tx.commit().unwrap();
}

async fn through_the_store(lines: &[String]) -> Vec<StoredEvent> {
    let (dir, store) = new_store();
    drop(store);
    write_lines(dir.path(), lines);
    let store = open(dir.path());
    let kept = store.read_lines(&session("fixture"), 1).await.unwrap();
    assert_eq!(kept, lines, "the lines must come back byte for byte");
    let events = all(&store, &session("fixture")).await;
    assert_eq!(events.len(), lines.len());
    // New events go after what cannot be read, too.
    append(&store, &session("fixture"), &[1]).await;
    assert_eq!(all(&store, &session("fixture")).await.len(), lines.len() + 1);
    events
}

#[tokio::test]
async fn the_first_form_of_every_kind_is_read_and_written_as_it_was() {
    let lines = fixture_lines("events-1.jsonl");
    let events = through_the_store(&lines).await;
    let payloads: Vec<_> = events.iter().map(|event| event.payload.clone()).collect();
    assert_eq!(payloads, one_of_each());
    for (event, line) in events.iter().zip(&lines) {
        assert_eq!(&serde_json::to_string(event).unwrap(), line);
    }
}

#[tokio::test]
async fn a_note_of_the_specifications_form_is_lifted_to_todays() {
    let lines = fixture_lines("steering-note-first-form.jsonl");
    let events = through_the_store(&lines).await;
    let EventPayload::SteeringNoteAdded(note) = &events[0].payload else {
        panic!("{:?}", events[0].payload)
    };
    assert_eq!(note.note_id, NoteId::new(format!("note-of-{}", events[0].metadata.event_id)));
    assert_eq!(note.scope, NoteScope::Stage);
    assert_eq!(note.content, "Write in German");
}

#[tokio::test]
async fn what_this_version_cannot_read_is_shown_as_unknown_and_kept_byte_for_byte() {
    let lines = fixture_lines("unknown.jsonl");
    let events = through_the_store(&lines).await;
    let reasons: Vec<_> = events
        .iter()
        .map(|event| match &event.payload {
            EventPayload::Unknown(unknown) => (unknown.kind.as_str(), &unknown.reason),
            known => panic!("{known:?}"),
        })
        .collect();
    assert_eq!(reasons[0], ("stage_dreamt", &UnknownReason::NewKind));
    assert_eq!(reasons[1].0, "stage_started");
    assert!(matches!(reasons[1].1, UnknownReason::Unreadable(_)));
    for (event, line) in events.iter().zip(&lines) {
        let text = codec::encode(&event.payload).unwrap();
        assert!(line.ends_with(&format!("\"payload\":{text}}}")), "{text}");
        assert_eq!(&serde_json::to_string(event).unwrap(), line);
    }
}

#[tokio::test]
async fn a_bad_record_hides_nothing_but_itself() {
    let good = fixture_lines("events-1.jsonl");
    let (dir, store) = new_store();
    append(&store, &session("fixture"), &[1]).await;
    drop(store);
    let bad = [
        "".to_owned(),
        "\0\0\0".to_owned(),
        "{\"event_id\":\"e".to_owned(),
        "[1]".to_owned(),
        good[1].replace("\"sequence\":2", "\"sequence\":77"),
        good[5].replace("\"session_id\":\"fixture\"", "\"session_id\":\"else\""),
    ];
    let lines: Vec<_> = [&good[0]].into_iter().chain(&bad).cloned().collect();
    write_lines(dir.path(), &lines);

    let store = open(dir.path());
    let events = all(&store, &session("fixture")).await;
    assert!(matches!(events[0].payload, EventPayload::SessionCreated(_)));
    for (event, sequence) in events[1..].iter().zip(2..) {
        assert_eq!(event.metadata.sequence, sequence);
        let EventPayload::Unknown(unknown) = &event.payload else { panic!("{event:?}") };
        assert!(matches!(unknown.reason, UnknownReason::Unreadable(_)));
        serde_json::to_string(event).expect("an export must not stop here");
    }
    assert_eq!(store.sessions().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_bad_catalogue_row_is_put_together_from_the_events() {
    let (dir, store) = new_store();
    drop(store);
    write_lines(dir.path(), &fixture_lines("events-1.jsonl"));
    let database = redb::Database::open(dir.path().join(STORE_FILE)).unwrap();
    let tx = database.begin_write().unwrap();
    tx.open_table(SESSIONS).unwrap().insert("fixture", b"\xff{".as_slice()).unwrap();
    tx.open_table(SESSIONS)
        .unwrap()
        .insert(
            "newer",
            br#"{"title":"N","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z","colour":"red"}"#
                .as_slice(),
        )
        .unwrap();
    tx.commit().unwrap();
    drop(database);

    let store = open(dir.path());
    let record = store.session(&session("fixture")).await.unwrap().unwrap();
    assert_eq!(record.title, "Grüße — \"quoted\", \\ and 🦀");
    assert_eq!(record.last_sequence, EventPayload::KINDS.len() as u64);
    let log = all(&store, &session("fixture")).await;
    assert_eq!(record.created_at, log[0].metadata.timestamp);
    assert_eq!(record.updated_at, log.last().unwrap().metadata.timestamp);
    assert_eq!(store.sessions().await.unwrap().len(), 2);

    store.rename_session(&session("newer"), "M").await.unwrap();
    drop(store);
    let database = redb::Database::open(dir.path().join(STORE_FILE)).unwrap();
    let tx = redb::ReadableDatabase::begin_read(&database).unwrap();
    let row = tx.open_table(SESSIONS).unwrap().get("newer").unwrap().unwrap().value().to_vec();
    let row = String::from_utf8(row).unwrap();
    assert!(row.contains(r#""title":"M""#) && row.contains(r#""colour":"red""#), "{row}");
}

/// What the committed file of format 1 holds.
/// As many kinds there were when the file was written; later ones come behind them.
const KINDS_OF_ITS_DAY: usize = 26;

async fn assert_is_the_fixture(store: &Store) {
    let name = session("fixture");
    let events = all(store, &name).await;
    let payloads: Vec<_> = events.iter().map(|event| event.payload.clone()).collect();
    assert_eq!(payloads, one_of_each()[..KINDS_OF_ITS_DAY]);
    assert_eq!(all(store, &session("other")).await.iter().map(number_of).collect::<Vec<_>>(), [7]);
    let record = store.session(&name).await.unwrap().unwrap();
    assert_eq!(record.title, "Grüße — \"quoted\", \\ and 🦀");
    assert_eq!(record.shelf, Shelf::Archived);
    let hash = BlobHash::of(b"a blob of format 1");
    assert!(store.holds(&name, &hash).await.unwrap());
    assert_eq!(store.get(&hash).await.unwrap().unwrap(), b"a blob of format 1");
    let branch = store.branch(&name).await.unwrap();
    assert_eq!(branch.iter().map(|t| t.turn_id.as_str()).collect::<Vec<_>>(), ["t1", "t2b"]);
    assert_eq!(store.event_kinds(&name).await.unwrap().len(), KINDS_OF_ITS_DAY);
    assert!(store.rename_session(&session("deleted"), "x").await.is_err());
}

#[tokio::test]
async fn a_file_of_format_1_opens_and_can_be_written_to() {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(fixture("format-1.redb"), dir.path().join(STORE_FILE)).unwrap();
    let store = open(dir.path());
    assert_is_the_fixture(&store).await;
    append(&store, &session("other"), &[8]).await;
    assert_eq!(
        all(&store, &session("other")).await.iter().map(number_of).collect::<Vec<_>>(),
        [7, 8]
    );
}
