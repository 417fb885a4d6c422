//! One provider serves every stage, if it can do what is needed.

use std::sync::Arc;

use correx_events::StageId;
use correx_inference::testing::ScriptedProvider;
use correx_inference::{
    InferenceProvider, InferenceRouter, ModelCapability, RouteRequest, RoutingError, SingleProvider,
};

fn single() -> (Arc<dyn InferenceProvider>, SingleProvider) {
    let provider: Arc<dyn InferenceProvider> = Arc::new(ScriptedProvider::new(100, []));
    (provider.clone(), SingleProvider::new(provider))
}

#[tokio::test]
async fn every_stage_and_the_conversation_get_the_one_provider() {
    let (provider, router) = single();
    for stage in [None, Some(StageId::new("a")), Some(StageId::new("b"))] {
        let routed = router.route(stage.as_ref(), &[ModelCapability::Chat]).await.unwrap();
        assert!(Arc::ptr_eq(&routed, &provider));
    }
}

#[tokio::test]
async fn nothing_required_and_everything_it_can_do_are_both_served() {
    let (provider, router) = single();
    for required in [&[][..], provider.capabilities()] {
        assert!(router.route(None, required).await.is_ok());
    }
}

#[tokio::test]
async fn one_thing_that_it_cannot_do_is_enough_to_be_refused() {
    let (_, router) = single();
    for required in [
        vec![ModelCapability::CutBack],
        vec![ModelCapability::Chat, ModelCapability::CutBack],
        vec![ModelCapability::Batch, ModelCapability::Chat],
    ] {
        let error = router.route(None, &required).await.err().unwrap();
        assert_eq!(error, RoutingError::NoProvider(required.clone()));
        assert!(error.to_string().contains("no model"), "{error}");
    }
}

#[tokio::test]
async fn where_there_is_one_model_only_that_one_can_be_named() {
    let (provider, router) = single();
    let stage = StageId::new("a");
    let ask = |model| RouteRequest { stage: Some(&stage), required: &[], model };
    for model in [None, Some("scripted")] {
        assert!(Arc::ptr_eq(&router.route_to(ask(model)).await.unwrap(), &provider));
    }
    assert_eq!(router.check_model("scripted").await, Ok(()));
    let refused = router.check_model("other").await.unwrap_err();
    assert!(refused.to_string().contains("`other`"), "{refused}");
    assert!(refused.to_string().contains("Leave `model` out"), "{refused}");
    assert_eq!(router.route_to(ask(Some("other"))).await.err(), Some(refused));
}

#[test]
fn a_model_that_could_not_be_loaded_says_so_in_its_own_words() {
    let error = RoutingError::Load("model.gguf is empty; choose another file".into());
    assert_eq!(error.to_string(), "model.gguf is empty; choose another file");
}
