//! Which model answers: shown, chosen, loaded, unloaded.

use std::time::Duration;

use correx_candle::memory::{MachineMemory, resident_bytes};
use correx_protocol::{ErrorCode, ModelView, ProtocolError, ServerMessage, SwitchTime};

use super::App;
use crate::engine::{Candidate, Chosen, ModelManager};
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
        // Whatever was announced before does not count any more.
        let turn = self.inner.switches.next();
        manager.announce(None);
        match when {
            Some(SwitchTime::Now) => {}
            None if self.live_work().await.is_empty() => {}
            None => {
                return Err(busy()
                    .hint("Wait for its end, or say when: `--when after-run` or `--when now`.")
                    .into());
            }
            Some(SwitchTime::AfterRun) if self.live_work().await.is_empty() => {}
            Some(SwitchTime::AfterRun) => {
                manager.announce(Some(&candidate));
                let app = self.clone();
                self.inner
                    .tasks
                    .spawn(async move { app.change_later(manager, candidate, turn).await });
                return Ok(ServerMessage::Model(self.model_now()));
            }
        }
        self.change(manager, candidate).await?;
        Ok(ServerMessage::Model(self.model_now()))
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
        let Candidate { chosen, path, .. } = candidate;
        let named = match &chosen {
            Chosen::Id(id) => id.clone(),
            Chosen::Default | Chosen::File(_) => path.display().to_string(),
        };
        blocking(move || manager.change_to(chosen)).await?;
        let data_dir = self.inner.data_dir.clone();
        blocking(move || {
            Settings::remember_model(&data_dir, &named).map_err(|error| {
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
pub(super) struct Switches(std::sync::atomic::AtomicU64);

impl Switches {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1
    }

    /// The program ends: no wish counts any more.
    pub(super) fn end(&self) {
        self.next();
    }

    fn latest(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
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
