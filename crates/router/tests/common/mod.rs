//! Given / when / then for the router's tests.
#![allow(dead_code, unreachable_pub, clippy::expect_used)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use correx_events::*;
use correx_inference::SingleProvider;
use correx_inference::testing::{Script, ScriptedProvider};
use correx_router::*;
use correx_sessions::{IncrementalReplayer, ReplayError, Versioned};

/// A clock that stands still.
pub struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        at(1_000)
    }
}

/// id-1, id-2, ….
#[derive(Default)]
pub struct Counted(AtomicU64);

impl IdSource for Counted {
    fn next_id(&self) -> String {
        format!("id-{}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a second in range")
}

pub fn session() -> SessionId {
    SessionId::new("s1")
}

pub fn stored(sequence: u64, payload: impl Into<EventPayload>) -> StoredEvent {
    StoredEvent {
        metadata: EventMetadata {
            event_id: EventId::new(format!("e{sequence}")),
            session_id: session(),
            sequence,
            timestamp: at(sequence as i64),
        },
        payload: payload.into(),
    }
}

/// The state after `payloads`, numbered from 1.
pub fn given(payloads: impl IntoIterator<Item = EventPayload>) -> RouterState {
    use correx_sessions::Reducer;
    let reducer = DefaultRouterReducer;
    (1..)
        .zip(payloads)
        .map(|(sequence, payload)| stored(sequence, payload))
        .fold(reducer.initial(), |state, event| reducer.reduce(state, &event))
}

pub fn plan(ids: &[&str]) -> Vec<StagePlan> {
    ids.iter()
        .map(|id| StagePlan {
            id: (*id).into(),
            title: id.to_uppercase(),
            kind: StageKind::Generate,
            needs: None,
        })
        .collect()
}

pub fn created(workflow: bool) -> EventPayload {
    let workflow =
        workflow.then(|| WorkflowRef { name: "notes".into(), source: BlobHash::of(b"workflow") });
    SessionCreated { title: "t".into(), workflow }.into()
}

pub fn started(ids: &[&str]) -> EventPayload {
    WorkflowStarted {
        workflow: "notes".into(),
        stages: plan(ids),
        first_stage: ids.first().map(|id| (*id).into()),
    }
    .into()
}

pub fn stage_started(id: &str, attempt: u32) -> EventPayload {
    StageStarted { stage_id: id.into(), attempt }.into()
}

pub fn stage_completed(id: &str, next: Option<&str>) -> EventPayload {
    StageCompleted {
        stage_id: id.into(),
        attempt: 1,
        next_stage: next.map(Into::into),
        words: Some(214),
        output_tokens: Some(301),
        duration_ms: 4_120,
    }
    .into()
}

pub fn stage_failed(id: &str) -> EventPayload {
    StageFailed { stage_id: id.into(), attempt: 3, reason: "too short".into() }.into()
}

pub fn completed() -> EventPayload {
    WorkflowCompleted { duration_ms: 9 }.into()
}

pub fn failed() -> EventPayload {
    WorkflowFailed { reason: FailureReason::StageFailed, message: "m".into() }.into()
}

pub fn note(id: &str, content: &str, stage: Option<&str>, scope: NoteScope) -> EventPayload {
    SteeringNoteAdded {
        session_id: session(),
        note_id: id.into(),
        content: content.into(),
        stage_id: stage.map(Into::into),
        scope,
        replaces: None,
    }
    .into()
}

pub fn turn(role: TurnRole, content: &str) -> RouterTurn {
    RouterTurn { role, content: content.into(), timestamp: at(0) }
}

/// A repository that counts how often it is asked.
pub struct Counting {
    pub inner: Arc<dyn RouterRepository>,
    pub calls: AtomicU64,
}

#[async_trait]
impl RouterRepository for Counting {
    async fn get_router_state(
        &self,
        session: &SessionId,
    ) -> Result<Versioned<RouterState>, ReplayError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.inner.get_router_state(session).await
    }
}

/// Transcripts in memory, with an order of calls and a switch to fail.
#[derive(Default)]
pub struct Transcripts {
    pub turns: Mutex<HashMap<TurnId, TranscriptTurn>>,
    pub heads: Mutex<HashMap<SessionId, TurnId>>,
    pub broken: std::sync::atomic::AtomicBool,
}

impl Transcripts {
    fn check(&self) -> Result<(), TranscriptError> {
        match self.broken.load(Ordering::Relaxed) {
            true => Err(TranscriptError("disk full".into())),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl TranscriptStore for Transcripts {
    async fn append(&self, turns: Vec<TranscriptTurn>) -> Result<(), TranscriptError> {
        self.check()?;
        for turn in turns {
            let mut heads = self.heads.lock().expect("not poisoned");
            heads.insert(turn.session_id.clone(), turn.turn_id.clone());
            self.turns.lock().expect("not poisoned").insert(turn.turn_id.clone(), turn);
        }
        Ok(())
    }

    async fn update(&self, turn: TranscriptTurn) -> Result<(), TranscriptError> {
        self.check()?;
        self.turns.lock().expect("not poisoned").insert(turn.turn_id.clone(), turn);
        Ok(())
    }

    async fn branch(&self, session: &SessionId) -> Result<Vec<TranscriptTurn>, TranscriptError> {
        self.check()?;
        let turns = self.turns.lock().expect("not poisoned");
        let mut next = self.heads.lock().expect("not poisoned").get(session).cloned();
        let mut branch = Vec::new();
        while let Some(turn) = next.and_then(|id| turns.get(&id)) {
            branch.push(turn.clone());
            next = turn.parent.clone();
        }
        branch.reverse();
        Ok(branch)
    }

    async fn set_head(
        &self,
        session: &SessionId,
        turn: Option<&TurnId>,
    ) -> Result<(), TranscriptError> {
        let mut heads = self.heads.lock().expect("not poisoned");
        match turn {
            Some(turn) => heads.insert(session.clone(), turn.clone()),
            None => heads.remove(session),
        };
        Ok(())
    }
}

/// A facade over a log in memory and a scripted model.
pub struct World {
    pub facade: Arc<DefaultRouterFacade>,
    pub store: Arc<MemoryEventStore>,
    pub provider: Arc<ScriptedProvider>,
    pub transcripts: Arc<Transcripts>,
    pub repository: Arc<Counting>,
    pub parts: RouterParts,
    pub config: RouterConfig,
}

impl World {
    pub fn new(script: impl IntoIterator<Item = Script>) -> Self {
        Self::with(script, RouterConfig::default(), 8192)
    }

    pub fn with(
        script: impl IntoIterator<Item = Script>,
        config: RouterConfig,
        window: usize,
    ) -> Self {
        let ids: Arc<Counted> = Arc::default();
        let store = Arc::new(MemoryEventStore::new(Arc::new(FixedClock), ids.clone()));
        let provider = Arc::new(ScriptedProvider::new(window, script));
        let transcripts: Arc<Transcripts> = Arc::default();
        let replayer = IncrementalReplayer::new(
            store.clone() as Arc<dyn EventStore>,
            RouterProjector::new(DefaultRouterReducer),
        );
        let repository = Arc::new(Counting {
            inner: Arc::new(DefaultRouterRepository::new(Arc::new(replayer))),
            calls: AtomicU64::new(0),
        });
        let parts = RouterParts {
            repository: repository.clone(),
            context_builder: Arc::new(DefaultRouterContextBuilder::new(config.clone())),
            inference: Arc::new(SingleProvider::new(provider.clone())),
            event_store: store.clone(),
            transcripts: Some(transcripts.clone()),
            clock: Arc::new(FixedClock),
            ids,
        };
        let facade = Arc::new(DefaultRouterFacade::new(parts.clone(), config.clone()));
        Self { facade, store, provider, transcripts, repository, parts, config }
    }

    pub async fn given(self, payloads: impl IntoIterator<Item = EventPayload>) -> Self {
        let payloads = payloads.into_iter().collect();
        self.store.append(Append::any(session(), payloads)).await.expect("memory");
        self
    }

    pub async fn say(&self, text: &str, mode: ChatMode) -> Result<RouterResponse, RouterError> {
        self.facade.on_user_input(&session(), text, mode).await
    }

    pub async fn kinds(&self) -> Vec<String> {
        let events = self.store.read(&session(), 1).await.expect("memory");
        events.iter().map(|event| event.payload.kind().to_owned()).collect()
    }

    pub async fn notes(&self) -> Vec<SteeringNoteAdded> {
        let events = self.store.read(&session(), 1).await.expect("memory");
        events
            .into_iter()
            .filter_map(|event| match event.payload {
                EventPayload::SteeringNoteAdded(note) => Some(note),
                _ => None,
            })
            .collect()
    }

    pub async fn branch(&self) -> Vec<TranscriptTurn> {
        self.transcripts.branch(&session()).await.expect("memory")
    }
}
