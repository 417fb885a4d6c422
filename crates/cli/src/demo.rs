//! `correx demo`: an example run, a question about it, a steering note, and the proof that the
//! note reached the model. Every figure that is shown is read from the log.

use correx_candle::Vocabulary;
use correx_events::{BlobHash, SessionId, StageId};
use correx_protocol::{
    ChatMode, ClientMessage, ErrorCode, InputValue, ModelView, ProtocolError, RunView,
    ServerMessage, StageStatus, SteerScope, SteerTarget, WorkflowChoice, WorkflowStatus,
    WorkflowView,
};
use serde::Serialize;
use tokio::task::JoinHandle;

use crate::args::{DemoArgs, WatchOptions};
use crate::connection::Connection;
use crate::display::title;
use crate::model::text_of;
use crate::outcome::{Ending, Outcome, input, unexpected};
use crate::output::{Format, Look, safe};
use crate::watch::{self, Watch, Watched};

const QUESTION: &str = "Which stage is running now, and which are already done?";

/// What the demonstration showed, for scripts.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(rename = "type")]
    kind: &'static str,
    session_id: SessionId,
    session_without_note: SessionId,
    question: &'static str,
    answer: String,
    note: String,
    note_stage: StageId,
    note_attempt: u32,
    attempt_without_note: u32,
    prompt_tokens: usize,
    seed: Option<u64>,
    seed_without_note: Option<u64>,
    note_in_fed_ids: bool,
    earlier_stages_equal: bool,
    output_differs: bool,
    output_with_note: String,
    output_without_note: String,
}

/// Shows what Correx does.
pub async fn demo(connection: &Connection, args: DemoArgs) -> Outcome {
    let demo = Demo::prepare(connection, args).await?;
    let steered = demo.steered().await?;
    let shown = demo.compare(steered).await?;
    let output = &connection.output;
    if output.format() == Format::Json {
        output.object(&shown);
    }
    let proven = shown.note_in_fed_ids && shown.output_differs;
    Ok(if proven { Ending::Done } else { Ending::Failed })
}

struct Demo<'a> {
    connection: &'a Connection,
    example: WorkflowView,
    workflow: WorkflowChoice,
    model: ModelView,
    /// The stage at which the note aims: the last one that writes.
    aim: StageId,
    note: String,
}

/// The run with the note, at its end.
struct Steered {
    session: SessionId,
    run: RunView,
    answer: String,
}

impl<'a> Demo<'a> {
    async fn prepare(connection: &'a Connection, args: DemoArgs) -> Result<Self, ProtocolError> {
        let workflow = WorkflowChoice::Example { name: args.example };
        let check = ClientMessage::CheckWorkflow { workflow: workflow.clone() };
        let ServerMessage::Workflow(example) = connection.ask(check).await? else {
            return Err(unexpected());
        };
        let writes = example.stages.iter().rev().find(|stage| stage.kind == "generate");
        let aim = writes.map(|stage| stage.stage_id.clone());
        let aim = aim.ok_or_else(|| input("the example has no stage that writes"))?;
        let note = args.note.unwrap_or_else(|| note_for(&example));
        let model = watch::model_ready(connection).await?;
        let demo = Self { connection, example, workflow, model, aim, note };
        demo.introduce();
        Ok(demo)
    }

    fn introduce(&self) {
        let output = &self.connection.output;
        let model = &self.model;
        output.heading(&format!("Correx: {}", safe(&self.example.name)));
        output.say(&safe(&self.example.description));
        output.say(&format!(
            "model   {} ({}) on {}, {} tokens of context",
            safe(&model.name),
            model.quantization.as_deref().unwrap_or("unknown"),
            model.device.as_deref().unwrap_or("unknown"),
            model.context_window.unwrap_or_default(),
        ));
        let stages: Vec<String> =
            self.example.stages.iter().map(|stage| safe(&stage.title)).collect();
        output.say(&format!("stages  {}", stages.join(" → ")));
        for sample in self.example.inputs.iter().filter_map(|input| input.sample.as_ref()) {
            let words = sample.split_whitespace().count();
            output.say(&format!("input   {words} words of text, beginning:"));
            for line in sample.lines().filter(|line| !line.trim().is_empty()).take(3) {
                let line: String = safe(line).chars().take(76).collect();
                output.say(&output.paint(&format!("        │ {line}"), Look::Dim));
            }
        }
    }

    async fn create(&self, title: String) -> Result<SessionId, ProtocolError> {
        let inputs = self.example.inputs.iter().filter_map(|input| {
            let text = input.sample.clone()?;
            Some(InputValue::Text { name: input.name.clone(), text })
        });
        let create = ClientMessage::CreateSession {
            title: Some(title),
            workflow: Some(self.workflow.clone()),
            inputs: inputs.collect(),
        };
        Ok(self.connection.session(create).await?.summary.session_id)
    }

    /// The run with a question and a note while it goes.
    async fn steered(&self) -> Result<Steered, ProtocolError> {
        let output = &self.connection.output;
        output.heading("The run, with a question and a steering note while it goes");
        let session = self.create(format!("Demo: {}", self.example.name)).await?;
        let watch = Watch::new(self.connection, session.clone(), WatchOptions { yes: true });
        let start = ClientMessage::StartRun { session_id: session.clone() };
        self.connection.act(start).await?;

        let note = self.note.clone();
        output.say(&format!("you ask: “{QUESTION}”"));
        let asked =
            self.send(&session, QUESTION.to_owned(), ChatMode::Chat, SteerTarget::default());
        let asked = self.tell_when_answered(asked);
        let target = SteerTarget { stage_id: Some(self.aim.clone()), scope: SteerScope::Onward };
        output.say(
            &output.paint(
                &format!("you steer ({} onward): “{note}”", self.title_of_aim()),
                Look::Amber,
            ),
        );
        let steered = self.send(&session, note.clone(), ChatMode::Steering, target);
        let run = ended(watch.until_it_ends().await?)?;
        let answer = asked.await.map_err(|_| unexpected())??;
        content(steered).await?;
        output.heading("What the run has produced");
        if output.format() == Format::Text {
            crate::artifacts::print(self.connection, &session, &run).await?;
        }
        Ok(Steered { session, run, answer })
    }

    fn send(
        &self,
        session: &SessionId,
        text: String,
        mode: ChatMode,
        target: SteerTarget,
    ) -> JoinHandle<Result<ServerMessage, ProtocolError>> {
        let session_id = session.clone();
        let message =
            ClientMessage::ChatInput { session_id, text, mode, target, client_message_id: None };
        let connection = self.connection.clone();
        tokio::spawn(async move { connection.ask(message).await })
    }

    /// Tells the answer as soon as it is there: mostly while the run goes on.
    fn tell_when_answered(
        &self,
        asked: JoinHandle<Result<ServerMessage, ProtocolError>>,
    ) -> JoinHandle<Result<String, ProtocolError>> {
        let output = self.connection.output.clone();
        tokio::spawn(async move {
            let answer = content(asked).await?;
            output.say(&output.paint("the assistant answers:", Look::Bold));
            for line in safe(answer.trim()).lines() {
                output.say(&format!("  │ {line}"));
            }
            Ok(answer)
        })
    }

    fn title_of_aim(&self) -> String {
        let stage = self.example.stages.iter().find(|stage| stage.stage_id == self.aim);
        stage.map_or_else(|| self.aim.to_string(), |stage| safe(&stage.title))
    }

    /// The same run without the note, and what the note has changed.
    async fn compare(&self, steered: Steered) -> Result<Shown, ProtocolError> {
        let output = &self.connection.output;
        let Steered { session, run, answer } = steered;
        let note = self.note.clone();
        let uses = run.notes.iter().flat_map(|note| &note.applied);
        let first = uses.filter(|used| used.stage_id == self.aim).map(|used| used.attempt).min();
        let fed = self.fed(&session, first.unwrap_or(1)).await?;
        let vocabulary = Vocabulary::open(self.model.location.as_ref())
            .map_err(|error| ProtocolError::new(ErrorCode::Model, error.to_string()))?;
        let prompt = text_of(&vocabulary, &fed.ids);
        let note_in_fed_ids = prompt.contains(&note);

        output.heading("Where the note was applied");
        for used in run.notes.iter().flat_map(|note| &note.applied) {
            let (title, attempt) = (title(&run, &used.stage_id), used.attempt);
            output.say(&output.paint(&format!("✎ {title}, attempt {attempt}"), Look::Amber));
        }
        output.say(&format!(
            "The {} token ids that were fed to {}, turned back into text, {}:",
            fed.ids.len(),
            title(&run, &self.aim),
            if note_in_fed_ids { "contain it" } else { "do NOT contain it" },
        ));
        for line in around(&prompt, &note) {
            output.say(&output.paint(&format!("  │ {}", safe(&line)), Look::Dim));
        }

        output.heading("The same run with the same seed, without the note");
        let plain = self.create(format!("Demo: {} (without the note)", self.example.name)).await?;
        let watch = Watch::new(self.connection, plain.clone(), WatchOptions { yes: true });
        self.connection.act(ClientMessage::StartRun { session_id: plain.clone() }).await?;
        let plain_run = ended(watch.until_it_ends().await?)?;
        let fed_plain = self.fed(&plain, 1).await?;
        let with_note = self.written(&session, &run, fed.attempt).await?;
        let without_note = self.written(&plain, &plain_run, fed_plain.attempt).await?;
        let earlier_stages_equal = earlier(&run, &self.aim) == earlier(&plain_run, &self.aim);
        let shown = Shown {
            kind: "demo",
            question: QUESTION,
            answer,
            note_stage: self.aim.clone(),
            note_attempt: fed.attempt,
            attempt_without_note: fed_plain.attempt,
            prompt_tokens: fed.ids.len(),
            seed: fed.seed,
            seed_without_note: fed_plain.seed,
            note_in_fed_ids,
            earlier_stages_equal,
            output_differs: with_note != without_note,
            output_with_note: with_note,
            output_without_note: without_note,
            note,
            session_id: session,
            session_without_note: plain,
        };
        self.tell(&shown);
        Ok(shown)
    }

    fn tell(&self, shown: &Shown) {
        let output = &self.connection.output;
        let aim = self.title_of_aim();
        let same = if shown.earlier_stages_equal { "the same" } else { "different" };
        let seed = |seed: Option<u64>| seed.map_or("unknown".to_owned(), |seed| seed.to_string());
        output.heading(&format!("{aim}, with the note and without"));
        let figures = |attempt: u32, of| format!("attempt {attempt}, seed {}", seed(of));
        let with = figures(shown.note_attempt, shown.seed);
        let without = figures(shown.attempt_without_note, shown.seed_without_note);
        for (label, text, look) in [
            (format!("with ({with})"), &shown.output_with_note, Look::Amber),
            (format!("without ({without})"), &shown.output_without_note, Look::Dim),
        ] {
            output.say(&output.paint(&label, Look::Bold));
            for line in safe(text.trim()).lines() {
                output.say(&format!("  {} {line}", output.paint("│", look)));
            }
        }
        output.say("");
        output.say(&format!("The stages before it produced {same} text in both runs."));
        if shown.output_differs {
            output.say(&output.paint("The note changed what this stage wrote.", Look::Good));
        } else {
            output.say(&output.paint("The note changed nothing in the text.", Look::Bad));
        }
        output.say(&format!("All events: correx events {}", shown.session_id));
        output.say(&format!("Go on talking: correx chat {}", shown.session_id));
    }

    /// What was fed to the model for an attempt of the stage at which the note aims, by the log.
    async fn fed(&self, session: &SessionId, attempt: u32) -> Result<Fed, ProtocolError> {
        let (mut prompt_ids, mut seed) = (None, None);
        for line in self.connection.events(session, 1).await? {
            let Ok(event) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
            let payload = &event["payload"];
            if payload["stage_id"] != self.aim.as_str() || payload["attempt"] != attempt {
                continue;
            }
            match payload["type"].as_str() {
                Some("context_assembled") => {
                    prompt_ids = payload["prompt_ids"].as_str().map(BlobHash::new);
                }
                Some("inference_completed") => seed = payload["seed"].as_u64(),
                _ => {}
            }
        }
        let hash = prompt_ids.ok_or_else(|| input("the log has no prompt of that stage"))?;
        let text = self.connection.blob(session, &hash).await?;
        let ids = text.split_whitespace().map(str::parse).collect::<Result<Vec<u32>, _>>();
        let ids = ids.map_err(|error| input(format!("the stored ids cannot be read: {error}")))?;
        Ok(Fed { ids, attempt, seed })
    }

    /// What an attempt of that stage wrote, whether it was accepted or not.
    async fn written(
        &self,
        session: &SessionId,
        run: &RunView,
        attempt: u32,
    ) -> Result<String, ProtocolError> {
        let stage = run.stages.iter().find(|stage| stage.stage_id == self.aim);
        let written = stage.and_then(|stage| {
            let accepted = stage.artifacts.iter().find(|artifact| artifact.attempt == attempt);
            let put_aside = stage.drafts.iter().find(|draft| draft.attempt == attempt);
            let accepted = accepted.map(|artifact| artifact.hash.clone());
            accepted.or_else(|| put_aside.and_then(|draft| draft.draft.clone()))
        });
        let hash = written.ok_or_else(|| input("the stage has written nothing"))?;
        self.connection.blob(session, &hash).await
    }
}

/// What a stage's model was really fed.
struct Fed {
    ids: Vec<u32>,
    attempt: u32,
    seed: Option<u64>,
}

/// A note that suits what the example's last stage writes.
fn note_for(example: &WorkflowView) -> String {
    match example.example.as_deref() {
        Some("meeting-notes") => "Write only two short sentences, to Ines Duarte.",
        _ => "Write it for children.",
    }
    .to_owned()
}

/// What the stages before `aim` produced.
fn earlier<'r>(run: &'r RunView, aim: &StageId) -> Vec<&'r BlobHash> {
    let before = run.stages.iter().take_while(|stage| stage.stage_id != *aim);
    before.flat_map(|stage| &stage.artifacts).map(|artifact| &artifact.hash).collect()
}

/// The lines of `prompt` from the one before `note` to the end, or its last ones.
fn around(prompt: &str, note: &str) -> Vec<String> {
    let lines: Vec<&str> = prompt.lines().filter(|line| !line.trim().is_empty()).collect();
    let at = lines.iter().rposition(|line| line.contains(note));
    let from = at.unwrap_or(lines.len()).saturating_sub(3);
    let cut = |line: &&str| match line.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => (*line).to_owned(),
    };
    lines[from..].iter().take(6).map(cut).collect()
}

fn ended(watched: Watched) -> Result<RunView, ProtocolError> {
    match watched {
        Watched::Ended(run) if run.status == WorkflowStatus::Completed => Ok(run),
        Watched::Ended(run) => {
            let failed = run.stages.iter().find(|stage| stage.status == StageStatus::Failed);
            let why = run.failure.clone().or_else(|| failed.and_then(|stage| stage.error.clone()));
            let why = why.unwrap_or_else(|| "no reason is known".into());
            Err(ProtocolError::new(ErrorCode::WrongState, format!("the run failed: {why}")))
        }
        Watched::Waits(_) => {
            let error = ProtocolError::new(ErrorCode::WrongState, "the demonstration was stopped");
            Err(error.kept("Its session is kept; `correx sessions` lists it."))
        }
    }
}

async fn content(
    answer: JoinHandle<Result<ServerMessage, ProtocolError>>,
) -> Result<String, ProtocolError> {
    match answer.await.map_err(|_| unexpected())?? {
        ServerMessage::RouterResponse { content, .. } => Ok(content),
        _ => Err(unexpected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_note_is_shown_with_what_stands_before_it() {
        let prompt = "a\nb\n\nc\nd\nInstructions:\n- Begin so\nassistant\n";
        assert_eq!(
            around(prompt, "Begin so"),
            ["c", "d", "Instructions:", "- Begin so", "assistant"]
        );
        let missing = around(prompt, "not there");
        assert_eq!(missing.last().map(String::as_str), Some("assistant"));
    }
}
