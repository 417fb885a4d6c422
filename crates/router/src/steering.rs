//! Whether a note can act: decided before anything is stored.

use correx_context::TokenCounter;
use correx_events::{NoteId, NoteScope, StageKind, StagePlan};

use crate::state::Steerable;
use crate::{NoteTarget, RouterState, SteeringRefusal, WorkflowStatus};

/// Checks a note against the run as it is, and against the allowance that the active notes share.
///
/// `replaced` is the note whose place it takes: that one needs no room any more.
///
/// `counter` is `None` when there is no model to count with; then a token is taken to be at
/// least one byte, so what passes fits for certain.
pub fn check(
    state: &RouterState,
    text: &str,
    target: &NoteTarget,
    replaced: Option<&NoteId>,
    allowance: usize,
    counter: Option<&dyn TokenCounter>,
) -> Result<(), SteeringRefusal> {
    can_act(state, target)?;
    let count = |text: &str| match counter {
        Some(counter) => counter.count(text),
        None => Ok(text.len()),
    };
    let mut used = 0;
    let others = state.notes.active().filter(|record| Some(&record.note.note_id) != replaced);
    for record in others {
        used += count(&record.note.content)?;
    }
    let tokens = count(text)?;
    if used + tokens > allowance {
        return Err(SteeringRefusal::NoRoom { tokens, used, allowance });
    }
    Ok(())
}

/// Whether a note can still be changed: until a stage was shown it.
pub fn can_be_edited(state: &RouterState, note: &NoteId) -> Result<(), SteeringRefusal> {
    let Some(record) = state.notes.get(note) else {
        return Err(SteeringRefusal::UnknownNote(note.clone()));
    };
    if record.withdrawn {
        return Err(SteeringRefusal::Withdrawn);
    }
    match record.applied.first() {
        Some(used) => Err(SteeringRefusal::Used {
            stage: state.stage_title(&used.stage_id).to_owned(),
            attempt: used.attempt,
        }),
        None => Ok(()),
    }
}

/// Where a note that takes the place of `note` acts: where that one would have.
pub fn target_of(state: &RouterState, note: &NoteId) -> NoteTarget {
    let Some(record) = state.notes.get(note) else { return NoteTarget::default() };
    let scope = record.note.scope;
    let stage_id = match &record.target {
        // What reaches onward from a stage that is over reaches onward from the current one.
        Some(stage) if scope != NoteScope::Stage && state.is_over(stage) => None,
        target => target.clone(),
    };
    NoteTarget { stage_id, scope }
}

fn can_act(state: &RouterState, target: &NoteTarget) -> Result<(), SteeringRefusal> {
    if state.steerable == Steerable::PlainChat {
        return Err(SteeringRefusal::NoWorkflow);
    }
    match state.workflow_status {
        WorkflowStatus::Completed | WorkflowStatus::Failed => {
            return Err(SteeringRefusal::RunEnded(state.workflow_status.as_str()));
        }
        WorkflowStatus::Idle | WorkflowStatus::Running | WorkflowStatus::Paused => {}
    }
    // Before the start nothing is known of the stages; a note waits for them.
    if state.plan.is_empty() {
        return Ok(());
    }
    if let Some(stage) = &target.stage_id {
        if !state.plan.iter().any(|planned| planned.id == *stage) {
            return Err(SteeringRefusal::NoSuchStage(stage.to_string()));
        }
        if state.outcome(stage).is_some() {
            return Err(SteeringRefusal::StageEnded(state.stage_title(stage).to_owned()));
        }
        if state.skipped.contains(stage) {
            return Err(SteeringRefusal::StageSkipped(state.stage_title(stage).to_owned()));
        }
    }
    let mut ahead = reach(state, target).peekable();
    let first = ahead.peek().map(|planned| planned.title.clone());
    match (ahead.any(|planned| follows_notes(planned.kind)), first) {
        (true, _) => Ok(()),
        (false, Some(title)) if target.scope == NoteScope::Stage => {
            Err(SteeringRefusal::AsksNoModel(title))
        }
        (false, _) => Err(SteeringRefusal::NoneLeft),
    }
}

/// The stages within the note's reach that are not over.
fn reach<'s>(
    state: &'s RouterState,
    target: &NoteTarget,
) -> impl Iterator<Item = &'s StagePlan> + use<'s> {
    let from = target.stage_id.as_ref().or(state.current_stage_id.as_ref());
    let named = from.and_then(|id| state.plan.iter().position(|planned| planned.id == *id));
    let first = named.or_else(|| state.plan.iter().position(|planned| !state.is_over(&planned.id)));
    let (skip, take) = match (target.scope, first) {
        (NoteScope::Run, _) | (_, None) => (0, usize::MAX),
        (NoteScope::Onward, Some(first)) => (first, usize::MAX),
        (NoteScope::Stage, Some(first)) => (first, 1),
    };
    state.plan.iter().skip(skip).take(take).filter(|planned| !state.is_over(&planned.id))
}

/// Whether a note does anything at such a stage: a model is asked, or a person sees it.
fn follows_notes(kind: StageKind) -> bool {
    match kind {
        StageKind::Generate
        | StageKind::Map
        | StageKind::Reduce
        | StageKind::Choose
        | StageKind::Approve => true,
        StageKind::Command | StageKind::Write | StageKind::Read => false,
    }
}
