//! The manager with models that load at once, fail, or take their time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use correx_context::testing::WordEncoder;
use correx_context::{
    CompressionMetadata, ContextPack, ContextPackId, EncodedPrompt, PromptEncoder,
};
use correx_events::StageId;
use correx_inference::{
    FinishReason, GenerationConfig, InferenceCancellationToken, InferenceError, InferenceProvider,
    InferenceRequest, InferenceResponse, InferenceRouter, ModelCapability, ModelDescription,
    RouteRequest, RoutingError, StreamSink,
};
use correx_protocol::{ErrorCode, ModelChoice, ModelState, ProtocolError};

use super::*;

/// Counts the models that are in memory, and the most that ever were.
#[derive(Default)]
struct Memory {
    now: AtomicUsize,
    most: AtomicUsize,
    loads: Mutex<Vec<String>>,
}

impl Memory {
    fn enter(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
    }

    fn loads(&self) -> Vec<String> {
        self.loads.lock().unwrap().clone()
    }
}

struct Model {
    name: String,
    memory: Arc<Memory>,
}

impl Drop for Model {
    fn drop(&mut self) {
        self.memory.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl InferenceProvider for Model {
    fn describe(&self) -> ModelDescription {
        ModelDescription {
            name: self.name.clone(),
            sha256: Some("00".into()),
            location: String::new(),
            architecture: String::new(),
            quantization: String::new(),
            device: "test".into(),
            context_window: 100,
            parameters: 1,
            file_bytes: 1,
            notice: None,
        }
    }

    fn capabilities(&self) -> &[ModelCapability] {
        &[ModelCapability::Chat]
    }

    fn encoder(&self) -> Arc<dyn PromptEncoder> {
        Arc::new(WordEncoder::default())
    }

    fn context_window(&self) -> usize {
        100
    }

    /// Answers once it is cancelled.
    async fn infer(
        &self,
        request: InferenceRequest,
        cancel: InferenceCancellationToken,
        _sink: StreamSink,
    ) -> Result<InferenceResponse, InferenceError> {
        cancel.cancelled().await;
        Ok(InferenceResponse {
            text: format!("{} was stopped", self.name),
            thinking: None,
            finish_reason: FinishReason::Cancelled,
            prompt_ids: request.context_pack.prompt.ids,
            reused_tokens: 0,
            output_tokens: 1,
            prompt_ms: 0,
            reply_ms: 0,
            device: "test".into(),
        })
    }
}

/// Knows models by name: `a` and `b` load, `broken` is refused at its header, `late` fails only when
/// it is loaded, `slow` loads until it is stopped.
struct Shelf(Arc<Memory>);

fn error(message: &str) -> ProtocolError {
    ProtocolError::new(ErrorCode::Model, message).hint("Put it there.")
}

impl ModelSource for Shelf {
    fn name(&self, chosen: &Chosen) -> String {
        match chosen {
            Chosen::Default => "a".into(),
            Chosen::Id(id) => id.clone(),
            Chosen::File(file) => file.display().to_string(),
        }
    }

    fn list(&self, _used: &Chosen) -> Vec<ModelChoice> {
        Vec::new()
    }

    fn find(&self, typed: &str) -> Result<Chosen, ProtocolError> {
        Ok(Chosen::Id(typed.to_owned()))
    }

    fn check(&self, chosen: &Chosen, _given_back: u64) -> Result<Candidate, ProtocolError> {
        let name = self.name(chosen);
        match name.as_str() {
            "broken" => Err(error("it is broken")),
            _ => Ok(Candidate { chosen: chosen.clone(), name, path: PathBuf::new() }),
        }
    }

    fn load(
        &self,
        chosen: &Chosen,
        cancel: &InferenceCancellationToken,
        report: &dyn Fn(f32),
    ) -> Result<LoadedModel, ProtocolError> {
        let name = self.name(chosen);
        self.0.loads.lock().unwrap().push(name.clone());
        report(0.5);
        if name == "slow" {
            while !cancel.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
            return Err(error("loading was cancelled"));
        }
        if name == "late" || name == "missing" {
            return Err(error("it is not there"));
        }
        self.0.enter();
        let provider = Arc::new(Model { name, memory: self.0.clone() });
        Ok(LoadedModel { provider, memory: None })
    }
}

fn manager(name: &str) -> (ModelManager, Arc<Memory>) {
    let memory = Arc::<Memory>::default();
    let chosen = Chosen::Id(name.to_owned());
    (ModelManager::new(Box::new(Shelf(memory.clone())), chosen), memory)
}

async fn change(manager: &ModelManager, name: &str) -> Result<(), ProtocolError> {
    let (manager, chosen) = (manager.clone(), Chosen::Id(name.to_owned()));
    tokio::task::spawn_blocking(move || manager.change_to(chosen)).await.unwrap()
}

async fn unload(manager: &ModelManager) {
    let manager = manager.clone();
    tokio::task::spawn_blocking(move || manager.unload()).await.unwrap();
}

async fn name(manager: &ModelManager) -> String {
    manager.route(None, &[]).await.unwrap().describe().name
}

fn state(manager: &ModelManager) -> ModelState {
    manager.watch().borrow().state.clone()
}

fn request() -> InferenceRequest {
    let context_pack = ContextPack {
        id: ContextPackId("test".into()),
        session_id: None,
        stage_id: None,
        layers: BTreeMap::new(),
        dropped: Vec::new(),
        budget_used: 0,
        budget_limit: 0,
        compression_metadata: CompressionMetadata {
            applied_strategies: Vec::new(),
            truncated_layers: Vec::new(),
            entries_dropped: 0,
        },
        messages: Vec::new(),
        prompt: EncodedPrompt::default(),
    };
    InferenceRequest {
        context_pack,
        generation: GenerationConfig::default(),
        cache_key: String::new(),
    }
}

#[tokio::test]
async fn a_missing_model_fails_the_question_and_says_what_to_do() {
    let (manager, memory) = manager("missing");
    let Err(error) = manager.route(None, &[]).await else { panic!("there is no model") };
    assert_eq!(error.to_string(), "it is not there. Put it there.");
    assert!(matches!(state(&manager), ModelState::Failed { .. }));
    // After a failure the next question tries again.
    assert!(manager.route(None, &[]).await.is_err());
    assert_eq!(memory.loads().len(), 2);
}

#[tokio::test]
async fn nothing_is_loaded_before_it_is_needed() {
    let (manager, memory) = manager("a");
    assert_eq!(state(&manager), ModelState::Loading { fraction: 0.0 });
    assert_eq!(manager.watch().borrow().name, "a");
    // Another one is only noted.
    change(&manager, "b").await.unwrap();
    assert!(memory.loads().is_empty());
    assert_eq!(name(&manager).await, "b");
}

#[tokio::test]
async fn looking_at_the_model_loads_it_once_and_shows_the_failure() {
    let (manager, memory) = manager("missing");
    let mut view = manager.watch();
    manager.wake();
    view.wait_for(|view| matches!(view.state, ModelState::Failed { .. })).await.unwrap();
    manager.wake();
    assert!(matches!(state(&manager), ModelState::Failed { .. }));
    assert_eq!(memory.loads().len(), 1);
}

#[tokio::test]
async fn a_model_that_was_unloaded_is_loaded_by_the_next_use_and_not_by_looking() {
    let (manager, memory) = manager("a");
    assert_eq!(name(&manager).await, "a");
    unload(&manager).await;
    assert_eq!(state(&manager), ModelState::Unloaded);
    assert_eq!(memory.now.load(Ordering::SeqCst), 0);
    manager.wake();
    assert_eq!(state(&manager), ModelState::Unloaded);
    assert_eq!(name(&manager).await, "a");
    assert_eq!(memory.loads(), ["a", "a"]);
}

#[tokio::test]
async fn one_model_is_in_memory_at_a_time_also_when_others_still_have_the_old_one() {
    let (manager, memory) = manager("a");
    let old = manager.route(None, &[]).await.unwrap();
    for next in ["b", "a", "b"] {
        change(&manager, next).await.unwrap();
        assert_eq!(name(&manager).await, next);
    }
    assert_eq!(memory.most.load(Ordering::SeqCst), 1);
    assert!(old.is_withdrawn());
    assert_eq!(old.describe().name, "a");
    let said =
        old.infer(request(), InferenceCancellationToken::new(), StreamSink::none()).await.unwrap();
    assert_eq!((said.finish_reason, said.text.as_str()), (FinishReason::Cancelled, ""));
}

#[tokio::test]
async fn what_is_at_work_is_stopped_and_its_own_wish_to_stop_is_left_alone() {
    let (manager, memory) = manager("a");
    let provider = manager.route(None, &[]).await.unwrap();
    let cancel = InferenceCancellationToken::new();
    let answer = {
        let (provider, cancel) = (provider.clone(), cancel.clone());
        tokio::spawn(async move { provider.infer(request(), cancel, StreamSink::none()).await })
    };
    tokio::task::yield_now().await;
    assert!(!provider.is_withdrawn());
    change(&manager, "b").await.unwrap();
    let said = answer.await.unwrap().unwrap();
    assert!(said.finish_reason == FinishReason::Cancelled);
    assert!(provider.is_withdrawn() && !cancel.is_cancelled());
    assert_eq!(memory.most.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_leaves_the_present_one_in_use() {
    let (manager, memory) = manager("a");
    let provider = manager.route(None, &[]).await.unwrap();
    let refused = change(&manager, "broken").await.unwrap_err();
    assert_eq!(refused.message, "it is broken");
    assert!(!provider.is_withdrawn(), "it was refused before anything was freed");
    // This one shows only when it is loaded that it cannot be.
    let failed = change(&manager, "late").await.unwrap_err();
    assert_eq!(failed.kept.as_deref(), Some("a is in use again."));
    assert_eq!(name(&manager).await, "a");
    assert_eq!(memory.loads(), ["a", "late", "a"]);
    assert_eq!(memory.most.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn loading_is_stopped_by_unloading_and_whoever_waits_is_told() {
    let (manager, _memory) = manager("slow");
    let waiting = {
        let manager = manager.clone();
        tokio::spawn(async move { manager.route(None, &[]).await.map(|_| ()) })
    };
    let mut view = manager.watch();
    view.wait_for(|view| view.state == ModelState::Loading { fraction: 0.5 }).await.unwrap();
    unload(&manager).await;
    let error = waiting.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("was stopped"), "{error}");
    assert_eq!(state(&manager), ModelState::Unloaded);
}

#[tokio::test]
async fn choosing_another_model_stops_the_loading_and_whoever_waits_gets_the_other() {
    let (manager, _memory) = manager("slow");
    let waiting = {
        let manager = manager.clone();
        tokio::spawn(async move { name(&manager).await })
    };
    let mut view = manager.watch();
    view.wait_for(|view| view.state == ModelState::Loading { fraction: 0.5 }).await.unwrap();
    change(&manager, "b").await.unwrap();
    assert_eq!(waiting.await.unwrap(), "b");
}

#[tokio::test]
async fn stopping_a_change_goes_back_to_the_model_before() {
    let (manager, _memory) = manager("a");
    assert_eq!(name(&manager).await, "a");
    let changing = {
        let manager = manager.clone();
        tokio::spawn(async move { change(&manager, "slow").await })
    };
    let mut view = manager.watch();
    view.wait_for(|view| {
        view.name == "slow" && view.state == ModelState::Loading { fraction: 0.5 }
    })
    .await
    .unwrap();
    unload(&manager).await;
    let error = changing.await.unwrap().unwrap_err();
    assert!(error.kept.unwrap().starts_with("a stays in use"));
    assert_eq!(name(&manager).await, "a");
}

#[tokio::test]
async fn a_model_is_unloaded_after_idle_time_and_not_while_it_works() {
    let (manager, memory) = manager("a");
    let idle = |time: Duration| {
        let manager = manager.clone();
        async move { tokio::task::spawn_blocking(move || manager.unload_after(time)).await.unwrap() }
    };
    assert!(!idle(Duration::ZERO).await, "nothing is loaded");
    let provider = manager.route(None, &[]).await.unwrap();
    assert!(!idle(Duration::from_secs(3600)).await, "it was just used");
    let cancel = InferenceCancellationToken::new();
    let answer = {
        let (provider, cancel) = (provider.clone(), cancel.clone());
        tokio::spawn(async move { provider.infer(request(), cancel, StreamSink::none()).await })
    };
    tokio::task::yield_now().await;
    assert!(!idle(Duration::ZERO).await, "it works");
    cancel.cancel();
    answer.await.unwrap().unwrap();
    assert!(idle(Duration::ZERO).await);
    assert_eq!(memory.now.load(Ordering::SeqCst), 0);
    assert_eq!(state(&manager), ModelState::Unloaded);
}

#[tokio::test]
async fn a_program_that_ends_stops_loading_and_loads_no_more() {
    let (manager, memory) = manager("slow");
    manager.wake();
    let mut view = manager.watch();
    view.wait_for(|view| view.state == ModelState::Loading { fraction: 0.5 }).await.unwrap();
    manager.close();
    view.wait_for(|view| view.state == ModelState::Unloaded).await.unwrap();
    manager.begin_loading();
    assert_eq!(memory.loads().len(), 1);
}

async fn for_stage(
    manager: &ModelManager,
    model: Option<&str>,
) -> Result<Arc<dyn InferenceProvider>, RoutingError> {
    let stage = StageId::new("s");
    manager.route_to(RouteRequest { stage: Some(&stage), required: &[], model }).await
}

#[tokio::test]
async fn a_stage_gets_the_model_that_it_names_and_the_next_one_the_persons() {
    let (manager, memory) = manager("a");
    let named = |model| {
        let manager = manager.clone();
        async move { for_stage(&manager, model).await.unwrap().describe().name }
    };
    assert_eq!(named(Some("a")).await, "a");
    assert_eq!(named(Some("b")).await, "b");
    // The conversation goes on with what is there.
    assert_eq!(name(&manager).await, "b");
    assert_eq!((named(Some("c")).await, named(None).await), ("c".into(), "a".into()));
    assert_eq!(named(None).await, "a");
    assert_eq!(memory.loads(), ["a", "b", "c", "a"]);
    // What the person chooses meanwhile is what stages without a name get.
    assert_eq!(named(Some("b")).await, "b");
    change(&manager, "c").await.unwrap();
    assert_eq!(named(None).await, "c");
}

#[tokio::test]
async fn a_model_that_a_workflow_names_in_vain_is_told_before_the_run_and_changes_nothing() {
    let (manager, _) = manager("a");
    assert_eq!(name(&manager).await, "a");
    let refused = manager.check_model("broken").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the model `broken` cannot be used: it is broken. Put it there."
    );
    assert_eq!(for_stage(&manager, Some("broken")).await.err(), Some(refused));
    assert!(manager.check_model("b").await.is_ok());
    // One that only shows it while it is loaded.
    let late = for_stage(&manager, Some("late")).await.err();
    assert!(matches!(late, Some(RoutingError::Model { .. })), "{late:?}");
    assert_eq!((name(&manager).await, manager.chosen()), ("a".into(), Chosen::Id("a".into())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stages_model_is_not_taken_away_for_another_stage() {
    let (manager, memory) = manager("a");
    let first = for_stage(&manager, Some("a")).await.unwrap();
    let other = {
        let manager = manager.clone();
        tokio::spawn(async move { for_stage(&manager, Some("b")).await.unwrap() })
    };
    // The same model is had at once, also while somebody waits for another.
    let second = for_stage(&manager, None).await.unwrap();
    tokio::time::sleep(Duration::from_millis(30)).await;
    drop(first);
    assert!(!other.is_finished() && !second.is_withdrawn());
    drop(second);
    assert_eq!(other.await.unwrap().describe().name, "b");
    assert_eq!(memory.most.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_answer_that_is_on_its_way_ends_as_cancelled_when_a_stage_switches() {
    let (manager, _) = manager("a");
    let answering = manager.route(None, &[]).await.unwrap();
    let answer = {
        let answering = answering.clone();
        let cancel = InferenceCancellationToken::new();
        tokio::spawn(async move { answering.infer(request(), cancel, StreamSink::none()).await })
    };
    tokio::task::yield_now().await;
    assert_eq!(for_stage(&manager, Some("b")).await.unwrap().describe().name, "b");
    assert_eq!(answer.await.unwrap().unwrap().finish_reason, FinishReason::Cancelled);
    assert!(answering.is_withdrawn());
}
