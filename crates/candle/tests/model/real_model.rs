//! The real default model, end to end through the provider.
//!
//! Few tests with many claims each: every test is a process that loads the model.

// What the tests share is outside test functions, where clippy does not know it for a test.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use correx_candle::{
    BenchError, BenchPlan, CandleProvider, LoadError, LoadOptions, RawError, RawModel, bench,
    compute_threads,
};
use correx_context::{
    ChatMessage, CompressionMetadata, ContextPack, ContextPackId, EncodedPrompt, Role,
};
use correx_inference::{
    FinishReason, GenerationConfig, InferenceCancellationToken, InferenceError, InferenceProvider,
    InferenceRequest, InferenceResponse, StreamEvent, StreamSink,
};

/// A small window, so that filling it is quick.
const WINDOW: usize = 150;
const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

pub(crate) fn model() -> PathBuf {
    let path = std::env::var_os("CORREX_MODEL").map(PathBuf::from).unwrap_or_else(|| {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../models/SmolLM2-135M-Instruct.Q4_1.gguf")
    });
    assert!(path.exists(), "{} is missing: run `cargo xtask setup`", path.display());
    path
}

fn load(options: LoadOptions) -> CandleProvider {
    CandleProvider::load(&model(), options, |_| {}).unwrap()
}

pub(crate) fn prompt_of(provider: &CandleProvider, question: &str) -> EncodedPrompt {
    let messages = [
        ChatMessage::new(Role::System, 0, "You are a helpful assistant."),
        ChatMessage::new(Role::User, 1, question),
    ];
    provider.encoder().encode(&messages, 2).unwrap()
}

pub(crate) fn request(
    prompt: EncodedPrompt,
    key: &str,
    generation: GenerationConfig,
) -> InferenceRequest {
    let used = prompt.total();
    let context_pack = ContextPack {
        id: ContextPackId("test".into()),
        session_id: None,
        stage_id: None,
        layers: BTreeMap::new(),
        dropped: Vec::new(),
        budget_used: used,
        budget_limit: 4096,
        compression_metadata: CompressionMetadata {
            applied_strategies: Vec::new(),
            truncated_layers: Vec::new(),
            entries_dropped: 0,
        },
        messages: Vec::new(),
        prompt,
    };
    InferenceRequest { context_pack, generation, cache_key: key.to_owned() }
}

/// What a sink heard.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<StreamEvent>>>);

impl Heard {
    fn sink(&self) -> StreamSink {
        let heard = self.0.clone();
        StreamSink::new(move |event| heard.lock().unwrap().push(event))
    }

    fn text(&self) -> String {
        self.0
            .lock()
            .unwrap()
            .iter()
            .filter_map(|event| match event {
                StreamEvent::Text { text, .. } => Some(text.as_str()),
                StreamEvent::Prompt { .. } | StreamEvent::Thinking { .. } => None,
            })
            .collect()
    }

    fn pieces(&self) -> usize {
        let events = self.0.lock().unwrap();
        events.iter().filter(|event| matches!(event, StreamEvent::Text { .. })).count()
    }

    fn progress(&self) -> Vec<usize> {
        let done = |event: &StreamEvent| match event {
            StreamEvent::Prompt { done, .. } => Some(*done),
            StreamEvent::Text { .. } | StreamEvent::Thinking { .. } => None,
        };
        self.0.lock().unwrap().iter().filter_map(done).collect()
    }
}

async fn infer(provider: &CandleProvider, request: InferenceRequest) -> InferenceResponse {
    let cancel = InferenceCancellationToken::new();
    provider.infer(request, cancel, StreamSink::none()).await.unwrap()
}

fn long_question() -> String {
    "Please summarize: the committee met on Tuesday and talked about the budget. ".repeat(12)
}

#[tokio::test]
async fn a_chat_is_answered_from_exactly_the_ids_that_were_counted() {
    let seen = Mutex::new(Vec::new());
    let provider = CandleProvider::load(&model(), LoadOptions::default(), |progress| {
        seen.lock().unwrap().push(progress);
    })
    .unwrap();
    let seen = seen.into_inner().unwrap();
    assert!(seen.is_sorted_by_key(|progress| progress.done) && seen.len() > 100);
    assert!(seen.last().is_some_and(|last| last.done == last.total));

    let about = provider.describe();
    assert!(about.name.contains("Smollm2"), "{about:?}");
    assert_eq!((&about.architecture[..], &about.quantization[..]), ("llama", "Q4_1"));
    assert_eq!((about.context_window, about.file_bytes), (8192, 98_362_432));
    assert_eq!((about.parameters, about.notice.as_deref()), (134_515_008, None));
    assert!(about.device.contains(&compute_threads().to_string()), "{about:?}");

    let prompt = prompt_of(&provider, "What is the capital of France?");
    let heard = Heard::default();
    let asked = request(prompt.clone(), "chat", GenerationConfig::greedy(60));
    let answer =
        provider.infer(asked, InferenceCancellationToken::new(), heard.sink()).await.unwrap();
    assert!(answer.text.contains("Paris"), "{answer:?}");
    assert_eq!(answer.finish_reason, FinishReason::Stop);
    assert_eq!(answer.prompt_ids, prompt.ids);
    assert_eq!(answer.prompt_ids.len(), prompt.total());
    assert_eq!((answer.reused_tokens, answer.device), (0, about.device));
    assert_eq!(heard.text(), answer.text);
    assert!(!answer.text.contains("<|"), "{}", answer.text);
    assert!(answer.output_tokens >= heard.pieces() && heard.pieces() > 3);
    let progress = heard.progress();
    assert_eq!((progress.first(), progress.last()), (Some(&0), Some(&prompt.total())));

    // Again, once from the kept cache and once from nothing: the same words.
    let again =
        infer(&provider, request(prompt.clone(), "chat", GenerationConfig::greedy(60))).await;
    assert_eq!((again.text.as_str(), again.reused_tokens), (&answer.text[..], prompt.total() - 1));
    let fresh =
        infer(&provider, request(prompt.clone(), "other", GenerationConfig::greedy(60))).await;
    assert_eq!((fresh.text.as_str(), fresh.reused_tokens), (&answer.text[..], 0));

    seeds_decide_and_limits_hold(&provider, &prompt).await;
    thinking_tags_stay_text(&provider, prompt).await;

    let deadline = Instant::now() + Duration::from_secs(30);
    while provider.describe().sha256.is_none() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    if std::env::var_os("CORREX_MODEL").is_none() {
        assert_eq!(provider.describe().sha256.as_deref(), Some(SHA256));
    }
}

/// This model knows no thinking: what looks like it is what somebody asked for.
async fn thinking_tags_stay_text(provider: &CandleProvider, mut prompt: EncodedPrompt) {
    let line = "<think>one two</think> three\n";
    let said = provider.chat_encoder().vocabulary().encode(&line.repeat(4)).unwrap();
    prompt.ids.extend(said);
    let heard = Heard::default();
    let asked = request(prompt, "tags", GenerationConfig::greedy(12));
    let answer =
        provider.infer(asked, InferenceCancellationToken::new(), heard.sink()).await.unwrap();
    assert!(answer.text.starts_with("<think>one two</think>"), "{}", answer.text);
    assert_eq!((heard.text(), answer.thinking), (answer.text, None));
}

async fn seeds_decide_and_limits_hold(provider: &CandleProvider, prompt: &EncodedPrompt) {
    let sampled = |seed| GenerationConfig {
        seed,
        temperature: 1.5,
        max_tokens: 12,
        ..GenerationConfig::default()
    };
    let first = infer(provider, request(prompt.clone(), "seed", sampled(7))).await;
    let same = infer(provider, request(prompt.clone(), "seed", sampled(7))).await;
    let other = infer(provider, request(prompt.clone(), "seed", sampled(8))).await;
    assert_eq!(first.text, same.text);
    assert_ne!(first.text, other.text);

    let short =
        infer(provider, request(prompt.clone(), "short", GenerationConfig::greedy(2))).await;
    assert_eq!((short.output_tokens, short.finish_reason), (2, FinishReason::Length));
    let none = infer(provider, request(prompt.clone(), "none", GenerationConfig::greedy(0))).await;
    assert_eq!((none.text.as_str(), none.finish_reason), ("", FinishReason::Length));

    let empty = EncodedPrompt::default();
    let foreign = EncodedPrompt { ids: vec![1, 4_000_000], ..EncodedPrompt::default() };
    for wrong in [empty, foreign] {
        let request = request(wrong, "wrong", GenerationConfig::greedy(2));
        let failed = provider
            .infer(request, InferenceCancellationToken::new(), StreamSink::none())
            .await
            .unwrap_err();
        assert!(matches!(failed, InferenceError::Engine(_)), "{failed:?}");
    }
    // A failed request leaves the engine as it was.
    let after =
        infer(provider, request(prompt.clone(), "after", GenerationConfig::greedy(2))).await;
    assert_eq!(after.text, short.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_takes_effect_at_once_and_keeps_what_there_is() {
    let provider =
        Arc::new(load(LoadOptions { context_limit: Some(WINDOW), ..Default::default() }));
    assert_eq!(provider.context_window(), WINDOW);

    // Too long is said before anything is evaluated.
    let mut ids = prompt_of(&provider, &long_question()).ids;
    ids.resize(WINDOW, 1);
    let heard = Heard::default();
    let full = EncodedPrompt { ids: ids.clone(), ..EncodedPrompt::default() };
    let too_long = provider
        .infer(
            request(full, "full", GenerationConfig::greedy(5)),
            InferenceCancellationToken::new(),
            heard.sink(),
        )
        .await
        .unwrap_err();
    assert_eq!(too_long, InferenceError::TooLong { prompt: WINDOW, window: WINDOW });
    assert!(heard.0.lock().unwrap().is_empty());

    in_a_prompt(&provider).await;
    in_a_reply(&provider).await;
    by_dropping_the_request(&provider).await;
}

async fn in_a_prompt(provider: &Arc<CandleProvider>) {
    let mut prompt = prompt_of(provider, &long_question());
    prompt.ids.truncate(WINDOW - 2);
    assert_eq!(prompt.ids.len(), WINDOW - 2);
    let cancel = InferenceCancellationToken::new();
    let stopped_at = Arc::new(Mutex::new(None));
    let sink = {
        let (cancel, stopped_at) = (cancel.clone(), stopped_at.clone());
        StreamSink::new(move |event| {
            if let StreamEvent::Prompt { done, .. } = event
                && done > 0
                && !cancel.is_cancelled()
            {
                let (cancel, stopped_at) = (cancel.clone(), stopped_at.clone());
                // In the middle of a chunk, not between two.
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(60));
                    *stopped_at.lock().unwrap() = Some(Instant::now());
                    cancel.cancel();
                });
            }
        })
    };
    let asked = request(prompt.clone(), "stop-prompt", GenerationConfig::greedy(50));
    let answer = provider.infer(asked, cancel, sink).await.unwrap();
    let late = stopped_at.lock().unwrap().unwrap().elapsed();
    assert_eq!((answer.finish_reason, &answer.text[..]), (FinishReason::Cancelled, ""));
    assert!(late < Duration::from_secs(2), "it took {late:?}");
    // What had been evaluated is not lost; and the reply ends where the window does.
    let again = infer(provider, request(prompt, "stop-prompt", GenerationConfig::greedy(9))).await;
    assert!(again.reused_tokens > 0 && again.output_tokens <= 2, "{again:?}");
    assert_ne!(again.finish_reason, FinishReason::Cancelled);
}

async fn in_a_reply(provider: &Arc<CandleProvider>) {
    let prompt = prompt_of(provider, "Tell me a long story about a dragon.");
    let cancel = InferenceCancellationToken::new();
    let heard = Heard::default();
    let sink = {
        let (cancel, heard) = (cancel.clone(), heard.clone());
        let inner = heard.sink();
        StreamSink::new(move |event| {
            inner.send(event);
            if heard.pieces() == 5 {
                cancel.cancel();
            }
        })
    };
    let asked = request(prompt.clone(), "stop-reply", GenerationConfig::greedy(90));
    let answer = provider.infer(asked, cancel, sink).await.unwrap();
    assert_eq!(answer.finish_reason, FinishReason::Cancelled);
    assert_eq!(answer.text, heard.text());
    assert!((5..=6).contains(&answer.output_tokens) && !answer.text.is_empty(), "{answer:?}");
    // The engine is free, and goes on where it was stopped.
    let again = infer(provider, request(prompt, "stop-reply", GenerationConfig::greedy(8))).await;
    assert!(again.text.starts_with(&answer.text), "{} / {}", again.text, answer.text);
}

async fn by_dropping_the_request(provider: &Arc<CandleProvider>) {
    let prompt = prompt_of(provider, "Tell me a long story about a dragon.");
    let heard = Heard::default();
    let asked = request(prompt.clone(), "dropped", GenerationConfig::greedy(100));
    let running = provider.infer(asked, InferenceCancellationToken::new(), heard.sink());
    assert!(tokio::time::timeout(Duration::from_millis(400), running).await.is_err());
    infer(provider, request(prompt, "behind", GenerationConfig::greedy(1))).await;
    let pieces = heard.pieces();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(heard.pieces(), pieces, "nobody waits, and it goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequences_that_run_together_say_what_each_says_alone() {
    let provider = Arc::new(load(LoadOptions::default()));
    let questions = ["Name three colours.", "What is 2 + 2?", "Write one sentence about the sea."];
    let mut alone = Vec::new();
    for question in questions {
        let prompt = prompt_of(&provider, question);
        let answer = infer(
            &provider,
            request(prompt, &format!("a{question}"), GenerationConfig::greedy(12)),
        )
        .await;
        alone.push(answer.text);
    }
    // The first is replying while the others come with their prompts.
    let heard = Heard::default();
    let mut running = Vec::new();
    for (place, question) in questions.into_iter().enumerate() {
        let provider = provider.clone();
        let sink = if place == 0 { heard.sink() } else { StreamSink::none() };
        let prompt = prompt_of(&provider, question);
        let asked = request(prompt, &format!("b{question}"), GenerationConfig::greedy(12));
        running.push(tokio::spawn(async move {
            provider.infer(asked, InferenceCancellationToken::new(), sink).await.unwrap()
        }));
        while place == 0 && heard.pieces() < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    for (running, alone) in running.into_iter().zip(&alone) {
        assert_eq!(&running.await.unwrap().text, alone);
    }

    // A conversation that grows: what was evaluated before is not evaluated again, and the words
    // are those of a model that never saw the first turn.
    let mut talk = vec![ChatMessage::new(Role::User, 0, questions[0])];
    let encode = |talk: &[ChatMessage]| provider.encoder().encode(talk, 1).unwrap();
    let first =
        infer(&provider, request(encode(&talk), "talk", GenerationConfig::greedy(12))).await;
    talk.push(ChatMessage::new(Role::Assistant, 0, first.text));
    talk.push(ChatMessage::new(Role::User, 0, "And three more?"));
    let prompt = encode(&talk);
    let reusing =
        infer(&provider, request(prompt.clone(), "talk", GenerationConfig::greedy(12))).await;
    let fresh = infer(&provider, request(prompt, "new", GenerationConfig::greedy(12))).await;
    assert!(reusing.reused_tokens >= first.prompt_ids.len(), "{reusing:?}");
    assert_eq!((fresh.reused_tokens, fresh.text), (0, reusing.text));
}

#[test]
fn the_raw_model_agrees_with_itself_and_can_be_measured() {
    let path = model();
    let raw = RawModel::load(&path, |_| {}).unwrap();
    let ids = raw.vocabulary().encode("The capital of France is").unwrap();
    let mut heard = Vec::new();
    let greedy = GenerationConfig::greedy(12);
    let reply = raw.generate_ids(&ids, &greedy, |id| heard.push(id)).unwrap();
    assert_eq!(reply, heard);
    let text: Vec<u8> =
        reply.iter().flat_map(|id| raw.vocabulary().reply_bytes(*id).to_vec()).collect();
    assert!(String::from_utf8_lossy(&text).contains("Paris"), "{}", String::from_utf8_lossy(&text));
    assert_eq!(raw.generate_ids(&ids, &greedy, |_| {}).unwrap(), reply);
    assert_eq!(raw.generate_ids(&[], &greedy, |_| {}), Err(RawError::Empty));
    drop(raw);

    let plan = BenchPlan { prompt: 24, reply: 4, threads: None, pre_tokenizer: None };
    let report = bench(&path, plan).unwrap();
    assert!(report.prompt_tps > 0.0 && report.reply_tps > 0.0 && report.load_s > 0.0);
    assert_eq!((report.prompt_tokens, report.reply_tokens), (24, 4));
    let three = bench(&path, BenchPlan { threads: Some(3), reply: 1, prompt: 1, ..plan }).unwrap();
    assert_eq!((report.threads, three.threads), (compute_threads(), 3));
    let none = bench(&path, BenchPlan { threads: Some(0), ..plan }).unwrap_err();
    assert!(none.to_string().contains("0 threads"), "{none}");
    let huge = bench(&path, BenchPlan { prompt: 9000, ..plan }).unwrap_err();
    assert!(matches!(huge, BenchError::Plan { window: 8192, .. }), "{huge}");
}

#[test]
fn a_file_that_is_no_usable_model_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let real = std::fs::read(model()).unwrap();
    let refused = |name: &str, bytes: &[u8]| -> String {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        refusal(&path)
    };
    assert!(refused("empty.gguf", b"").contains("empty"));
    assert!(refused("page.gguf", b"<!doctype html><title>404").contains("web page"));
    for length in [3, 7, 23, 100, 5000, 1_000_000, 3_000_000, real.len() / 2, real.len() - 1] {
        let message = refused("cut ünïcode.gguf", &real[..length]);
        assert!(message.contains("incomplete") && message.contains("ünïcode"), "{message}");
    }
    assert!(refusal(&folder.path().join("missing.gguf")).contains("no such file"));

    let patched = |from: &[u8], to: &[u8]| -> Vec<u8> {
        assert_eq!(from.len(), to.len());
        let mut bytes = real.clone();
        let place = bytes.windows(from.len()).position(|window| window == from).unwrap();
        bytes[place..place + to.len()].copy_from_slice(to);
        bytes
    };
    let family =
        refused("family.gguf", &patched(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0xlstm"));
    assert!(family.contains("`xlstm`") && family.contains("llama"), "{family}");
    let rule =
        refused("rule.gguf", &patched(b"\x06\0\0\0\0\0\0\0smollm", b"\x06\0\0\0\0\0\0\0nobody"));
    assert!(rule.contains("`nobody`"), "{rule}");
    let heads =
        refused("heads.gguf", &patched(b"head_count\x04\0\0\0\x09", b"head_count\x04\0\0\0\0"));
    assert!(heads.contains("head_count"), "{heads}");
    let tensor = refused("tensor.gguf", &patched(b"blk.7.attn_q.weight", b"blk.7.attn_z.weight"));
    assert!(tensor.contains("the weights `blk.7.attn_z.weight`"), "{tensor}");

    let cancel = InferenceCancellationToken::new();
    cancel.cancel();
    let stopped =
        CandleProvider::load(&model(), LoadOptions { cancel, ..Default::default() }, |_| {});
    assert!(matches!(stopped.err(), Some(LoadError::Cancelled)));
}

fn refusal(path: &Path) -> String {
    match CandleProvider::load(path, LoadOptions::default(), |_| {}) {
        Ok(_) => panic!("{} was loaded", path.display()),
        Err(error) => error.to_string(),
    }
}
