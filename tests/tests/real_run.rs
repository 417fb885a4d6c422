//! A whole run with the real model: what is asked, steered, fed and written.

#![allow(clippy::unwrap_used, clippy::panic)] // A test ends at the first surprise.

mod real_model {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::Arc;

    use correx_candle::Vocabulary;
    use correx_events::{
        BlobStore, ContextAssembled, EventPayload, EventStore, InferenceCompleted, RandomIds,
        SessionId, StoredEvent, SystemClock,
    };
    use correx_infrastructure::{Client, ConnectOptions};
    use correx_protocol::{
        ChatMode, ClientMessage, InputValue, ServerMessage, SteerScope, SteerTarget, TurnStatus,
        WorkflowChoice, WorkflowStatus,
    };
    use correx_store::Store;
    use correx_tests::place;

    const NOTE: &str = "Write the whole answer in capital letters.";

    const WORKFLOW: &str = r#"
name = "Visit"

[generation]
temperature = 0.0
seed = 11

[[input]]
name = "text"
type = "text"

[[stage]]
id = "facts"
kind = "generate"
max_tokens = 60
prompt = "{{ inputs.text }}\n\nName two facts from this text in one short sentence."

[[stage]]
id = "title"
kind = "generate"
max_tokens = 40
prompt = "{{ inputs.text }}\n\nWrite one short title for this text."

[[stage]]
id = "message"
kind = "generate"
max_tokens = 120
prompt = "{{ artifacts.facts }}\n\nWrite a short message to a friend about this."
"#;

    const TEXT: &str = "On Friday the museum in Turku opens a new hall for ships. Ada Salonen \
        collected forty models in ten years; the oldest was built in 1884. Tickets cost 9 euros.";

    async fn client(data: &Path) -> Client {
        let options = ConnectOptions {
            data_dir: Some(data.to_owned()),
            model: Some(place::model()),
            ..ConnectOptions::default()
        };
        Client::connect(options).await.unwrap()
    }

    async fn create(client: &Client) -> SessionId {
        let made = client
            .request(ClientMessage::CreateSession {
                title: None,
                workflow: Some(WorkflowChoice::Source { text: WORKFLOW.into() }),
                inputs: vec![InputValue::Text { name: "text".into(), text: TEXT.into() }],
            })
            .await;
        match made {
            ServerMessage::Session(session) => session.summary.session_id,
            other => panic!("{other:?}"),
        }
    }

    async fn run(client: &Client, session_id: &SessionId) {
        let mut pushes = client.subscribe();
        let started =
            client.request(ClientMessage::StartRun { session_id: session_id.clone() }).await;
        assert_eq!(started, ServerMessage::Done);
        loop {
            let opened = ClientMessage::OpenSession { session_id: session_id.clone() };
            let ServerMessage::Session(session) = client.request(opened).await else {
                panic!("the session is gone")
            };
            let run = session.run.unwrap();
            match run.status {
                WorkflowStatus::Completed => return,
                WorkflowStatus::Failed => panic!("{:?}", run.failure),
                _ => {}
            }
            let next = pushes.recv();
            let _ = tokio::time::timeout(std::time::Duration::from_secs(2), next).await;
        }
    }

    /// What a finished session left in the store.
    struct Left {
        events: Vec<StoredEvent>,
        store: Store,
    }

    impl Left {
        async fn of(data: &Path, session: &SessionId) -> Self {
            let store = Store::open(data, Arc::new(SystemClock), Arc::new(RandomIds)).unwrap();
            let events = EventStore::read(&store, session, 1).await.unwrap();
            Self { events, store }
        }

        async fn blob(&self, hash: &correx_events::BlobHash) -> Vec<u8> {
            BlobStore::get(&self.store, hash).await.unwrap().unwrap()
        }

        async fn outputs(&self) -> BTreeMap<String, String> {
            let mut outputs = BTreeMap::new();
            for event in &self.events {
                if let EventPayload::ArtifactProduced(artifact) = &event.payload {
                    let text = String::from_utf8(self.blob(&artifact.hash).await).unwrap();
                    outputs.insert(artifact.stage_id.to_string(), text);
                }
            }
            outputs
        }

        fn assembled(&self, stage: &str) -> Vec<&ContextAssembled> {
            self.events
                .iter()
                .filter_map(|event| match &event.payload {
                    EventPayload::ContextAssembled(context) => Some(context),
                    _ => None,
                })
                .filter(|context| context.stage_id.as_str() == stage)
                .collect()
        }

        fn inferences(&self) -> Vec<&InferenceCompleted> {
            self.events
                .iter()
                .filter_map(|event| match &event.payload {
                    EventPayload::InferenceCompleted(completed) => Some(completed),
                    _ => None,
                })
                .collect()
        }

        async fn fed(&self, context: &ContextAssembled) -> Vec<u32> {
            self.blob(&context.prompt_ids)
                .await
                .chunks_exact(4)
                .map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
                .collect()
        }
    }

    fn words(vocabulary: &Vocabulary, ids: &[u32]) -> String {
        let bytes: Vec<u8> =
            ids.iter().flat_map(|id| vocabulary.reply_bytes(*id)).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_note_is_in_the_ids_fed_to_the_later_stage_and_changes_what_it_writes() {
        let data = tempfile::tempdir().unwrap();
        let client = client(data.path()).await;

        let plain = create(&client).await;
        run(&client, &plain).await;

        // The same run with a note for its last stage, and a question about it.
        let steered = create(&client).await;
        let said = client
            .request(ClientMessage::ChatInput {
                session_id: steered.clone(),
                text: NOTE.into(),
                mode: ChatMode::Steering,
                target: SteerTarget { stage_id: Some("message".into()), scope: SteerScope::Onward },
                client_message_id: None,
            })
            .await;
        let ServerMessage::RouterResponse { content, steering_emitted, note_id, .. } = said else {
            panic!("{said:?}")
        };
        assert!(steering_emitted && !content.trim().is_empty());
        run(&client, &steered).await;

        // What a message would cost is what it costs.
        let question = "What is the status of the run?";
        let draft = client
            .request(ClientMessage::MeasureDraft {
                session_id: steered.clone(),
                text: question.into(),
                mode: ChatMode::Chat,
            })
            .await;
        let ServerMessage::Draft(draft) = draft else { panic!("{draft:?}") };
        let asked = client
            .request(ClientMessage::ChatInput {
                session_id: steered.clone(),
                text: question.into(),
                mode: ChatMode::Chat,
                target: SteerTarget::default(),
                client_message_id: None,
            })
            .await;
        assert!(matches!(asked, ServerMessage::RouterResponse { steering_emitted: false, .. }));
        let opened = ClientMessage::OpenSession { session_id: steered.clone() };
        let ServerMessage::Session(session) = client.request(opened).await else { panic!() };
        let answer = session.turns.last().unwrap();
        assert_eq!(answer.status, TurnStatus::Complete);
        assert_eq!(answer.stats.as_ref().unwrap().prompt_tokens, draft.context.prompt_tokens);
        client.shutdown().await;

        let plain = Left::of(data.path(), &plain).await;
        let (plain_outputs, plain_ids) =
            (plain.outputs().await, plain.fed(plain.assembled("message")[0]).await);
        drop(plain);
        let steered = Left::of(data.path(), &steered).await;
        let vocabulary = Vocabulary::open(&place::model()).unwrap();

        // The ids that were really fed hold the note; without it they do not.
        let context = steered.assembled("message")[0];
        let ids = steered.fed(context).await;
        assert!(words(&vocabulary, &ids).contains(NOTE), "{}", words(&vocabulary, &ids));
        assert!(!words(&vocabulary, &plain_ids).contains(NOTE));
        let note = context.entries.iter().find(|entry| entry.source.starts_with("steeringNote"));
        let note = note.unwrap();
        assert_eq!(steered.blob(&note.text).await, NOTE.as_bytes());
        let applied = steered.events.iter().any(|event| {
            matches!(&event.payload, EventPayload::SteeringNoteApplied(applied)
                if Some(&applied.note_id) == note_id.as_ref()
                    && applied.stage_id.as_str() == "message")
        });
        assert!(applied);

        // The stages before it wrote the same; the steered one did not.
        let steered_outputs = steered.outputs().await;
        assert_eq!(steered_outputs["facts"], plain_outputs["facts"]);
        assert_eq!(steered_outputs["title"], plain_outputs["title"]);
        assert_ne!(steered_outputs["message"], plain_outputs["message"]);

        // Every count is the number of ids fed, and adds up from the entries and the template.
        for stage in ["facts", "title", "message"] {
            for context in steered.assembled(stage) {
                let fed = steered.fed(context).await.len() as u64;
                let entries: u64 = context.entries.iter().map(|entry| entry.tokens).sum();
                assert_eq!(context.prompt_tokens, fed);
                assert_eq!(entries + context.template_tokens, fed);
            }
        }
        let contexts = ["facts", "title", "message"].map(|stage| steered.assembled(stage).len());
        assert_eq!(steered.inferences().len(), contexts.iter().sum::<usize>());

        // The router wrote nothing but its note.
        let kinds: Vec<&str> = steered.events.iter().map(|event| event.payload.kind()).collect();
        let notes = kinds.iter().filter(|kind| **kind == "steering_note_added").count();
        assert_eq!(notes, 1);
        assert_eq!(kinds.last(), Some(&"workflow_completed"));
    }
}
