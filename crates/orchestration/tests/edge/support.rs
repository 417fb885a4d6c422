//! A scripted model, a log that can be tampered with, and a run around them.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use correx_context::testing::WordEncoder;
use correx_context::{ContextPack, PromptEncoder};
use correx_effects::{Policy, SessionFolders};
use correx_events::{
    Append, AppendError, BlobHash, BlobStore, EventPayload, EventStore, MemoryBlobStore,
    MemoryEventStore, NoteId, NoteScope, RandomIds, ReadError, SessionId, StageId,
    SteeringNoteAdded, StoredEvent, SystemClock,
};
use correx_inference::{
    FinishReason, GenerationConfig, InferenceCancellationToken, InferenceError, InferenceProvider,
    InferenceRequest, InferenceResponse, InferenceRouter, ModelCapability, ModelDescription,
    RoutingError, StreamEvent, StreamSink, Thinking, ThinkingMode,
};
use correx_orchestration::{
    GivenInput, Orchestrator, OrchestratorConfig, OrchestratorDeps, PolicySource, ProgressSink,
    Rules, StageProgress, Workflow, inputs,
};
use correx_sessions::RunState;
use tokio::sync::{Semaphore, broadcast, watch};

/// What the scripted model does with one call.
#[derive(Debug, Clone)]
pub enum Act {
    /// Answers.
    Say(&'static str),
    /// Is cut off by the limit.
    CutOff(&'static str),
    /// Writes this much, then waits to be released (and adds " end") or cancelled.
    Hold(&'static str),
    /// Thinks this, then answers.
    Think(&'static str, &'static str),
    /// Thinks this until the limit.
    ThinkTooLong(&'static str),
    /// Thinks this, then waits to be cancelled.
    ThinkAndHold(&'static str),
    /// Says that it was cancelled although nobody asked.
    StopUnasked,
    /// Fails.
    Fail(InferenceError),
    /// Answers, but was fed something else.
    FedOther,
}

/// One call that the model got.
#[derive(Debug, Clone)]
pub struct Call {
    pub stage: String,
    pub pack: ContextPack,
    pub generation: GenerationConfig,
}

impl Call {
    /// Everything that the model was shown, as it was rendered.
    pub fn prompt(&self) -> String {
        let messages: Vec<String> =
            self.pack.messages.iter().map(|message| message.content()).collect();
        messages.join("\n")
    }
}

pub struct Scripted {
    pub encoder: Arc<WordEncoder>,
    pub window: usize,
    script: Mutex<VecDeque<Act>>,
    pub calls: Mutex<Vec<Call>>,
    /// What the prompts that were made said about thinking.
    pub thinking: Mutex<Vec<ThinkingMode>>,
    count: watch::Sender<usize>,
    pub release: Semaphore,
    /// What `route` says, when it is not the provider.
    pub missing: Mutex<Option<RoutingError>>,
}

impl Scripted {
    pub fn new(script: impl IntoIterator<Item = Act>) -> Arc<Self> {
        Self::with_window(4096, script)
    }

    pub fn with_window(window: usize, script: impl IntoIterator<Item = Act>) -> Arc<Self> {
        Arc::new(Self {
            encoder: Arc::default(),
            window,
            script: Mutex::new(script.into_iter().collect()),
            calls: Mutex::default(),
            thinking: Mutex::default(),
            count: watch::Sender::new(0),
            release: Semaphore::new(0),
            missing: Mutex::default(),
        })
    }

    /// Waits until the model has been called so often.
    pub async fn called(&self, times: usize) {
        let mut count = self.count.subscribe();
        let waiting = count.wait_for(|count| *count >= times);
        tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap();
    }

    pub fn call(&self, index: usize) -> Call {
        self.calls.lock().unwrap()[index].clone()
    }

    pub fn calls_of(&self, stage: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|call| call.stage == stage).count()
    }
}

#[async_trait]
impl InferenceProvider for Scripted {
    fn describe(&self) -> ModelDescription {
        ModelDescription {
            name: "scripted".to_owned(),
            sha256: None,
            location: "this test".to_owned(),
            architecture: "none".to_owned(),
            quantization: "none".to_owned(),
            device: "CPU".to_owned(),
            context_window: self.window,
            parameters: 0,
            file_bytes: 0,
            notice: None,
        }
    }

    fn capabilities(&self) -> &[ModelCapability] {
        &[ModelCapability::Chat]
    }

    fn encoder(&self) -> Arc<dyn PromptEncoder> {
        self.encoder.clone()
    }

    fn encoder_for(&self, thinking: ThinkingMode) -> Arc<dyn PromptEncoder> {
        self.thinking.lock().unwrap().push(thinking);
        self.encoder()
    }

    fn context_window(&self) -> usize {
        self.window
    }

    async fn infer(
        &self,
        request: InferenceRequest,
        cancel: InferenceCancellationToken,
        sink: StreamSink,
    ) -> Result<InferenceResponse, InferenceError> {
        let act = self.script.lock().unwrap().pop_front().unwrap_or(Act::Say("a fine answer"));
        let mut prompt_ids = request.context_pack.prompt.ids.clone();
        let total = prompt_ids.len();
        self.calls.lock().unwrap().push(Call {
            stage: request.context_pack.stage_id.as_ref().unwrap().to_string(),
            pack: request.context_pack,
            generation: request.generation,
        });
        self.count.send_modify(|count| *count += 1);
        sink.send(StreamEvent::Prompt { done: total, total });
        let mut thought = "";
        let (text, finish_reason) = match act {
            Act::Think(thinking, text) => {
                thought = thinking;
                (text.to_owned(), FinishReason::Stop)
            }
            Act::ThinkTooLong(thinking) => {
                thought = thinking;
                (String::new(), FinishReason::Length)
            }
            Act::ThinkAndHold(thinking) => {
                thought = thinking;
                cancel.cancelled().await;
                (String::new(), FinishReason::Cancelled)
            }
            Act::Say(text) => (text.to_owned(), FinishReason::Stop),
            Act::CutOff(text) => (text.to_owned(), FinishReason::Length),
            Act::StopUnasked => (String::new(), FinishReason::Cancelled),
            Act::Fail(error) => return Err(error),
            Act::FedOther => {
                prompt_ids.pop();
                ("an answer".to_owned(), FinishReason::Stop)
            }
            Act::Hold(text) => {
                sink.send(StreamEvent::Text { text: text.to_owned(), tokens: 1 });
                tokio::select! {
                    () = cancel.cancelled() => (text.to_owned(), FinishReason::Cancelled),
                    permit = self.release.acquire() => {
                        permit.unwrap().forget();
                        (format!("{text} end"), FinishReason::Stop)
                    }
                }
            }
        };
        let tokens = thought.split_whitespace().count();
        let output_tokens = tokens + text.split_whitespace().count();
        let thinking = (!thought.is_empty()).then(|| Thinking { text: thought.to_owned(), tokens });
        if let Some(thinking) = &thinking {
            sink.send(StreamEvent::Thinking { text: thinking.text.clone(), tokens });
            sink.send(StreamEvent::Text { text: text.clone(), tokens: output_tokens });
        }
        Ok(InferenceResponse {
            output_tokens,
            text,
            thinking,
            finish_reason,
            prompt_ids,
            reused_tokens: 0,
            prompt_ms: 1,
            reply_ms: 1,
            device: "CPU".to_owned(),
        })
    }
}

struct Router(Arc<Scripted>);

#[async_trait]
impl InferenceRouter for Router {
    async fn route(
        &self,
        _: Option<&StageId>,
        _: &[ModelCapability],
    ) -> Result<Arc<dyn InferenceProvider>, RoutingError> {
        match self.0.missing.lock().unwrap().clone() {
            Some(error) => Err(error),
            None => Ok(self.0.clone()),
        }
    }
}

/// What is slipped into the log just before an append with an event of that kind.
struct Injection {
    before: &'static str,
    payloads: Vec<EventPayload>,
}

/// A log in memory that lets others come in between, and that can refuse to write.
pub struct Log {
    inner: MemoryEventStore,
    injections: Mutex<Vec<Injection>>,
    refuse: Mutex<Option<&'static str>>,
    contradicts: AtomicBool,
}

impl Log {
    /// Slips `payloads` in before the next append that holds a `before`.
    pub fn inject(&self, before: &'static str, payloads: Vec<EventPayload>) {
        self.injections.lock().unwrap().push(Injection { before, payloads });
    }

    /// Refuses appends that hold an event of this kind.
    pub fn refuse(&self, kind: Option<&'static str>) {
        *self.refuse.lock().unwrap() = kind;
    }

    /// From now on it says that it has grown, and does not show by what.
    pub fn contradict(&self) {
        self.contradicts.store(true, Ordering::SeqCst);
    }
}

#[async_trait]
impl EventStore for Log {
    async fn append(&self, append: Append) -> Result<Vec<StoredEvent>, AppendError> {
        let holds = |kind: &str| append.payloads.iter().any(|payload| payload.kind() == kind);
        if self.contradicts.load(Ordering::SeqCst) {
            return Err(AppendError::VersionConflict { expected: 0, actual: u64::MAX });
        }
        if self.refuse.lock().unwrap().is_some_and(holds) {
            return Err(AppendError::Storage("no space left on device".to_owned()));
        }
        let injected = {
            let mut injections = self.injections.lock().unwrap();
            let at = injections.iter().position(|injection| holds(injection.before));
            at.map(|at| injections.remove(at).payloads)
        };
        if let Some(payloads) = injected {
            self.inner.append(Append::any(append.session.clone(), payloads)).await?;
        }
        self.inner.append(append).await
    }

    async fn read(&self, session: &SessionId, from: u64) -> Result<Vec<StoredEvent>, ReadError> {
        self.inner.read(session, from).await
    }

    fn subscribe(&self) -> broadcast::Receiver<Arc<StoredEvent>> {
        self.inner.subscribe()
    }
}

/// Keeps what it is told.
#[derive(Default)]
pub struct Told {
    pub progress: Mutex<Vec<StageProgress>>,
    pub stalls: Mutex<Vec<String>>,
}

impl ProgressSink for Told {
    fn progress(&self, progress: StageProgress) {
        self.progress.lock().unwrap().push(progress);
    }

    fn stalled(&self, _: &SessionId, message: &str) {
        self.stalls.lock().unwrap().push(message.to_owned());
    }
}

/// A folder of the test's own, where its workflow may do what the policy there says.
pub struct Outside {
    folder: tempfile::TempDir,
    policy: Mutex<String>,
}

impl Default for Outside {
    fn default() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), policy: Mutex::new("version = 1".to_owned()) }
    }
}

impl Outside {
    /// Puts a policy in force; `HERE` in it stands for the folder.
    pub fn allow(&self, policy: &str) {
        // A TOML string in single quotes would end at one; temporary folders have none.
        let here = self.path("").display().to_string();
        *self.policy.lock().unwrap() = format!("version = 1\n{}", policy.replace("HERE", &here));
    }

    /// A file in the folder, by its real path.
    pub fn path(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().canonicalize().unwrap();
        if name.is_empty() { folder } else { folder.join(name) }
    }

    /// A file in the session's output folder.
    pub fn output(&self, name: &str) -> PathBuf {
        self.path("output").join(name)
    }

    /// What a file of the output folder holds; `None` when there is none.
    pub fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.output(name)).ok()
    }
}

impl PolicySource for Outside {
    fn rules(&self, _: &SessionId, given: Vec<PathBuf>) -> Rules {
        let policy = Policy::parse(&self.policy.lock().unwrap()).unwrap_or_else(Policy::broken);
        Rules { policy, folders: SessionFolders { output: self.path("output"), given } }
    }
}

/// One session and everything around it.
pub struct World {
    pub log: Arc<Log>,
    pub blobs: Arc<MemoryBlobStore>,
    pub model: Arc<Scripted>,
    pub told: Arc<Told>,
    pub outside: Arc<Outside>,
    pub orchestrator: Orchestrator,
    pub session: SessionId,
}

fn orchestrator(
    log: &Arc<Log>,
    blobs: &Arc<MemoryBlobStore>,
    model: &Arc<Scripted>,
    told: &Arc<Told>,
    outside: &Arc<Outside>,
) -> Orchestrator {
    let deps = OrchestratorDeps {
        store: log.clone(),
        blobs: blobs.clone(),
        router: Arc::new(Router(model.clone())),
        clock: Arc::new(SystemClock),
        progress: told.clone(),
        policy: outside.clone(),
    };
    let config = OrchestratorConfig {
        generation: GenerationConfig::greedy(64),
        settle: Duration::from_millis(40),
        ..OrchestratorConfig::default()
    };
    Orchestrator::new(deps, config)
}

impl World {
    /// A session of the workflow `text`, created and not started.
    pub async fn new(text: &str, given: &[(&str, &str)], model: Arc<Scripted>) -> Self {
        Self::of(SessionId::new("session-1"), text, given, model).await
    }

    /// The same under an id that no other test has: programs of a run are found by its session.
    pub async fn alone(text: &str, given: &[(&str, &str)], model: Arc<Scripted>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = format!("session-{}-{number}", std::process::id());
        Self::of(SessionId::new(id), text, given, model).await
    }

    async fn of(
        session: SessionId,
        text: &str,
        given: &[(&str, &str)],
        model: Arc<Scripted>,
    ) -> Self {
        let log = Arc::new(Log {
            inner: MemoryEventStore::new(Arc::new(SystemClock), Arc::new(RandomIds)),
            injections: Mutex::default(),
            refuse: Mutex::default(),
            contradicts: AtomicBool::new(false),
        });
        let (blobs, told, outside) = (Arc::default(), Arc::default(), Arc::default());
        let orchestrator = orchestrator(&log, &blobs, &model, &told, &outside);
        let workflow = Workflow::parse(text).unwrap();
        let given: BTreeMap<String, GivenInput> = given
            .iter()
            .map(|(name, text)| ((*name).to_owned(), GivenInput::Text((*text).to_owned())))
            .collect();
        let inputs = inputs::read(&workflow.inputs, &given).unwrap();
        orchestrator.create(&session, "A run", Some(&workflow), &inputs).await.unwrap();
        Self { log, blobs, model, told, outside, orchestrator, session }
    }

    /// Started.
    pub async fn started(text: &str, given: &[(&str, &str)], model: Arc<Scripted>) -> Self {
        let world = Self::new(text, given, model).await;
        world.orchestrator.start(&world.session).await.unwrap();
        world
    }

    /// The process ends here and another one begins on the same data.
    pub async fn restarted(self) -> Self {
        let Self { log, blobs, model, told, outside, orchestrator: old, session } = self;
        drop(old);
        // The old task sees at its next await that it is gone.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let orchestrator = orchestrator(&log, &blobs, &model, &told, &outside);
        Self { log, blobs, model, told, outside, orchestrator, session }
    }

    pub async fn state(&self) -> RunState {
        self.orchestrator.state(&self.session).await.unwrap()
    }

    /// The state, once it is as wanted.
    pub async fn when(&self, wanted: impl Fn(&RunState) -> bool) -> RunState {
        for _ in 0..2000 {
            let state = self.state().await;
            if wanted(&state) {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("never came: {:#?}", self.kinds().await);
    }

    pub async fn ended(&self) -> RunState {
        self.when(|state| state.status.has_ended()).await
    }

    pub async fn events(&self) -> Vec<StoredEvent> {
        self.log.read(&self.session, 1).await.unwrap()
    }

    pub async fn kinds(&self) -> Vec<String> {
        self.events().await.iter().map(|event| event.payload.kind().to_owned()).collect()
    }

    pub async fn count(&self, kind: &str) -> usize {
        self.kinds().await.iter().filter(|found| *found == kind).count()
    }

    /// A person says so, as the router writes it.
    pub async fn steer(&self, note: EventPayload) {
        self.log.append(Append::any(self.session.clone(), vec![note])).await.unwrap();
    }

    pub async fn text(&self, hash: &BlobHash) -> String {
        String::from_utf8(self.blobs.get(hash).await.unwrap().unwrap()).unwrap()
    }
}

/// A note for the current stage and all after it.
pub fn note(id: &str, content: &str) -> EventPayload {
    scoped(id, content, None, NoteScope::Onward)
}

pub fn scoped(id: &str, content: &str, stage: Option<&str>, scope: NoteScope) -> EventPayload {
    SteeringNoteAdded {
        session_id: SessionId::new("session-1"),
        note_id: NoteId::new(id),
        content: content.to_owned(),
        stage_id: stage.map(StageId::from),
        scope,
        replaces: None,
    }
    .into()
}

/// Three stages over one input.
pub const THREE: &str = r#"
name = "Three"
[[input]]
name = "notes"
type = "text"
[[stage]]
id = "summary"
kind = "generate"
system = "You are brief."
prompt = """
Notes:
{{ inputs.notes }}

Summarize the notes.
"""
[[stage]]
id = "actions"
kind = "generate"
prompt = "Given {{ artifacts.summary }} list the actions."
[[stage]]
id = "mail"
kind = "generate"
prompt = "Write a mail with {{ artifacts.actions }} and {{ artifacts.summary }}"
"#;

/// A stage, a question, a stage.
pub const ASKING: &str = r#"
name = "Asking"
[[stage]]
id = "draft"
kind = "generate"
prompt = "Write a draft."
[[stage]]
id = "check"
kind = "approve"
prompt = "Is it good?"
show = "draft"
[[stage]]
id = "final"
kind = "generate"
prompt = "Polish {{ artifacts.draft }}"
"#;

pub const GIVEN: &[(&str, &str)] = &[("notes", "Ana ships on Friday.")];
