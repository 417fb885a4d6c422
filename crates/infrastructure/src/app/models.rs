//! Which model answers: shown, chosen, loaded, unloaded.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use correx_candle::memory::{MachineMemory, resident_bytes};
use correx_protocol::{ErrorCode, ModelView, ProtocolError, ServerMessage, SwitchTime};

use super::App;
use crate::engine::{Candidate, ModelManager};
use crate::failure::Failure;
use crate::settings::Settings;

/// How often is looked whether what runs has ended, or the model was not used for long enough.
const LOOK: Duration = Duration::from_millis(250);

impl App {
    /// The model's state; begins to load it, if nothing needed it before.
    pub async fn model(&self) -> Result<ServerMessage, Failure> {
        self.inner.engine.wake();
        Ok(ServerMessage::Model(self.model_now()))
    }

    /// The models that can be used or got.
    pub async fn list_models(&self) -> Result<ServerMessage, Failure> {
        let Some(manager) = self.inner.engine.manager.clone() else {
            return Ok(ServerMessage::Models { models: Vec::new() });
        };
        let models = blocking(move || Ok(manager.list())).await?;
        Ok(ServerMessage::Models { models })
    }

    /// Uses another model from now on, and remembers it.
    pub async fn use_model(
        &self,
        model: String,
        when: Option<SwitchTime>,
    ) -> Result<ServerMessage, Failure> {
        let manager = self.manager()?;
        let candidate = {
            let manager = manager.clone();
            blocking(move || {
                let chosen = manager.find(&model)?;
                manager.check(&chosen)
            })
            .await?
        };
        let waits = when != Some(SwitchTime::Now) && !self.live_work().await.is_empty();
        if waits && when.is_none() {
            return Err(busy()
                .hint("Wait for its end, or say when: `--when after-run` or `--when now`.")
                .into());
        }
        // Whatever was announced before does not count any more.
        let turn = self.inner.switches.next();
        manager.announce(None);
        if waits {
            // Written at once: this process may end together with what it waits for.
            self.wish(&candidate).await?;
            manager.announce(Some(&candidate));
            let app = self.clone();
            self.inner.tasks.spawn(async move { app.change_later(manager, candidate, turn).await });
        } else {
            self.change(manager, candidate).await?;
        }
        Ok(ServerMessage::Model(self.model_now()))
    }

    /// Remembers `candidate` before it is in use, and what was remembered in its place.
    async fn wish(&self, candidate: &Candidate) -> Result<(), ProtocolError> {
        let (data_dir, name) = (self.inner.data_dir.clone(), candidate.remembered());
        let before = blocking(move || {
            let not_written =
                |error| crate::failure::settings(&error).kept("The model is as it was.");
            let before = Settings::load(&data_dir).map_err(not_written)?.model.used;
            Settings::remember_model(&data_dir, Some(&name)).map_err(not_written)?;
            Ok(before)
        })
        .await?;
        self.inner.switches.put_before(before);
        Ok(())
    }

    /// The model that was wished for cannot be used: what was remembered before counts again.
    async fn take_wish_back(&self) {
        let Some(before) = self.inner.switches.take_before() else { return };
        let data_dir = self.inner.data_dir.clone();
        let written = blocking(move || {
            Settings::remember_model(&data_dir, before.as_deref())
                .map_err(|error| crate::failure::settings(&error))
        });
        if let Err(error) = written.await {
            self.inner.pushes.tell(ServerMessage::Error(error));
        }
    }

    /// Loads the model, when it is not, and waits for it.
    pub async fn load_model(&self) -> Result<ServerMessage, Failure> {
        self.manager()?.load().await?;
        Ok(ServerMessage::Model(self.model_now()))
    }

    /// Frees the model's memory, or stops its loading.
    pub async fn unload_model(&self) -> Result<ServerMessage, Failure> {
        let manager = self.manager()?;
        if !self.live_work().await.is_empty()
            && self.inner.engine.model.borrow().state == correx_protocol::ModelState::Ready
        {
            return Err(busy().hint("Wait for its end, or pause or stop it first.").into());
        }
        blocking(move || {
            manager.unload();
            Ok(())
        })
        .await?;
        Ok(ServerMessage::Model(self.model_now()))
    }

    /// Unloads the model whenever it was not used for `idle`.
    pub(super) async fn unload_when_idle(manager: ModelManager, idle: Duration) {
        loop {
            tokio::time::sleep(LOOK.max(idle / 20).min(Duration::from_secs(15))).await;
            let manager = manager.clone();
            let _ = blocking(move || Ok(manager.unload_after(idle))).await;
        }
    }

    /// The model's state with the memory that is held now.
    fn model_now(&self) -> ModelView {
        let mut view = self.inner.engine.model.borrow().clone();
        if let Some(memory) = &mut view.memory {
            memory.held = resident_bytes();
            memory.available = MachineMemory::now().map(|machine| machine.available);
        }
        view
    }

    /// Changes the model once nothing is generated any more, unless another wish came meanwhile.
    async fn change_later(&self, manager: ModelManager, candidate: Candidate, turn: u64) {
        while !self.live_work().await.is_empty() {
            tokio::time::sleep(LOOK).await;
            if self.inner.switches.latest() != turn {
                return;
            }
        }
        manager.announce(None);
        if let Err(Failure(error)) = self.change(manager, candidate).await {
            self.inner.pushes.tell(ServerMessage::Error(error));
        }
    }

    async fn change(&self, manager: ModelManager, candidate: Candidate) -> Result<(), Failure> {
        let (name, chosen) = (candidate.remembered(), candidate.chosen);
        if let Err(error) = blocking(move || manager.change_to(chosen)).await {
            self.take_wish_back().await;
            return Err(error.into());
        }
        self.inner.switches.take_before();
        let data_dir = self.inner.data_dir.clone();
        blocking(move || {
            Settings::remember_model(&data_dir, Some(&name)).map_err(|error| {
                crate::failure::settings(&error)
                    .kept("The model is in use until this program ends, and was not remembered.")
            })
        })
        .await?;
        Ok(())
    }

    fn manager(&self) -> Result<ModelManager, ProtocolError> {
        self.inner.engine.manager.clone().ok_or_else(|| {
            ProtocolError::new(ErrorCode::WrongState, "this engine's model cannot be changed")
        })
    }
}

/// Counts the wishes for another model: only the latest counts.
#[derive(Default)]
pub(super) struct Switches {
    latest: AtomicU64,
    /// What the settings named before a wish that is still open.
    before: Mutex<Option<Option<String>>>,
}

impl Switches {
    fn next(&self) -> u64 {
        self.latest.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Keeps what the settings named; of several wishes in a row, before the first.
    fn put_before(&self, named: Option<String>) {
        self.before.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(named);
    }

    fn take_before(&self) -> Option<Option<String>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The program ends: no wish counts any more.
    pub(super) fn end(&self) {
        self.next();
    }

    fn latest(&self) -> u64 {
        self.latest.load(Ordering::SeqCst)
    }
}

fn busy() -> ProtocolError {
    ProtocolError::new(ErrorCode::WrongState, "a run or an answer is using the model now")
        .kept("The model is as it was.")
}

/// Does what takes a while away from the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ProtocolError> + Send + 'static,
) -> Result<T, ProtocolError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        Err(ProtocolError::new(ErrorCode::Internal, "loading the model ended unexpectedly")
            .hint("Try again; if it happens again, choose another model."))
    })
}
