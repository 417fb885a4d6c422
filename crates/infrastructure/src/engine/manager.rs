//! One model at a time: loaded, lent out, unloaded, changed for another.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use correx_candle::memory::resident_bytes;
use correx_events::StageId;
use correx_inference::{
    InferenceCancellationToken, InferenceProvider, InferenceRouter, ModelCapability, RouteRequest,
    RoutingError, SingleProvider,
};
use correx_protocol::{ErrorCode, MemoryView, ModelChoice, ModelState, ModelView, ProtocolError};
use tokio::sync::watch;

use super::lent::Lent;
use super::source::{Candidate, Chosen, LoadedModel, ModelSource};
use super::stages::Stages;
use crate::view;

const LOADING: ModelState = ModelState::Loading { fraction: 0.0 };

/// Owns the model. Cheap to clone.
///
/// One model is in memory at a time: the old one's memory is free before the new one's is asked
/// for. What would refuse the new one for its header or its size is found out before that.
#[derive(Clone)]
pub struct ModelManager {
    inner: Arc<Inner>,
}

struct Inner {
    source: Box<dyn ModelSource>,
    slot: watch::Sender<Slot>,
    view: watch::Sender<ModelView>,
    wanted: Mutex<Wanted>,
    /// Held by whoever loads or frees a model.
    at_work: Mutex<()>,
    /// Changes that are on their way: what they interrupt is not the end of loading.
    changes: AtomicUsize,
    /// Stages that have the model.
    stages: Stages,
    /// Held by a stage that gets its model.
    stage_turn: tokio::sync::Mutex<()>,
}

struct Wanted {
    chosen: Chosen,
    /// The model that the person uses, while one that a workflow names is in its place.
    own: Option<Chosen>,
    /// Stops the loading that goes on.
    loading: InferenceCancellationToken,
    closed: bool,
}

#[derive(Clone)]
enum Slot {
    /// Nothing was tried yet.
    Empty,
    Loading,
    Ready(Arc<Lent>),
    Unloaded,
    Failed(ProtocolError),
}

impl ModelManager {
    /// A manager that has loaded nothing yet, for the model `chosen`.
    pub fn new(source: Box<dyn ModelSource>, chosen: Chosen) -> Self {
        let view = absent(&*source, &chosen);
        let loading = InferenceCancellationToken::new();
        let inner = Inner {
            source,
            slot: watch::Sender::new(Slot::Empty),
            view: watch::Sender::new(view),
            wanted: Mutex::new(Wanted { chosen, own: None, loading, closed: false }),
            at_work: Mutex::default(),
            changes: AtomicUsize::new(0),
            stages: Stages::default(),
            stage_turn: tokio::sync::Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The model's state from now on.
    pub fn watch(&self) -> watch::Receiver<ModelView> {
        self.inner.view.subscribe()
    }

    /// Begins to load, if nothing has been tried yet.
    pub fn wake(&self) {
        self.begin_when(|slot| matches!(slot, Slot::Empty));
    }

    /// The model that is used.
    pub fn chosen(&self) -> Chosen {
        self.inner.wanted().chosen.clone()
    }

    /// Every model that can be used or got. Blocks.
    pub fn list(&self) -> Vec<ModelChoice> {
        self.inner.source.list(&self.chosen())
    }

    /// The model that a person names by id or path. Blocks.
    pub fn find(&self, typed: &str) -> Result<Chosen, ProtocolError> {
        self.inner.source.find(typed)
    }

    /// Whether `chosen` could take the place of the present model: its file's header and the
    /// memory are looked at. Blocks.
    pub fn check(&self, chosen: &Chosen) -> Result<Candidate, ProtocolError> {
        self.inner.source.check(chosen, self.inner.given_back())
    }

    /// Tells that `candidate` takes over later; `None`: nobody does any more.
    pub fn announce(&self, candidate: Option<&Candidate>) {
        let next = candidate.map(|candidate| candidate.name.clone());
        self.inner.view.send_if_modified(|view| {
            let changed = view.next != next;
            view.next = next;
            changed
        });
    }

    /// Loads the model, when it is not loaded, and waits for it.
    pub async fn load(&self) -> Result<(), ProtocolError> {
        self.begin_loading();
        match self.settled().await {
            Slot::Failed(error) => Err(error),
            Slot::Unloaded => Err(stopped()),
            _ => Ok(()),
        }
    }

    /// Puts `chosen` in the place of the present model. What cannot be loaded leaves that one as it
    /// is; where only loading it shows that, the present one comes back. What is at work with the
    /// present one is stopped. Blocks until it is loaded.
    pub fn change_to(&self, chosen: Chosen) -> Result<(), ProtocolError> {
        self.switch(chosen)?;
        self.inner.wanted().own = None;
        Ok(())
    }

    /// The same for a stage, which leaves the person's choice as it is.
    fn switch(&self, chosen: Chosen) -> Result<(), ProtocolError> {
        let inner = &self.inner;
        self.check(&chosen)?;
        let _changing = Changing::begin(&inner.changes);
        inner.wanted().loading.cancel();
        let _at_work = inner.at_work();
        let cancel = inner.wanted().renewed();
        if matches!(*inner.slot.borrow(), Slot::Empty) {
            // Nobody needed a model yet: the next use loads this one.
            inner.view.send_replace(absent(&*inner.source, &chosen));
            inner.wanted().chosen = chosen;
            return Ok(());
        }
        let before = inner.wanted().chosen.clone();
        let was_in_use = inner.free();
        inner.slot.send_replace(Slot::Loading);
        inner.view.send_modify(|view| {
            *view = absent(&*inner.source, &chosen);
        });
        let error = match inner.load(&chosen, &cancel) {
            Ok(()) => {
                inner.wanted().chosen = chosen;
                return Ok(());
            }
            Err(error) => error,
        };
        let name = inner.source.name(&before);
        inner.view.send_replace(absent(&*inner.source, &before));
        if !was_in_use || cancel.is_cancelled() {
            inner.settle(Slot::Unloaded);
            return Err(error.kept(format!("{name} stays in use; the next message loads it.")));
        }
        let again = inner.wanted().renewed();
        match inner.load(&before, &again) {
            Ok(()) => Err(error.kept(format!("{name} is in use again."))),
            Err(failed) => {
                inner.settle(Slot::Failed(failed.clone()));
                Err(error.hint(format!(
                    "{name} could not be loaded again either: {}",
                    in_one_line(&failed)
                )))
            }
        }
    }

    /// Frees the model's memory, or stops its loading. Blocks until that is done.
    pub fn unload(&self) {
        let inner = &self.inner;
        inner.wanted().loading.cancel();
        let _at_work = inner.at_work();
        inner.free();
        inner.settle(Slot::Unloaded);
    }

    /// Frees the model's memory when nobody used it for `idle`; whether that was so. Blocks.
    pub fn unload_after(&self, idle: Duration) -> bool {
        let inner = &self.inner;
        let Some(lent) = inner.ready() else { return false };
        if lent.idle().is_none_or(|since| since < idle) {
            return false;
        }
        let _at_work = inner.at_work();
        let freed = lent.withdraw_after(idle);
        if freed {
            inner.settle(Slot::Unloaded);
        }
        freed
    }

    /// Stops a loading that goes on, for good: the program ends.
    pub fn close(&self) {
        let mut wanted = self.inner.wanted();
        wanted.closed = true;
        wanted.loading.cancel();
    }

    /// Begins to load, unless it is loading or there. After a failure it begins again: the file
    /// may have been put in place meanwhile.
    pub fn begin_loading(&self) {
        self.begin_when(|slot| matches!(slot, Slot::Empty | Slot::Unloaded | Slot::Failed(_)));
    }

    fn begin_when(&self, wanted: impl Fn(&Slot) -> bool) {
        if self.inner.wanted().closed {
            return;
        }
        let begins = self.inner.slot.send_if_modified(|slot| {
            let begins = wanted(slot);
            if begins {
                *slot = Slot::Loading;
            }
            begins
        });
        if !begins {
            return;
        }
        self.inner.view.send_modify(|view| view.state = LOADING);
        let inner = self.inner.clone();
        // A thread of its own: a runtime that ends waits for its blocking tasks, not for this.
        let spawned = thread::Builder::new()
            .name("correx-model-load".into())
            .spawn(move || inner.load_wanted());
        if let Err(error) = spawned {
            let message = format!("the model could not be loaded: {error}");
            self.inner.settle(Slot::Failed(ProtocolError::new(ErrorCode::Model, message)));
        }
    }

    /// The model of a stage that names `model`, or none. Waits while other stages have another one.
    async fn for_stage(
        &self,
        stage: &StageId,
        required: &[ModelCapability],
        model: Option<&str>,
    ) -> Result<Arc<dyn InferenceProvider>, RoutingError> {
        let stages = &self.inner.stages;
        loop {
            let turn = self.inner.stage_turn.lock().await;
            match self.other(model).await? {
                None => {
                    let provider = self.lend(Some(stage), required).await?;
                    return Ok(stages.lend(provider));
                }
                Some(other) if stages.none() => self.put_in_place(model, other).await?,
                Some(_) => {
                    drop(turn);
                    stages.wait_for_none().await;
                }
            }
        }
    }

    /// The model that a stage wants, when it is another than the present one.
    async fn other(&self, model: Option<&str>) -> Result<Option<Chosen>, RoutingError> {
        let (manager, typed) = (self.clone(), model.map(str::to_owned));
        let look = move || {
            let (now, own) = {
                let wanted = manager.inner.wanted();
                (wanted.chosen.clone(), wanted.own.clone())
            };
            let chosen = match typed {
                Some(typed) => manager.find(&typed)?,
                None => own.unwrap_or_else(|| now.clone()),
            };
            Ok((!manager.inner.source.is_same(&chosen, &now)).then_some(chosen))
        };
        blocking(look).await.map_err(|error| not_to_be_had(model, &error))
    }

    /// Switches to the model that a stage wants.
    async fn put_in_place(&self, model: Option<&str>, chosen: Chosen) -> Result<(), RoutingError> {
        let manager = self.clone();
        let named = model.is_some();
        let change = move || {
            let before = manager.chosen();
            manager.switch(chosen)?;
            let mut wanted = manager.inner.wanted();
            wanted.own = match named {
                true => Some(wanted.own.take().unwrap_or(before)),
                false => None,
            };
            Ok(())
        };
        blocking(change).await.map_err(|error| not_to_be_had(model, &error))
    }

    /// The present model, loaded if it is not.
    async fn lend(
        &self,
        stage: Option<&StageId>,
        required: &[ModelCapability],
    ) -> Result<Arc<dyn InferenceProvider>, RoutingError> {
        loop {
            self.begin_loading();
            match self.settled().await {
                Slot::Ready(lent) => {
                    // Freed in this very moment: asked again.
                    if lent.touch() {
                        return SingleProvider::new(lent).route(stage, required).await;
                    }
                    tokio::task::yield_now().await;
                }
                Slot::Failed(error) => return Err(RoutingError::Load(in_one_line(&error))),
                Slot::Empty | Slot::Loading | Slot::Unloaded => {
                    return Err(RoutingError::Load(in_one_line(&stopped())));
                }
            }
        }
    }

    async fn settled(&self) -> Slot {
        let mut slot = self.inner.slot.subscribe();
        let settled = slot.wait_for(|slot| !matches!(slot, Slot::Loading)).await;
        // The sender lives as long as this handle.
        settled.map_or(Slot::Unloaded, |slot| slot.clone())
    }
}

impl Inner {
    fn load_wanted(self: Arc<Self>) {
        let at_work = self.at_work();
        // Somebody who changed or freed the model came first, or waits to.
        let changes = || self.changes.load(Ordering::SeqCst) > 0;
        if changes() || !matches!(*self.slot.borrow(), Slot::Loading) {
            return;
        }
        let (chosen, cancel) = {
            let mut wanted = self.wanted();
            (wanted.chosen.clone(), wanted.renewed())
        };
        let outcome = self.load(&chosen, &cancel);
        match outcome {
            Ok(()) => {}
            Err(_) if cancel.is_cancelled() && changes() => {}
            Err(_) if cancel.is_cancelled() => self.settle(Slot::Unloaded),
            Err(error) => self.settle(Slot::Failed(error)),
        }
        drop(at_work);
    }

    /// Loads `chosen` and makes it ready. The caller holds `at_work`, and no model is there.
    fn load(
        self: &Arc<Self>,
        chosen: &Chosen,
        cancel: &InferenceCancellationToken,
    ) -> Result<(), ProtocolError> {
        let report = |fraction: f32| {
            self.view.send_modify(|view| view.state = ModelState::Loading { fraction });
        };
        let LoadedModel { provider, memory } = self.source.load(chosen, cancel, &report)?;
        let inner = Arc::downgrade(self);
        let noticed = move |notice: Option<String>| {
            let Some(inner) = inner.upgrade() else { return };
            inner.view.send_if_modified(|view| {
                let changed = view.notice != notice;
                view.notice = notice;
                changed
            });
        };
        let lent = Arc::new(Lent::new(provider, noticed));
        self.view.send_modify(|view| {
            let next = view.next.take();
            *view = ModelView { memory, next, ..view::model(&lent.describe()) };
        });
        self.slot.send_replace(Slot::Ready(lent.clone()));
        self.await_checksum(&lent);
        Ok(())
    }

    /// Frees the model that is there; whether one was. The caller holds `at_work`.
    fn free(&self) -> bool {
        let ready = self.ready();
        if let Some(lent) = &ready {
            self.slot.send_replace(Slot::Loading);
            lent.withdraw();
        }
        ready.is_some()
    }

    fn settle(&self, slot: Slot) {
        let state = match &slot {
            Slot::Failed(error) => ModelState::Failed { error: error.clone() },
            Slot::Unloaded => ModelState::Unloaded,
            Slot::Empty | Slot::Loading => LOADING,
            Slot::Ready(_) => ModelState::Ready,
        };
        self.view.send_modify(|view| view.state = state);
        self.slot.send_replace(slot);
    }

    fn ready(&self) -> Option<Arc<Lent>> {
        match &*self.slot.borrow() {
            Slot::Ready(lent) => Some(lent.clone()),
            _ => None,
        }
    }

    /// What is free again once the present model is gone, at the least.
    fn given_back(&self) -> u64 {
        let memory: Option<MemoryView> = self.ready().and_then(|_| self.view.borrow().memory);
        let most = memory.map_or(0, |memory| memory.weights.saturating_add(memory.vocabulary));
        // Some of it may not have been needed yet.
        most.min(resident_bytes().unwrap_or(u64::MAX))
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at_work(&self) -> MutexGuard<'_, ()> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A provider computes its file's checksum beside its work; then the view is told. Gives up
    /// after two minutes: the checksum is an information, nothing depends on it.
    fn await_checksum(self: &Arc<Self>, lent: &Arc<Lent>) {
        if lent.describe().sha256.is_some() {
            return;
        }
        let (inner, lent) = (Arc::downgrade(self), Arc::downgrade(lent));
        let waiting = move || {
            for _ in 0..600 {
                thread::sleep(Duration::from_millis(200));
                let (Some(inner), Some(lent)) = (inner.upgrade(), lent.upgrade()) else { return };
                if lent.is_withdrawn() {
                    return;
                }
                if let Some(sha256) = lent.describe().sha256 {
                    inner.view.send_modify(|view| view.sha256 = Some(sha256));
                    return;
                }
            }
        };
        // Without it the checksum is not shown.
        let _ = thread::Builder::new().name("correx-checksum-wait".into()).spawn(waiting);
    }
}

impl Wanted {
    /// Another token for the next loading.
    fn renewed(&mut self) -> InferenceCancellationToken {
        self.loading = InferenceCancellationToken::new();
        if self.closed {
            self.loading.cancel();
        }
        self.loading.clone()
    }
}

/// A change on its way.
struct Changing<'a>(&'a AtomicUsize);

impl<'a> Changing<'a> {
    fn begin(changes: &'a AtomicUsize) -> Self {
        changes.fetch_add(1, Ordering::SeqCst);
        Self(changes)
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl InferenceRouter for ModelManager {
    async fn route(
        &self,
        stage: Option<&StageId>,
        required: &[ModelCapability],
    ) -> Result<Arc<dyn InferenceProvider>, RoutingError> {
        self.route_to(RouteRequest { stage, required, model: None }).await
    }

    /// A stage that names no model gets the person's; the conversation goes on with the one that is
    /// there.
    async fn route_to(
        &self,
        request: RouteRequest<'_>,
    ) -> Result<Arc<dyn InferenceProvider>, RoutingError> {
        match request.stage {
            Some(stage) => self.for_stage(stage, request.required, request.model).await,
            None => self.lend(None, request.required).await,
        }
    }

    async fn check_model(&self, model: &str) -> Result<(), RoutingError> {
        let (manager, typed) = (self.clone(), model.to_owned());
        let look = move || manager.find(&typed).and_then(|chosen| manager.check(&chosen));
        blocking(look).await.map(|_| ()).map_err(|error| not_to_be_had(Some(model), &error))
    }
}

/// Does what takes a while away from the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ProtocolError> + Send + 'static,
) -> Result<T, ProtocolError> {
    let failed = |error: tokio::task::JoinError| {
        ProtocolError::new(
            ErrorCode::Internal,
            format!("the model could not be looked at: {error}"),
        )
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(failed(error)))
}

/// Why a stage does not get the model that it wants.
fn not_to_be_had(model: Option<&str>, error: &ProtocolError) -> RoutingError {
    let problem = in_one_line(error);
    match model {
        Some(model) => RoutingError::Model { model: model.to_owned(), problem },
        None => RoutingError::Load(problem),
    }
}

/// What is known of a model before it is loaded.
fn absent(source: &dyn ModelSource, chosen: &Chosen) -> ModelView {
    let view = view::absent_model(LOADING, source.name(chosen));
    match source.place(chosen) {
        Ok(path) => ModelView { location: path.display().to_string(), ..view },
        Err(error) => ModelView { notice: Some(in_one_line(&error)), ..view },
    }
}

fn stopped() -> ProtocolError {
    ProtocolError::new(ErrorCode::Model, "loading the model was stopped")
        .hint("The next message loads it again")
}

/// Where errors can only be a text: what happened, and what to do.
fn in_one_line(error: &ProtocolError) -> String {
    match &error.hint {
        Some(hint) => format!("{}. {hint}", error.message.trim_end_matches('.')),
        None => error.message.clone(),
    }
}
