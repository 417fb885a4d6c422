//! `correx run`, `resume`, `pause`, `cancel`, `approve`, `rerun`.

use std::path::Path;

use correx_events::SessionId;
use correx_protocol::{
    ChatMode, ClientMessage, InputValue, ProtocolError, ServerMessage, SessionView, StageStatus,
    SteerScope, SteerTarget, WorkflowChoice, WorkflowStatus,
};
use tokio::task::JoinHandle;

use crate::args::{ApproveArgs, RerunArgs, RunArgs, WatchArgs};
use crate::choice;
use crate::connection::Connection;
use crate::outcome::{Ending, Outcome, input, unexpected};
use crate::output::{Format, Look, safe};
use crate::watch::{self, Watch};

/// Runs a workflow to its end.
pub async fn run(connection: &Connection, args: RunArgs) -> Outcome {
    let chosen = choice::workflow(&args.workflow)?;
    let mut inputs = choice::inputs(&args.input, &args.text)?;
    if inputs.is_empty() {
        inputs = samples(connection, &chosen).await?;
    }
    let chosen = match args.seed {
        None => chosen,
        Some(seed) => {
            // Checked first as it is, so that mistakes have their place in the file.
            connection.ask(ClientMessage::CheckWorkflow { workflow: chosen.clone() }).await?;
            let text = choice::with_seed(&choice::source(&chosen)?, seed)?;
            WorkflowChoice::Source { text }
        }
    };
    let create = ClientMessage::CreateSession { title: args.title, workflow: Some(chosen), inputs };
    let session = connection.session(create).await?;
    announce(connection, &session);
    let session_id = session.summary.session_id;
    watch::model_ready(connection).await.map_err(|error| kept_for_later(error, &session_id))?;
    let watch = Watch::new(connection, session_id.clone(), args.watch);
    let mut answers = Vec::new();
    for note in args.steer {
        answers.push(steer(connection, &session_id, note).await?);
    }
    connection.act(ClientMessage::StartRun { session_id: session_id.clone() }).await?;
    let outcome = watch::to_the_end(connection, watch).await;
    for answer in answers {
        tell_answer(connection, answer).await;
    }
    outcome
}

/// A model that is not there costs nobody the session.
fn kept_for_later(error: ProtocolError, session: &SessionId) -> ProtocolError {
    let kept = format!(
        "The session and its inputs; `correx resume {session}` starts it when the model is there."
    );
    error.kept(kept)
}

/// The texts that an example brings, when no others are given.
async fn samples(
    connection: &Connection,
    chosen: &WorkflowChoice,
) -> Result<Vec<InputValue>, ProtocolError> {
    if !matches!(chosen, WorkflowChoice::Example { .. }) {
        return Ok(Vec::new());
    }
    let check = ClientMessage::CheckWorkflow { workflow: chosen.clone() };
    let ServerMessage::Workflow(workflow) = connection.ask(check).await? else {
        return Err(unexpected());
    };
    let samples = workflow.inputs.into_iter().filter_map(|input| {
        let text = input.sample?;
        Some(InputValue::Text { name: input.name, text })
    });
    let samples: Vec<InputValue> = samples.collect();
    if !samples.is_empty() {
        connection.output.say("no --input was given: using the example's own text");
    }
    Ok(samples)
}

fn announce(connection: &Connection, session: &SessionView) {
    let (output, summary) = (&connection.output, &session.summary);
    if output.format() == Format::Json {
        output.object(&ServerMessage::SessionChanged(summary.clone()));
        return;
    }
    output.say(&format!(
        "{}  {}",
        output.paint(&safe(&summary.title), Look::Bold),
        output.paint(&format!("session {}", summary.session_id), Look::Dim)
    ));
}

/// Gives a note for every stage and waits until it is kept; its answer comes later.
async fn steer(
    connection: &Connection,
    session: &SessionId,
    note: String,
) -> Result<JoinHandle<Result<ServerMessage, ProtocolError>>, ProtocolError> {
    let mut pushes = connection.pushes();
    let before = notes(connection, session).await?;
    let chat = ClientMessage::ChatInput {
        session_id: session.clone(),
        text: note,
        mode: ChatMode::Steering,
        target: SteerTarget { stage_id: None, scope: SteerScope::Run },
        client_message_id: None,
    };
    let asking = connection.clone();
    let mut answer = tokio::spawn(async move { asking.ask(chat).await });
    loop {
        tokio::select! {
            ended = &mut answer => {
                let answered = ended.map_err(|_| unexpected())??;
                return Ok(tokio::spawn(async move { Ok(answered) }));
            }
            _ = pushes.recv() => {
                if notes(connection, session).await? > before {
                    return Ok(answer);
                }
            }
        }
    }
}

async fn notes(connection: &Connection, session: &SessionId) -> Result<usize, ProtocolError> {
    let view = connection.open_session(session).await?;
    Ok(view.run.map_or(0, |run| run.notes.len()))
}

async fn tell_answer(
    connection: &Connection,
    answer: JoinHandle<Result<ServerMessage, ProtocolError>>,
) {
    let output = &connection.output;
    match answer.await {
        Ok(Ok(message)) if output.format() == Format::Json => output.object(&message),
        Ok(Ok(ServerMessage::RouterResponse { content, .. })) => {
            output.say(&format!("the assistant: {}", safe(content.trim())));
        }
        Ok(Err(error)) => output.error(&error),
        Ok(Ok(_)) | Err(_) => {}
    }
}

/// Goes on with a run, to its end; one that never began is started.
pub async fn resume(connection: &Connection, args: WatchArgs) -> Outcome {
    let session_id = connection.find(&args.session.session).await?;
    let view = connection.open_session(&session_id).await?;
    announce(connection, &view);
    watch::model_ready(connection).await?;
    let watch = Watch::new(connection, session_id.clone(), args.watch);
    let never_began = view.run.is_some_and(|run| run.status == WorkflowStatus::Idle);
    let go_on = if never_began {
        ClientMessage::StartRun { session_id }
    } else {
        ClientMessage::ResumeRun { session_id }
    };
    connection.act(go_on).await?;
    watch::to_the_end(connection, watch).await
}

/// Pauses a run.
pub async fn pause(connection: &Connection, typed: &str) -> Outcome {
    let session_id = connection.find(typed).await?;
    connection.act(ClientMessage::PauseRun { session_id: session_id.clone() }).await?;
    connection.output.say(&format!("paused; go on with `correx resume {session_id}`"));
    Ok(Ending::Done)
}

/// Ends a run for good.
pub async fn cancel(connection: &Connection, typed: &str) -> Outcome {
    let session_id = connection.find(typed).await?;
    connection.act(ClientMessage::CancelRun { session_id }).await?;
    connection.output.say("cancelled; what it had produced is kept");
    Ok(Ending::Done)
}

/// Answers what a stage asks, and watches the run go on.
pub async fn approve(connection: &Connection, args: ApproveArgs) -> Outcome {
    let session_id = connection.find(&args.session.session).await?;
    let view = connection.open_session(&session_id).await?;
    let asking = view
        .run
        .as_ref()
        .and_then(|run| run.stages.iter().find(|stage| stage.status == StageStatus::Waiting));
    let Some(stage) = asking else {
        return Err(input("no stage of this session asks for approval now"));
    };
    let stage_id = stage.stage_id.clone();
    let answer = match args.deny {
        Some(reason) => {
            let reason = (!reason.trim().is_empty()).then_some(reason);
            ClientMessage::Deny { session_id: session_id.clone(), stage_id, reason }
        }
        None => {
            let comment = args.comment;
            let edited = args.edited.as_deref().map(text_of).transpose()?;
            ClientMessage::Approve { session_id: session_id.clone(), stage_id, comment, edited }
        }
    };
    let watch = Watch::new(connection, session_id, args.watch);
    connection.act(answer).await?;
    watch::to_the_end(connection, watch).await
}

/// Runs an ended run again from one of its stages, and watches it.
pub async fn rerun(connection: &Connection, args: RerunArgs) -> Outcome {
    let session_id = connection.find(&args.session.session).await?;
    watch::model_ready(connection).await?;
    let watch = Watch::new(connection, session_id.clone(), args.watch);
    connection.act(ClientMessage::Rerun { session_id, stage_id: args.stage.into() }).await?;
    watch::to_the_end(connection, watch).await
}

/// The text of a file that a person edited.
fn text_of(path: &Path) -> Result<String, ProtocolError> {
    std::fs::read_to_string(path)
        .map_err(|error| input(format!("{} could not be read: {error}", path.display())))
}
