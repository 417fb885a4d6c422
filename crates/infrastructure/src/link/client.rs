//! The handle of a front end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use correx_events::{RandomIds, SessionId, SystemClock};
use correx_models::{Library, Locations};
use correx_protocol::{ClientMessage, ErrorCode, ProtocolError, ServerMessage};
use correx_store::{OpenError, Store};
use tokio::sync::{Mutex, broadcast};
use tokio::time::Instant;

use super::host::Host;
use super::options::ConnectOptions;
use super::remote::Remote;
use crate::app::{App, AppParts};
use crate::engine::{Chosen, Engine, InProcess, LoadingSettings, ModelManager};
use crate::failure;
use crate::holdings::Holdings;
use crate::pushes::Pushes;
use crate::settings::Settings;

/// How long a data directory may be held by a process that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// A front end's connection to a data directory, as its owner or through its owner. Cheap to
/// clone. When the owner ends, a client takes its place by itself.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    options: ConnectOptions,
    data_dir: PathBuf,
    pushes: Pushes,
    link: Mutex<Link>,
}

/// How the data directory is reached.
#[derive(Clone)]
enum Link {
    /// This process owns it.
    Owner(Arc<Owner>),
    /// Another process owns it.
    Remote(Arc<Remote>),
    /// This handle was shut down.
    Closed,
}

struct Owner {
    app: App,
    /// Absent when no socket could be made: then no other process can join.
    host: Option<Host>,
}

/// Who owns the data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// This process.
    Owner,
    /// Another one.
    Guest,
}

impl Client {
    /// Opens the data directory, or joins the process that has it open.
    pub async fn connect(options: ConnectOptions) -> Result<Self, ProtocolError> {
        let data_dir = options.resolve_data_dir()?;
        let pushes = Pushes::default();
        let link = Mutex::new(Link::Closed);
        let inner = Arc::new(Inner { options, data_dir, pushes, link });
        let link = inner.establish().await?;
        *inner.link.lock().await = link.clone();
        inner.clone().watch_over(&link);
        Ok(Self { inner })
    }

    /// Asks for something. Errors come as [`ServerMessage::Error`].
    ///
    /// When the owner ends before it answered, what only reads is asked again; what acts is not,
    /// for it may have been done.
    pub async fn request(&self, message: ClientMessage) -> ServerMessage {
        loop {
            let remote = match self.inner.link_now().await {
                Ok(Link::Owner(owner)) => return owner.app.handle(message).await,
                Ok(Link::Remote(remote)) => remote,
                Ok(Link::Closed) => return ServerMessage::Error(closed()),
                Err(error) => return ServerMessage::Error(error),
            };
            match remote.request(message.clone()).await {
                Ok(reply) => return reply,
                Err(_) if only_reads(&message) => remote.closed().cancelled().await,
                Err(ended) => return ServerMessage::Error(ended.into()),
            }
        }
    }

    /// What is told without asking, from now on; also after another process took over.
    pub fn subscribe(&self) -> broadcast::Receiver<ServerMessage> {
        self.inner.pushes.subscribe()
    }

    /// Who owns the data directory now.
    pub async fn role(&self) -> Role {
        match &*self.inner.link.lock().await {
            Link::Owner(_) => Role::Owner,
            Link::Remote(_) | Link::Closed => Role::Guest,
        }
    }

    /// Whether this process owns the data directory now.
    pub async fn is_owner(&self) -> bool {
        self.role().await == Role::Owner
    }

    /// Where everything is kept.
    pub fn data_dir(&self) -> &std::path::Path {
        &self.inner.data_dir
    }

    /// Sessions in which this process is generating something, for itself or for others. An owner
    /// that ends now interrupts them; a guest has none.
    pub async fn live_work(&self) -> Vec<SessionId> {
        let link = self.inner.link.lock().await.clone();
        match link {
            Link::Owner(owner) => owner.app.live_work().await,
            Link::Remote(_) | Link::Closed => Vec::new(),
        }
    }

    /// Ends this handle and all its clones. An owner stops what it is generating, lets its clients
    /// go, and frees the data directory.
    pub async fn shutdown(&self) {
        let link = std::mem::replace(&mut *self.inner.link.lock().await, Link::Closed);
        match link {
            Link::Owner(owner) => {
                if let Some(host) = &owner.host {
                    host.stop().await;
                }
                owner.app.shutdown().await;
            }
            Link::Remote(remote) => remote.close(),
            Link::Closed => {}
        }
    }
}

impl Inner {
    /// The link as it is, made anew when the owner has gone.
    async fn link_now(self: &Arc<Self>) -> Result<Link, ProtocolError> {
        let mut link = self.link.lock().await;
        if let Link::Remote(remote) = &*link
            && remote.is_closed()
        {
            *link = self.establish().await?;
            self.clone().watch_over(&link);
        }
        Ok(link.clone())
    }

    /// Takes over as soon as the owner ends, if anybody listens here: a window goes on by itself.
    fn watch_over(self: Arc<Self>, link: &Link) {
        let Link::Remote(remote) = link else { return };
        let ended = remote.closed();
        let weak = Arc::downgrade(&self);
        drop(self);
        tokio::spawn(async move {
            ended.cancelled().await;
            let Some(inner) = weak.upgrade() else { return };
            if inner.pushes.listeners() == 0 {
                return;
            }
            match inner.link_now().await {
                Ok(Link::Owner(owner)) => owner.app.tell_everything().await,
                Ok(_) => {}
                Err(error) => inner.pushes.tell(ServerMessage::Error(error)),
            }
        });
    }

    /// Becomes the owner, or joins the owner.
    async fn establish(&self) -> Result<Link, ProtocolError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Store::open(&self.data_dir, Arc::new(SystemClock), Arc::new(RandomIds)) {
                Ok(store) => return self.own(store).await,
                Err(OpenError::AlreadyOpen { .. }) => {}
                Err(error) => return Err(failure::open(&error)),
            }
            match Remote::connect(&self.data_dir, self.pushes.clone()).await {
                Ok(remote) => return Ok(Link::Remote(Arc::new(remote))),
                // It is starting, or ending: either it will listen or its lock will be free.
                Err(_) if Instant::now() < deadline => tokio::time::sleep(BETWEEN_TRIES).await,
                Err(error) => return Err(self.silent_owner(&error)),
            }
        }
    }

    async fn own(&self, store: Store) -> Result<Link, ProtocolError> {
        let settings = Settings::load(&self.data_dir).map_err(|error| failure::settings(&error))?;
        let engine = self.options.engine.clone().unwrap_or_else(|| {
            let program = std::env::current_exe().ok();
            let locations = Locations::usual(None, &self.data_dir, program.as_deref());
            let library = Library::in_data_dir(&self.data_dir);
            let source =
                InProcess { locations, library, loading: self.loading_settings(&settings) };
            let chosen = match &self.options.model {
                Some(file) => Chosen::File(file.clone()),
                None => settings.model.chosen(&self.data_dir),
            };
            Engine::managed(ModelManager::new(Box::new(source), chosen), self.options.loading)
        });
        let holdings = match &self.options.holdings {
            Some(holdings) => holdings.clone(),
            None => Holdings::of_data_dir(&self.data_dir)?,
        };
        let app = App::open(AppParts {
            store,
            data_dir: self.data_dir.clone(),
            engine,
            holdings,
            settings,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            pushes: self.pushes.clone(),
        })
        .await?;
        let host = match Host::listen(app.clone(), &self.data_dir) {
            Ok(host) => Some(host),
            Err(error) => {
                tracing::warn!(%error, "no other process can join: the local socket could not be made");
                None
            }
        };
        Ok(Link::Owner(Arc::new(Owner { app, host })))
    }

    fn loading_settings(&self, settings: &Settings) -> LoadingSettings {
        let mut loading = settings.model.loading();
        loading.threads = self.options.threads.or(loading.threads);
        loading
    }

    fn silent_owner(&self, error: &std::io::Error) -> ProtocolError {
        let dir = self.data_dir.display();
        ProtocolError::new(
            ErrorCode::WrongState,
            format!(
                "another Correx has the data directory {dir} open and does not answer ({error})"
            ),
        )
        .kept("Nothing was changed.")
        .hint("Close that program and try again, or choose another data directory.")
    }
}

/// Whether asking twice is as good as asking once.
fn only_reads(message: &ClientMessage) -> bool {
    matches!(
        message,
        ClientMessage::GetOverview
            | ClientMessage::CheckWorkflow { .. }
            | ClientMessage::OpenSession { .. }
            | ClientMessage::MeasureDraft { .. }
            | ClientMessage::ReadBlob { .. }
            | ClientMessage::ReadEvents { .. }
            | ClientMessage::ReadTurnContext { .. }
            | ClientMessage::GetModel
            | ClientMessage::ListModels
            | ClientMessage::ReadLibrary
            | ClientMessage::FindModels
            | ClientMessage::PlanDeletion { .. }
    )
}

fn closed() -> ProtocolError {
    ProtocolError::new(ErrorCode::WrongState, "this program is closing")
        .kept("Everything that was acknowledged was kept.")
}
