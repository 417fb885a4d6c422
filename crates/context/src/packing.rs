//! Making the entries fit: drop the oldest first, by whole groups, until the rendered prompt is
//! within the budget.
//!
//! Byte-pair counts do not add up, so what decides is always the count of the whole rendered
//! prompt. The number of groups to drop is found by bisection: at most log₂(groups) + 3
//! renderings, and the answer has been rendered, so it fits for certain.

use std::collections::BTreeMap;

use correx_events::{SessionId, StageId};
use thiserror::Error;

use crate::{
    ChatMessage, CompressionMetadata, CompressionStrategy, ContextEntry, ContextEntryId,
    ContextLayer, ContextPack, ContextPackId, DropReason, DroppedEntry, EncodeError, EncodedPrompt,
    MessagePart, PromptEncoder, Role, SourceType, TokenBudget,
};

/// An entry that would like to be in the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// What may happen to it.
    pub layer: ContextLayer,
    /// Where it comes from.
    pub source: SourceType,
    /// Who says it. Neighbours of one role are rendered as one message.
    pub role: Role,
    /// The text.
    pub content: String,
    /// What stands between it and the text before it in the same message.
    pub separator: &'static str,
    /// Candidates with the same number go together; lower numbers go first. `None`: never.
    pub drop_group: Option<usize>,
}

/// What to pack, and into how much.
#[derive(Debug, Clone)]
pub struct PackRequest {
    /// The pack's name.
    pub id: ContextPackId,
    /// The session, if there is one yet.
    pub session_id: Option<SessionId>,
    /// The stage it is for or about.
    pub stage_id: Option<StageId>,
    /// The candidates in their rendered order.
    pub candidates: Vec<Candidate>,
    /// Entries that were left out before packing; reported with the others.
    pub already_dropped: Vec<(Candidate, DropReason)>,
    /// The limit.
    pub budget: TokenBudget,
    /// What governs the pack, for the record.
    pub strategies: Vec<CompressionStrategy>,
}

/// Why no pack could be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PackError {
    /// What must not be dropped is too large by itself.
    #[error(
        "{needed} tokens are needed and {limit} are allowed; the largest part is {largest} with {largest_tokens} tokens"
    )]
    TooLarge {
        /// Tokens of the smallest possible prompt.
        needed: usize,
        /// The budget.
        limit: usize,
        /// The largest entry of it.
        largest: SourceType,
        /// That entry's tokens.
        largest_tokens: usize,
    },
    /// The prompt could not be rendered.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Chooses the entries and renders the prompt.
///
/// Drops groups in ascending order of [`Candidate::drop_group`], as few as possible; when the
/// conversation (L1) overflows, one group of it more than needed goes, so that its window does
/// not slide at every turn. Keeps the order of what stays.
pub fn pack(request: PackRequest, encoder: &dyn PromptEncoder) -> Result<ContextPack, PackError> {
    let mut groups: BTreeMap<usize, ContextLayer> = BTreeMap::new();
    for candidate in &request.candidates {
        if let Some(group) = candidate.drop_group {
            groups.insert(group, candidate.layer);
        }
    }
    let groups: Vec<(usize, ContextLayer)> = groups.into_iter().collect();
    let limit = request.budget.limit;
    let render =
        |dropped: usize| render(&request.candidates, groups.get(dropped).map(|g| g.0), encoder);

    let mut chosen = render(0)?;
    let mut dropped = 0;
    if chosen.prompt.total() > limit {
        let smallest = render(groups.len())?;
        if smallest.prompt.total() > limit {
            return Err(too_large(&request.candidates, &smallest, limit));
        }
        (dropped, chosen) = (groups.len(), smallest);
        let mut too_few = 0;
        while dropped - too_few > 1 {
            let middle = too_few + (dropped - too_few) / 2;
            let rendered = render(middle)?;
            if rendered.prompt.total() > limit {
                too_few = middle;
            } else {
                (dropped, chosen) = (middle, rendered);
            }
        }
        let last_dropped = groups[dropped - 1].1;
        let next = groups.get(dropped).map(|group| group.1);
        if last_dropped == ContextLayer::L1 && next == Some(ContextLayer::L1) {
            let with_room = render(dropped + 1)?;
            if with_room.prompt.total() <= limit {
                (dropped, chosen) = (dropped + 1, with_room);
            }
        }
    }
    assemble(request, chosen, groups.get(dropped).map(|group| group.0), encoder)
}

struct Rendered {
    /// Indices into the candidates, in entry order.
    kept: Vec<usize>,
    messages: Vec<ChatMessage>,
    prompt: EncodedPrompt,
}

/// `first_kept`: the lowest group that stays; `None` when every group goes.
fn stays(candidate: &Candidate, first_kept: Option<usize>) -> bool {
    match (candidate.drop_group, first_kept) {
        (None, _) => true,
        (Some(group), Some(first)) => group >= first,
        (Some(_), None) => false,
    }
}

fn render(
    candidates: &[Candidate],
    first_kept: Option<usize>,
    encoder: &dyn PromptEncoder,
) -> Result<Rendered, EncodeError> {
    let kept: Vec<usize> = candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| stays(candidate, first_kept))
        .map(|(index, _)| index)
        .collect();
    let mut messages: Vec<ChatMessage> = Vec::new();
    for (entry, &index) in kept.iter().enumerate() {
        let candidate = &candidates[index];
        match messages.last_mut().filter(|message| message.role == candidate.role) {
            Some(message) => message.parts.push(MessagePart {
                entry,
                text: format!("{}{}", candidate.separator, candidate.content),
            }),
            None => {
                messages.push(ChatMessage::new(candidate.role, entry, candidate.content.clone()))
            }
        }
    }
    let prompt = encoder.encode(&messages, kept.len())?;
    Ok(Rendered { kept, messages, prompt })
}

fn too_large(candidates: &[Candidate], rendered: &Rendered, limit: usize) -> PackError {
    let largest = rendered
        .kept
        .iter()
        .zip(&rendered.prompt.entry_tokens)
        .max_by_key(|(_, tokens)| **tokens)
        .map(|(&index, &tokens)| (candidates[index].source.clone(), tokens));
    let (largest, largest_tokens) = largest.unwrap_or((SourceType::SystemPrompt, 0));
    PackError::TooLarge { needed: rendered.prompt.total(), limit, largest, largest_tokens }
}

fn assemble(
    request: PackRequest,
    chosen: Rendered,
    first_kept: Option<usize>,
    encoder: &dyn PromptEncoder,
) -> Result<ContextPack, PackError> {
    let entry = |name: String, candidate: &Candidate, tokens: usize| ContextEntry {
        id: ContextEntryId(name),
        layer: candidate.layer,
        source: candidate.source.clone(),
        role: candidate.role,
        content: candidate.content.clone(),
        tokens,
    };
    let mut layers: BTreeMap<ContextLayer, Vec<ContextEntry>> = BTreeMap::new();
    for (position, (&index, &tokens)) in
        chosen.kept.iter().zip(&chosen.prompt.entry_tokens).enumerate()
    {
        let candidate = &request.candidates[index];
        let kept = entry(format!("entry-{position}"), candidate, tokens);
        layers.entry(candidate.layer).or_default().push(kept);
    }
    let budget_dropped = request
        .candidates
        .iter()
        .filter(|candidate| !stays(candidate, first_kept))
        .map(|candidate| (candidate, DropReason::Budget));
    let mut dropped = Vec::new();
    for (position, (candidate, reason)) in request
        .already_dropped
        .iter()
        .map(|(candidate, reason)| (candidate, *reason))
        .chain(budget_dropped)
        .enumerate()
    {
        let tokens = encoder.count(&candidate.content)?;
        let entry = entry(format!("dropped-{position}"), candidate, tokens);
        dropped.push(DroppedEntry { entry, reason });
    }
    let mut truncated_layers: Vec<ContextLayer> =
        dropped.iter().map(|dropped| dropped.entry.layer).collect();
    truncated_layers.sort();
    truncated_layers.dedup();
    Ok(ContextPack {
        id: request.id,
        session_id: request.session_id,
        stage_id: request.stage_id,
        layers,
        budget_used: chosen.prompt.total(),
        budget_limit: request.budget.limit,
        compression_metadata: CompressionMetadata {
            applied_strategies: request.strategies,
            truncated_layers,
            entries_dropped: dropped.len(),
        },
        dropped,
        messages: chosen.messages,
        prompt: chosen.prompt,
    })
}
