//! The task of one run: read the log, decide the next step, take it, until the run ends.

use std::sync::Arc;

use correx_events::{
    ApprovalCause, ApprovalRequested, EventPayload, OrchestrationPaused, PauseReason, StageId,
    StageStarted, StoredEvent,
};
use correx_inference::InferenceCancellationToken;
use correx_sessions::{RunState, StageRecord, WorkflowStatus};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::finish::{completed, stage_skipped};
use super::log::{Landed, LogError, SessionLog};
use super::material::Material;
use super::orchestrator::{OrchestratorConfig, OrchestratorDeps};
use super::outcome::failure;
use super::pieces::Pieces;
use crate::{ApproveStep, Stage, Step, TemplateValues};

/// Why a run's task gave up. The log is as it was; the run can be resumed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stall {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Read(#[from] correx_events::ReadError),
    #[error(transparent)]
    Blob(#[from] correx_events::BlobError),
    #[error("{0}")]
    Other(String),
}

pub(super) struct Runner {
    pub(super) deps: OrchestratorDeps,
    pub(super) config: OrchestratorConfig,
    pub(super) material: Material,
    pub(super) log: SessionLog,
    /// Subscribed before the log was read, so that nothing falls between.
    pub(super) feed: broadcast::Receiver<Arc<StoredEvent>>,
    /// Cancelled when the program ends: everything is dropped where it stands.
    pub(super) stop: InferenceCancellationToken,
}

impl Runner {
    /// Runs to the run's end, or until it is stopped.
    pub(super) async fn run(mut self) {
        let stop = self.stop.clone();
        let (session, sink) = (self.log.session.clone(), self.deps.progress.clone());
        let outcome = tokio::select! {
            // First, so that a model call that was stopped with everything else is not recorded.
            biased;
            () = stop.cancelled() => return,
            outcome = self.steps() => outcome,
        };
        if let Err(stall) = outcome {
            tracing::warn!(%session, %stall, "a run stalled");
            let message = format!("the run stopped here and kept all that was done: {stall}");
            sink.stalled(&session, &message);
        }
    }

    async fn steps(&mut self) -> Result<(), Stall> {
        self.log.refresh().await?;
        loop {
            match self.log.state.status {
                WorkflowStatus::Completed | WorkflowStatus::Failed | WorkflowStatus::Idle => {
                    return Ok(());
                }
                WorkflowStatus::Paused => {
                    self.wait_for_event().await;
                    self.log.refresh().await?;
                }
                WorkflowStatus::Running => self.step().await?,
            }
        }
    }

    async fn step(&mut self) -> Result<(), Stall> {
        let Some(record) = self.log.state.next_unfinished() else {
            let completed = completed(&self.log.state, self.deps.clock.now());
            let _either_way_decide_again = self.log.append(vec![completed]).await?;
            return Ok(());
        };
        let id = record.plan.id.clone();
        let Some(stage) = self.material.workflow.stage(&id).cloned() else {
            return Err(Stall::Other(format!("its workflow has no stage \"{id}\"")));
        };
        if !self.is_wanted(&stage).await? {
            return Ok(());
        }
        match &stage.step {
            Step::Approve(step) => self.ask(&id, step).await,
            Step::Generate(step) => self.generate(&stage, step).await,
            Step::Choose(step) => self.generate(&stage, &step.ask).await,
            Step::Map(step) => self.piecewise(&stage, &step.each, Pieces::Map(step)).await,
            Step::Reduce(step) => self.piecewise(&stage, &step.each, Pieces::Reduce(step)).await,
            Step::Command(_) | Step::Write(_) | Step::Read(_) => self.outside(&stage).await,
        }
    }

    /// Whether the stage's condition holds; passes it over when not.
    async fn is_wanted(&mut self, stage: &Stage) -> Result<bool, Stall> {
        let begun = self.log.state.stage(&stage.id).is_some_and(|record| record.attempt > 0);
        let condition = match &stage.when {
            // What has begun goes on.
            Some(condition) if !begun => condition,
            _ => return Ok(true),
        };
        let values = self.values().await?;
        let (state, now) = (&self.log.state, self.deps.clock.now());
        let payloads = match condition.holds(&values) {
            Ok(true) => return Ok(true),
            Ok(false) => stage_skipped(state, &stage.id, condition.source(), now),
            Err(error) => {
                let (number, message) = (next_attempt(state, &stage.id), error.to_string());
                failure(&stage.id, &stage.title, number, message)
            }
        };
        let _either_way_decide_again = self.log.append(payloads).await?;
        Ok(false)
    }

    async fn ask(&mut self, stage: &StageId, step: &ApproveStep) -> Result<(), Stall> {
        let state = &self.log.state;
        let artifact = state
            .stages
            .iter()
            .flat_map(StageRecord::produced)
            .rfind(|artifact| Some(&artifact.name) == step.show.as_ref())
            .map(|artifact| artifact.hash.clone());
        let attempt = next_attempt(state, stage);
        let request = ApprovalRequested {
            stage_id: stage.clone(),
            prompt: step.question.clone(),
            artifact,
            cause: ApprovalCause::Workflow,
            action: None,
            before: None,
        };
        let payloads = vec![
            StageStarted { stage_id: stage.clone(), attempt }.into(),
            request.into(),
            OrchestrationPaused { reason: PauseReason::Approval }.into(),
        ];
        let _either_way_decide_again = self.log.append(payloads).await?;
        Ok(())
    }

    /// The inputs and every artifact that the run has made so far.
    pub(super) async fn values(&self) -> Result<TemplateValues, Stall> {
        let values = self.material.values(&self.log.state, self.deps.blobs.as_ref()).await;
        values.map_err(|error| Stall::Other(error.to_string()))
    }

    /// Appends what ends a stage. Paused: left for the next attempt to find out. Ended: nothing is
    /// to be said any more.
    pub(super) async fn end_with(&mut self, payloads: Vec<EventPayload>) -> Result<(), Stall> {
        while self.log.state.status == WorkflowStatus::Running {
            if self.log.append(payloads.clone()).await? == Landed::Yes {
                break;
            }
        }
        Ok(())
    }

    /// Pauses the run as interrupted: what failed lies outside it and can be mended.
    pub(super) async fn interrupt(&mut self, message: &str) -> Result<(), Stall> {
        while self.log.state.status == WorkflowStatus::Running {
            let paused = OrchestrationPaused { reason: PauseReason::Interrupted };
            if self.log.append(vec![paused.into()]).await? == Landed::Yes {
                self.deps.progress.stalled(&self.log.session, message);
            }
        }
        Ok(())
    }

    /// Returns when this session's log may have grown.
    pub(super) async fn wait_for_event(&mut self) {
        wait_for_event(&mut self.feed, &self.log).await;
    }
}

/// Returns when the session's log may have grown beyond what `log` has folded.
pub(super) async fn wait_for_event(
    feed: &mut broadcast::Receiver<Arc<StoredEvent>>,
    log: &SessionLog,
) {
    loop {
        match feed.recv().await {
            Ok(event)
                if event.metadata.session_id == log.session
                    && event.metadata.sequence > log.state.version =>
            {
                return;
            }
            Ok(_) => {}
            // Events were missed: one of them may be ours.
            Err(RecvError::Lagged(_)) => return,
            // The store is gone; so will this task be.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// The number of the stage's next attempt. They count on over restarts and restarts of the program.
pub(super) fn next_attempt(state: &RunState, stage: &StageId) -> u32 {
    state.stage(stage).map_or(1, |record| record.attempt.saturating_add(1))
}
