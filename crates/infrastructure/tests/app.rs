//! The application through its one handle, over a real data directory.

mod support;

use std::fs;

use correx_protocol::{
    ChatMode, ClientMessage, ErrorCode, InputValue, ServerMessage, StageStatus, SteerScope,
    SteerTarget, TurnRole, TurnStatus, WorkflowChoice, WorkflowStatus,
};
use support::*;

#[tokio::test]
async fn a_workflow_runs_to_its_end_and_leaves_its_artifacts() {
    let dir = tempfile::tempdir().unwrap();
    let client = connect(dir.path(), quick()).await;
    let mut pushes = client.subscribe();
    let session = minutes(&client).await;
    assert_eq!(open(&client, &session).await.run.unwrap().stages.len(), 3, "planned before start");
    done(&client, start(&session)).await;
    let run = run_is(&mut pushes, &session, WorkflowStatus::Completed).await;
    assert!(run.stages.iter().all(|stage| stage.status == StageStatus::Done));
    let artifact = &run.stages[2].artifacts[0];
    let (session_id, hash) = (session.clone(), artifact.hash.clone());
    let ServerMessage::Blob(blob) =
        client.request(ClientMessage::ReadBlob { session_id, hash }).await
    else {
        panic!("no artifact");
    };
    assert_eq!(blob.text, "The team met and agreed on three things.");
    let context = run.stages[2].context.as_ref().unwrap();
    assert!(context.reply_reserve > 0, "what the stage may write is kept free");
    client.shutdown().await;
}

#[tokio::test]
async fn events_come_verbatim_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let client = connect(dir.path(), quick()).await;
    let mut pushes = client.subscribe();
    let session = minutes(&client).await;
    done(&client, start(&session)).await;
    run_is(&mut pushes, &session, WorkflowStatus::Completed).await;
    let read = |from| ClientMessage::ReadEvents { session_id: session.clone(), from };
    let ServerMessage::Events { lines } = client.request(read(1)).await else { panic!() };
    for (number, line) in (1..).zip(&lines) {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["sequence"], number);
    }
    assert!(lines[0].contains("session_created"));
    assert!(lines.last().unwrap().contains("workflow_completed"));
    let ServerMessage::Events { lines: later } = client.request(read(3)).await else { panic!() };
    assert_eq!(later, lines[2..]);
    client.shutdown().await;
}

#[tokio::test]
async fn a_note_for_a_later_stage_is_in_the_ids_fed_to_it_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    let model = Scripted::new("one two three four five", std::time::Duration::from_millis(40));
    let client = connect(dir.path(), model.clone()).await;
    let mut pushes = client.subscribe();
    let session = minutes(&client).await;
    done(&client, start(&session)).await;
    run_is(&mut pushes, &session, WorkflowStatus::Running).await;
    let note = ClientMessage::ChatInput {
        session_id: session.clone(),
        text: "Mention zebras".into(),
        mode: ChatMode::Steering,
        target: SteerTarget { stage_id: Some("mail".into()), scope: SteerScope::Stage },
        client_message_id: None,
    };
    let ServerMessage::RouterResponse { steering_emitted, note_id, .. } =
        client.request(note).await
    else {
        panic!("no answer");
    };
    assert!(steering_emitted);
    let run = run_is(&mut pushes, &session, WorkflowStatus::Completed).await;
    assert_eq!(Some(&run.notes[0].note_id), note_id.as_ref());
    assert_eq!(run.notes[0].applied.len(), 1);
    assert_eq!(run.notes[0].applied[0].stage_id, "mail".into());
    let with_note = |stage: usize| {
        let context = run.stages[stage].context.as_ref().unwrap();
        context.entries.iter().any(|entry| entry.source == "steering note")
    };
    assert!(with_note(2) && !with_note(1) && !with_note(0));
    let seen = model.seen.lock().unwrap().clone();
    let mail = seen.iter().find(|prompt| prompt.contains("Write a mail")).unwrap();
    assert!(mail.contains("Mention zebras"));
    client.shutdown().await;
}

#[tokio::test]
async fn the_ids_fed_to_a_stage_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let client = connect(dir.path(), quick()).await;
    let mut pushes = client.subscribe();
    let session = minutes(&client).await;
    done(&client, start(&session)).await;
    run_is(&mut pushes, &session, WorkflowStatus::Completed).await;
    let read = ClientMessage::ReadEvents { session_id: session.clone(), from: 1 };
    let ServerMessage::Events { lines } = client.request(read).await else { panic!() };
    let assembled = lines.iter().find(|line| line.contains("context_assembled")).unwrap();
    let event: serde_json::Value = serde_json::from_str(assembled).unwrap();
    let hash = event["payload"]["prompt_ids"].as_str().unwrap();
    let blob = ClientMessage::ReadBlob { session_id: session, hash: hash.into() };
    let ServerMessage::Blob(blob) = client.request(blob).await else { panic!() };
    let ids: Vec<u32> = blob.text.split(' ').map(|id| id.parse().unwrap()).collect();
    assert_eq!(ids.len() as u64, event["payload"]["prompt_tokens"].as_u64().unwrap());
    client.shutdown().await;
}

#[tokio::test]
async fn an_answer_streams_and_the_pieces_are_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let client = connect(dir.path(), quick()).await;
    let mut pushes = client.subscribe();
    let session = chat_session(&client).await;
    let reply = client.request(say(&session, "What happened?", ChatMode::Chat)).await;
    let ServerMessage::RouterResponse { content, turn_id, steering_emitted, .. } = reply else {
        panic!("no answer");
    };
    assert!(!steering_emitted);
    let (mut streamed, mut statuses) = (String::new(), Vec::new());
    while let Ok(message) = pushes.try_recv() {
        match message {
            ServerMessage::ReplyDelta { text, turn_id: of, .. } if of == turn_id => {
                streamed.push_str(&text);
            }
            ServerMessage::TurnChanged { turn, .. } if turn.role == TurnRole::Router => {
                if turn.status == TurnStatus::Complete {
                    assert_eq!(streamed, content, "everything streamed comes before the end");
                }
                statuses.push(turn.status);
            }
            _ => {}
        }
    }
    assert_eq!(statuses, [TurnStatus::Pending, TurnStatus::Complete]);
    let view = open(&client, &session).await;
    assert_eq!(view.turns.len(), 2);
    assert_eq!(view.turns[1].content, content);
    assert!(view.turns[1].stats.is_some());
    let context = ClientMessage::ReadTurnContext { session_id: session, turn_id };
    let ServerMessage::Context(context) = client.request(context).await else { panic!() };
    let kept: u32 = context.entries.iter().filter(|e| e.dropped.is_none()).map(|e| e.tokens).sum();
    assert_eq!(kept + context.template_tokens, context.prompt_tokens);
    client.shutdown().await;
}

#[tokio::test]
async fn what_is_thought_reaches_the_front_ends_and_no_prompt() {
    let dir = tempfile::tempdir().unwrap();
    let model = Scripted::thinking("pigeons or doves", "It is doves.", std::time::Duration::ZERO);
    let client = connect(dir.path(), model.clone()).await;
    let mut pushes = client.subscribe();
    let session = minutes(&client).await;
    let reply = client.request(say(&session, "What is it?", ChatMode::Chat)).await;
    let ServerMessage::RouterResponse { content, turn_id, .. } = reply else {
        panic!("no answer");
    };
    assert_eq!(content, "It is doves.");
    let mut thought = String::new();
    while let Ok(message) = pushes.try_recv() {
        if let ServerMessage::ThinkingDelta { turn_id: of, text, .. } = message
            && of == turn_id
        {
            thought.push_str(&text);
        }
    }
    assert_eq!(thought, "pigeons or doves");
    let turn = open(&client, &session).await.turns.pop().unwrap();
    let thinking = turn.thinking.unwrap();
    assert_eq!((thinking.text, thinking.tokens), (thought, 3));

    done(&client, start(&session)).await;
    let run = run_is(&mut pushes, &session, WorkflowStatus::Completed).await;
    let thinking = run.stages[0].thinking.clone().unwrap();
    assert_eq!(thinking.tokens, 3);
    let read = ClientMessage::ReadBlob { session_id: session.clone(), hash: thinking.hash };
    let ServerMessage::Blob(blob) = client.request(read).await else { panic!() };
    assert_eq!(blob.text, "pigeons or doves");
    client.request(say(&session, "And now?", ChatMode::Chat)).await;
    let seen = model.seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 5);
    assert!(seen.iter().all(|prompt| !prompt.contains("pigeons")), "{seen:?}");
    client.shutdown().await;
}

#[tokio::test]
async fn stopping_an_answer_keeps_its_text_and_leaves_other_sessions_alone() {
    let dir = tempfile::tempdir().unwrap();
    let client = connect(dir.path(), slow()).await;
    let (first, second) = (chat_session(&client).await, chat_session(&client).await);
    let ask = |session: correx_events::SessionId| {
        let client = client.clone();
        tokio::spawn(async move { client.request(say(&session, "Tell me", ChatMode::Chat)).await })
    };
    let mut pushes = client.subscribe();
    let answer = ask(first.clone());
    answer_streams(&mut pushes, &first).await;
    let other = ask(second.clone());
    answer_streams(&mut pushes, &second).await;
    done(&client, ClientMessage::StopReply { session_id: first.clone() }).await;
    let ServerMessage::RouterResponse { content, .. } = answer.await.unwrap() else { panic!() };
    assert!(content.starts_with("word"), "{content:?}");
    let view = open(&client, &first).await;
    assert_eq!(view.turns[1].status, TurnStatus::Stopped);
    assert_eq!(view.turns[1].content, content);
    assert!(!other.is_finished(), "the other session's answer goes on");
    done(&client, ClientMessage::StopReply { session_id: second }).await;
    assert!(matches!(other.await.unwrap(), ServerMessage::RouterResponse { .. }));
    let error = refused(&client, ClientMessage::StopReply { session_id: first }).await;
    assert_eq!(error.code, ErrorCode::WrongState);
    client.shutdown().await;
}

#[tokio::test]
async fn a_message_can_be_answered_again_without_a_second_note() {
    let dir = tempfile::tempdir().unwrap();
    let client = connect(dir.path(), quick()).await;
    let session = minutes(&client).await;
    client.request(say(&session, "Be brief", ChatMode::Steering)).await;
    let again = ClientMessage::RetryReply { session_id: session.clone() };
    assert!(matches!(client.request(again).await, ServerMessage::RouterResponse { .. }));
    let view = open(&client, &session).await;
    assert_eq!(view.turns.len(), 2, "the answer is in the place of the first one");
    assert_eq!(view.run.unwrap().notes.len(), 1);
    client.shutdown().await;
}

#[tokio::test]
async fn bad_messages_are_refused_with_what_was_kept_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let client = connect(dir.path(), quick()).await;
    let (chat, run) = (chat_session(&client).await, minutes(&client).await);
    let long = "word ".repeat(210_000);
    let fitting_bytes = "word ".repeat(5000);
    for (message, code) in [
        (say(&chat, " \n ", ChatMode::Chat), ErrorCode::EmptyInput),
        (say(&chat, &long, ChatMode::Chat), ErrorCode::InputTooLong),
        (say(&chat, &fitting_bytes, ChatMode::Chat), ErrorCode::InputTooLong),
        (say(&chat, "Be brief", ChatMode::Steering), ErrorCode::CannotSteer),
        (say(&run, &fitting_bytes, ChatMode::Steering), ErrorCode::InputTooLong),
        (say(&run, &"word ".repeat(600), ChatMode::Steering), ErrorCode::CannotSteer),
        (ClientMessage::RetryReply { session_id: chat.clone() }, ErrorCode::WrongState),
    ] {
        let error = refused(&client, message).await;
        assert_eq!(error.code, code, "{error:?}");
        assert!(error.kept.is_some(), "{error:?}");
    }
    for session in [&chat, &run] {
        let view = open(&client, session).await;
        assert!(view.turns.is_empty(), "nothing was stored");
    }
    assert!(open(&client, &run).await.run.unwrap().notes.is_empty());
    client.shutdown().await;
}

#[tokio::test]
async fn bad_workflows_and_inputs_are_refused_and_make_no_session() {
    let dir = tempfile::tempdir().unwrap();
    let client = connect(dir.path(), quick()).await;
    let file = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let create = |workflow, inputs| ClientMessage::CreateSession { title: None, workflow, inputs };
    let from = |path: String| Some(WorkflowChoice::File { path });
    let path = |path: String| vec![InputValue::Path { name: String::new(), path }];
    let misspelled = WORKFLOW.replace("[[stage]]\nid = \"mail\"", "[[stage]]\nidd = \"mail\"");
    let cases = [
        (
            create(from(file("a.toml", misspelled.as_bytes())), vec![]),
            ErrorCode::BadWorkflow,
            "a.toml:19:1",
        ),
        (create(from(file("b.toml", b"  \n")), vec![]), ErrorCode::BadWorkflow, "empty"),
        (create(from(file("c.toml", b"\xff\xfe")), vec![]), ErrorCode::BadWorkflow, "UTF-8"),
        (create(from("/no/such.toml".into()), vec![]), ErrorCode::BadWorkflow, "could not be read"),
        (create(from(file("d.toml", &[b'#'; 1_048_577])), vec![]), ErrorCode::BadWorkflow, "more"),
        #[cfg(unix)]
        (create(from("/dev/zero".into()), vec![]), ErrorCode::BadWorkflow, "more than"),
        (
            create(Some(WorkflowChoice::Example { name: "nope".into() }), vec![]),
            ErrorCode::BadWorkflow,
            "nope",
        ),
        (create(source(WORKFLOW), vec![]), ErrorCode::BadInput, "notes"),
        (create(source(WORKFLOW), path("/no/such.txt".into())), ErrorCode::BadInput, "no"),
        (create(source(WORKFLOW), path(file("empty.txt", b""))), ErrorCode::BadInput, "empty"),
        (create(source(WORKFLOW), path(file("b.bin", b"ab\0cd"))), ErrorCode::BadInput, "byte 2"),
        (create(source(WORKFLOW), path(file("l1.txt", b"caf\xe9"))), ErrorCode::BadInput, "byte 3"),
        (create(None, vec![text_input("notes", "x")]), ErrorCode::BadInput, "plain chat"),
    ];
    for (message, code, words) in cases {
        let error = refused(&client, message).await;
        assert_eq!(error.code, code, "{error:?}");
        assert!(error.message.contains(words), "{words:?} is not in {:?}", error.message);
        assert!(error.kept.is_some() || error.hint.is_some(), "{error:?}");
    }
    let ServerMessage::Overview(overview) = client.request(ClientMessage::GetOverview).await else {
        panic!();
    };
    assert!(overview.sessions.is_empty());
    client.shutdown().await;
}

#[tokio::test]
async fn what_is_not_there_is_said_to_be_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let client = connect(dir.path(), quick()).await;
    let (mine, other) = (minutes(&client).await, minutes(&client).await);
    let hash = open(&client, &other).await.run.unwrap().inputs[0].hash.clone();
    let theirs = chat_session(&client).await;
    for message in [
        ClientMessage::OpenSession { session_id: "nobody".into() },
        ClientMessage::StartRun { session_id: "nobody".into() },
        ClientMessage::DeleteSession { session_id: "nobody".into() },
        ClientMessage::ReadBlob { session_id: theirs, hash },
        ClientMessage::ReadBlob { session_id: mine.clone(), hash: "ab".into() },
        ClientMessage::ReadTurnContext { session_id: mine.clone(), turn_id: "none".into() },
        ClientMessage::WithdrawNote { session_id: mine.clone(), note_id: "none".into() },
        ClientMessage::EditNote {
            session_id: mine.clone(),
            note_id: "none".into(),
            content: "x".into(),
        },
    ] {
        let error = refused(&client, message.clone()).await;
        assert_eq!(error.code, ErrorCode::NotFound, "{message:?}: {error:?}");
    }
    let pause = refused(&client, ClientMessage::PauseRun { session_id: mine }).await;
    assert_eq!(pause.code, ErrorCode::WrongState);
    client.shutdown().await;
}

#[tokio::test]
async fn deleting_a_session_ends_its_run_and_its_answer_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let client = connect(dir.path(), slow()).await;
    let mut pushes = client.subscribe();
    let session = minutes(&client).await;
    done(&client, start(&session)).await;
    run_is(&mut pushes, &session, WorkflowStatus::Running).await;
    let asking = client.clone();
    let question = say(&session, "How is it going?", ChatMode::Chat);
    let answer = tokio::spawn(async move { asking.request(question).await });
    answer_streams(&mut pushes, &session).await;
    done(&client, ClientMessage::DeleteSession { session_id: session.clone() }).await;
    answer.await.unwrap();
    push(&mut pushes, |message| match message {
        ServerMessage::SessionDeleted { session_id } => (session_id == session).then_some(()),
        _ => None,
    })
    .await;
    let error = refused(&client, ClientMessage::OpenSession { session_id: session }).await;
    assert_eq!(error.code, ErrorCode::NotFound);
    assert!(client.live_work().await.is_empty());
    client.shutdown().await;
}

#[tokio::test]
async fn a_draft_is_measured_and_nothing_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let client = connect(dir.path(), quick()).await;
    let session = minutes(&client).await;
    let measure = |text: &str, mode| ClientMessage::MeasureDraft {
        session_id: session.clone(),
        text: text.into(),
        mode,
    };
    let draft = async |message| match client.request(message).await {
        ServerMessage::Draft(draft) => draft,
        other => panic!("{other:?}"),
    };
    let empty = draft(measure("", ChatMode::Chat)).await;
    let five = draft(measure("one two three four five", ChatMode::Chat)).await;
    assert!(five.context.prompt_tokens >= empty.context.prompt_tokens + 5);
    assert_eq!(five.refusal, None);
    let long = draft(measure(&"word ".repeat(5000), ChatMode::Chat)).await;
    assert_eq!(long.refusal.unwrap().code, ErrorCode::InputTooLong);
    let note = draft(measure(&"word ".repeat(600), ChatMode::Steering)).await;
    assert_eq!(note.refusal.unwrap().code, ErrorCode::CannotSteer);
    assert!(open(&client, &session).await.turns.is_empty());
    client.shutdown().await;
}

#[tokio::test]
async fn conversations_survive_a_restart_unless_they_are_kept_in_memory() {
    for (settings, turns) in [("", 2), ("[conversations]\nkeep = \"in_memory\"\n", 0)] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("settings.toml"), settings).unwrap();
        let client = connect(dir.path(), quick()).await;
        let session = chat_session(&client).await;
        client.request(say(&session, "Remember me", ChatMode::Chat)).await;
        assert_eq!(open(&client, &session).await.turns.len(), 2);
        client.shutdown().await;
        drop(client);
        let client = connect(dir.path(), quick()).await;
        assert_eq!(open(&client, &session).await.turns.len(), turns, "{settings:?}");
        client.shutdown().await;
    }
}

#[tokio::test]
async fn settings_with_a_mistake_are_reported_and_left_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("settings.toml");
    fs::write(&path, "[router]\nkeep_lats = 1\n").unwrap();
    let Err(error) = try_connect(dir.path(), quick()).await else { panic!("accepted") };
    assert!(error.message.contains("settings.toml:2:1"), "{}", error.message);
    assert!(error.hint.is_some());
    assert_eq!(fs::read_to_string(&path).unwrap(), "[router]\nkeep_lats = 1\n");
}

#[tokio::test]
async fn a_data_directory_that_cannot_be_written_is_refused_clearly() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "not a directory").unwrap();
    let Err(error) = try_connect(&file.join("data"), quick()).await else { panic!("accepted") };
    assert_eq!(error.code, ErrorCode::Storage);
    assert!(error.message.contains("data"), "{}", error.message);
    assert_eq!(fs::read_to_string(&file).unwrap(), "not a directory");
}

#[tokio::test]
async fn a_renamed_session_keeps_its_name_in_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let client = connect(dir.path(), quick()).await;
    let session = minutes(&client).await;
    let rename = |title: &str| ClientMessage::RenameSession {
        session_id: session.clone(),
        title: title.into(),
    };
    client.request(rename(" Monday\nmeeting ")).await;
    assert_eq!(refused(&client, rename(" ")).await.code, ErrorCode::EmptyInput);
    let ServerMessage::Overview(overview) = client.request(ClientMessage::GetOverview).await else {
        panic!();
    };
    assert_eq!(overview.sessions[0].title, "Monday meeting");
    assert_eq!(overview.sessions[0].workflow.as_deref(), Some("Minutes"));
    assert_eq!(overview.sessions[0].stages_total, 3);
    client.shutdown().await;
}

#[tokio::test]
async fn a_copied_example_is_a_workflow_of_ones_own_and_overwrites_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let client = connect(&dir.path().join("data"), quick()).await;
    let copy = |example: &str, folder: String, name: &str| ClientMessage::CopyExample {
        example: example.into(),
        folder,
        name: name.into(),
    };
    let folder = || dir.path().display().to_string();
    let reply = client.request(copy("meeting-notes", folder(), "Tuesday's notes")).await;
    let ServerMessage::Copied { path } = reply else { panic!("not copied: {reply:?}") };
    assert!(path.starts_with(&folder()), "{path}");
    assert!(dir.path().join("Tuesday's notes/notes.txt").is_file());

    // What was copied is read from where it lies, and so is what is made of it.
    let check =
        || ClientMessage::CheckWorkflow { workflow: WorkflowChoice::File { path: path.clone() } };
    let ServerMessage::Workflow(workflow) = client.request(check()).await else { panic!() };
    assert_eq!((workflow.example, workflow.name.as_str()), (None, "Meeting notes"));
    fs::write(&path, WORKFLOW).unwrap();
    let ServerMessage::Workflow(workflow) = client.request(check()).await else { panic!() };
    assert_eq!(workflow.name, "Minutes");

    let cases = [
        (copy("brief", folder(), "Tuesday's notes"), ErrorCode::BadInput, "is there already"),
        (copy("nothing", folder(), "other"), ErrorCode::BadWorkflow, "no example"),
        (copy("brief", folder(), "../other"), ErrorCode::BadInput, "not a name"),
        (copy("brief", "here".into(), "other"), ErrorCode::BadInput, "not the whole path"),
        (copy("brief", path.clone(), "other"), ErrorCode::Storage, "could not be written"),
    ];
    for (message, code, said) in cases {
        let error = refused(&client, message).await;
        assert_eq!(error.code, code, "{error:?}");
        assert!(error.message.contains(said), "{error:?}");
        assert!(error.kept.is_some(), "{error:?}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), WORKFLOW);
    assert!(!dir.path().join("other").exists());
    client.shutdown().await;
}
