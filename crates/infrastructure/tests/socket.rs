//! One owner, many front ends: over the real socket.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "what goes wrong here fails the test")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use correx_infrastructure::link::client::Role;
use correx_protocol::{
    ChatMode, ClientMessage, ErrorCode, ServerMessage, WaitReason, WorkflowStatus,
};
use serde_json::{Value, json};
use support::*;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

#[tokio::test]
async fn a_second_process_works_beside_the_owner() {
    let dir = tempfile::tempdir().unwrap();
    let owner = connect(dir.path(), quick()).await;
    let guest = connect(dir.path(), quick()).await;
    assert_eq!((owner.role().await, guest.role().await), (Role::Owner, Role::Guest));
    let mut pushes = guest.subscribe();
    let session = minutes(&guest).await;
    done(&guest, start(&session)).await;
    run_is(&mut pushes, &session, WorkflowStatus::Completed).await;
    let answer = guest.request(say(&session, "How did it go?", ChatMode::Chat)).await;
    assert!(matches!(answer, ServerMessage::RouterResponse { .. }), "{answer:?}");
    assert_eq!(open(&owner, &session).await, open(&guest, &session).await);
    guest.shutdown().await;
    owner.shutdown().await;
}

#[tokio::test]
async fn a_guest_that_leaves_does_not_disturb_the_owner() {
    let dir = tempfile::tempdir().unwrap();
    let owner = connect(dir.path(), slow()).await;
    let guest = connect(dir.path(), slow()).await;
    let session = chat_session(&owner).await;
    let mut pushes = owner.subscribe();
    let (asking, question) = (guest.clone(), say(&session, "Tell me", ChatMode::Chat));
    let answer = tokio::spawn(async move { asking.request(question).await });
    answer_streams(&mut pushes, &session).await;
    guest.shutdown().await;
    let ServerMessage::Error(error) = answer.await.unwrap() else { panic!("answered") };
    assert!(error.kept.is_some());
    assert_eq!(
        owner.live_work().await,
        std::slice::from_ref(&session),
        "the answer is written to its end"
    );
    done(&owner, ClientMessage::StopReply { session_id: session }).await;
    owner.shutdown().await;
}

struct Wire {
    write: tokio::net::unix::OwnedWriteHalf,
    read: tokio::io::Lines<BufReader<tokio::net::unix::OwnedReadHalf>>,
}

impl Wire {
    async fn open(dir: &Path) -> Self {
        let stream = UnixStream::connect(dir.join("correx.sock")).await.unwrap();
        let (read, write) = stream.into_split();
        Self { write, read: BufReader::new(read).lines() }
    }

    async fn send(&mut self, line: &[u8]) {
        self.write.write_all(line).await.unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    /// The next reply; pushes are passed over.
    async fn reply(&mut self) -> Value {
        loop {
            let line = self.read.next_line().await.unwrap().expect("the connection goes on");
            let frame: Value = serde_json::from_str(&line).unwrap();
            if frame["frame"] == "reply" {
                return frame;
            }
        }
    }
}

#[tokio::test]
async fn what_cannot_be_understood_gets_an_answer_and_the_connection_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let owner = connect(dir.path(), quick()).await;
    let mut wire = Wire::open(dir.path()).await;
    let unknown = json!({"id": 7, "message": {"type": "make_coffee", "sugar": 2}}).to_string();
    let oversized = vec![b'x'; 33 * 1024 * 1024];
    let cases: [(&[u8], u64); 6] = [
        (unknown.as_bytes(), 7),
        (b"{\"id\": 8}", 8),
        (b"not json at all", 0),
        (b"\xff\xfe\xfd", 0),
        (b"[]", 0),
        (&oversized, 0),
    ];
    for (line, id) in cases {
        wire.send(line).await;
        let reply = wire.reply().await;
        assert_eq!(reply["id"], id);
        assert_eq!(reply["message"]["type"], "error");
        assert_eq!(reply["message"]["code"], "bad_message");
        assert!(reply["message"]["kept"].is_string());
    }
    wire.send(json!({"id": 9, "message": {"type": "get_model"}}).to_string().as_bytes()).await;
    let reply = wire.reply().await;
    assert_eq!(reply["id"], 9);
    assert_eq!(reply["message"]["type"], "model");
    owner.shutdown().await;
}

#[tokio::test]
async fn a_long_answer_does_not_hold_up_other_requests_of_one_connection() {
    let dir = tempfile::tempdir().unwrap();
    let owner = connect(dir.path(), slow()).await;
    let session = chat_session(&owner).await;
    let mut wire = Wire::open(dir.path()).await;
    let chat = json!({"id": 1, "message": {
        "type": "chat_input", "session_id": session.as_str(), "text": "Tell me", "mode": "CHAT"}});
    wire.send(chat.to_string().as_bytes()).await;
    wire.send(json!({"id": 2, "message": {"type": "get_overview"}}).to_string().as_bytes()).await;
    assert_eq!(wire.reply().await["id"], 2);
    let mut pushes = owner.subscribe();
    answer_streams(&mut pushes, &session).await;
    let stop = json!({"id": 3, "message": {"type": "stop_reply", "session_id": session.as_str()}});
    wire.send(stop.to_string().as_bytes()).await;
    let mut ids = [wire.reply().await["id"].as_u64(), wire.reply().await["id"].as_u64()];
    ids.sort();
    assert_eq!(ids, [Some(1), Some(3)]);
    owner.shutdown().await;
}

#[tokio::test]
async fn only_the_owner_of_the_files_can_open_the_socket() {
    let dir = tempfile::tempdir().unwrap();
    let owner = connect(dir.path(), quick()).await;
    let socket = dir.path().join("correx.sock");
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    owner.shutdown().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn a_socket_left_behind_by_a_dead_owner_is_no_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("correx.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    let owner = connect(dir.path(), quick()).await;
    let guest = connect(dir.path(), quick()).await;
    assert_eq!((owner.role().await, guest.role().await), (Role::Owner, Role::Guest));
    owner.shutdown().await;
}

#[tokio::test]
async fn a_deep_data_directory_can_be_shared_too() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("d".repeat(120)).join("data");
    let owner = connect(&deep, quick()).await;
    let guest = connect(&deep, quick()).await;
    assert_eq!(guest.role().await, Role::Guest);
    let session = chat_session(&guest).await;
    assert_eq!(open(&owner, &session).await.summary.session_id, session);
    owner.shutdown().await;
}

#[tokio::test]
async fn of_many_that_start_at_once_exactly_one_becomes_the_owner() {
    let dir = tempfile::tempdir().unwrap();
    let mut starting = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let path = dir.path().to_owned();
        starting.spawn(async move { connect(&path, quick()).await });
    }
    let clients = starting.join_all().await;
    let mut owners = 0;
    for client in &clients {
        owners += usize::from(client.is_owner().await);
        assert!(matches!(
            client.request(ClientMessage::GetOverview).await,
            ServerMessage::Overview(_)
        ));
    }
    assert_eq!(owners, 1);
    for client in clients {
        client.shutdown().await;
    }
}

#[tokio::test]
async fn when_the_owner_ends_a_guest_takes_over_and_the_run_can_be_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let owner = connect(dir.path(), slow()).await;
    let guest = connect(dir.path(), quick()).await;
    let mut pushes = guest.subscribe();
    let session = minutes(&guest).await;
    done(&guest, start(&session)).await;
    run_is(&mut pushes, &session, WorkflowStatus::Running).await;
    let (asking, question) = (guest.clone(), say(&session, "How is it?", ChatMode::Chat));
    let answer = tokio::spawn(async move { asking.request(question).await });
    answer_streams(&mut pushes, &session).await;
    owner.shutdown().await;
    drop(owner);
    // Answered as stopped, or not at all: never left hanging.
    match answer.await.unwrap() {
        ServerMessage::Error(error) => {
            assert_eq!(error.code, ErrorCode::Internal);
            assert!(error.kept.is_some() && error.hint.is_some());
        }
        reply => assert!(matches!(reply, ServerMessage::RouterResponse { .. }), "{reply:?}"),
    }
    let run = run_is(&mut pushes, &session, WorkflowStatus::Paused).await;
    assert_eq!(run.waiting_for, Some(WaitReason::Interrupted));
    assert!(guest.is_owner().await);
    let view = open(&guest, &session).await;
    assert_eq!(view.turns[0].content, "How is it?", "the message was kept");
    done(&guest, ClientMessage::ResumeRun { session_id: session.clone() }).await;
    run_is(&mut pushes, &session, WorkflowStatus::Completed).await;
    guest.shutdown().await;
}

#[tokio::test]
async fn after_a_shutdown_the_data_directory_is_free_and_the_handle_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let first = connect(dir.path(), slow()).await;
    let session = minutes(&first).await;
    done(&first, start(&session)).await;
    first.shutdown().await;
    let error = refused(&first, ClientMessage::GetModel).await;
    assert_eq!(error.code, ErrorCode::WrongState);
    let second = connect(dir.path(), slow()).await;
    assert!(second.is_owner().await);
    let run = open(&second, &session).await.run.unwrap();
    assert_eq!(run.waiting_for, Some(WaitReason::Interrupted));
    second.shutdown().await;
}

#[tokio::test]
async fn what_only_reads_is_answered_whoever_owns_the_data_directory_by_then() {
    let dir = tempfile::tempdir().unwrap();
    let owner = connect(dir.path(), quick()).await;
    let guest = connect(dir.path(), quick()).await;
    let session = chat_session(&owner).await;
    let reading = tokio::spawn(async move {
        while !guest.is_owner().await {
            let view = open(&guest, &session).await;
            assert_eq!(view.summary.session_id, session);
        }
        guest.shutdown().await;
    });
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    owner.shutdown().await;
    drop(owner);
    tokio::time::timeout(std::time::Duration::from_secs(20), reading).await.unwrap().unwrap();
}
