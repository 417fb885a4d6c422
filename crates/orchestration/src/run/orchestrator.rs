//! What a person can do to a run. Every operation is decided on the folded log, appended at that
//! version, and decided again when something came in between.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use correx_events::{
    Append, AppendError, ApprovalCause, ApprovalDenied, ApprovalGranted, ArtifactName,
    ArtifactProduced, BlobHash, BlobStore, CapturedInput, Clock, EffectDone, EffectOutcome,
    EventPayload, EventStore, FailureReason, InputsCaptured, NoteId, OrchestrationPaused,
    OrchestrationResumed, PauseReason, SessionCreated, SessionId, StageCancelled, StageFailed,
    StageId, SteeringNoteWithdrawn, WorkflowFailed, WorkflowRef, WorkflowRerun, WorkflowStarted,
};
use correx_inference::{GenerationConfig, InferenceCancellationToken, InferenceRouter};
use correx_sessions::{
    EffectRecord, EventReplayer, IncrementalReplayer, RunReducer, RunState, StageRecord,
    StageStatus, WorkflowStatus,
};
use tokio::task::JoinHandle;

use super::attempt::required;
use super::error::{CreateError, RunControlError};
use super::finish::{Produced, stage_done};
use super::guard::{can_rerun, can_resume, can_start, is_asking, wrong};
use super::log::{Landed, LogError, SessionLog};
use super::material::Material;
use super::policy::PolicySource;
use super::progress::ProgressSink;
use super::runner::Runner;
use crate::{InputText, Need, StageThinking, Step, Workflow};

/// What an orchestrator works with.
#[derive(Clone)]
pub struct OrchestratorDeps {
    /// The log.
    pub store: Arc<dyn EventStore>,
    /// Where content lies.
    pub blobs: Arc<dyn BlobStore>,
    /// Which model runs which stage.
    pub router: Arc<dyn InferenceRouter>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What workflows may do outside of Correx.
    pub policy: Arc<dyn PolicySource>,
    /// Who is told how far a stage is.
    pub progress: Arc<dyn ProgressSink>,
}

/// How an orchestrator behaves.
#[derive(Debug, Clone)]
pub struct OrchestratorConfig {
    /// How stages generate where their workflow does not say it.
    pub generation: GenerationConfig,
    /// Whether models that can be told so think before they write.
    pub thinking: StageThinking,
    /// The person's limit on a stage's prompt in tokens; `None`: the model's window.
    pub stage_token_budget: Option<usize>,
    /// How long to wait for further notes after one that restarts a stage.
    pub settle: Duration,
}

impl Default for OrchestratorConfig {
    fn default() -> Self {
        Self {
            generation: GenerationConfig::default(),
            thinking: StageThinking::default(),
            stage_token_budget: None,
            settle: Duration::from_millis(150),
        }
    }
}

/// What [`Orchestrator::recover`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// The run was running when the process ended; it is shown as interrupted now.
    Interrupted,
    /// There was nothing to do.
    Nothing,
}

/// Runs workflows: the only writer of workflow events. Each live run is one task; dropping the
/// orchestrator ends them where they stand, as a crash would, and loses nothing.
pub struct Orchestrator {
    deps: OrchestratorDeps,
    config: OrchestratorConfig,
    states: IncrementalReplayer<RunReducer>,
    live: Mutex<HashMap<SessionId, LiveRun>>,
    /// Cancelled when the program ends.
    closing: InferenceCancellationToken,
}

struct LiveRun {
    task: JoinHandle<()>,
    stop: InferenceCancellationToken,
}

/// What an operation decided on a state.
type Decision = Result<Vec<EventPayload>, RunControlError>;

impl Orchestrator {
    /// An orchestrator without runs. Call [`Orchestrator::recover`] for each session of an
    /// existing log. Runs are tasks of the runtime that starts or resumes them.
    pub fn new(deps: OrchestratorDeps, config: OrchestratorConfig) -> Self {
        Self {
            states: IncrementalReplayer::new(deps.store.clone(), RunReducer),
            deps,
            config,
            live: Mutex::default(),
            closing: InferenceCancellationToken::new(),
        }
    }

    /// Writes a new session's first events: what it is called, which workflow it can run, what it
    /// reads. Content is kept before the events that refer to it.
    pub async fn create(
        &self,
        session: &SessionId,
        title: &str,
        workflow: Option<&Workflow>,
        inputs: &[InputText],
    ) -> Result<(), CreateError> {
        let missing = workflow.into_iter().flat_map(|workflow| &workflow.inputs).find(|spec| {
            spec.need == Need::Required
                && spec.default.is_none()
                && !inputs.iter().any(|input| input.name == spec.name)
        });
        if let Some(spec) = missing {
            return Err(CreateError::MissingInput(spec.name.clone()));
        }
        let reference = match workflow {
            None => None,
            Some(workflow) => {
                let source = workflow.source().as_bytes().to_vec();
                let source = self.deps.blobs.put(session, source).await?;
                Some(WorkflowRef { name: workflow.name.clone(), source })
            }
        };
        let mut captured = Vec::new();
        for input in inputs {
            let bytes = input.text.as_bytes().to_vec();
            captured.push(CapturedInput {
                name: input.name.clone(),
                kind: input.kind,
                path: input.path.clone(),
                bytes: bytes.len() as u64,
                hash: self.deps.blobs.put(session, bytes).await?,
            });
        }
        let created = SessionCreated { title: title.to_owned(), workflow: reference };
        let mut payloads: Vec<EventPayload> = vec![created.into()];
        if !captured.is_empty() {
            payloads.push(InputsCaptured { inputs: captured }.into());
        }
        match self.deps.store.append(Append::at(session.clone(), 0, payloads)).await {
            Ok(_) => Ok(()),
            Err(AppendError::VersionConflict { .. }) => Err(CreateError::Exists(session.clone())),
            Err(error) => Err(CreateError::Append(error)),
        }
    }

    /// Starts the session's run. Refused before anything is appended when there is no model for
    /// one of its stages.
    pub async fn start(&self, session: &SessionId) -> Result<(), RunControlError> {
        let state = self.state(session).await?;
        can_start(&state)?;
        let material = Material::load(&state, self.deps.blobs.as_ref()).await?;
        self.check_models(&state, &material.workflow).await?;
        let stages = material.workflow.plan();
        let started = WorkflowStarted {
            workflow: material.workflow.name.clone(),
            first_stage: stages.first().map(|stage| stage.id.clone()),
            stages,
        };
        self.decide(session, |state| {
            can_start(state)?;
            Ok(vec![started.clone().into()])
        })
        .await?;
        self.run(session, material)
    }

    /// Stops generating until [`Orchestrator::resume`]. What was being written is kept as a draft.
    pub async fn pause(&self, session: &SessionId) -> Result<(), RunControlError> {
        self.decide(session, |state| match state.status {
            WorkflowStatus::Running => {
                Ok(vec![OrchestrationPaused { reason: PauseReason::Person }.into()])
            }
            WorkflowStatus::Paused => Err(wrong(state, "it is not running")),
            _ => Err(wrong(state, "only a running run can be paused")),
        })
        .await
    }

    /// Goes on with a paused or interrupted run: its current stage begins a new attempt, what is
    /// done stays done. Also wakes a run that stalled.
    pub async fn resume(&self, session: &SessionId) -> Result<(), RunControlError> {
        let state = self.state(session).await?;
        let is_live = self.is_live(session);
        can_resume(&state, is_live)?;
        let material = Material::load(&state, self.deps.blobs.as_ref()).await?;
        self.check_models(&state, &material.workflow).await?;
        self.decide(session, |state| {
            can_resume(state, is_live)?;
            match state.status {
                WorkflowStatus::Running => Ok(Vec::new()),
                _ => Ok(vec![OrchestrationResumed {}.into()]),
            }
        })
        .await?;
        self.run(session, material)
    }

    /// Ends a running or paused run. It cannot be resumed; everything that it made stays.
    pub async fn cancel(&self, session: &SessionId) -> Result<(), RunControlError> {
        self.decide(session, |state| match state.status {
            WorkflowStatus::Running | WorkflowStatus::Paused => {
                let begun = state
                    .stages
                    .iter()
                    .find(|record| {
                        matches!(record.status, StageStatus::Running | StageStatus::Waiting)
                    })
                    .map(|record| StageCancelled {
                        stage_id: record.plan.id.clone(),
                        attempt: record.attempt,
                    });
                let failed = WorkflowFailed {
                    reason: FailureReason::Cancelled,
                    message: "a person cancelled the run; what was finished is kept".to_owned(),
                };
                Ok(begun.map(Into::into).into_iter().chain([failed.into()]).collect())
            }
            WorkflowStatus::Idle => Err(wrong(state, "it has not been started")),
            _ => Err(wrong(state, "there is nothing to cancel")),
        })
        .await
    }

    /// Answers the open question of a stage with yes; the run goes on. What a person is asked about
    /// because of policy, an existing file or a half-done effect is done then, if policy still lets
    /// it. `edited` takes the place of the artifact that an approve stage shows.
    pub async fn approve(
        &self,
        session: &SessionId,
        stage: &StageId,
        comment: Option<String>,
        edited: Option<String>,
    ) -> Result<(), RunControlError> {
        let state = self.state(session).await?;
        is_asking(&state, stage)?;
        let material = Material::load(&state, self.deps.blobs.as_ref()).await?;
        let shown = match material.workflow.stage(stage).map(|stage| &stage.step) {
            Some(Step::Approve(step)) => step.show.clone(),
            _ => None,
        };
        let edited = match (edited, shown) {
            (None, _) => None,
            (Some(_), None) => return Err(RunControlError::NotEditable(stage.clone())),
            (Some(text), Some(name)) => {
                let bytes = text.into_bytes();
                let length = bytes.len() as u64;
                Some((name, self.deps.blobs.put(session, bytes).await?, length))
            }
        };
        self.decide(session, |state| {
            let attempt = is_asking(state, stage)?;
            let granted = ApprovalGranted { stage_id: stage.clone(), comment: comment.clone() };
            let mut payloads: Vec<EventPayload> = vec![granted.into()];
            let record = state.stage(stage);
            let question = record.and_then(|record| record.question.as_ref());
            if question.is_some_and(|question| question.cause != ApprovalCause::Workflow) {
                if let Some(effect) = record.and_then(StageRecord::half_done) {
                    payloads.push(done_again(effect));
                }
                payloads.push(OrchestrationResumed {}.into());
                return Ok(payloads);
            }
            if let Some((name, hash, bytes)) = &edited {
                payloads.push(replaced(state, stage, attempt, name, hash, *bytes));
            }
            payloads.push(OrchestrationResumed {}.into());
            let now = self.deps.clock.now();
            payloads.extend(stage_done(state, stage, attempt, Produced::default(), now));
            Ok(payloads)
        })
        .await?;
        self.run(session, material)
    }

    /// Begins an ended run again from `stage`: it runs anew, with all stages that need it and all
    /// that are not done. What was made before is kept; what the other stages made counts.
    pub async fn rerun(&self, session: &SessionId, stage: &StageId) -> Result<(), RunControlError> {
        let state = self.state(session).await?;
        can_rerun(&state, stage)?;
        let material = Material::load(&state, self.deps.blobs.as_ref()).await?;
        self.decide(session, |state| {
            let stages = can_rerun(state, stage)?;
            Ok(vec![WorkflowRerun { from_stage: stage.clone(), stages }.into()])
        })
        .await?;
        self.run(session, material)
    }

    /// Answers the open question of a stage with no; the run ends.
    pub async fn deny(
        &self,
        session: &SessionId,
        stage: &StageId,
        reason: Option<String>,
    ) -> Result<(), RunControlError> {
        self.decide(session, |state| {
            let attempt = is_asking(state, stage)?;
            let said = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let denied = ApprovalDenied { stage_id: stage.clone(), reason: reason.clone() };
            let failed = StageFailed {
                stage_id: stage.clone(),
                attempt,
                reason: format!("a person did not approve it{said}"),
            };
            let ended = WorkflowFailed {
                reason: FailureReason::ApprovalDenied,
                message: format!("a person did not approve \"{stage}\"{said}"),
            };
            Ok(vec![denied.into(), failed.into(), ended.into()])
        })
        .await
    }

    /// Takes a steering note back: attempts that begin later are not shown it.
    pub async fn withdraw_note(
        &self,
        session: &SessionId,
        note: &NoteId,
    ) -> Result<(), RunControlError> {
        self.decide(session, |state| match state.notes.get(note) {
            None => Err(RunControlError::UnknownNote(note.clone())),
            Some(record) if record.withdrawn => Err(RunControlError::AlreadyWithdrawn),
            Some(_) if state.status.has_ended() => {
                Err(wrong(state, "its notes act on nothing any more"))
            }
            Some(_) => Ok(vec![SteeringNoteWithdrawn { note_id: note.clone() }.into()]),
        })
        .await
    }

    /// Call once for every session at the start of the program: a run that was running when the
    /// last process ended is marked as interrupted. Paused ones and open questions stay.
    pub async fn recover(&self, session: &SessionId) -> Result<Recovery, RunControlError> {
        let mut recovery = Recovery::Nothing;
        self.decide(session, |state| {
            if state.status != WorkflowStatus::Running || self.is_live(session) {
                recovery = Recovery::Nothing;
                return Ok(Vec::new());
            }
            recovery = Recovery::Interrupted;
            Ok(vec![OrchestrationPaused { reason: PauseReason::Interrupted }.into()])
        })
        .await?;
        Ok(recovery)
    }

    /// Whether a task is at work on the session's run. A paused run may have one, waiting.
    pub fn is_live(&self, session: &SessionId) -> bool {
        self.live().get(session).is_some_and(|run| !run.task.is_finished())
    }

    /// Ends the task of a session that is being deleted, and forgets what is known of it.
    pub async fn forget(&self, session: &SessionId) {
        let run = self.live().remove(session);
        if let Some(run) = run {
            run.stop.cancel();
            // A task that panicked is gone as well.
            let _ = run.task.await;
        }
        self.states.forget(session).await;
    }

    /// Ends all tasks where they stand, without a mark in the log: at the next start their runs
    /// are found running, and interrupted.
    pub async fn shutdown(&self) {
        self.closing.cancel();
        let runs: Vec<LiveRun> = self.live().drain().map(|(_, run)| run).collect();
        for run in runs {
            let _ = run.task.await;
        }
    }

    /// The run's state now.
    pub async fn state(&self, session: &SessionId) -> Result<RunState, RunControlError> {
        let state = self.states.rebuild(session).await?;
        match state.version {
            0 => Err(RunControlError::NoSession(session.clone())),
            _ => Ok(state),
        }
    }

    /// Appends what `decide` says about the state, and asks it again as often as the log has
    /// grown meanwhile.
    async fn decide(
        &self,
        session: &SessionId,
        mut decide: impl FnMut(&RunState) -> Decision,
    ) -> Result<(), RunControlError> {
        let state = self.state(session).await?;
        let mut log = SessionLog::new(self.deps.store.clone(), session.clone(), state);
        loop {
            let payloads = decide(&log.state)?;
            if payloads.is_empty() || log.append(payloads).await? == Landed::Yes {
                return Ok(());
            }
        }
    }

    /// Asks for the models of the stages that are still to run.
    async fn check_models(
        &self,
        state: &RunState,
        workflow: &Workflow,
    ) -> Result<(), RunControlError> {
        for stage in &workflow.stages {
            let is_done = state.stage(&stage.id).is_some_and(|record| record.status.is_over());
            let Some(step) = stage.step.call().filter(|_| !is_done) else { continue };
            match workflow.model_for(step) {
                // Found out without loading it: another one may be at work.
                Some(model) => self.deps.router.check_model(model).await?,
                None => {
                    self.deps.router.route(Some(&stage.id), required(&stage.step)).await?;
                }
            }
        }
        Ok(())
    }

    /// Sees to it that a task is at work on the session.
    fn run(&self, session: &SessionId, material: Material) -> Result<(), RunControlError> {
        if self.closing.is_cancelled() {
            return Err(RunControlError::Closing);
        }
        let mut live = self.live();
        live.retain(|_, run| !run.task.is_finished());
        if !live.contains_key(session) {
            let stop = self.closing.child();
            let store = self.deps.store.clone();
            let runner = Runner {
                feed: store.subscribe(),
                log: SessionLog::new(store, session.clone(), RunState::default()),
                deps: self.deps.clone(),
                config: self.config.clone(),
                material,
                stop: stop.clone(),
            };
            live.insert(session.clone(), LiveRun { task: tokio::spawn(runner.run()), stop });
        }
        Ok(())
    }

    fn live(&self) -> MutexGuard<'_, HashMap<SessionId, LiveRun>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A half-done effect that a person lets be done again: this time of it is over.
fn done_again(effect: &EffectRecord) -> EventPayload {
    let message = "Correx ended while it was at work; a person let it be done once more".to_owned();
    EffectDone {
        effect_id: effect.intended.effect_id.clone(),
        stage_id: effect.intended.stage_id.clone(),
        outcome: EffectOutcome::Failed { message },
        output: None,
    }
    .into()
}

/// The artifact that a person changed before approving it.
fn replaced(
    state: &RunState,
    stage: &StageId,
    attempt: u32,
    name: &ArtifactName,
    hash: &BlobHash,
    bytes: u64,
) -> EventPayload {
    let mut made = state.stages.iter().flat_map(StageRecord::produced);
    let media_type = made.rfind(|artifact| artifact.name == *name);
    ArtifactProduced {
        stage_id: stage.clone(),
        attempt,
        name: name.clone(),
        hash: hash.clone(),
        bytes,
        media_type: media_type
            .map_or_else(|| "text/plain".to_owned(), |artifact| artifact.media_type.clone()),
    }
    .into()
}

impl Drop for Orchestrator {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

impl From<LogError> for RunControlError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Read(error) => Self::Read(error),
            LogError::Write(message) => Self::Write(message),
        }
    }
}
