//! What the log says about a model call: the prompt by its parts, the notes in it, how it went.

use correx_context::ContextPack;
use correx_events::{
    BlobError, BlobHash, BlobStore, ContextAssembled, ContextEntryRecord, EntryFate, EventPayload,
    InferenceCompleted, NoteId, SessionId, StageId, SteeringNoteApplied,
};
use correx_inference::{FinishReason, InferenceResponse, ModelDescription};

use super::attempt::Attempt;

/// Keeps a prompt's texts and ids as blobs, and says where they are.
pub(super) async fn context(
    blobs: &dyn BlobStore,
    session: &SessionId,
    attempt: &Attempt<'_>,
    pack: &ContextPack,
) -> Result<EventPayload, BlobError> {
    let kept = pack.entries().map(|entry| (entry, EntryFate::Kept));
    let dropped = pack
        .dropped
        .iter()
        .map(|dropped| (&dropped.entry, EntryFate::Dropped { reason: dropped.reason.to_string() }));
    let mut entries = Vec::new();
    for (entry, fate) in kept.chain(dropped) {
        entries.push(ContextEntryRecord {
            layer: entry.layer.to_string(),
            source: entry.source.to_string(),
            tokens: entry.tokens as u64,
            text: blobs.put(session, entry.content.clone().into_bytes()).await?,
            fate,
        });
    }
    let ids = pack.prompt.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    let assembled = ContextAssembled {
        stage_id: attempt.stage.id.clone(),
        attempt: attempt.number,
        entries,
        template_tokens: pack.prompt.template_tokens as u64,
        prompt_tokens: pack.prompt.total() as u64,
        budget_limit: pack.budget_limit as u64,
        prompt_ids: blobs.put(session, ids).await?,
        judges: attempt.judges,
        piece: attempt.at(),
    };
    Ok(assembled.into())
}

/// A note was shown to an attempt.
pub(super) fn applied(note: &NoteId, stage: &StageId, attempt: u32) -> EventPayload {
    SteeringNoteApplied { note_id: note.clone(), stage_id: stage.clone(), attempt }.into()
}

/// A model call ended.
pub(super) fn inference(
    attempt: &Attempt<'_>,
    model: &ModelDescription,
    prompt_tokens: usize,
    response: &InferenceResponse,
    thinking: Option<BlobHash>,
) -> EventPayload {
    let generation = &attempt.generation;
    InferenceCompleted {
        stage_id: attempt.stage.id.clone(),
        attempt: attempt.number,
        model: model.name.clone(),
        model_sha256: model.sha256.clone(),
        prompt_tokens: prompt_tokens as u64,
        output_tokens: response.output_tokens as u64,
        thinking_tokens: response.thinking.as_ref().map(|thinking| thinking.tokens as u64),
        thinking,
        reused_tokens: response.reused_tokens as u64,
        prompt_ms: response.prompt_ms,
        reply_ms: response.reply_ms,
        temperature: generation.temperature,
        top_p: generation.top_p,
        top_k: generation.top_k as u64,
        min_p: generation.min_p,
        repetition_penalty: f64::from(generation.repetition_penalty),
        seed: generation.seed,
        device: response.device.clone(),
        finish_reason: match response.finish_reason {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::Cancelled => "cancelled",
        }
        .to_owned(),
        judges: attempt.judges,
        piece: attempt.at(),
    }
    .into()
}
