//! The application: the one handle that every front end uses.
//!
//! - this file: what it is made of, how it starts and ends.
//! - `dispatch`: from a message to its operation; the only place that knows both.
//! - `sessions`, `runs`, `talk`, `reading`, `models`, `library`: the operations.
//! - `state`: a session as its log tells it.
//! - `follow`: from stored events to what front ends are told.
//! - `answers`: which answers are being written, and how to stop them.

mod answers;
mod dispatch;
mod follow;
mod library;
mod models;
mod reading;
mod runs;
mod sessions;
mod state;
mod talk;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::tasks::Tasks;
use correx_events::{Clock, IdSource, SessionId};
use correx_inference::GenerationConfig;
use correx_orchestration::{Orchestrator, OrchestratorConfig, OrchestratorDeps};
use correx_protocol::{ModelState, ProtocolError, ServerMessage};
use correx_router::{RouterFacade, TranscriptStore};
use correx_store::Store;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use crate::engine::Engine;
use crate::facade::{RouterSurroundings, create_router_facade};
use crate::failure::Failure;
use crate::holdings::Holdings;
use crate::passing::PassingTranscripts;
use crate::policy::OwnPolicy;
use crate::pushes::Pushes;
use crate::settings::{KeepConversations, Settings};
use answers::LiveAnswers;
use follow::RunProgress;
use models::Switches;
use state::Sessions;

/// What an application is made of. Every part is chosen outside, so that a test (or a remote
/// model) can put another in its place.
pub struct AppParts {
    /// The open data directory.
    pub store: Store,
    /// Where it lies.
    pub data_dir: PathBuf,
    /// What answers prompts.
    pub engine: Engine,
    /// Which models there are.
    pub holdings: Holdings,
    /// What the person set.
    pub settings: Settings,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes names.
    pub ids: Arc<dyn IdSource>,
    /// The way out to the front ends.
    pub pushes: Pushes,
}

/// The product's operations over one data directory. Cheap to clone.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    data_dir: PathBuf,
    engine: Engine,
    holdings: Holdings,
    facade: Arc<dyn RouterFacade>,
    orchestrator: Orchestrator,
    sessions: Sessions,
    conversations: Conversations,
    answers: LiveAnswers,
    ids: Arc<dyn IdSource>,
    pushes: Pushes,
    switches: Switches,
    /// Answers that are being written: they end by themselves, also when nobody waits for them.
    tasks: Tasks,
    /// What runs as long as the application does.
    background: std::sync::Mutex<Vec<JoinHandle<()>>>,
}

/// Where conversations are.
enum Conversations {
    OnDisk(Arc<dyn TranscriptStore>),
    InMemory(Arc<PassingTranscripts>),
}

impl Conversations {
    fn transcripts(&self) -> Arc<dyn TranscriptStore> {
        match self {
            Conversations::OnDisk(transcripts) => transcripts.clone(),
            Conversations::InMemory(transcripts) => transcripts.clone(),
        }
    }
}

impl App {
    /// Wires the parts and starts what runs in the background. Runs that were going when the last
    /// process ended are marked as interrupted.
    pub async fn open(parts: AppParts) -> Result<Self, ProtocolError> {
        let AppParts { store, data_dir, engine, holdings, settings, clock, ids, pushes } = parts;
        let conversations = match settings.conversations.keep {
            KeepConversations::OnDisk => Conversations::OnDisk(store.transcripts()),
            KeepConversations::InMemory => Conversations::InMemory(Arc::default()),
        };
        let facade = create_router_facade(
            store.events(),
            engine.inference.clone(),
            settings.router_config(),
            RouterSurroundings {
                transcripts: Some(conversations.transcripts()),
                clock: clock.clone(),
                ids: ids.clone(),
            },
        );
        let config = settings.orchestrator_config();
        let sessions = Sessions::new(store.clone(), base_generation(&config));
        let orchestrator = Orchestrator::new(
            OrchestratorDeps {
                store: store.events(),
                blobs: store.blobs(),
                router: engine.inference.clone(),
                clock,
                policy: Arc::new(OwnPolicy::new(data_dir.clone())),
                progress: Arc::new(RunProgress::new(pushes.clone())),
            },
            config,
        );
        let inner = Inner {
            store,
            data_dir,
            engine,
            holdings,
            facade,
            orchestrator,
            sessions,
            conversations,
            answers: LiveAnswers::default(),
            ids,
            pushes,
            switches: Switches::default(),
            tasks: Tasks::new(),
            background: std::sync::Mutex::default(),
        };
        let app = Self { inner: Arc::new(inner) };
        app.run_in_background(settings.model.unload_after());
        app.recover().await.map_err(|failure| failure.0)?;
        Ok(app)
    }

    /// Everything that front ends are told without asking, from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<ServerMessage> {
        self.inner.pushes.subscribe()
    }

    /// Sessions in which something is being generated now.
    pub async fn live_work(&self) -> Vec<SessionId> {
        let mut live = self.inner.answers.sessions();
        for record in self.inner.store.sessions().await.unwrap_or_default() {
            let session = record.session_id;
            // A run that stalled is still running in the log, and nobody is at work on it.
            let at_work = self.inner.orchestrator.is_live(&session);
            if at_work && !live.contains(&session) && self.is_running(&session).await {
                live.push(session);
            }
        }
        live
    }

    /// Ends: stops what is being generated (an answer keeps what it has; a run is shown as
    /// interrupted at the next start), waits for what is being written, lets the data directory go.
    pub async fn shutdown(&self) {
        self.inner.answers.stop_all();
        if let Some(manager) = &self.inner.engine.manager {
            manager.close();
        }
        self.inner.switches.end();
        self.inner.holdings.downloads.shutdown().await;
        self.inner.orchestrator.shutdown().await;
        self.inner.tasks.ended().await;
        let background = match self.inner.background.lock() {
            Ok(mut tasks) => std::mem::take(&mut *tasks),
            Err(poisoned) => std::mem::take(&mut *poisoned.into_inner()),
        };
        for task in background {
            task.abort();
            // Ends as cancelled.
            let _ = task.await;
        }
    }

    fn run_in_background(&self, unload_after: Option<Duration>) {
        let pushes = self.inner.pushes.clone();
        let mut model = self.inner.engine.model.clone();
        let told = self.inner.pushes.clone();
        let tasks = [
            tokio::spawn(async move { pushes.run().await }),
            tokio::spawn(Self::follow_downloads(
                self.inner.holdings.clone(),
                self.inner.pushes.clone(),
            )),
            tokio::spawn(follow::follow(Arc::downgrade(&self.inner), self.inner.store.clone())),
            tokio::spawn(async move {
                while model.changed().await.is_ok() {
                    let view = model.borrow_and_update().clone();
                    let loading = matches!(view.state, ModelState::Loading { .. });
                    told.tell(ServerMessage::Model(view));
                    if loading {
                        // Loading reports often.
                        tokio::time::sleep(crate::pushes::BUNDLE_TIME).await;
                    }
                }
            }),
        ];
        let unloading = unload_after
            .zip(self.inner.engine.manager.clone())
            .map(|(idle, manager)| tokio::spawn(Self::unload_when_idle(manager, idle)));
        if let Ok(mut background) = self.inner.background.lock() {
            background.extend(tasks);
            background.extend(unloading);
        }
    }

    /// Marks the runs of a process that ended as interrupted.
    async fn recover(&self) -> Result<(), Failure> {
        for record in self.inner.store.sessions().await? {
            let session = record.session_id;
            if self.is_running(&session).await
                && let Err(error) = self.inner.orchestrator.recover(&session).await
            {
                // One session that cannot be marked (a full disk, a damaged record) must not
                // keep the others out of reach.
                tracing::warn!(%session, %error, "a run could not be marked as interrupted");
            }
        }
        Ok(())
    }
}

/// How stages generate when their workflow says nothing.
fn base_generation(config: &OrchestratorConfig) -> GenerationConfig {
    config.generation.clone()
}
