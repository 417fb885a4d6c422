//! A text of three hundred pages, piece by piece within a budget of 4096 tokens.

#![allow(clippy::unwrap_used, clippy::panic)] // A test ends at the first surprise.

mod long {
    mod real_model {
        use std::fmt::Write as _;
        use std::sync::Arc;

        use async_trait::async_trait;
        use correx_candle::{CandleProvider, LoadOptions};
        use correx_context::PromptEncoder;
        use correx_events::{BlobStore, EventPayload, EventStore, RandomIds, StageId, SystemClock};
        use correx_inference::{
            FinishReason, InferenceCancellationToken, InferenceError, InferenceProvider,
            InferenceRequest, InferenceResponse, ModelCapability, ModelDescription, StreamSink,
            ThinkingMode,
        };
        use correx_infrastructure::{Client, ConnectOptions, Engine};
        use correx_protocol::{
            ClientMessage, InputValue, ServerMessage, WorkflowChoice, WorkflowStatus,
        };
        use correx_store::Store;
        use correx_tests::place;

        const WINDOW: usize = 4096;
        const WORDS: usize = 150_000;
        const REPLY: usize = 300;

        const WORKFLOW: &str = r#"
name = "Brief of a book"
[[input]]
name = "book"
type = "text"
[[stage]]
id = "parts"
kind = "map"
over = "inputs.book"
max_tokens = 300
prompt = "{{ heading }}\n\n{{ piece }}\n\nThis is part {{ number }} of {{ count }}. Sum it up."
[[stage]]
id = "brief"
kind = "reduce"
over = "artifacts.parts"
max_tokens = 300
prompt = "{{ pieces }}\n\nPut this together in one short text."
"#;

        /// Counts as the default model does, and answers with the beginning of what it was shown:
        /// a hundred thousand tokens are read in minutes by the model, and in seconds by this.
        struct Beginning {
            model: CandleProvider,
            encoder: Arc<dyn PromptEncoder>,
        }

        #[async_trait]
        impl InferenceProvider for Beginning {
            fn describe(&self) -> ModelDescription {
                self.model.describe()
            }

            fn capabilities(&self) -> &[ModelCapability] {
                self.model.capabilities()
            }

            fn encoder(&self) -> Arc<dyn PromptEncoder> {
                self.encoder.clone()
            }

            fn encoder_for(&self, thinking: ThinkingMode) -> Arc<dyn PromptEncoder> {
                self.model.encoder_for(thinking)
            }

            fn context_window(&self) -> usize {
                self.model.context_window()
            }

            async fn infer(
                &self,
                request: InferenceRequest,
                _: InferenceCancellationToken,
                _: StreamSink,
            ) -> Result<InferenceResponse, InferenceError> {
                let pack = request.context_pack;
                // The longest answer that the stage allows, from what is shown.
                let shown: String = pack.messages.iter().map(|message| message.content()).collect();
                let mut text = String::new();
                for word in shown.split_whitespace() {
                    let longer = format!("{text} {word}");
                    if self.encoder.count(&longer).unwrap() > request.generation.max_tokens {
                        break;
                    }
                    text = longer;
                }
                Ok(InferenceResponse {
                    output_tokens: self.encoder.count(&text).unwrap(),
                    text,
                    thinking: None,
                    finish_reason: FinishReason::Stop,
                    prompt_ids: pack.prompt.ids,
                    reused_tokens: 0,
                    prompt_ms: 1,
                    reply_ms: 1,
                    device: self.model.describe().device,
                })
            }
        }

        const WHO: &[&str] =
            &["The harbour master", "Olga", "Nobody", "A clerk from Łódź", "Mr. Ito"];
        const DID: &[&str] = &["counted", "wrote down", "forgot", "could not find", "weighed"];
        const WHAT: &[&str] = &[
            "the crates of the morning",
            "every letter that had come by the night train, although it rained",
            "3.5 tons of coal (at 12.40 each)",
            "what the others had left",
        ];
        const THEN: &[&str] = &["", ", e.g. twice", ", and went home", "; the bells rang"];

        /// Chapters with sections, paragraphs and lists. Every sentence is there once.
        fn book() -> (String, Vec<String>) {
            let (mut text, mut sentences, mut words) = (String::new(), Vec::new(), 0);
            while words < WORDS {
                let n = sentences.len();
                if n % 400 == 0 {
                    write!(text, "\n\n# Chapter {}\n\n", n / 400 + 1).unwrap();
                } else if n % 90 == 0 {
                    write!(text, "\n\n## Of day {n}\n\n").unwrap();
                } else if n % 7 == 0 {
                    text.push_str("\n\n");
                }
                let (who, did) = (WHO[n % WHO.len()], DID[(n / 3) % DID.len()]);
                let (what, then) = (WHAT[(n / 7) % WHAT.len()], THEN[(n / 11) % THEN.len()]);
                let end = [".", "!", "?", "."][n % 4];
                let sentence = format!("{who} {did} {what} under number {n}x{then}{end}");
                words += sentence.split_whitespace().count();
                text.push_str(&sentence);
                text.push(' ');
                sentences.push(sentence);
            }
            (text, sentences)
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn three_hundred_pages_go_through_a_window_of_4096_tokens() {
            let (text, sentences) = book();
            let options = LoadOptions { context_limit: Some(WINDOW), ..LoadOptions::default() };
            let model = CandleProvider::load(&place::model(), options, |_| {}).unwrap();
            assert_eq!(model.context_window(), WINDOW);
            let provider = Arc::new(Beginning { encoder: model.encoder(), model });
            let total = provider.encoder.count(&text).unwrap();
            let data = tempfile::tempdir().unwrap();
            let client = Client::connect(ConnectOptions {
                data_dir: Some(data.path().to_owned()),
                engine: Some(Engine::ready(provider.clone())),
                ..ConnectOptions::default()
            })
            .await
            .unwrap();
            let create = ClientMessage::CreateSession {
                title: None,
                workflow: Some(WorkflowChoice::Source { text: WORKFLOW.into() }),
                inputs: vec![InputValue::Text { name: "book".into(), text }],
            };
            let ServerMessage::Session(session) = client.request(create).await else {
                panic!("no session")
            };
            let session = session.summary.session_id;
            let start = ClientMessage::StartRun { session_id: session.clone() };
            assert_eq!(client.request(start).await, ServerMessage::Done);
            loop {
                let open = ClientMessage::OpenSession { session_id: session.clone() };
                let ServerMessage::Session(view) = client.request(open).await else {
                    panic!("the session is gone")
                };
                let run = view.run.unwrap();
                match run.status {
                    WorkflowStatus::Completed => break,
                    WorkflowStatus::Failed => panic!("{:?}", run.failure),
                    _ => tokio::time::sleep(std::time::Duration::from_millis(200)).await,
                }
            }
            client.shutdown().await;
            drop(client);

            let store =
                Store::open(data.path(), Arc::new(SystemClock), Arc::new(RandomIds)).unwrap();
            let (mut pieces, mut greatest, mut least) = (Vec::new(), 0, u64::MAX);
            let (mut reductions, mut rounds) = (0, 0);
            for event in EventStore::read(&store, &session, 1).await.unwrap() {
                let EventPayload::ContextAssembled(context) = event.payload else { continue };
                // The prompt is counted with the template's own tokens: all of its rows add up.
                let rows: u64 = context.entries.iter().map(|entry| entry.tokens).sum();
                assert_eq!(rows + context.template_tokens, context.prompt_tokens, "{context:?}");
                assert!(context.prompt_tokens <= context.budget_limit, "{context:?}");
                assert!(context.prompt_tokens as usize + REPLY <= WINDOW, "{context:?}");
                let fed = BlobStore::get(&store, &context.prompt_ids).await.unwrap().unwrap();
                assert_eq!(fed.len() as u64 / 4, context.prompt_tokens);
                greatest = greatest.max(context.prompt_tokens);
                if context.stage_id != StageId::from("parts") {
                    reductions += 1;
                    rounds = rounds.max(context.piece.unwrap().round + 1);
                    continue;
                }
                least = least.min(context.prompt_tokens);
                let mut shown = context.entries.iter().filter(|entry| entry.source == "piece");
                let shown = shown.next().unwrap();
                let shown = BlobStore::get(&store, &shown.text).await.unwrap().unwrap();
                pieces.push(String::from_utf8(shown).unwrap());
            }
            println!(
                "{} words, {total} tokens, {} sentences: {} pieces of {least} tokens and more, \
                 {reductions} reductions in {rounds} rounds, the longest prompt {greatest} tokens",
                sentences.iter().map(|one| one.split_whitespace().count()).sum::<usize>(),
                sentences.len(),
                pieces.len(),
            );
            assert!(total / WINDOW <= pieces.len() && pieces.len() <= 2 * total / (WINDOW - REPLY));
            assert!(rounds >= 2, "the results fit one prompt");

            // In the order of the text, each whole in one piece and in no other.
            let mut from = 0;
            for sentence in &sentences {
                let holds: Vec<usize> = (from..pieces.len().min(from + 2))
                    .filter(|piece| pieces[*piece].contains(sentence))
                    .collect();
                assert_eq!(holds.len(), 1, "{sentence}");
                from = holds[0];
            }
            let all: usize =
                pieces.iter().map(|piece| piece.matches(" under number ").count()).sum();
            assert_eq!((all, from + 1), (sentences.len(), pieces.len()));
        }
    }
}
