//! One attempt of a generate stage: its prompt and its model call.

use std::future::Future;
use std::sync::Arc;

use correx_context::ContextPack;
use correx_events::{BlobHash, EventPayload, NoteId, StageId, StageStarted};
use correx_inference::{
    FinishReason, GenerationConfig, InferenceCancellationToken, InferenceError, InferenceProvider,
    InferenceRequest, InferenceResponse, ModelCapability, RoutingError,
};
use correx_sessions::{DraftReason, RunState, WorkflowStatus};

use super::log::Landed;
use super::progress::{StageProgress, stream_to};
use super::record;
use super::runner::{Runner, Stall, next_attempt, wait_for_event};
use crate::stage_context::{AttemptContext, AttemptLimits, StageContextError, assemble};
use crate::{GenerateStep, Stage, TemplateValues};

/// An attempt that has begun.
pub(super) struct Attempt<'a> {
    pub(super) stage: &'a Stage,
    pub(super) step: &'a GenerateStep,
    pub(super) number: u32,
    pub(super) generation: GenerationConfig,
}

/// What to do after an attempt.
pub(super) enum Next {
    /// The following attempt has begun already.
    Again,
    /// Look at the log.
    Decide,
}

/// A model call that came back.
pub(super) struct Reply {
    pub(super) response: InferenceResponse,
    /// Trimmed.
    pub(super) text: String,
    pub(super) blob: BlobHash,
    pub(super) completed: EventPayload,
    /// Whether we asked it to stop.
    pub(super) stopped: Stopped,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    ByUs,
    ByItself,
}

impl Runner {
    /// Begins an attempt of `stage`, and those that follow from it.
    pub(super) async fn generate(
        &mut self,
        stage: &Stage,
        step: &GenerateStep,
    ) -> Result<(), Stall> {
        let mut number = next_attempt(&self.log.state, &stage.id);
        let started = StageStarted { stage_id: stage.id.clone(), attempt: number };
        if self.log.append(vec![started.into()]).await? == Landed::Overtaken {
            return Ok(());
        }
        loop {
            let mut generation =
                self.material.workflow.generation_for(step, self.config.generation.clone());
            // A retry draws other words; a restart after a note draws the same.
            let refused = refusals(&self.log.state, &stage.id).count() as u64;
            generation.seed = generation.seed.wrapping_add(refused);
            match self.attempt(&Attempt { stage, step, number, generation }).await? {
                Next::Again => number = number.saturating_add(1),
                Next::Decide => return Ok(()),
            }
        }
    }

    async fn attempt(&mut self, attempt: &Attempt<'_>) -> Result<Next, Stall> {
        let provider = match self.route(attempt).await? {
            None => return Ok(Next::Decide),
            Some(Ok(provider)) => provider,
            Some(Err(error)) => {
                self.interrupt(&format!("{error}. Resume the run when the model is there")).await?;
                return Ok(Next::Decide);
            }
        };
        let pack = match self.assemble(attempt, provider.as_ref()).await? {
            None => return Ok(Next::Decide),
            Some(Ok(pack)) => pack,
            Some(Err(error)) => return self.fail(attempt, error.to_string()).await,
        };
        let shown = pack.prompt.ids.clone();
        let reply = match self.infer(attempt, provider.as_ref(), pack).await? {
            Err(error) if self.is_in_vain(attempt) => {
                tracing::debug!(%error, "an unwanted model call failed");
                None
            }
            Err(InferenceError::Gone) => {
                let message = "the model is not running; resume the run when it is loaded again";
                self.interrupt(message).await?;
                return Ok(Next::Decide);
            }
            Err(error) => return self.fail(attempt, error.to_string()).await,
            Ok(reply) => {
                let complete = reply.response.finish_reason != FinishReason::Cancelled;
                // A provider that only counts has no ids to compare.
                if complete && !shown.is_empty() && reply.response.prompt_ids != shown {
                    let reason = "the model was fed other tokens than the ones that were put \
                                  together for it; its answer was not used. Please report this";
                    return self.fail(attempt, reason.to_owned()).await;
                }
                Some(reply)
            }
        };
        self.conclude(attempt, reply).await
    }

    /// The provider, waiting for it as long as the run wants it.
    async fn route(
        &mut self,
        attempt: &Attempt<'_>,
    ) -> Result<Option<Result<Arc<dyn InferenceProvider>, RoutingError>>, Stall> {
        let (router, stage) = (self.deps.router.clone(), attempt.stage.id.clone());
        self.while_running(
            async move { router.route(Some(&stage), &[ModelCapability::Chat]).await },
        )
        .await
    }

    /// Drives `work` to its end; `None` when the run is paused or ends before.
    async fn while_running<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>, Stall> {
        tokio::pin!(work);
        while self.log.state.status == WorkflowStatus::Running {
            tokio::select! {
                biased;
                output = &mut work => return Ok(Some(output)),
                () = wait_for_event(&mut self.feed, &self.log) => self.log.refresh().await?,
            }
        }
        Ok(None)
    }

    /// Builds the prompt and records it together with the notes in it; again whenever a note was
    /// given or taken back meanwhile. `None` when the run is paused or has ended.
    async fn assemble(
        &mut self,
        attempt: &Attempt<'_>,
        provider: &dyn InferenceProvider,
    ) -> Result<Option<Result<ContextPack, StageContextError>>, Stall> {
        let values = self
            .material
            .values(&self.log.state, self.deps.blobs.as_ref())
            .await
            .map_err(|error| Stall::Other(error.to_string()))?;
        let values = Arc::new(values);
        let limits = AttemptLimits {
            token_budget: self.config.stage_token_budget,
            context_window: provider.context_window(),
            max_tokens: attempt.generation.max_tokens,
        };
        while self.log.state.status == WorkflowStatus::Running {
            let state = &self.log.state;
            let notes: Vec<(NoteId, String)> = state
                .notes
                .acting_on(&attempt.stage.id, &state.order())
                .map(|record| (record.note.note_id.clone(), record.note.content.clone()))
                .collect();
            let pack = match self.pack(attempt, &values, &notes, limits, provider).await? {
                Ok(pack) => pack,
                Err(error) => return Ok(Some(Err(error))),
            };
            let id = &attempt.stage.id;
            let blobs = self.deps.blobs.as_ref();
            let mut payloads =
                vec![record::context(blobs, &self.log.session, id, attempt.number, &pack).await?];
            payloads
                .extend(notes.iter().map(|(note, _)| record::applied(note, id, attempt.number)));
            if self.log.append(payloads).await? == Landed::Yes {
                return Ok(Some(Ok(pack)));
            }
        }
        Ok(None)
    }

    /// Encodes the prompt away from the async threads: it can be long.
    async fn pack(
        &self,
        attempt: &Attempt<'_>,
        values: &Arc<TemplateValues>,
        notes: &[(NoteId, String)],
        limits: AttemptLimits,
        provider: &dyn InferenceProvider,
    ) -> Result<Result<ContextPack, StageContextError>, Stall> {
        let (session, stage) = (self.log.session.clone(), attempt.stage.id.clone());
        let (step, number) = (attempt.step.clone(), attempt.number);
        let refused: Vec<String> =
            refusals(&self.log.state, &stage).map(ToOwned::to_owned).collect();
        let (values, notes) = (values.clone(), notes.to_vec());
        let thinking = self.material.workflow.thinking_for(attempt.step, self.config.thinking);
        let encoder = provider.encoder_for(thinking);
        let packing = tokio::task::spawn_blocking(move || {
            let context = AttemptContext {
                session: &session,
                stage: &stage,
                attempt: number,
                step: &step,
                values: &values,
                refusal: refused.last().map(|message| (message.as_str(), refused.len())),
                notes: notes.iter().map(|(note, text)| (note.clone(), text.as_str())).collect(),
            };
            assemble(&context, limits, encoder.as_ref())
        });
        packing
            .await
            .map_err(|error| Stall::Other(format!("the prompt could not be made: {error}")))
    }

    /// Calls the model, and stops it as soon as the log says that the reply is not wanted.
    async fn infer(
        &mut self,
        attempt: &Attempt<'_>,
        provider: &dyn InferenceProvider,
        pack: ContextPack,
    ) -> Result<Result<Reply, InferenceError>, Stall> {
        let begin = StageProgress {
            session: self.log.session.clone(),
            stage: attempt.stage.id.clone(),
            attempt: attempt.number,
            prompt_done: 0,
            prompt_total: pack.prompt.total(),
            tokens: 0,
            max_tokens: attempt.generation.max_tokens,
            thinking_tokens: 0,
            thinking: String::new(),
            text: String::new(),
        };
        self.deps.progress.progress(begin.clone());
        let prompt_tokens = pack.prompt.total();
        let request = InferenceRequest {
            context_pack: pack,
            generation: attempt.generation.clone(),
            // One for all stages: those that begin with the same document share its evaluation.
            cache_key: format!("run:{}", self.log.session),
        };
        let cancel = self.stop.child();
        // Also when this task is dropped or fails: nobody waits for the reply then.
        let _on_every_way_out = CancelOnDrop(cancel.clone());
        let sink = stream_to(self.deps.progress.clone(), begin);
        let inference = provider.infer(request, cancel.clone(), sink);
        tokio::pin!(inference);
        let response = loop {
            if self.is_in_vain(attempt) {
                cancel.cancel();
            }
            tokio::select! {
                biased;
                response = &mut inference => break response,
                () = wait_for_event(&mut self.feed, &self.log) => self.log.refresh().await?,
            }
        };
        if self.stop.is_cancelled() {
            // The program ends: the log stays as it is.
            std::future::pending::<()>().await;
        }
        // A model that was changed is not to blame: the attempt begins again with the new one.
        let wanted = cancel.is_cancelled() || provider.is_withdrawn();
        let stopped = if wanted { Stopped::ByUs } else { Stopped::ByItself };
        self.log.refresh().await?;
        let response = match response {
            Ok(response) => response,
            Err(error) => return Ok(Err(error)),
        };
        let text = response.text.trim().to_owned();
        let blob = self.deps.blobs.put(&self.log.session, text.clone().into_bytes()).await?;
        let thinking = match &response.thinking {
            Some(thinking) => {
                let bytes = thinking.text.clone().into_bytes();
                Some(self.deps.blobs.put(&self.log.session, bytes).await?)
            }
            None => None,
        };
        let completed = record::inference(
            &attempt.stage.id,
            attempt.number,
            &provider.describe(),
            prompt_tokens,
            &attempt.generation,
            &response,
            thinking,
        );
        Ok(Ok(Reply { response, text, blob, completed, stopped }))
    }

    /// Whether the reply is not wanted any more.
    fn is_in_vain(&self, attempt: &Attempt<'_>) -> bool {
        self.log.state.status != WorkflowStatus::Running
            || !unseen(&self.log.state, attempt).is_empty()
    }
}

/// The notes that act on the attempt's stage and that the attempt was not shown.
pub(super) fn unseen(state: &RunState, attempt: &Attempt<'_>) -> Vec<NoteId> {
    state
        .notes
        .acting_on(&attempt.stage.id, &state.order())
        .filter(|record| !record.is_applied_to(&attempt.stage.id, attempt.number))
        .map(|record| record.note.note_id.clone())
        .collect()
}

/// What was said about the stage's refused attempts, oldest first.
pub(super) fn refusals<'a>(state: &'a RunState, stage: &StageId) -> impl Iterator<Item = &'a str> {
    let drafts = state.stage(stage).map(|record| record.drafts.as_slice()).unwrap_or_default();
    drafts.iter().filter_map(|draft| match &draft.reason {
        DraftReason::Refused { message, .. } => Some(message.as_str()),
        DraftReason::Steered { .. } => None,
    })
}

/// Stops the model call when nobody waits for it any more.
struct CancelOnDrop(InferenceCancellationToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
