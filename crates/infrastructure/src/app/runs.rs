//! What a person does to a run.

use correx_events::{NoteId, SessionId, StageId};
use correx_protocol::ServerMessage;
use correx_sessions::WorkflowStatus;

use super::App;
use crate::failure::Failure;

type Reply = Result<ServerMessage, Failure>;

impl App {
    /// Starts the session's workflow, with the workflow file and the inputs as they were captured.
    pub async fn start_run(&self, session: &SessionId) -> Reply {
        self.known(session).await?;
        self.inner.orchestrator.start(session).await?;
        Ok(ServerMessage::Done)
    }

    /// Stops generating until resumed.
    pub async fn pause_run(&self, session: &SessionId) -> Reply {
        self.known(session).await?;
        self.inner.orchestrator.pause(session).await?;
        Ok(ServerMessage::Done)
    }

    /// Goes on with a paused or interrupted run.
    pub async fn resume_run(&self, session: &SessionId) -> Reply {
        self.known(session).await?;
        self.inner.orchestrator.resume(session).await?;
        Ok(ServerMessage::Done)
    }

    /// Ends a run for good.
    pub async fn cancel_run(&self, session: &SessionId) -> Reply {
        self.known(session).await?;
        self.inner.orchestrator.cancel(session).await?;
        Ok(ServerMessage::Done)
    }

    /// Agrees to what a stage asks. `edited` takes the place of what it shows.
    pub async fn approve(
        &self,
        session: &SessionId,
        stage: &StageId,
        comment: Option<String>,
        edited: Option<String>,
    ) -> Reply {
        self.known(session).await?;
        self.inner.orchestrator.approve(session, stage, comment, edited).await?;
        Ok(ServerMessage::Done)
    }

    /// Begins an ended run again from one of its stages.
    pub async fn rerun(&self, session: &SessionId, stage: &StageId) -> Reply {
        self.known(session).await?;
        self.inner.orchestrator.rerun(session, stage).await?;
        Ok(ServerMessage::Done)
    }

    /// Refuses what a stage asks; the run ends.
    pub async fn deny(
        &self,
        session: &SessionId,
        stage: &StageId,
        reason: Option<String>,
    ) -> Reply {
        self.known(session).await?;
        self.inner.orchestrator.deny(session, stage, reason).await?;
        Ok(ServerMessage::Done)
    }

    /// Takes a steering note back.
    pub async fn withdraw_note(&self, session: &SessionId, note: &NoteId) -> Reply {
        self.known(session).await?;
        self.inner.orchestrator.withdraw_note(session, note).await?;
        Ok(ServerMessage::Done)
    }

    /// Puts another text in the place of a steering note that no stage was shown yet.
    pub async fn edit_note(&self, session: &SessionId, note: &NoteId, content: &str) -> Reply {
        self.known(session).await?;
        self.inner.facade.edit_note(session, note, content).await?;
        Ok(ServerMessage::Done)
    }

    /// Whether the log says that stages are running.
    pub(super) async fn is_running(&self, session: &SessionId) -> bool {
        let state = self.inner.sessions.run(session).await;
        state.is_ok_and(|state| state.status == WorkflowStatus::Running)
    }
}
