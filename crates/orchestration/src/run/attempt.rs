//! One attempt of a generate stage: its prompt and its model call.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use correx_context::{ContextPack, SourceType};
use correx_events::{BlobHash, EventPayload, NoteId, PieceRef, StageId, StageStarted};
use correx_inference::{
    FinishReason, GenerationConfig, InferenceCancellationToken, InferenceError, InferenceProvider,
    InferenceRequest, InferenceResponse, ModelCapability, ResponseFormat, RouteRequest,
    RoutingError, StreamSink,
};
use correx_sessions::{DraftReason, DraftRecord, RunState, WorkflowStatus};

use super::log::Landed;
use super::pieces::Work;
use super::progress::{StageProgress, stream_to};
use super::record;
use super::runner::{Runner, Stall, next_attempt, wait_for_event};
use crate::stage_context::{AttemptContext, AttemptLimits, StageContextError, assemble};
use crate::validate::{examine, only_thought};
use crate::{Examined, GenerateStep, OutputRefusal, Stage, Step, TemplateValues};

/// A year: the timers of the runtime have an end.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// An attempt that has begun.
pub(super) struct Attempt<'a> {
    pub(super) stage: &'a Stage,
    pub(super) step: &'a GenerateStep,
    pub(super) number: u32,
    pub(super) generation: GenerationConfig,
    /// The piece that it is about, in a stage that goes piece by piece.
    pub(super) piece: Option<&'a Work>,
    /// Whether it is a question about an answer, put by [`Runner::judged`].
    pub(super) judges: bool,
}

impl Attempt<'_> {
    pub(super) fn at(&self) -> Option<PieceRef> {
        self.piece.map(|work| work.at)
    }
}

/// What to do after an attempt.
pub(super) enum Next {
    /// The following attempt has begun already.
    Again,
    /// A piece is done; the attempt goes on with the next.
    Onward,
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
    /// What the stage's checks say of it.
    pub(super) verdict: Result<(), OutputRefusal>,
    /// Whether we asked it to stop.
    pub(super) stopped: Stopped,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    ByUs,
    /// Its time was over.
    TooSlow,
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
            let generation = self.generation(stage, step, None);
            match self
                .attempt(&Attempt { stage, step, number, generation, piece: None, judges: false })
                .await?
            {
                Next::Again => number = number.saturating_add(1),
                Next::Decide | Next::Onward => return Ok(()),
            }
        }
    }

    /// How the next attempt generates.
    pub(super) fn generation(
        &self,
        stage: &Stage,
        step: &GenerateStep,
        piece: Option<PieceRef>,
    ) -> GenerationConfig {
        let mut generation =
            self.material.workflow.generation_for(step, self.config.generation.clone());
        // A retry draws other words; a restart after a note draws the same.
        let refused = refusals(&self.log.state, &stage.id, piece).count() as u64;
        generation.seed = generation.seed.wrapping_add(refused);
        generation.format = match (&stage.step, &step.schema) {
            (Step::Choose(choose), _) => ResponseFormat::Choice(choose.answer.options()),
            (_, Some(schema)) => ResponseFormat::JsonSchema(schema.clone()),
            (_, None) => ResponseFormat::Text,
        };
        generation
    }

    pub(super) async fn attempt(&mut self, attempt: &Attempt<'_>) -> Result<Next, Stall> {
        let provider = match self.route(attempt.stage, attempt.step).await? {
            None => return Ok(Next::Decide),
            Some(Ok(provider)) => provider,
            Some(Err(error)) => {
                self.interrupt(&format!("{error}. Resume the run when the model is there")).await?;
                return Ok(Next::Decide);
            }
        };
        let values = self.values().await?;
        let own = attempt.piece.map(|work| work.own.clone()).unwrap_or_default();
        let values = Arc::new(TemplateValues { own, ..values });
        let pack = match self.assemble(attempt, values, provider.as_ref()).await? {
            None => return Ok(Next::Decide),
            Some(Ok(pack)) => pack,
            Some(Err(error)) => return self.fail(attempt, error.to_string()).await,
        };
        let shown = pack.prompt.ids.clone();
        let reply = match self.infer(attempt, provider.as_ref(), pack).await? {
            Ok(reply) => self.judged(attempt, provider.as_ref(), reply).await?,
            failed => failed,
        };
        let reply = match reply {
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
    pub(super) async fn route(
        &mut self,
        stage: &Stage,
        step: &GenerateStep,
    ) -> Result<Option<Result<Arc<dyn InferenceProvider>, RoutingError>>, Stall> {
        let router = self.deps.router.clone();
        let model = self.material.workflow.model_for(step).map(str::to_owned);
        let (id, required) = (stage.id.clone(), required(&stage.step));
        self.while_running(async move {
            let model = model.as_deref();
            router.route_to(RouteRequest { stage: Some(&id), required, model }).await
        })
        .await
    }

    /// Drives `work` to its end; `None` when the run is paused or ends before.
    pub(super) async fn while_running<T>(
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
    pub(super) async fn assemble(
        &mut self,
        attempt: &Attempt<'_>,
        values: Arc<TemplateValues>,
        provider: &dyn InferenceProvider,
    ) -> Result<Option<Result<ContextPack, StageContextError>>, Stall> {
        let limits = AttemptLimits {
            token_budget: self.config.stage_token_budget,
            context_window: provider.context_window(),
            max_tokens: attempt.generation.max_tokens,
        };
        while self.log.state.status == WorkflowStatus::Running {
            let state = &self.log.state;
            // A judge is asked what the workflow asks, whatever the person wants of the answer.
            let notes: Vec<(NoteId, String)> = state
                .notes
                .acting_on(&attempt.stage.id, &state.order())
                .filter(|_| !attempt.judges)
                .map(|record| (record.note.note_id.clone(), record.note.content.clone()))
                .collect();
            let pack = match self.pack(attempt, &values, &notes, limits, provider).await? {
                Ok(pack) => pack,
                Err(error) => return Ok(Some(Err(error))),
            };
            let id = &attempt.stage.id;
            let blobs = self.deps.blobs.as_ref();
            let mut payloads =
                vec![record::context(blobs, &self.log.session, attempt, &pack).await?];
            // Once for an attempt, however many pieces it is shown with.
            let new = notes.iter().filter(|(note, _)| {
                let record = self.log.state.notes.get(note);
                record.is_none_or(|record| !record.is_applied_to(id, attempt.number))
            });
            payloads.extend(new.map(|(note, _)| record::applied(note, id, attempt.number)));
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
        let refused: Vec<String> = refusals(&self.log.state, &stage, attempt.at())
            .filter(|_| !attempt.judges)
            .map(ToOwned::to_owned)
            .collect();
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
    pub(super) async fn infer(
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
            piece: attempt.at(),
        };
        let sink = match attempt.judges {
            // What is shown stays the answer that is judged.
            true => StreamSink::none(),
            false => {
                self.deps.progress.progress(begin.clone());
                stream_to(self.deps.progress.clone(), begin)
            }
        };
        let prompt_tokens = pack.prompt.total();
        let shown = documents(&pack);
        let request = InferenceRequest {
            context_pack: pack,
            generation: attempt.generation.clone(),
            // One for all stages: those that begin with the same document share its evaluation.
            cache_key: format!("run:{}", self.log.session),
        };
        let cancel = self.stop.child();
        // Also when this task is dropped or fails: nobody waits for the reply then.
        let _on_every_way_out = CancelOnDrop(cancel.clone());
        let inference = provider.infer(request, cancel.clone(), sink);
        tokio::pin!(inference);
        let timeout = attempt.stage.timeout.unwrap_or(FOREVER);
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let mut is_late = false;
        let response = loop {
            if self.is_in_vain(attempt) {
                cancel.cancel();
            }
            tokio::select! {
                biased;
                response = &mut inference => break response,
                () = &mut deadline, if !is_late => {
                    is_late = true;
                    cancel.cancel();
                }
                () = wait_for_event(&mut self.feed, &self.log) => self.log.refresh().await?,
            }
        };
        if self.stop.is_cancelled() {
            // The program ends: the log stays as it is.
            std::future::pending::<()>().await;
        }
        // A model that was changed is not to blame: the attempt begins again with the new one.
        let wanted = cancel.is_cancelled() || provider.is_withdrawn();
        let stopped = match (is_late, wanted) {
            (true, _) => Stopped::TooSlow,
            (false, true) => Stopped::ByUs,
            (false, false) => Stopped::ByItself,
        };
        self.log.refresh().await?;
        let response = match response {
            Ok(response) => response,
            Err(error) => return Ok(Err(error)),
        };
        let text = response.text.trim().to_owned();
        let verdict = verdict(attempt, &response, &text, &shown, provider);
        let blob = self.deps.blobs.put(&self.log.session, text.clone().into_bytes()).await?;
        let thinking = match &response.thinking {
            Some(thinking) => {
                let bytes = thinking.text.clone().into_bytes();
                Some(self.deps.blobs.put(&self.log.session, bytes).await?)
            }
            None => None,
        };
        let completed =
            record::inference(attempt, &provider.describe(), prompt_tokens, &response, thinking);
        Ok(Ok(Reply { response, text, blob, completed, verdict, stopped }))
    }

    /// Whether the reply is not wanted any more.
    pub(super) fn is_in_vain(&self, attempt: &Attempt<'_>) -> bool {
        self.log.state.status != WorkflowStatus::Running
            || !unseen(&self.log.state, attempt).is_empty()
    }
}

/// The inputs, pieces and artifacts in a prompt.
fn documents(pack: &ContextPack) -> Vec<String> {
    let is_document = |source: &SourceType| {
        matches!(source, SourceType::Input(_) | SourceType::Artifact(_) | SourceType::Piece)
    };
    let entries = pack.entries().filter(|entry| is_document(&entry.source));
    entries.map(|entry| entry.content.clone()).collect()
}

fn verdict(
    attempt: &Attempt<'_>,
    response: &InferenceResponse,
    text: &str,
    shown: &[String],
    provider: &dyn InferenceProvider,
) -> Result<(), OutputRefusal> {
    if response.only_thought() {
        return Err(only_thought(response.finish_reason, response.output_tokens));
    }
    let encoder = provider.encoder();
    // A text that cannot be counted has at most the tokens of the whole reply.
    let count = |text: &str| encoder.count(text).unwrap_or(response.output_tokens);
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    let examined = Examined {
        text,
        finish: response.finish_reason,
        max_tokens: attempt.generation.max_tokens,
        count: &count,
        shown: &shown,
    };
    examine(&examined, &attempt.step.checks)
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

/// What was said about the stage's refused attempts (of one of its pieces), oldest first.
pub(super) fn refusals<'a>(
    state: &'a RunState,
    stage: &StageId,
    piece: Option<PieceRef>,
) -> impl Iterator<Item = &'a str> {
    let record = state.stage(stage);
    let drafts = record.map(|record| record.drafts.as_slice()).unwrap_or_default();
    let earlier = record.map_or(0, |record| record.earlier);
    let about = move |draft: &&DraftRecord| draft.piece == piece && draft.attempt > earlier;
    drafts.iter().filter(about).filter_map(|draft| match &draft.reason {
        DraftReason::Refused { message, .. } => Some(message.as_str()),
        DraftReason::Steered { .. } => None,
    })
}

/// What a model must be able to do for a stage.
pub(super) fn required(step: &Step) -> &'static [ModelCapability] {
    let is_held = matches!(step, Step::Choose(_))
        || step.call().is_some_and(|call| call.schema.is_some() || !call.judges.is_empty());
    match is_held {
        true => &[ModelCapability::Chat, ModelCapability::Constrained],
        false => &[ModelCapability::Chat],
    }
}

/// Stops the model call when nobody waits for it any more.
struct CancelOnDrop(InferenceCancellationToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
