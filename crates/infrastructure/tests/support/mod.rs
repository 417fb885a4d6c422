//! A model that answers by a script, and what the tests say to a client.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "what goes wrong here fails the test")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use correx_context::PromptEncoder;
use correx_context::testing::WordEncoder;
use correx_events::SessionId;
use correx_inference::{
    FinishReason, InferenceCancellationToken, InferenceError, InferenceProvider, InferenceRequest,
    InferenceResponse, ModelCapability, ModelDescription, StreamEvent, StreamSink, Thinking,
};
use correx_infrastructure::{Client, ConnectOptions, Engine};
use correx_protocol::{
    ChatMode, ClientMessage, InputValue, ProtocolError, RunView, ServerMessage, SessionView,
    SteerTarget, WorkflowChoice, WorkflowStatus,
};
use tokio::sync::broadcast;

/// Answers with words, one at a time.
pub struct Scripted {
    encoder: Arc<WordEncoder>,
    thinking: &'static str,
    answer: String,
    pace: Duration,
    /// Prompts as the model saw them.
    pub seen: Mutex<Vec<String>>,
}

impl Scripted {
    pub fn new(answer: &str, pace: Duration) -> Arc<Self> {
        Self::thinking("", answer, pace)
    }

    /// Thinks this before every answer.
    pub fn thinking(thinking: &'static str, answer: &str, pace: Duration) -> Arc<Self> {
        Arc::new(Self {
            encoder: Arc::default(),
            thinking,
            answer: answer.into(),
            pace,
            seen: Mutex::default(),
        })
    }
}

#[async_trait]
impl InferenceProvider for Scripted {
    fn describe(&self) -> ModelDescription {
        ModelDescription {
            name: "Scripted".into(),
            sha256: None,
            location: "memory".into(),
            architecture: "words".into(),
            quantization: "none".into(),
            device: "test".into(),
            context_window: 4096,
            parameters: 1,
            file_bytes: 1,
            notice: None,
        }
    }

    fn capabilities(&self) -> &[ModelCapability] {
        &[ModelCapability::Chat]
    }

    fn encoder(&self) -> Arc<dyn PromptEncoder> {
        self.encoder.clone()
    }

    fn context_window(&self) -> usize {
        4096
    }

    async fn infer(
        &self,
        request: InferenceRequest,
        cancel: InferenceCancellationToken,
        sink: StreamSink,
    ) -> Result<InferenceResponse, InferenceError> {
        let prompt_ids = request.context_pack.prompt.ids.clone();
        let total = prompt_ids.len();
        self.seen.lock().unwrap().push(self.encoder.decode(&prompt_ids));
        sink.send(StreamEvent::Prompt { done: total, total });
        let (mut text, mut output_tokens) = (String::new(), 0);
        let mut finish_reason = FinishReason::Stop;
        for word in self.thinking.split_inclusive(' ') {
            output_tokens += 1;
            sink.send(StreamEvent::Thinking { text: word.into(), tokens: output_tokens });
        }
        let thinking = (!self.thinking.is_empty())
            .then(|| Thinking { text: self.thinking.into(), tokens: output_tokens });
        for word in self.answer.split_inclusive(' ') {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = tokio::time::sleep(self.pace) => {}
            }
            if cancel.is_cancelled() {
                finish_reason = FinishReason::Cancelled;
                break;
            }
            output_tokens += 1;
            text.push_str(word);
            sink.send(StreamEvent::Text { text: word.into(), tokens: output_tokens });
        }
        Ok(InferenceResponse {
            text,
            thinking,
            finish_reason,
            prompt_ids,
            reused_tokens: 0,
            output_tokens,
            prompt_ms: 1,
            reply_ms: 1,
            device: "test".into(),
        })
    }
}

/// An answer of eight words, at once.
pub fn quick() -> Arc<Scripted> {
    Scripted::new("The team met and agreed on three things.", Duration::ZERO)
}

/// An answer that takes ten seconds when nobody stops it.
pub fn slow() -> Arc<Scripted> {
    Scripted::new(&"word ".repeat(1000), Duration::from_millis(10))
}

pub async fn connect(dir: &Path, model: Arc<Scripted>) -> Client {
    try_connect(dir, model).await.unwrap()
}

pub async fn try_connect(dir: &Path, model: Arc<Scripted>) -> Result<Client, ProtocolError> {
    let options = ConnectOptions {
        data_dir: Some(dir.to_owned()),
        engine: Some(Engine::ready(model)),
        ..ConnectOptions::default()
    };
    Client::connect(options).await
}

pub const WORKFLOW: &str = r#"
name = "Minutes"

[[input]]
name = "notes"
type = "file"

[[stage]]
id = "summary"
kind = "generate"
prompt = "{{ inputs.notes }} Summarise."

[[stage]]
id = "actions"
kind = "generate"
prompt = "{{ artifacts.summary }} List the actions."

[[stage]]
id = "mail"
kind = "generate"
prompt = "{{ artifacts.actions }} Write a mail."
"#;

pub fn source(text: &str) -> Option<WorkflowChoice> {
    Some(WorkflowChoice::Source { text: text.into() })
}

pub fn text_input(name: &str, text: &str) -> InputValue {
    InputValue::Text { name: name.into(), text: text.into() }
}

/// A session that can run [`WORKFLOW`].
pub async fn minutes(client: &Client) -> SessionId {
    let message = ClientMessage::CreateSession {
        title: None,
        workflow: source(WORKFLOW),
        inputs: vec![text_input("notes", "Ada and Ben met on Monday.")],
    };
    created(client.request(message).await)
}

/// A plain chat.
pub async fn chat_session(client: &Client) -> SessionId {
    let message = ClientMessage::CreateSession { title: None, workflow: None, inputs: vec![] };
    created(client.request(message).await)
}

fn created(reply: ServerMessage) -> SessionId {
    match reply {
        ServerMessage::Session(view) => view.summary.session_id,
        other => panic!("no session: {other:?}"),
    }
}

pub async fn open(client: &Client, session: &SessionId) -> SessionView {
    let message = ClientMessage::OpenSession { session_id: session.clone() };
    match client.request(message).await {
        ServerMessage::Session(view) => *view,
        other => panic!("no session: {other:?}"),
    }
}

pub async fn done(client: &Client, message: ClientMessage) {
    let reply = client.request(message).await;
    assert_eq!(reply, ServerMessage::Done);
}

pub async fn refused(client: &Client, message: ClientMessage) -> ProtocolError {
    match client.request(message).await {
        ServerMessage::Error(error) => error,
        other => panic!("not refused: {other:?}"),
    }
}

pub fn say(session: &SessionId, text: &str, mode: ChatMode) -> ClientMessage {
    ClientMessage::ChatInput {
        session_id: session.clone(),
        text: text.into(),
        mode,
        target: SteerTarget::default(),
        client_message_id: None,
    }
}

pub fn start(session: &SessionId) -> ClientMessage {
    ClientMessage::StartRun { session_id: session.clone() }
}

/// Waits for a push that `wanted` picks.
pub async fn push<T>(
    pushes: &mut broadcast::Receiver<ServerMessage>,
    mut wanted: impl FnMut(ServerMessage) -> Option<T>,
) -> T {
    let found = async {
        loop {
            if let Some(found) = wanted(pushes.recv().await.unwrap()) {
                return found;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), found).await.expect("the push never came")
}

/// Waits until the run of `session` has `status`.
pub async fn run_is(
    pushes: &mut broadcast::Receiver<ServerMessage>,
    session: &SessionId,
    status: WorkflowStatus,
) -> RunView {
    push(pushes, |message| match message {
        ServerMessage::RunChanged { session_id, run }
            if session_id == *session && run.status == status =>
        {
            Some(run)
        }
        _ => None,
    })
    .await
}

/// Waits until an answer of `session` streams.
pub async fn answer_streams(pushes: &mut broadcast::Receiver<ServerMessage>, session: &SessionId) {
    push(pushes, |message| match message {
        ServerMessage::ReplyDelta { session_id, .. } if session_id == *session => Some(()),
        _ => None,
    })
    .await;
}
