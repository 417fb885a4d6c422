//! Changing the model: refused, later, at once; remembered; and what a run makes of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here fails the test")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use correx_context::PromptEncoder;
use correx_inference::{
    InferenceCancellationToken, InferenceError, InferenceProvider, InferenceRequest,
    InferenceResponse, ModelCapability, ModelDescription, StreamSink,
};
use correx_infrastructure::engine::{Candidate, Chosen, LoadedModel, ModelManager, ModelSource};
use correx_infrastructure::{Client, ConnectOptions, Engine, Loading};
use correx_protocol::{
    ChatMode, ClientMessage, ErrorCode, ModelChoice, ModelState, ModelView, ProtocolError,
    ServerMessage, SwitchTime, TurnStatus, WorkflowStatus,
};
use support::*;

/// A scripted model with a name.
struct Named(String, Arc<Scripted>);

#[async_trait]
impl InferenceProvider for Named {
    fn describe(&self) -> ModelDescription {
        ModelDescription { name: self.0.clone(), sha256: Some("00".into()), ..self.1.describe() }
    }

    fn capabilities(&self) -> &[ModelCapability] {
        self.1.capabilities()
    }

    fn encoder(&self) -> Arc<dyn PromptEncoder> {
        self.1.encoder()
    }

    fn context_window(&self) -> usize {
        self.1.context_window()
    }

    async fn infer(
        &self,
        request: InferenceRequest,
        cancel: InferenceCancellationToken,
        sink: StreamSink,
    ) -> Result<InferenceResponse, InferenceError> {
        self.1.infer(request, cancel, sink).await
    }
}

/// `slow` answers slowly, `broken` cannot be used, loading `damaged` shows that it cannot; everything else answers at once.
struct Shelf;

impl ModelSource for Shelf {
    fn name(&self, chosen: &Chosen) -> String {
        match chosen {
            Chosen::Default => "slow".into(),
            Chosen::Id(id) => id.clone(),
            Chosen::File(file) => file.display().to_string(),
        }
    }

    fn list(&self, used: &Chosen) -> Vec<ModelChoice> {
        let choice = |id: &str| ModelChoice {
            id: id.into(),
            name: id.into(),
            path: None,
            bytes: 1,
            good_for: None,
            in_use: self.name(used) == id,
        };
        ["slow", "quick"].map(choice).into()
    }

    fn find(&self, typed: &str) -> Result<Chosen, ProtocolError> {
        Ok(Chosen::Id(typed.into()))
    }

    fn check(&self, chosen: &Chosen, _given_back: u64) -> Result<Candidate, ProtocolError> {
        let name = self.name(chosen);
        if name == "broken" {
            return Err(ProtocolError::new(ErrorCode::Model, "it is broken"));
        }
        Ok(Candidate { chosen: chosen.clone(), name, path: PathBuf::new() })
    }

    fn load(
        &self,
        chosen: &Chosen,
        _cancel: &InferenceCancellationToken,
        _report: &dyn Fn(f32),
    ) -> Result<LoadedModel, ProtocolError> {
        let name = self.name(chosen);
        if name == "damaged" {
            return Err(ProtocolError::new(ErrorCode::Model, "it is damaged"));
        }
        let model = if name == "slow" { slow() } else { quick() };
        Ok(LoadedModel { provider: Arc::new(Named(name, model)), memory: None })
    }
}

async fn client(dir: &Path) -> Client {
    let manager = ModelManager::new(Box::new(Shelf), Chosen::Default);
    let options = ConnectOptions {
        data_dir: Some(dir.to_owned()),
        engine: Some(Engine::managed(manager, Loading::AtStart)),
        ..ConnectOptions::default()
    };
    Client::connect(options).await.unwrap()
}

fn using(model: &str, when: Option<SwitchTime>) -> ClientMessage {
    ClientMessage::UseModel { model: model.into(), when }
}

async fn model(client: &Client, message: ClientMessage) -> ModelView {
    match client.request(message).await {
        ServerMessage::Model(model) => model,
        other => panic!("{other:?}"),
    }
}

/// The names of the models that answered the stages of a session, oldest first.
async fn answered(client: &Client, session: &correx_events::SessionId) -> Vec<String> {
    let message = ClientMessage::ReadEvents { session_id: session.clone(), from: 1 };
    let ServerMessage::Events { lines } = client.request(message).await else { panic!() };
    let events = lines.iter().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    events
        .filter(|event| event.to_string().contains("inference_completed"))
        .map(|event| {
            let text = event.to_string();
            ["slow", "quick"]
                .into_iter()
                .find(|name| text.contains(&format!("\"{name}\"")))
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[tokio::test]
async fn a_run_keeps_its_model_unless_a_change_says_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let client = client(dir.path()).await;
    let mut pushes = client.subscribe();
    let session = minutes(&client).await;
    done(&client, start(&session)).await;
    run_is(&mut pushes, &session, WorkflowStatus::Running).await;
    stage_writes(&mut pushes).await;

    let error = refused(&client, using("quick", None)).await;
    assert_eq!(error.code, ErrorCode::WrongState);
    assert!(error.hint.unwrap().contains("after-run"));
    assert_eq!(model(&client, ClientMessage::GetModel).await.name, "slow");
    assert_eq!(refused(&client, ClientMessage::UnloadModel).await.code, ErrorCode::WrongState);

    // At once: the stage begins again with the other model, and no retry is used up.
    let changed = model(&client, using("quick", Some(SwitchTime::Now))).await;
    assert_eq!((changed.name.as_str(), &changed.state), ("quick", &ModelState::Ready));
    let run = run_is(&mut pushes, &session, WorkflowStatus::Completed).await;
    assert!(run.failure.is_none());
    assert_eq!(answered(&client, &session).await, ["slow", "quick", "quick", "quick"]);
    let settings = fs::read_to_string(dir.path().join("settings.toml")).unwrap();
    assert_eq!(settings, "[model]\nuse = \"quick\"\n");
    client.shutdown().await;
}

#[tokio::test]
async fn a_change_can_wait_for_the_end_of_what_runs() {
    let dir = tempfile::tempdir().unwrap();
    let client = client(dir.path()).await;
    let mut pushes = client.subscribe();
    let session = chat_session(&client).await;
    let asking = {
        let (client, message) = (client.clone(), say(&session, "Hello", ChatMode::Chat));
        tokio::spawn(async move { client.request(message).await })
    };
    answer_streams(&mut pushes, &session).await;
    let told = model(&client, using("quick", Some(SwitchTime::AfterRun))).await;
    assert_eq!((told.name.as_str(), told.next.as_deref()), ("slow", Some("quick")));
    // A later wish takes the place of the one before.
    let told = model(&client, using("other", Some(SwitchTime::AfterRun))).await;
    assert_eq!(told.next.as_deref(), Some("other"));
    done(&client, ClientMessage::StopReply { session_id: session.clone() }).await;
    asking.await.unwrap();
    push(&mut pushes, |message| match message {
        ServerMessage::Model(model) => {
            (model.name == "other" && model.state == ModelState::Ready).then_some(())
        }
        _ => None,
    })
    .await;
    assert_eq!(model(&client, ClientMessage::GetModel).await.next, None);
    client.shutdown().await;
}

#[tokio::test]
async fn a_wish_for_another_model_survives_the_end_of_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let settings = dir.path().join("settings.toml");
    fs::write(&settings, "[model]\nuse = \"before\"\n").unwrap();
    let client = client(dir.path()).await;
    let mut pushes = client.subscribe();
    let session = minutes(&client).await;
    done(&client, start(&session)).await;
    stage_writes(&mut pushes).await;
    let later = Some(SwitchTime::AfterRun);
    let told = model(&client, using("quick", later)).await;
    assert_eq!((told.name.as_str(), told.next.as_deref()), ("slow", Some("quick")));
    // One that is refused takes nothing away from it.
    refused(&client, using("other", None)).await;
    refused(&client, using("broken", later)).await;
    assert_eq!(model(&client, ClientMessage::GetModel).await.next.as_deref(), Some("quick"));
    // The owner ends with what was waited for still going on.
    client.shutdown().await;
    assert_eq!(fs::read_to_string(&settings).unwrap(), "[model]\nuse = \"quick\"\n");
}

#[tokio::test]
async fn a_wish_that_cannot_be_met_leaves_what_was_remembered_before() {
    let dir = tempfile::tempdir().unwrap();
    let settings = dir.path().join("settings.toml");
    fs::write(&settings, "[model]\nuse = \"before\"\n").unwrap();
    let client = client(dir.path()).await;
    let mut pushes = client.subscribe();
    let session = chat_session(&client).await;
    let asking = {
        let (client, message) = (client.clone(), say(&session, "Hello", ChatMode::Chat));
        tokio::spawn(async move { client.request(message).await })
    };
    answer_streams(&mut pushes, &session).await;
    for wished in ["quick", "damaged"] {
        model(&client, using(wished, Some(SwitchTime::AfterRun))).await;
    }
    done(&client, ClientMessage::StopReply { session_id: session.clone() }).await;
    asking.await.unwrap();
    let error = push(&mut pushes, |message| match message {
        ServerMessage::Error(error) => Some(error),
        _ => None,
    });
    assert_eq!(error.await.message, "it is damaged");
    assert_eq!(fs::read_to_string(&settings).unwrap(), "[model]\nuse = \"before\"\n");
    client.shutdown().await;
}

#[tokio::test]
async fn an_answer_that_is_stopped_by_a_change_is_kept_and_the_chat_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let client = client(dir.path()).await;
    let mut pushes = client.subscribe();
    let session = chat_session(&client).await;
    let asking = {
        let (client, message) = (client.clone(), say(&session, "Hello", ChatMode::Chat));
        tokio::spawn(async move { client.request(message).await })
    };
    answer_streams(&mut pushes, &session).await;
    model(&client, using("quick", Some(SwitchTime::Now))).await;
    let ServerMessage::RouterResponse { content, .. } = asking.await.unwrap() else { panic!() };
    assert!(content.starts_with("word"));
    assert_eq!(open(&client, &session).await.turns.last().unwrap().status, TurnStatus::Stopped);
    let message = say(&session, "And now?", ChatMode::Chat);
    let ServerMessage::RouterResponse { content, .. } = client.request(message).await else {
        panic!()
    };
    assert_eq!(content, "The team met and agreed on three things.");
    client.shutdown().await;
}

#[tokio::test]
async fn a_model_that_is_refused_changes_nothing_and_is_not_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let client = client(dir.path()).await;
    model(&client, ClientMessage::LoadModel).await;
    assert_eq!(refused(&client, using("broken", None)).await.message, "it is broken");
    let now = model(&client, ClientMessage::GetModel).await;
    assert_eq!((now.name.as_str(), now.state), ("slow", ModelState::Ready));
    assert!(!dir.path().join("settings.toml").exists());
    client.shutdown().await;
}

#[tokio::test]
async fn a_model_is_unloaded_and_comes_back_with_the_next_message() {
    let dir = tempfile::tempdir().unwrap();
    let client = client(dir.path()).await;
    model(&client, using("quick", None)).await;
    model(&client, ClientMessage::LoadModel).await;
    let told = model(&client, ClientMessage::UnloadModel).await;
    assert_eq!(told.state, ModelState::Unloaded);
    let session = chat_session(&client).await;
    let measure = |text: &str| ClientMessage::MeasureDraft {
        session_id: session.clone(),
        text: text.into(),
        mode: ChatMode::Chat,
    };
    let error = refused(&client, measure("")).await;
    assert!(error.message.contains("not in memory"));
    assert_eq!(model(&client, ClientMessage::GetModel).await.state, ModelState::Unloaded);
    let answer = client.request(say(&session, "Hello", ChatMode::Chat)).await;
    assert!(matches!(answer, ServerMessage::RouterResponse { .. }), "{answer:?}");
    assert_eq!(model(&client, ClientMessage::GetModel).await.state, ModelState::Ready);
    let ServerMessage::Models { models } = client.request(ClientMessage::ListModels).await else {
        panic!()
    };
    let used: Vec<&str> =
        models.iter().filter(|model| model.in_use).map(|model| model.id.as_str()).collect();
    assert_eq!(used, ["quick"]);
    client.shutdown().await;
}

#[tokio::test]
async fn what_was_remembered_is_used_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let settings = "[model]\nuse = \"no-such-model\"\nunload_after_minutes = 5\n";
    fs::write(dir.path().join("settings.toml"), settings).unwrap();
    let options = ConnectOptions {
        data_dir: Some(dir.path().to_owned()),
        loading: Loading::WhenNeeded,
        ..ConnectOptions::default()
    };
    let client = Client::connect(options).await.unwrap();
    let error = refused(&client, ClientMessage::LoadModel).await;
    assert!(error.message.contains("no-such-model"), "{}", error.message);
    client.shutdown().await;
}

/// Waits until a stage writes.
async fn stage_writes(pushes: &mut tokio::sync::broadcast::Receiver<ServerMessage>) {
    let writes = push(pushes, |message| match message {
        ServerMessage::StageProgress { tokens, .. } if tokens > 0 => Some(()),
        _ => None,
    });
    tokio::time::timeout(Duration::from_secs(20), writes).await.unwrap();
}
