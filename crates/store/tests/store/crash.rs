//! kill -9 in the middle of writing.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use correx_events::{Append, BlobHash, BlobStore, EventStore};
use correx_router::TranscriptStore;
use correx_store::{STORE_FILE, Store};

use crate::support::{all, append, new_store, number_of, numbered, open, session};
use crate::transcripts::turn;

const CHILD_DIR: &str = "CORREX_STORE_CRASH_DIR";
const CHILD_ROUND: &str = "CORREX_STORE_CRASH_ROUND";
const WRITERS: u64 = 4;

/// Never returns: writes until it is killed, and prints what was acknowledged.
fn write_until_killed(dir: &Path, round: u64) -> ! {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = open(dir);
        let mut tasks = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            let store = store.clone();
            tasks.spawn(async move {
                for n in 0.. {
                    write_once(&store, writer, round * 1_000_000 + n).await;
                }
            });
        }
        tasks.join_all().await;
    });
    unreachable!("the writers never end")
}

async fn write_once(store: &Store, writer: u64, number: u64) {
    let name = format!("s{writer}");
    let append = Append::any(session(&name), vec![numbered(number), numbered(number)]);
    let stored = EventStore::append(store, append).await.unwrap();
    acknowledge(&format!("event {name} {} {number}", stored[1].metadata.sequence));
    if number.is_multiple_of(5) {
        let bytes = vec![writer as u8; 20_000 + number as usize % 1000];
        let hash = store.put(&session(&name), bytes).await.unwrap();
        acknowledge(&format!("blob {name} {hash} {number}"));
        let id = format!("t{number}");
        TranscriptStore::append(store, vec![turn(&name, &id, None)]).await.unwrap();
        acknowledge(&format!("turn {name} {id} {number}"));
    }
}

fn acknowledge(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nacknowledged {what} .").unwrap();
    out.flush().unwrap();
}

/// Everything acknowledged so far: events by session and sequence, blobs, last turns.
#[derive(Default)]
struct Acknowledged {
    events: BTreeMap<(String, u64), u64>,
    blobs: Vec<(String, BlobHash)>,
    turns: Vec<(String, String)>,
}

impl Acknowledged {
    /// Whether the line (whole: the last one may be cut off) is an acknowledgement.
    fn note(&mut self, line: &str) -> bool {
        let Some(rest) = line.strip_prefix("acknowledged ") else { return false };
        let [what, name, id, number, "."] = rest.split(' ').collect::<Vec<_>>()[..] else {
            return false;
        };
        match what {
            "event" => {
                let key = (name.to_owned(), id.parse().unwrap());
                self.events.insert(key, number.parse().unwrap());
            }
            "blob" => self.blobs.push((name.to_owned(), id.into())),
            "turn" => self.turns.push((name.to_owned(), id.to_owned())),
            other => panic!("{other}"),
        }
        true
    }

    async fn check(&self, store: &Store) {
        for writer in 0..WRITERS {
            let name = format!("s{writer}");
            let log = all(store, &session(&name)).await;
            for (position, event) in log.iter().enumerate() {
                assert_eq!(event.metadata.sequence, position as u64 + 1, "a gap");
            }
            assert!(log.len().is_multiple_of(2), "half an append is there");
            for ((_, sequence), number) in self.events.iter().filter(|((n, _), _)| *n == name) {
                assert_eq!(number_of(&log[*sequence as usize - 1]), *number, "another event");
            }
        }
        for (name, hash) in &self.blobs {
            assert!(store.get(hash).await.unwrap().is_some(), "the blob {hash} is gone");
            assert!(store.holds(&session(name), hash).await.unwrap());
        }
        for (name, id) in &self.turns {
            let roots = store.turn_children(&session(name), None).await.unwrap();
            assert!(roots.iter().any(|turn| turn.as_str() == id), "the turn {id} is gone");
        }
    }
}

/// Starts this test as a child that writes, kills it after some acknowledgements, and looks at what
/// is there; `rounds` times on the same directory.
fn survive(test: &str, rounds: u64) {
    if let (Ok(dir), Ok(round)) = (std::env::var(CHILD_DIR), std::env::var(CHILD_ROUND)) {
        write_until_killed(Path::new(&dir), round.parse().unwrap());
    }
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut acknowledged = Acknowledged::default();
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(CHILD_DIR, dir.path())
            .env(CHILD_ROUND, round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let before = acknowledged.events.len();
        let enough = 1 + (round * 37) % 90;
        let mut seen = 0;
        for line in lines {
            // Past the kill: what was acknowledged before it is still in the pipe.
            let Ok(line) = line else { break };
            if !acknowledged.note(&line) {
                continue;
            }
            seen += 1;
            if seen == enough {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(acknowledged.events.len() > before, "the child acknowledged nothing");
        runtime.block_on(async { acknowledged.check(&open(dir.path())).await });
    }
}

#[test]
fn whatever_was_acknowledged_survives_kill_9() {
    survive("crash::whatever_was_acknowledged_survives_kill_9", 8);
}

#[tokio::test]
async fn opening_after_a_crash_does_not_walk_the_whole_file() {
    let (dir, store) = new_store();
    append(&store, &session("a"), &[1, 2, 3]).await;
    // What lies on the disk while the store is open is what a crash leaves.
    let crashed = dir.path().join("crashed.redb");
    std::fs::copy(dir.path().join(STORE_FILE), &crashed).unwrap();
    let walked = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&walked);
    let mut builder = redb::Builder::new();
    builder.set_repair_callback(move |_| told.store(true, Ordering::SeqCst));
    drop(builder.open(&crashed).unwrap());
    assert!(!walked.load(Ordering::SeqCst));
}

mod long {
    #[test]
    fn whatever_was_acknowledged_survives_kill_9_many_times() {
        super::survive("crash::long::whatever_was_acknowledged_survives_kill_9_many_times", 150);
    }
}
