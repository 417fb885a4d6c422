//! Examples that make JSON, each on a hundred inputs that differ in content, length and shape. The
//! one for tables is not among them yet: the default model needs too many attempts for some.

#![allow(clippy::unwrap_used, clippy::panic)] // A test ends at the first surprise.

mod dice;
mod diffs;
mod mails;

mod long {
    mod real_model {
        use std::collections::{BTreeMap, BTreeSet};
        use std::fmt::Write as _;
        use std::path::Path;
        use std::time::{Duration, Instant};

        use correx_events::SessionId;
        use correx_infrastructure::{Client, ConnectOptions};
        use correx_protocol::{
            ClientMessage, InputValue, ServerMessage, WorkflowChoice, WorkflowStatus,
        };
        use correx_tests::place;
        use serde_json::Value;
        use tokio::sync::broadcast::error::RecvError;

        use crate::{diffs, mails};

        const RUNS: usize = 100;

        /// An example's stage that makes JSON, with all that it says, as a workflow of its own.
        struct JsonStage {
            workflow: String,
            /// The name of the workflow's only input.
            input: String,
            schema: Value,
        }

        impl JsonStage {
            fn of(example: &str) -> Self {
                let path = place::example(&format!("{example}/workflow.toml"));
                let text = std::fs::read_to_string(path).unwrap();
                let mut parts = text.split("\n[[stage]]\n");
                let head = parts.next().unwrap();
                let stage = parts.find(|stage| stage.contains("\n[stage.schema]\n")).unwrap();
                let workflow = format!("{head}\n[[stage]]\n{stage}");
                let read: Value = toml::from_str(&workflow).unwrap();
                Self {
                    input: read["input"][0]["name"].as_str().unwrap().to_owned(),
                    schema: read["stage"][0]["schema"].clone(),
                    workflow,
                }
            }

            async fn create(&self, client: &Client, folder: &Path, text: &str) -> SessionId {
                let path = folder.join("input.txt");
                std::fs::write(&path, text).unwrap();
                let path = path.display().to_string();
                let create = ClientMessage::CreateSession {
                    title: None,
                    workflow: Some(WorkflowChoice::Source { text: self.workflow.clone() }),
                    inputs: vec![InputValue::Path { name: self.input.clone(), path }],
                };
                match client.request(create).await {
                    ServerMessage::Session(session) => session.summary.session_id,
                    other => panic!("{other:?}"),
                }
            }
        }

        /// Whether the run of `session` came to a good end.
        async fn run(client: &Client, session: &SessionId) -> bool {
            let mut pushes = client.subscribe();
            let start = ClientMessage::StartRun { session_id: session.clone() };
            assert_eq!(client.request(start).await, ServerMessage::Done);
            loop {
                let status = match pushes.recv().await {
                    Ok(ServerMessage::RunChanged { session_id, run }) if session_id == *session => {
                        run.status
                    }
                    Ok(_) => continue,
                    // What was missed may have been the end.
                    Err(RecvError::Lagged(_)) => {
                        let open = ClientMessage::OpenSession { session_id: session.clone() };
                        let ServerMessage::Session(view) = client.request(open).await else {
                            panic!("the session is gone")
                        };
                        view.run.unwrap().status
                    }
                    Err(RecvError::Closed) => panic!("the program ended"),
                };
                match status {
                    WorkflowStatus::Completed => return true,
                    WorkflowStatus::Failed => return false,
                    _ => {}
                }
            }
        }

        async fn events(client: &Client, session: &SessionId) -> Vec<Value> {
            let read = ClientMessage::ReadEvents { session_id: session.clone(), from: 1 };
            let ServerMessage::Events { lines } = client.request(read).await else {
                panic!("no events")
            };
            lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
        }

        async fn blob(client: &Client, session: &SessionId, hash: &Value) -> String {
            let hash = serde_json::from_value(hash.clone()).unwrap();
            let read = ClientMessage::ReadBlob { session_id: session.clone(), hash };
            match client.request(read).await {
                ServerMessage::Blob(blob) => blob.text,
                other => panic!("{other:?}"),
            }
        }

        /// Whether everything in it holds something.
        fn is_populated(value: &Value) -> bool {
            match value {
                Value::Null => false,
                Value::Bool(_) | Value::Number(_) => true,
                Value::String(text) => text.chars().any(char::is_alphanumeric),
                Value::Array(values) => !values.is_empty() && values.iter().all(is_populated),
                Value::Object(map) => !map.is_empty() && map.values().all(is_populated),
            }
        }

        /// What came of a hundred runs.
        #[derive(Default)]
        struct Tally {
            whole: usize,
            refused: BTreeMap<String, usize>,
            /// What else was counted: how many hold, of how many.
            facts: BTreeMap<&'static str, (usize, usize)>,
            failures: String,
        }

        impl Tally {
            fn fact(&mut self, name: &'static str, holds: bool) {
                let (held, all) = self.facts.entry(name).or_default();
                *held += usize::from(holds);
                *all += 1;
            }

            fn report(&self, example: &str, took: Duration) -> String {
                let refused: usize = self.refused.values().sum();
                format!(
                    "{example}: {RUNS} runs in {} s, JSON artifacts whole {}/{RUNS}, \
                     {refused} attempts refused {:?}, {:?}{}",
                    took.as_secs(),
                    self.whole,
                    self.refused,
                    self.facts,
                    self.failures,
                )
            }
        }

        /// Runs the example's stage on a hundred inputs, and looks at what it made with `look`.
        async fn hundred(
            example: &str,
            input: fn(usize) -> String,
            look: fn(usize, &str, &Value, &mut Tally),
        ) -> (Tally, String) {
            let stage = JsonStage::of(example);
            let validator = jsonschema::validator_for(&stage.schema).unwrap();
            let data = tempfile::tempdir().unwrap();
            let options = ConnectOptions {
                data_dir: Some(data.path().join("data")),
                model: Some(place::model()),
                ..ConnectOptions::default()
            };
            let client = Client::connect(options).await.unwrap();
            let (mut tally, begun) = (Tally::default(), Instant::now());
            let inputs: Vec<String> = (0..RUNS).map(input).collect();
            assert_eq!(inputs.iter().collect::<BTreeSet<_>>().len(), RUNS);
            for (number, text) in inputs.iter().enumerate() {
                let session = stage.create(&client, data.path(), text).await;
                let completed = run(&client, &session).await;
                let mut made = None;
                for event in events(&client, &session).await {
                    let payload = &event["payload"];
                    match payload["type"].as_str() {
                        Some("stage_attempt_refused") => {
                            let validator = payload["validator"].as_str().unwrap().to_owned();
                            *tally.refused.entry(validator).or_default() += 1;
                            if !completed {
                                let draft = blob(&client, &session, &payload["draft"]).await;
                                let message = payload["message"].as_str().unwrap();
                                writeln!(tally.failures, "\n  {message}\n  {draft}").unwrap();
                            }
                        }
                        Some("artifact_produced") => {
                            made = Some(blob(&client, &session, &payload["hash"]).await);
                        }
                        _ => {}
                    }
                }
                let value = made.as_deref().and_then(|text| serde_json::from_str(text).ok());
                let whole = value
                    .as_ref()
                    .is_some_and(|value| validator.is_valid(value) && is_populated(value));
                tally.whole += usize::from(completed && whole);
                match &value {
                    Some(value) if whole => look(number, text, value, &mut tally),
                    _ => writeln!(tally.failures, "\n{number}: {made:?}\n{text}").unwrap(),
                }
            }
            client.shutdown().await;
            let report = tally.report(example, begun.elapsed());
            (tally, report)
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn a_hundred_mails_become_facts_with_every_field() {
            let (tally, report) =
                hundred("email-triage", mails::mail, |number, _, value, tally| {
                    tally.fact("right senders", value["sender"] == mails::sender(number));
                })
                .await;
            println!("{report}");
            assert_eq!(tally.whole, RUNS, "{report}");
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn a_hundred_diffs_become_changes_with_every_field() {
            let (tally, report) = hundred("code-review", diffs::diff, |number, _, value, tally| {
                tally.fact("right files", value["file"] == diffs::file(number).as_str());
                for function in value["functions"].as_array().unwrap() {
                    let known = diffs::functions(number).contains(&function.as_str().unwrap());
                    tally.fact("functions of the diff", known);
                }
            })
            .await;
            println!("{report}");
            assert_eq!(tally.whole, RUNS, "{report}");
        }
    }
}
