//! Stages that go piece by piece: `map` and `reduce`.
//!
//! Every piece is a model call of its own, and its result an event: neither a crash nor a note
//! costs a finished one. A result counts for the text that it was made from, so that a text that
//! is cut otherwise (by another model's tokens) is worked on anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use correx_context::PromptEncoder;
use correx_documents::{cut, group};
use correx_events::{
    ArtifactProduced, BlobHash, EventPayload, MapPieceCompleted, PieceRef, StageId, StageStarted,
};
use correx_inference::ModelDescription;
use correx_sessions::WorkflowStatus;

use super::attempt::{Attempt, Next, Reply};
use super::finish::{Produced, stage_done};
use super::log::Landed;
use super::outcome::failure;
use super::runner::{Runner, Stall, next_attempt};
use crate::stage_context::{AttemptContext, AttemptLimits, assemble};
use crate::validate::count_words;
use crate::{GenerateStep, MapStep, ReduceStep, Source, Stage, Step, TemplateValues};

/// Between the results that a `reduce` is shown together.
const JOINT: &str = "\n\n";
/// Tokens kept free for notes that come later, at most a quarter of the prompt: all notes together
/// share an allowance of that size.
const FOR_NOTES: usize = 512;
/// Tokens kept free for the reason of a refusal and for joints that count more than their parts.
const FOR_REFUSALS: usize = 72;
/// A piece smaller than this is no use.
const LEAST_PIECE: usize = 32;

/// What is gone through.
#[derive(Clone, Copy)]
pub(super) enum Pieces<'a> {
    Map(&'a MapStep),
    Reduce(&'a ReduceStep),
}

impl Pieces<'_> {
    fn over(&self) -> &Source {
        match self {
            Pieces::Map(step) => &step.over,
            Pieces::Reduce(step) => &step.over,
        }
    }
}

/// One piece, ready to be shown.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) at: PieceRef,
    /// Its text's address.
    input: BlobHash,
    /// What its prompt sees beside inputs and artifacts.
    pub(super) own: BTreeMap<&'static str, String>,
}

impl Work {
    /// The event that it is done.
    pub(super) fn done(&self, attempt: &Attempt<'_>, reply: &Reply) -> EventPayload {
        MapPieceCompleted {
            stage_id: attempt.stage.id.clone(),
            attempt: attempt.number,
            piece: self.at.piece,
            pieces: self.at.pieces,
            result: reply.blob.clone(),
            round: Some(self.at.round),
            input: Some(self.input.clone()),
            output_tokens: Some(reply.response.output_tokens as u64),
        }
        .into()
    }
}

/// A text to be shown, and under which headings it stands.
#[derive(Debug, Clone)]
struct Text {
    text: String,
    headings: String,
}

/// How pieces are cut for one model.
struct Cutter {
    model: ModelDescription,
    encoder: Arc<dyn PromptEncoder>,
    /// The most tokens of a piece.
    limit: usize,
}

impl Cutter {
    fn count(&self, text: &str) -> usize {
        // What cannot be counted does not fit.
        self.encoder.count(text).unwrap_or(usize::MAX / 4)
    }

    fn cut(&self, text: &str) -> Vec<Text> {
        let pieces = cut(text, self.limit, &|text| self.count(text));
        pieces
            .into_iter()
            .map(|piece| Text { text: piece.text, headings: piece.headings })
            .collect()
    }

    /// `texts` put together, as many as fit each time.
    fn group(&self, texts: &[String]) -> Vec<Text> {
        let fitting: Vec<String> = texts
            .iter()
            .flat_map(|text| match self.count(text) <= self.limit {
                true => vec![text.clone()],
                false => self.cut(text).into_iter().map(|piece| piece.text).collect(),
            })
            .filter(|text| !text.trim().is_empty())
            .collect();
        let texts: Vec<&str> = fitting.iter().map(String::as_str).collect();
        let groups = group(&texts, JOINT, self.limit, &|text| self.count(text));
        let joined = groups.into_iter().map(|range| texts[range].join(JOINT));
        joined.map(|text| Text { text, headings: String::new() }).collect()
    }
}

/// Why a stage cannot go piece by piece; it fails.
type Refusal = String;

impl Runner {
    /// Begins an attempt of `stage` and works on its pieces until the last is done.
    pub(super) async fn piecewise(
        &mut self,
        stage: &Stage,
        step: &GenerateStep,
        pieces: Pieces<'_>,
    ) -> Result<(), Stall> {
        let mut number = next_attempt(&self.log.state, &stage.id);
        let started = StageStarted { stage_id: stage.id.clone(), attempt: number };
        if self.log.append(vec![started.into()]).await? == Landed::Overtaken {
            return Ok(());
        }
        let mut cutter = match self.cutter(stage, step, pieces, number).await? {
            None => return Ok(()),
            Some(Ok(cutter)) => Arc::new(cutter),
            Some(Err(why)) => return self.give_up(stage, number, why).await,
        };
        let mut rounds = vec![self.first_round(pieces, &cutter).await?];
        loop {
            let round = rounds.len() - 1;
            let Some(texts) = rounds.last().filter(|texts| !texts.is_empty()) else {
                let why = format!("{} is empty: there is nothing to go through.", pieces.over());
                return self.give_up(stage, number, why).await;
            };
            let Some(work) = self.next_work(stage, pieces, round, texts).await? else {
                let results = self.results(stage, pieces, round, texts).await?;
                let (output, is_last) = match pieces {
                    Pieces::Map(step) => (results.join(&step.join), true),
                    Pieces::Reduce(_) => (results.join(JOINT), texts.len() == 1),
                };
                if is_last {
                    match self.finish(stage, step, number, output).await? {
                        Landed::Yes => return Ok(()),
                        Landed::Overtaken if !self.is_running() => return Ok(()),
                        Landed::Overtaken => continue,
                    }
                }
                let next = self.regroup(&cutter, results).await?;
                if next.len() >= texts.len() {
                    let why = format!(
                        "putting its results together does not make them fewer: {} before, {} after. Ask for shorter results, lower max_tokens, or use a model with a larger window.",
                        texts.len(),
                        next.len(),
                    );
                    return self.give_up(stage, number, why).await;
                }
                rounds.push(next);
                continue;
            };
            let generation = self.generation(stage, step, Some(work.at));
            let attempt =
                Attempt { stage, step, number, generation, piece: Some(&work), judges: false };
            match self.attempt(&attempt).await? {
                Next::Onward => {}
                Next::Decide => return Ok(()),
                Next::Again => {
                    number = number.saturating_add(1);
                    let again = match self.cutter(stage, step, pieces, number).await? {
                        None => return Ok(()),
                        Some(Ok(again)) => again,
                        Some(Err(why)) => return self.give_up(stage, number, why).await,
                    };
                    // Another model counts otherwise.
                    if again.model != cutter.model || again.limit != cutter.limit {
                        cutter = Arc::new(again);
                        rounds = vec![self.first_round(pieces, &cutter).await?];
                    }
                }
            }
        }
    }

    fn is_running(&self) -> bool {
        self.log.state.status == WorkflowStatus::Running
    }

    async fn give_up(&mut self, stage: &Stage, number: u32, why: Refusal) -> Result<(), Stall> {
        self.end_with(failure(&stage.id, &stage.title, number, why)).await
    }

    /// How large pieces may be: what the prompt may have, less all that stands beside a piece.
    /// `None` when the run is paused or has ended.
    async fn cutter(
        &mut self,
        stage: &Stage,
        step: &GenerateStep,
        pieces: Pieces<'_>,
        number: u32,
    ) -> Result<Option<Result<Cutter, Refusal>>, Stall> {
        let provider = match self.route(stage, step).await? {
            None => return Ok(None),
            Some(Ok(provider)) => provider,
            Some(Err(error)) => {
                self.interrupt(&format!("{error}. Resume the run when the model is there")).await?;
                return Ok(None);
            }
        };
        let (model, window) = (provider.describe(), provider.context_window());
        let thinking = self.material.workflow.thinking_for(step, self.config.thinking);
        let encoder = provider.encoder_for(thinking);
        drop(provider);
        let limits = AttemptLimits {
            token_budget: self.config.stage_token_budget,
            context_window: window,
            max_tokens: self.generation(stage, step, None).max_tokens,
        };
        let values = self.values().await?;
        let own = of_piece(pieces, "x", "x", 9_999, 9_999);
        let values = TemplateValues { own, ..values };
        let (session, id) = (self.log.session.clone(), stage.id.clone());
        let (step, counting) = (step.clone(), encoder.clone());
        let beside = tokio::task::spawn_blocking(move || {
            let context = AttemptContext {
                session: &session,
                stage: &id,
                attempt: number,
                step: &step,
                values: &values,
                refusal: None,
                notes: Vec::new(),
            };
            assemble(&context, limits, counting.as_ref()).map(|pack| pack.prompt.total())
        });
        let beside = match joined(beside.await)? {
            Ok(beside) => beside,
            Err(error) => return Ok(Some(Err(error.to_string()))),
        };
        let allowed = limits.prompt_limit();
        let kept = FOR_NOTES.min(allowed / 4) + FOR_REFUSALS;
        let room = allowed.saturating_sub(beside).saturating_sub(kept);
        // Headings stand beside a piece as well.
        let room = room - room / 16;
        let asked = match pieces {
            Pieces::Map(step) => step.piece_tokens,
            Pieces::Reduce(_) => None,
        };
        let limit = asked.map_or(room, |asked| asked.min(room));
        if limit < LEAST_PIECE {
            return Ok(Some(Err(format!(
                "its prompt may have {allowed} tokens; its own text takes {beside}, {kept} are kept for notes and refusals, and what is left is too little for a piece. Shorten the prompt, lower max_tokens, or use a model with a larger window."
            ))));
        }
        Ok(Some(Ok(Cutter { model, encoder, limit })))
    }

    /// The pieces of what is gone through, cut away from the async threads.
    async fn first_round(
        &self,
        pieces: Pieces<'_>,
        cutter: &Arc<Cutter>,
    ) -> Result<Vec<Text>, Stall> {
        let results = match (pieces, pieces.over()) {
            (Pieces::Reduce(_), Source::Artifact(name)) => {
                let source = self.material.workflow.stages.iter().find(|stage| {
                    matches!(stage.step, Step::Map(_)) && stage.step.output() == Some(name)
                });
                match source {
                    Some(stage) => Some(self.results_of_map(&stage.id).await?),
                    None => None,
                }
            }
            _ => None,
        };
        if let Some(results) = results {
            return self.regroup(cutter, results).await;
        }
        let values = self.values().await?;
        let text = match pieces.over() {
            Source::Input(name) => values.inputs.get(name),
            Source::Artifact(name) => values.artifacts.get(name),
        };
        let text = text.cloned().unwrap_or_default();
        let cutter = cutter.clone();
        joined(tokio::task::spawn_blocking(move || cutter.cut(&text)).await)
    }

    async fn regroup(&self, cutter: &Arc<Cutter>, texts: Vec<String>) -> Result<Vec<Text>, Stall> {
        let cutter = cutter.clone();
        joined(tokio::task::spawn_blocking(move || cutter.group(&texts)).await)
    }

    /// What a `map` stage made of each of its pieces, by the attempt that finished it.
    async fn results_of_map(&self, stage: &StageId) -> Result<Vec<String>, Stall> {
        let done = self.log.state.stage(stage).map(|record| record.pieces.as_slice());
        let done = done.unwrap_or_default();
        let Some(pieces) = done.last().map(|last| last.pieces) else { return Ok(Vec::new()) };
        let mut results = Vec::new();
        for index in 0..pieces {
            let last = done.iter().rfind(|done| done.piece == index && done.pieces == pieces);
            if let Some(done) = last {
                results.push(self.text(&done.result).await?);
            }
        }
        Ok(results)
    }

    /// The first piece of the round that has no result yet.
    async fn next_work(
        &self,
        stage: &Stage,
        pieces: Pieces<'_>,
        round: usize,
        texts: &[Text],
    ) -> Result<Option<Work>, Stall> {
        for (index, text) in texts.iter().enumerate() {
            let input = BlobHash::of(text.text.as_bytes());
            let at = place(round, index, texts.len());
            if self.result(stage, pieces, at, &input).is_some() {
                continue;
            }
            let bytes = text.text.clone().into_bytes();
            let input = self.deps.blobs.put(&self.log.session, bytes).await?;
            let own = of_piece(pieces, &text.text, &text.headings, index + 1, texts.len());
            return Ok(Some(Work { at, input, own }));
        }
        Ok(None)
    }

    /// A piece's result, if it is done and counts.
    fn result(
        &self,
        stage: &Stage,
        pieces: Pieces<'_>,
        at: PieceRef,
        input: &BlobHash,
    ) -> Option<&BlobHash> {
        let state = &self.log.state;
        let order = state.order();
        let counts = |done: &&MapPieceCompleted| match pieces {
            Pieces::Map(MapStep { redo_pieces: true, .. }) => state
                .notes
                .acting_on(&stage.id, &order)
                .all(|note| note.is_applied_to(&stage.id, done.attempt)),
            _ => true,
        };
        let done = &state.stage(&stage.id)?.pieces;
        let same = |done: &&MapPieceCompleted| {
            (done.round.unwrap_or(0), done.piece, done.pieces) == (at.round, at.piece, at.pieces)
                && done.input.as_ref() == Some(input)
        };
        done.iter().rev().filter(same).find(counts).map(|done| &done.result)
    }

    async fn results(
        &self,
        stage: &Stage,
        pieces: Pieces<'_>,
        round: usize,
        texts: &[Text],
    ) -> Result<Vec<String>, Stall> {
        let mut results = Vec::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            let input = BlobHash::of(text.text.as_bytes());
            let at = place(round, index, texts.len());
            if let Some(result) = self.result(stage, pieces, at, &input) {
                results.push(self.text(result).await?);
            }
        }
        Ok(results)
    }

    async fn text(&self, hash: &BlobHash) -> Result<String, Stall> {
        let bytes = self.deps.blobs.get(hash).await?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        text.ok_or_else(|| {
            Stall::Other("a piece's result is no longer whole in the data directory".to_owned())
        })
    }

    /// Everything is done: the artifact.
    async fn finish(
        &mut self,
        stage: &Stage,
        step: &GenerateStep,
        number: u32,
        output: String,
    ) -> Result<Landed, Stall> {
        if !self.is_running() {
            return Ok(Landed::Overtaken);
        }
        let hash = self.deps.blobs.put(&self.log.session, output.clone().into_bytes()).await?;
        let artifact = ArtifactProduced {
            stage_id: stage.id.clone(),
            attempt: number,
            name: step.output.clone(),
            hash,
            bytes: output.len() as u64,
            media_type: step.media_type.clone(),
        };
        let tokens = self.log.state.stage(&stage.id).map(|record| {
            record.pieces.iter().filter_map(|piece| piece.output_tokens).sum::<u64>()
        });
        let produced = Produced { words: Some(count_words(&output)), output_tokens: tokens };
        let now = self.deps.clock.now();
        let done = stage_done(&self.log.state, &stage.id, number, produced, now);
        Ok(self.log.append([vec![artifact.into()], done].concat()).await?)
    }
}

fn place(round: usize, piece: usize, pieces: usize) -> PieceRef {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    PieceRef { round: number(round), piece: number(piece), pieces: number(pieces) }
}

/// What a piece's prompt sees beside inputs and artifacts.
fn of_piece(
    pieces: Pieces<'_>,
    text: &str,
    headings: &str,
    number: usize,
    count: usize,
) -> BTreeMap<&'static str, String> {
    let text = text.to_owned();
    match pieces {
        Pieces::Reduce(_) => BTreeMap::from([("pieces", text)]),
        Pieces::Map(_) => BTreeMap::from([
            ("piece", text),
            ("number", number.to_string()),
            ("count", count.to_string()),
            ("heading", headings.to_owned()),
        ]),
    }
}

fn joined<T>(outcome: Result<T, tokio::task::JoinError>) -> Result<T, Stall> {
    outcome.map_err(|error| Stall::Other(format!("the text could not be cut: {error}")))
}
