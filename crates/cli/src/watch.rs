//! Watching a run to its end, answering what it asks.

use std::io::IsTerminal;

use correx_events::SessionId;
use correx_protocol::{
    ClientMessage, ModelState, ModelView, ProtocolError, QuestionCause, RunView, ServerMessage,
    StageStatus, StageView, WaitReason, WorkflowStatus,
};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::args::WatchOptions;
use crate::connection::Connection;
use crate::display::{LoadingDisplay, RunDisplay};
use crate::outcome::{Ending, Outcome, unexpected};
use crate::output::{Format, Look, safe};
use crate::terminal::Lines;

/// Why watching ended.
pub enum Watched {
    /// The run has ended.
    Ended(RunView),
    /// It waits, and nobody here can answer or wants to go on.
    Waits(RunView),
}

/// Watches one run. Make it before the run is started, so that nothing is missed.
pub struct Watch<'a> {
    connection: &'a Connection,
    session: SessionId,
    pushes: broadcast::Receiver<ServerMessage>,
    options: WatchOptions,
    display: RunDisplay,
    run: Option<RunView>,
}

impl<'a> Watch<'a> {
    /// A watch over `session`'s run.
    pub fn new(connection: &'a Connection, session: SessionId, options: WatchOptions) -> Self {
        Self {
            connection,
            session,
            pushes: connection.pushes(),
            options,
            display: RunDisplay::new(connection.output.clone()),
            run: None,
        }
    }

    /// Waits until the run has ended, or waits for something that is not to be had here. Ctrl-C
    /// pauses it.
    pub async fn until_it_ends(mut self) -> Result<Watched, ProtocolError> {
        let mut stopping = false;
        self.look().await?;
        loop {
            if let Some(run) = self.run.clone()
                && let Some(watched) = self.decide(run, stopping).await?
            {
                return Ok(watched);
            }
            tokio::select! {
                message = self.pushes.recv() => self.hear(message).await?,
                _ = tokio::signal::ctrl_c() => {
                    stopping = true;
                    self.display.end();
                    let session_id = self.session.clone();
                    // Refused when it has just ended or waits already.
                    let _ = self.connection.act(ClientMessage::PauseRun { session_id }).await;
                    self.look().await?;
                }
            }
        }
    }

    async fn decide(
        &mut self,
        run: RunView,
        stopping: bool,
    ) -> Result<Option<Watched>, ProtocolError> {
        match (run.status, run.waiting_for) {
            (WorkflowStatus::Completed | WorkflowStatus::Failed, _) => {
                return Ok(Some(Watched::Ended(run)));
            }
            (WorkflowStatus::Paused, _) if stopping => return Ok(Some(Watched::Waits(run))),
            (WorkflowStatus::Paused, Some(WaitReason::Approval)) => {
                let asking = run.stages.iter().find(|stage| stage.status == StageStatus::Waiting);
                let Some(stage) = asking.cloned() else { return Ok(None) };
                self.run = None;
                if !self.answer(&stage).await? {
                    return Ok(Some(Watched::Waits(run)));
                }
            }
            // Somebody paused it elsewhere: whoever resumes it watches it then.
            (WorkflowStatus::Paused, Some(WaitReason::Person)) => {
                return Ok(Some(Watched::Waits(run)));
            }
            // The owner that ran it is gone, and this process has taken over.
            (WorkflowStatus::Paused, Some(WaitReason::Interrupted)) => {
                self.run = None;
                self.connection.output.say("going on with it here");
                let session_id = self.session.clone();
                self.connection.act(ClientMessage::ResumeRun { session_id }).await?;
            }
            _ => {}
        }
        Ok(None)
    }

    /// Has a person (or `--yes`) answer what `stage` asks. `false`: nobody is here to answer.
    async fn answer(&self, stage: &StageView) -> Result<bool, ProtocolError> {
        let output = &self.connection.output;
        let (session_id, stage_id) = (self.session.clone(), stage.stage_id.clone());
        let question = stage.question.as_ref();
        let is_own = question.is_none_or(|question| question.cause == QuestionCause::Workflow);
        if !self.options.yes || !is_own {
            for hash in question.iter().flat_map(|question| &question.artifact) {
                let text = self.connection.blob(&self.session, hash).await?;
                output.say(&format!("\n{}\n", safe(&text)));
            }
            // What would be replaced may be no text, or too large to be kept.
            for hash in question.iter().flat_map(|question| &question.before) {
                if let Ok(text) = self.connection.blob(&self.session, hash).await {
                    output.say(&format!("In its place there is now:\n\n{}\n", safe(&text)));
                }
            }
            let prompt = question.map_or("Go on?", |question| &question.prompt);
            output.say(&output.paint(&safe(prompt), Look::Bold));
            if !std::io::stdin().is_terminal() || output.format() == Format::Json {
                return Ok(false);
            }
            output.prompt("[y]es to approve, anything else is the reason to refuse: ");
            let Some(answer) = Lines::standard_input().next().await else { return Ok(false) };
            let answer = answer.trim();
            if !matches!(answer.to_lowercase().as_str(), "y" | "yes") {
                let reason = (!answer.is_empty()).then(|| answer.to_owned());
                let deny = ClientMessage::Deny { session_id, stage_id, reason };
                self.connection.act(deny).await?;
                return Ok(true);
            }
        } else {
            output.say(&format!("{}: approved, as --yes says", safe(&stage.title)));
        }
        let approve = ClientMessage::Approve { session_id, stage_id, comment: None, edited: None };
        self.connection.act(approve).await?;
        Ok(true)
    }

    async fn hear(
        &mut self,
        message: Result<ServerMessage, RecvError>,
    ) -> Result<(), ProtocolError> {
        match message {
            // Nobody will go on with the run: there is nothing more to wait for.
            Ok(ServerMessage::Error(error))
                if error.session_id.as_ref().is_none_or(|session| *session == self.session) =>
            {
                self.display.end();
                return Err(error);
            }
            Ok(message) => self.take(message),
            Err(RecvError::Lagged(_)) => self.look().await?,
            Err(RecvError::Closed) => return Err(unexpected()),
        }
        Ok(())
    }

    fn take(&mut self, message: ServerMessage) {
        let ours = match &message {
            ServerMessage::RunChanged { session_id, .. }
            | ServerMessage::StageProgress { session_id, .. } => *session_id == self.session,
            _ => false,
        };
        if !ours {
            return;
        }
        if self.connection.output.format() == Format::Json {
            self.connection.output.object(&message);
        }
        self.display.progress(&message, self.run.as_ref());
        if let ServerMessage::RunChanged { run, .. } = message {
            self.display.run(&run);
            self.run = Some(run);
        }
    }

    /// Looks at the run itself, in place of waiting to be told.
    async fn look(&mut self) -> Result<(), ProtocolError> {
        let view = self.connection.open_session(&self.session).await?;
        if let Some(run) = view.run {
            self.display.run(&run);
            self.run = Some(run);
        }
        Ok(())
    }
}

/// Watches a run to its end, then prints what it produced.
pub async fn to_the_end(connection: &Connection, watch: Watch<'_>) -> Outcome {
    let session = watch.session.clone();
    let output = &connection.output;
    let watched = watch.until_it_ends().await?;
    let short = session.as_str();
    match watched {
        Watched::Ended(run) => {
            crate::artifacts::print(connection, &session, &run).await?;
            report(connection, &session, &run);
            Ok(match run.status {
                WorkflowStatus::Completed => Ending::Done,
                _ => Ending::Failed,
            })
        }
        Watched::Waits(run) => {
            report(connection, &session, &run);
            let approval = run.waiting_for == Some(WaitReason::Approval);
            output.say(&if approval {
                format!("It waits for you: `correx approve {short}`, or `--deny REASON`.")
            } else {
                format!("Everything that it has done is kept. Go on with `correx resume {short}`.")
            });
            Ok(Ending::Failed)
        }
    }
}

fn report(connection: &Connection, session: &SessionId, run: &RunView) {
    #[derive(serde::Serialize)]
    struct Report<'a> {
        #[serde(rename = "type")]
        kind: &'static str,
        session_id: &'a SessionId,
        status: WorkflowStatus,
        waiting_for: Option<WaitReason>,
        failure: Option<&'a str>,
    }
    let output = &connection.output;
    if output.format() == Format::Json {
        output.object(&Report {
            kind: "finished",
            session_id: session,
            status: run.status,
            waiting_for: run.waiting_for,
            failure: run.failure.as_deref(),
        });
        return;
    }
    let line = match (run.status, &run.failure) {
        (WorkflowStatus::Completed, _) => output.paint("completed", Look::Good),
        (WorkflowStatus::Failed, Some(why)) => {
            format!("{}: {}", output.paint("failed", Look::Bad), safe(why))
        }
        (WorkflowStatus::Failed, None) => output.paint("cancelled", Look::Bad),
        (_, _) => "not finished".to_owned(),
    };
    output.say(&format!("{line}  {}", output.paint(&format!("session {session}"), Look::Dim)));
}

/// Waits until the model can answer, telling how its loading goes on.
pub async fn model_ready(connection: &Connection) -> Result<ModelView, ProtocolError> {
    let mut pushes = connection.pushes();
    let mut display = LoadingDisplay::new(connection.output.clone());
    loop {
        let ServerMessage::Model(model) = connection.ask(ClientMessage::GetModel).await? else {
            return Err(unexpected());
        };
        display.model(&model);
        match model.state {
            ModelState::Ready => return Ok(model),
            ModelState::Failed { error } => return Err(error),
            // It was freed; whoever waits for it wants it back.
            ModelState::Unloaded => {
                connection.ask(ClientMessage::LoadModel).await?;
            }
            ModelState::Loading { .. } => {}
        }
        // Any push will do: the state is asked for again.
        let wait = std::time::Duration::from_millis(200);
        let _ = tokio::time::timeout(wait, pushes.recv()).await;
    }
}

#[cfg(test)]
mod tests {
    use correx_infrastructure::Loading;
    use correx_protocol::ErrorCode;

    use super::*;
    use crate::args::Common;
    use crate::output::Output;

    #[tokio::test]
    async fn a_run_that_cannot_go_on_ends_the_watch_and_another_session_s_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = Some(dir.path().to_owned());
        let common = Common { json: true, data_dir, model: None, threads: None };
        let output = Output::new(Format::Json);
        let connection = Connection::open(&common, Loading::WhenNeeded, output).await.unwrap();
        let mut watch = Watch::new(&connection, "mine".into(), WatchOptions { yes: false });
        let stalled = |session: &str| {
            let error = ProtocolError::new(ErrorCode::Internal, "the disk is full");
            Ok(ServerMessage::Error(error.about(session.into())))
        };
        watch.hear(stalled("other")).await.unwrap();
        let error = watch.hear(stalled("mine")).await.unwrap_err();
        assert_eq!(error.message, "the disk is full");
        connection.close().await;
    }
}
