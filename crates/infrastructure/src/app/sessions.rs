//! Sessions: made, shown, renamed, deleted.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use correx_events::{InputKind, SessionId};
use correx_orchestration::{GivenInput, InputSpec, InputText, Workflow, inputs};
use correx_protocol::{
    ChatMode, ErrorCode, InputValue, ModelState, Overview, ProtocolError, ServerMessage,
    SessionSummary, SessionView, WorkflowChoice,
};
use correx_store::SessionRecord;

use super::{App, Conversations};
use crate::examples;
use crate::failure::{self, Failure};
use crate::view;

/// A workflow file with more bytes than this is not one.
const MAX_WORKFLOW_BYTES: u64 = 1024 * 1024;
/// A longer title is cut.
const MAX_TITLE_CHARS: usize = 200;
const NEW_CHAT: &str = "New chat";

impl App {
    /// The sessions, the model, the examples.
    pub async fn overview(&self) -> Result<ServerMessage, Failure> {
        let mut sessions = Vec::new();
        for record in self.inner.store.sessions().await? {
            sessions.push(self.row(&record).await?);
        }
        Ok(ServerMessage::Overview(Overview {
            sessions,
            model: self.inner.engine.model.borrow().clone(),
            examples: examples::all()?,
            data_dir: self.inner.data_dir.display().to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }))
    }

    /// Reads and checks a workflow without running it.
    pub async fn check_workflow(&self, choice: WorkflowChoice) -> Result<ServerMessage, Failure> {
        if let WorkflowChoice::Example { name } = &choice
            && let Some(example) = examples::one(name)
        {
            return Ok(ServerMessage::Workflow(example?));
        }
        let workflow = read_workflow(choice).await?;
        Ok(ServerMessage::Workflow(view::workflow(&workflow, None, &BTreeMap::new())))
    }

    /// Copies an example as the beginning of a workflow of one's own.
    pub async fn copy_example(
        &self,
        example: String,
        folder: String,
        name: String,
    ) -> Result<ServerMessage, Failure> {
        let place = examples::place(Path::new(&folder), &name)?;
        let workflow = tokio::task::spawn_blocking(move || examples::copy(&example, &place))
            .await
            .map_err(|_| failure::storage("the example could not be copied"))??;
        Ok(ServerMessage::Copied { path: workflow.display().to_string() })
    }

    /// Makes a session: a plain chat, or one that can run a workflow, whose file and inputs are
    /// kept as they are now.
    pub async fn create_session(
        &self,
        title: Option<String>,
        workflow: Option<WorkflowChoice>,
        given: Vec<InputValue>,
    ) -> Result<ServerMessage, Failure> {
        let workflow = match workflow {
            Some(choice) => Some(read_workflow(choice).await?),
            None => None,
        };
        let read = match &workflow {
            Some(workflow) => read_inputs(&workflow.inputs, given).await?,
            None if given.is_empty() => Vec::new(),
            None => {
                let error = ProtocolError::new(ErrorCode::BadInput, "a plain chat takes no inputs")
                    .kept("No session was made.")
                    .hint("Choose a workflow that reads them.");
                return Err(error.into());
            }
        };
        let title = title.map(|title| clean_title(&title)).filter(|title| !title.is_empty());
        let title = title.unwrap_or_else(|| match &workflow {
            Some(workflow) => clean_title(&workflow.name),
            None => NEW_CHAT.to_owned(),
        });
        let session = SessionId::new(self.inner.ids.next_id());
        self.inner.orchestrator.create(&session, &title, workflow.as_ref(), &read).await?;
        self.open_session(&session).await
    }

    /// Everything about one session.
    pub async fn open_session(&self, session: &SessionId) -> Result<ServerMessage, Failure> {
        let record = self.known(session).await?;
        let state = self.inner.sessions.run(session).await?;
        let planned = self.inner.sessions.planned(&state).await;
        let turns = self.inner.conversations.transcripts().branch(session).await?;
        let ready = self.inner.engine.model.borrow().state == ModelState::Ready;
        let context = if ready {
            let draft = self.inner.facade.measure(session, "", view::mode(ChatMode::Chat)).await;
            draft.ok().as_ref().and_then(view::context_of_draft)
        } else {
            None
        };
        Ok(ServerMessage::Session(Box::new(SessionView {
            summary: view::summary(&record, &state, &planned),
            run: state.workflow.is_some().then(|| view::run(&state, &planned)),
            turns: turns.iter().map(view::turn).collect(),
            context,
        })))
    }

    /// Gives a session another title.
    pub async fn rename_session(
        &self,
        session: &SessionId,
        title: &str,
    ) -> Result<ServerMessage, Failure> {
        let title = clean_title(title);
        if title.is_empty() {
            let error = ProtocolError::new(ErrorCode::EmptyInput, "the title is empty")
                .kept("The session keeps its title.");
            return Err(error.into());
        }
        self.known(session).await?;
        self.inner.store.rename_session(session, &title).await?;
        self.tell_summary(session).await;
        self.open_session(session).await
    }

    /// Deletes everything about a session, after ending what goes on in it.
    pub async fn delete_session(&self, session: &SessionId) -> Result<ServerMessage, Failure> {
        self.known(session).await?;
        self.inner.answers.stop(session);
        let state = self.inner.sessions.run(session).await?;
        if state.workflow.is_some() && !state.status.has_ended() {
            // Refused when it never started, or has just ended: then there is nothing to end.
            let _ = self.inner.orchestrator.cancel(session).await;
        }
        self.inner.orchestrator.forget(session).await;
        self.inner.answers.ended(session).await;
        self.inner.store.delete_session(session).await?;
        self.inner.facade.forget(session).await;
        self.inner.sessions.forget(session).await;
        if let Conversations::InMemory(transcripts) = &self.inner.conversations {
            transcripts.forget(session);
        }
        self.inner.pushes.forget(session);
        self.inner.pushes.tell(ServerMessage::SessionDeleted { session_id: session.clone() });
        Ok(ServerMessage::Done)
    }

    /// The session's record, or that there is none.
    pub(super) async fn known(&self, session: &SessionId) -> Result<SessionRecord, Failure> {
        match self.inner.store.session(session).await? {
            Some(record) => Ok(record),
            None => Err(ProtocolError::new(
                ErrorCode::NotFound,
                format!("there is no session {session}"),
            )
            .hint("It may have been deleted; `correx sessions` lists what there is.")
            .into()),
        }
    }

    /// A session's row in the list.
    pub(super) async fn summary(&self, session: &SessionId) -> Result<SessionSummary, Failure> {
        let record = self.known(session).await?;
        self.row(&record).await
    }

    async fn row(&self, record: &SessionRecord) -> Result<SessionSummary, Failure> {
        let state = self.inner.sessions.run(&record.session_id).await?;
        let planned = self.inner.sessions.planned(&state).await;
        Ok(view::summary(record, &state, &planned))
    }
}

async fn read_workflow(choice: WorkflowChoice) -> Result<Workflow, Failure> {
    match choice {
        WorkflowChoice::Source { text } => Ok(Workflow::parse(&text)?),
        WorkflowChoice::Example { name } => match examples::source(&name) {
            Some(source) => Ok(Workflow::parse(source)?),
            None => {
                let known: Vec<&str> = examples::names().collect();
                Err(ProtocolError::new(
                    ErrorCode::BadWorkflow,
                    format!("there is no example {name:?}"),
                )
                .hint(format!("There are: {}.", known.join(", ")))
                .into())
            }
        },
        WorkflowChoice::File { path } => {
            let path = PathBuf::from(path);
            let text = tokio::task::spawn_blocking({
                let path = path.clone();
                move || workflow_text(&path)
            })
            .await
            .map_err(|_| failure::storage("the workflow file could not be read"))??;
            let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into());
            Ok(Workflow::parse(&text).map_err(|errors| errors.in_file(name))?)
        }
    }
}

fn workflow_text(path: &Path) -> Result<String, ProtocolError> {
    let shown = path.display();
    let refused = |what: String| {
        ProtocolError::new(ErrorCode::BadWorkflow, what)
            .kept("Nothing was run.")
            .hint("A workflow is a text file in TOML; docs/workflows.md describes it.")
    };
    let metadata = std::fs::metadata(path).map_err(|error| {
        refused(format!("the workflow file {shown} could not be read: {error}"))
    })?;
    if metadata.is_dir() {
        return Err(refused(format!("{shown} is a folder, not a workflow file")));
    }
    let mut bytes = Vec::new();
    // A device has no length and never ends.
    let opened = std::fs::File::open(path);
    opened.and_then(|file| file.take(MAX_WORKFLOW_BYTES + 1).read_to_end(&mut bytes)).map_err(
        |error| refused(format!("the workflow file {shown} could not be read: {error}")),
    )?;
    if bytes.len() as u64 > MAX_WORKFLOW_BYTES {
        return Err(refused(format!(
            "{shown} has more than {MAX_WORKFLOW_BYTES} bytes; that is no workflow file"
        )));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(refused(format!("the workflow file {shown} is empty")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        refused(format!("the workflow file {shown} is not UTF-8 text (at byte {offset})"))
    })
}

async fn read_inputs(
    specs: &[InputSpec],
    given: Vec<InputValue>,
) -> Result<Vec<InputText>, Failure> {
    let given = name_inputs(specs, given)?;
    let specs = specs.to_vec();
    let read = tokio::task::spawn_blocking(move || inputs::read(&specs, &given))
        .await
        .map_err(|_| failure::storage("the inputs could not be read"))?;
    Ok(read?)
}

/// Gives every value its input's name: one without a name is for the only input, or for the
/// first that is a file or a folder.
fn name_inputs(
    specs: &[InputSpec],
    given: Vec<InputValue>,
) -> Result<BTreeMap<String, GivenInput>, ProtocolError> {
    let mut named = BTreeMap::new();
    for value in given {
        let (name, value) = match value {
            InputValue::Text { name, text } => (name, GivenInput::Text(text)),
            InputValue::Path { name, path } => (name, GivenInput::Path(path.into())),
        };
        let name = if name.is_empty() { nameless(specs)? } else { name };
        if named.insert(name.clone(), value).is_some() {
            let message = format!("the input \"{name}\" was given twice");
            return Err(ProtocolError::new(ErrorCode::BadInput, message)
                .kept("No session was made.")
                .hint("Give every input once, as NAME=FILE."));
        }
    }
    Ok(named)
}

fn nameless(specs: &[InputSpec]) -> Result<String, ProtocolError> {
    let by_kind = |spec: &&InputSpec| spec.kind != InputKind::Text;
    let chosen = match specs {
        [only] => Some(only),
        several => several.iter().find(by_kind),
    };
    chosen.map(|spec| spec.name.clone()).ok_or_else(|| {
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        let message = if names.is_empty() {
            "this workflow takes no inputs".to_owned()
        } else {
            format!("which input is meant? This workflow takes: {}", names.join(", "))
        };
        ProtocolError::new(ErrorCode::BadInput, message)
            .kept("No session was made.")
            .hint("Give inputs as NAME=FILE.")
    })
}

/// One line, without control characters, of a length that a list can show.
fn clean_title(title: &str) -> String {
    let words: Vec<&str> = title
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|w| !w.is_empty())
        .collect();
    words.join(" ").chars().take(MAX_TITLE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use correx_orchestration::Need;

    use super::*;

    fn spec(name: &str, kind: InputKind) -> InputSpec {
        InputSpec {
            name: name.into(),
            kind,
            description: None,
            need: Need::Required,
            default: None,
            sample: None,
            choices: Vec::new(),
            max: None,
            min: None,
        }
    }

    fn nameless_file() -> Vec<InputValue> {
        vec![InputValue::Path { name: String::new(), path: "/notes.txt".into() }]
    }

    #[test]
    fn a_value_without_a_name_is_for_the_only_input_or_the_first_file() {
        let named = |specs: &[InputSpec]| -> Vec<String> {
            name_inputs(specs, nameless_file()).unwrap().into_keys().collect()
        };
        assert_eq!(named(&[spec("topic", InputKind::Text)]), ["topic"]);
        let two = [spec("topic", InputKind::Text), spec("notes", InputKind::File)];
        assert_eq!(named(&two), ["notes"]);
    }

    #[test]
    fn when_no_input_can_be_meant_the_names_are_listed() {
        let specs = [spec("topic", InputKind::Text), spec("tone", InputKind::Text)];
        let error = name_inputs(&specs, nameless_file()).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadInput);
        assert!(error.message.contains("topic, tone"), "{}", error.message);
        let error = name_inputs(&[], nameless_file()).unwrap_err();
        assert!(error.message.contains("takes no inputs"), "{}", error.message);
    }

    #[test]
    fn an_input_that_is_given_twice_is_refused() {
        let twice = [nameless_file(), nameless_file()].concat();
        let error = name_inputs(&[spec("notes", InputKind::File)], twice).unwrap_err();
        assert!(error.message.contains("twice"), "{}", error.message);
    }

    #[test]
    fn a_title_is_one_line_without_control_characters() {
        assert_eq!(clean_title("  a\n\tb\u{7}c  "), "a b c");
        assert_eq!(clean_title(&"ä".repeat(500)).chars().count(), MAX_TITLE_CHARS);
        assert_eq!(clean_title(" \n "), "");
    }
}
