//! `correx sessions`, `events`, `delete`; `workflow check` and `schema`.

use correx_protocol::{
    ClientMessage, ServerMessage, SessionSummary, WaitReason, WorkflowStatus, WorkflowView,
};

use crate::args::EventsArgs;
use crate::choice;
use crate::connection::Connection;
use crate::outcome::{Ending, Outcome, unexpected};
use crate::output::{Format, Look, Output, safe};

/// Lists the sessions, the last changed first.
pub async fn list(connection: &Connection) -> Outcome {
    let output = &connection.output;
    let overview = connection.overview().await?;
    if overview.sessions.is_empty() {
        output.say("there is no session yet; begin with `correx run meeting-notes`");
    }
    for session in &overview.sessions {
        if output.format() == Format::Json {
            output.object(session);
        } else {
            output.result(&row(session));
        }
    }
    Ok(Ending::Done)
}

fn row(session: &SessionSummary) -> String {
    let state = match &session.workflow {
        None => "chat".to_owned(),
        Some(_) => format!("{} {}/{}", status(session), session.stages_done, session.stages_total),
    };
    let title = safe(&session.title);
    format!("{}  {:<22}  {title}", session.session_id, state)
}

fn status(session: &SessionSummary) -> &'static str {
    match (session.status, session.waiting_for) {
        (WorkflowStatus::Idle, _) => "not started",
        (WorkflowStatus::Running, _) => "running",
        (WorkflowStatus::Paused, Some(WaitReason::Approval)) => "waits for you",
        (WorkflowStatus::Paused, Some(WaitReason::Interrupted)) => "interrupted",
        (WorkflowStatus::Paused, _) => "paused",
        (WorkflowStatus::Completed, _) => "completed",
        (WorkflowStatus::Failed, _) => "failed",
    }
}

/// Prints a session's events as they are stored.
pub async fn events(connection: &Connection, args: EventsArgs) -> Outcome {
    let session = connection.find(&args.session.session).await?;
    for line in connection.events(&session, args.from).await? {
        connection.output.verbatim(&line);
    }
    Ok(Ending::Done)
}

/// Deletes everything about a session.
pub async fn delete(connection: &Connection, typed: &str) -> Outcome {
    let session_id = connection.find(typed).await?;
    connection.act(ClientMessage::DeleteSession { session_id: session_id.clone() }).await?;
    connection.output.say(&format!("deleted {session_id}"));
    Ok(Ending::Done)
}

/// Checks a workflow file.
pub async fn check(connection: &Connection, typed: &str) -> Outcome {
    let workflow = choice::workflow(typed)?;
    let ServerMessage::Workflow(view) =
        connection.ask(ClientMessage::CheckWorkflow { workflow }).await?
    else {
        return Err(unexpected());
    };
    let output = &connection.output;
    if output.format() == Format::Json {
        output.object(&view);
    } else {
        output.say(&output.paint("no mistakes", Look::Good));
        output.result(&described(&view));
    }
    Ok(Ending::Done)
}

/// Prints the JSON Schema of workflow files: for people on many lines, with `--json` on one.
pub fn schema(output: &Output) -> Outcome {
    let schema = correx_infrastructure::workflow_schema();
    match output.format() {
        Format::Json => output.object(&schema),
        Format::Text => output.verbatim(&format!("{schema:#}")),
    }
    Ok(Ending::Done)
}

fn described(view: &WorkflowView) -> String {
    let mut text = safe(&view.name);
    if !view.description.is_empty() {
        text.push_str(&format!("\n  {}", safe(&view.description)));
    }
    for input in &view.inputs {
        let need = if input.required { "" } else { ", optional" };
        text.push_str(&format!("\n  input {} ({}{need})", input.name, input.kind));
        if !input.description.is_empty() {
            text.push_str(&format!(": {}", safe(&input.description)));
        }
    }
    for (number, stage) in (1..).zip(&view.stages) {
        let (id, title) = (&stage.stage_id, safe(&stage.title));
        text.push_str(&format!("\n  {number}. {title} ({id}, {})", stage.kind));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_a_person_wants_to_know() {
        let session = SessionSummary {
            session_id: "s1".into(),
            title: "Monday\u{1b}[2J".into(),
            workflow: Some("Minutes".into()),
            status: WorkflowStatus::Paused,
            waiting_for: Some(WaitReason::Interrupted),
            current_stage: None,
            stages_done: 1,
            stages_total: 3,
            updated_at: String::new(),
        };
        assert_eq!(row(&session), "s1  interrupted 1/3         Monday[2J");
        let chat = SessionSummary { workflow: None, ..session };
        assert!(row(&chat).contains("chat"));
    }
}
