//! The provider that other crates test with keeps the promises of a real one.

use std::sync::{Arc, Mutex};

use correx_context::{
    Candidate, ContextLayer, ContextPackId, PackRequest, Role, SourceType, TokenBudget, pack,
};
use correx_inference::testing::{Script, ScriptedProvider};
use correx_inference::{
    FinishReason, GenerationConfig, InferenceCancellationToken, InferenceError, InferenceProvider,
    InferenceRequest, StreamEvent, StreamSink,
};

fn request(provider: &ScriptedProvider, text: &str) -> InferenceRequest {
    let request = PackRequest {
        id: ContextPackId("pack".into()),
        session_id: None,
        stage_id: None,
        candidates: vec![Candidate {
            layer: ContextLayer::L0,
            source: SourceType::Message,
            role: Role::User,
            content: text.into(),
            separator: "",
            drop_group: None,
        }],
        already_dropped: Vec::new(),
        budget: TokenBudget::new(provider.context_window()),
        strategies: Vec::new(),
    };
    InferenceRequest {
        context_pack: pack(request, &*provider.encoder()).unwrap(),
        generation: GenerationConfig::default(),
        cache_key: "test".into(),
    }
}

fn listener() -> (StreamSink, Arc<Mutex<Vec<StreamEvent>>>) {
    let heard: Arc<Mutex<Vec<StreamEvent>>> = Arc::default();
    let sink = StreamSink::new({
        let heard = heard.clone();
        move |event| heard.lock().unwrap().push(event)
    });
    (sink, heard)
}

fn text_of(events: &[StreamEvent]) -> String {
    events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::Text { text, .. } => Some(text.as_str()),
            StreamEvent::Prompt { .. } | StreamEvent::Thinking { .. } => None,
        })
        .collect()
}

#[tokio::test]
async fn the_streamed_pieces_add_up_to_the_response() {
    let provider = ScriptedProvider::new(100, [Script::Say("all is well".into())]);
    let (sink, heard) = listener();
    let request = request(&provider, "how is it");
    let fed = request.context_pack.prompt.ids.clone();
    let token = InferenceCancellationToken::new();
    let response = provider.infer(request, token, sink).await.unwrap();
    assert_eq!(response.text, "all is well");
    assert_eq!(response.finish_reason, FinishReason::Stop);
    assert_eq!(response.prompt_ids, fed);
    assert_eq!(provider.fed(0), "how is it");
    let heard = heard.lock().unwrap();
    assert_eq!(text_of(&heard), response.text);
    assert_eq!(heard[0], StreamEvent::Prompt { done: fed.len(), total: fed.len() });
}

#[tokio::test]
async fn thinking_streams_before_the_answer_and_apart_from_it() {
    let script = [
        Script::Think { thinking: "two and two".into(), say: "four".into() },
        Script::ThinkTooLong("on and on".into()),
    ];
    let provider = ScriptedProvider::new(100, script);
    let infer = |sink| {
        let token = InferenceCancellationToken::new();
        provider.infer(request(&provider, "how many"), token, sink)
    };
    let (sink, heard) = listener();
    let response = infer(sink).await.unwrap();
    let thought: String = heard
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            StreamEvent::Thinking { text, .. } => Some(text.clone()),
            _ => None,
        })
        .collect();
    assert_eq!((response.text.as_str(), thought.as_str()), ("four", "two and two"));
    assert_eq!(text_of(&heard.lock().unwrap()), "four");
    assert_eq!((response.thinking_tokens(), response.output_tokens), (3, 4));
    assert!(!response.only_thought());
    let response = infer(StreamSink::none()).await.unwrap();
    assert!(response.only_thought());
    assert_eq!((response.text.as_str(), response.finish_reason), ("", FinishReason::Length));
}

#[tokio::test]
async fn a_cancelled_reply_is_no_error_and_keeps_what_was_said() {
    let provider = ScriptedProvider::new(100, [Script::SayAndWait("half a".into())]);
    let token = InferenceCancellationToken::new();
    let waiting = provider.infer(request(&provider, "go on"), token.child(), StreamSink::none());
    let stop = async { token.cancel() };
    let (response, ()) = tokio::join!(waiting, stop);
    let response = response.unwrap();
    assert_eq!(
        (response.text.as_str(), response.finish_reason),
        ("half a", FinishReason::Cancelled)
    );
}

#[tokio::test]
async fn a_failure_is_one_and_the_next_inference_works() {
    let provider = ScriptedProvider::new(100, [Script::Fail("out of memory".into())]);
    let infer = || {
        let token = InferenceCancellationToken::new();
        provider.infer(request(&provider, "hello"), token, StreamSink::none())
    };
    let error = infer().await.unwrap_err();
    assert_eq!(error, InferenceError::Engine("out of memory".into()));
    assert_eq!(infer().await.unwrap().text, "ok");
    assert_eq!(provider.requests().len(), 2);
}

#[test]
fn a_prompt_that_is_too_long_is_told_with_the_numbers() {
    let error = InferenceError::TooLong { prompt: 9_000, window: 8_192 };
    assert!(error.to_string().contains("9000") && error.to_string().contains("8192"), "{error}");
}
