//! The model: found, loaded in the background, waited for.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use correx_candle::{CandleProvider, LoadOptions};
use correx_events::StageId;
use correx_inference::{
    InferenceProvider, InferenceRouter, ModelCapability, RoutingError, SingleProvider,
};
use correx_models::{Catalogue, Locations};
use correx_protocol::{ErrorCode, ModelState, ModelView, ProtocolError};
use tokio::sync::watch;

use crate::view;

/// Something that can run inference, and what is known of its model as it changes. The seam
/// between the application and whatever answers prompts.
#[derive(Clone)]
pub struct Engine {
    /// Finds a provider; may wait until one is there.
    pub inference: Arc<dyn InferenceRouter>,
    /// The model's state, kept up to date.
    pub model: watch::Receiver<ModelView>,
    /// Begins to load the model, if nobody has tried to yet.
    pub wake: Arc<dyn Fn() + Send + Sync>,
}

impl Engine {
    /// An engine around a provider that is there already.
    pub fn ready(provider: Arc<dyn InferenceProvider>) -> Self {
        let view = view::model(&provider.describe());
        // Without its sender a watched value just stays as it is.
        let (_, model) = watch::channel(view);
        Self { inference: Arc::new(SingleProvider::new(provider)), model, wake: Arc::new(|| {}) }
    }

    /// The in-process model; loaded in the background, when `loading` says. It computes with
    /// `threads` threads; `None`: as many as there are processor cores.
    pub fn in_process(locations: Locations, threads: Option<usize>, loading: Loading) -> Self {
        let name = match &locations.named {
            Some(file) => file_name(file),
            None => Catalogue::embedded()
                .map(|catalogue| catalogue.default_model().name.clone())
                .unwrap_or_default(),
        };
        let router = Arc::new(LoadingRouter::new(
            name,
            Box::new(move |report| load(&locations, threads, report)),
        ));
        if loading == Loading::AtStart {
            router.wake();
        }
        let sleeping = router.clone();
        Self { model: router.watch(), inference: router, wake: Arc::new(move || sleeping.wake()) }
    }
}

/// When the model is loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Loading {
    /// In the background, from the start.
    #[default]
    AtStart,
    /// When something needs it.
    WhenNeeded,
}

type Loader =
    dyn Fn(&dyn Fn(f32)) -> Result<Arc<dyn InferenceProvider>, ProtocolError> + Send + Sync;

/// Routes everything to one provider, which it loads on a thread of its own.
pub struct LoadingRouter {
    slot: Arc<watch::Sender<Slot>>,
    view: Arc<watch::Sender<ModelView>>,
    loader: Arc<Loader>,
}

#[derive(Clone)]
enum Slot {
    Empty,
    Loading,
    Ready(Arc<dyn InferenceProvider>),
    Failed(ProtocolError),
}

impl LoadingRouter {
    /// A router that has loaded nothing yet. `name` is shown until the model says its own;
    /// `loader` blocks, and reports how far it is from 0 to 1.
    pub fn new(name: String, loader: Box<Loader>) -> Self {
        let view = ModelView {
            state: ModelState::Loading { fraction: 0.0 },
            name,
            location: String::new(),
            architecture: None,
            quantization: None,
            device: None,
            context_window: None,
            parameters: None,
            file_bytes: None,
            sha256: None,
            notice: None,
        };
        Self {
            slot: Arc::new(watch::Sender::new(Slot::Empty)),
            view: Arc::new(watch::Sender::new(view)),
            loader: loader.into(),
        }
    }

    /// The model's state from now on.
    pub fn watch(&self) -> watch::Receiver<ModelView> {
        self.view.subscribe()
    }

    /// Begins to load, if nothing has been tried yet.
    pub fn wake(&self) {
        self.begin_when(|slot| matches!(slot, Slot::Empty));
    }

    /// Begins to load, unless it is loading or there. After a failure it begins again: the file
    /// may have been put in place meanwhile.
    fn begin(&self) {
        self.begin_when(|slot| matches!(slot, Slot::Empty | Slot::Failed(_)));
    }

    fn begin_when(&self, wanted: impl Fn(&Slot) -> bool) {
        let begins = self.slot.send_if_modified(|slot| {
            let begins = wanted(slot);
            if begins {
                *slot = Slot::Loading;
            }
            begins
        });
        if !begins {
            return;
        }
        self.view.send_modify(|view| view.state = ModelState::Loading { fraction: 0.0 });
        let (slot, view, loader) = (self.slot.clone(), self.view.clone(), self.loader.clone());
        // A thread of its own: a runtime that ends waits for its blocking tasks, not for this.
        let spawned = thread::Builder::new().name("correx-model-load".into()).spawn(move || {
            let report = |fraction: f32| {
                view.send_modify(|view| view.state = ModelState::Loading { fraction });
            };
            let loaded = loader(&report);
            let provider = loaded.as_ref().ok().map(Arc::downgrade);
            finish(&slot, &view, loaded);
            if let Some(provider) = provider {
                await_checksum(&provider, &view);
            }
        });
        if let Err(error) = spawned {
            let message = format!("the model could not be loaded: {error}");
            let failed = Err(ProtocolError::new(ErrorCode::Model, message));
            finish(&self.slot, &self.view, failed);
        }
    }
}

fn finish(
    slot: &watch::Sender<Slot>,
    view: &watch::Sender<ModelView>,
    loaded: Result<Arc<dyn InferenceProvider>, ProtocolError>,
) {
    match loaded {
        Ok(provider) => {
            view.send_replace(view::model(&provider.describe()));
            slot.send_replace(Slot::Ready(provider));
        }
        Err(error) => {
            view.send_modify(|view| view.state = ModelState::Failed { error: error.clone() });
            slot.send_replace(Slot::Failed(error));
        }
    }
}

/// A provider computes its file's checksum beside its work; then the view is told. Gives up after
/// two minutes: the checksum is an information, nothing depends on it.
fn await_checksum(provider: &Weak<dyn InferenceProvider>, view: &watch::Sender<ModelView>) {
    for _ in 0..600 {
        let Some(description) = provider.upgrade().map(|provider| provider.describe()) else {
            return;
        };
        if description.sha256.is_some() {
            view.send_replace(view::model(&description));
            return;
        }
        thread::sleep(Duration::from_millis(200));
    }
}

#[async_trait]
impl InferenceRouter for LoadingRouter {
    async fn route(
        &self,
        stage: Option<&StageId>,
        required: &[ModelCapability],
    ) -> Result<Arc<dyn InferenceProvider>, RoutingError> {
        self.begin();
        let mut slot = self.slot.subscribe();
        let settled = slot
            .wait_for(|slot| matches!(slot, Slot::Ready(_) | Slot::Failed(_)))
            .await
            .map(|slot| slot.clone());
        match settled {
            Ok(Slot::Ready(provider)) => SingleProvider::new(provider).route(stage, required).await,
            Ok(Slot::Failed(error)) => Err(RoutingError::Load(in_one_line(&error))),
            Ok(Slot::Empty | Slot::Loading) | Err(_) => {
                Err(RoutingError::Load("the model is not running".into()))
            }
        }
    }
}

/// Where errors can only be a text: what happened, and what to do.
fn in_one_line(error: &ProtocolError) -> String {
    match &error.hint {
        Some(hint) => format!("{}. {hint}", error.message.trim_end_matches('.')),
        None => error.message.clone(),
    }
}

/// Finds the model's file and loads it. Blocks.
fn load(
    locations: &Locations,
    threads: Option<usize>,
    report: &dyn Fn(f32),
) -> Result<Arc<dyn InferenceProvider>, ProtocolError> {
    let failed = |message: String| ProtocolError::new(ErrorCode::Model, message);
    let catalogue = Catalogue::embedded().map_err(|error| failed(error.to_string()))?;
    let path = locations
        .find(catalogue.default_model())
        .map_err(|error| failed(error.to_string()).hint(error.hint()))?;
    // A known file goes by its name in the catalogue; files name themselves oddly.
    let size = path.metadata().map_or(0, |file| file.len());
    let known = catalogue.by_file(&file_name(&path), size);
    let name = known.map(|model| model.name.clone());
    let options = LoadOptions { threads, name, ..LoadOptions::default() };
    let provider = CandleProvider::load(&path, options, |progress| {
        report((progress.done as f64 / progress.total.max(1) as f64) as f32);
    })
    .map_err(|error| failed(error.to_string()))?;
    Ok(Arc::new(provider))
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn failing_once_loaded(count: Arc<AtomicUsize>) -> LoadingRouter {
        LoadingRouter::new(
            "Model".into(),
            Box::new(move |report| {
                report(0.5);
                count.fetch_add(1, Ordering::SeqCst);
                Err(ProtocolError::new(ErrorCode::Model, "it is not there").hint("Put it there."))
            }),
        )
    }

    #[tokio::test]
    async fn a_missing_model_fails_the_question_and_says_what_to_do() {
        let count = Arc::new(AtomicUsize::new(0));
        let router = failing_once_loaded(count.clone());
        let Err(error) = router.route(None, &[]).await else { panic!("there is no model") };
        assert_eq!(error.to_string(), "it is not there. Put it there.");
        let view = router.watch().borrow().clone();
        assert!(matches!(view.state, ModelState::Failed { .. }));
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn after_a_failure_the_next_question_tries_again() {
        let count = Arc::new(AtomicUsize::new(0));
        let router = failing_once_loaded(count.clone());
        assert!(router.route(None, &[]).await.is_err());
        assert!(router.route(None, &[]).await.is_err());
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn nothing_is_loaded_before_it_is_needed() {
        let count = Arc::new(AtomicUsize::new(0));
        let router = failing_once_loaded(count.clone());
        let view = router.watch().borrow().clone();
        assert_eq!(view.state, ModelState::Loading { fraction: 0.0 });
        assert_eq!(view.name, "Model");
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn looking_at_the_model_loads_it_once_and_shows_the_failure() {
        let count = Arc::new(AtomicUsize::new(0));
        let router = failing_once_loaded(count.clone());
        let mut view = router.watch();
        router.wake();
        let failed = |view: &ModelView| matches!(view.state, ModelState::Failed { .. });
        view.wait_for(failed).await.unwrap();
        router.wake();
        assert!(failed(&view.borrow()));
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}
