//! The steering notes of a session, and which stages they act on.

use correx_events::{
    EventPayload, NoteId, NoteScope, StageId, SteeringNoteAdded, StoredEvent, Timestamp,
};
use serde::{Deserialize, Serialize};

/// Notes in the order in which they were given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes(Vec<NoteRecord>);

/// One note and its fate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteRecord {
    /// As it was given.
    pub note: SteeringNoteAdded,
    /// When.
    pub at: Timestamp,
    /// The stage from which it acts: the named one, or the one that was current when it was
    /// given, or else the first that started after it.
    pub target: Option<StageId>,
    /// Whether it was taken back.
    pub withdrawn: bool,
    /// Whether nothing is left for it: the only stage it is for has ended, or the run has.
    pub spent: bool,
    /// Every attempt that was shown it, oldest first.
    pub applied: Vec<AppliedNote>,
}

/// One use of a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedNote {
    /// The stage.
    pub stage_id: StageId,
    /// The attempt.
    pub attempt: u32,
}

impl NoteRecord {
    /// Whether it was shown to this attempt.
    pub fn is_applied_to(&self, stage: &StageId, attempt: u32) -> bool {
        self.applied.iter().any(|used| used.stage_id == *stage && used.attempt == attempt)
    }

    /// Whether it may still be shown to a stage.
    pub fn is_active(&self) -> bool {
        !self.withdrawn && !self.spent
    }

    fn acts_on(&self, stage: &StageId, order: &[StageId]) -> bool {
        if !self.is_active() {
            return false;
        }
        let position = |wanted: &StageId| order.iter().position(|stage| stage == wanted);
        match (&self.note.scope, &self.target) {
            (NoteScope::Run, _) => true,
            (_, None) => false,
            (NoteScope::Stage, Some(target)) => target == stage,
            (NoteScope::Onward, Some(target)) => match (position(target), position(stage)) {
                (Some(from), Some(here)) => from <= here,
                _ => target == stage,
            },
        }
    }
}

impl Notes {
    /// Every note, oldest first.
    pub fn all(&self) -> &[NoteRecord] {
        &self.0
    }

    /// A note by name.
    pub fn get(&self, note: &NoteId) -> Option<&NoteRecord> {
        self.0.iter().find(|record| record.note.note_id == *note)
    }

    /// The notes that may still be shown to a stage, oldest first.
    pub fn active(&self) -> impl Iterator<Item = &NoteRecord> {
        self.0.iter().filter(|record| record.is_active())
    }

    /// The notes that `stage` must follow, oldest first. `order` is the plan's.
    pub fn acting_on<'a>(
        &'a self,
        stage: &'a StageId,
        order: &'a [StageId],
    ) -> impl Iterator<Item = &'a NoteRecord> {
        self.0.iter().filter(move |record| record.acts_on(stage, order))
    }

    /// Folds one event. `current` is the stage that was current before it.
    pub fn fold(&mut self, event: &StoredEvent, current: Option<&StageId>) {
        match &event.payload {
            EventPayload::SteeringNoteAdded(note) => {
                if let Some(replaced) = &note.replaces {
                    self.withdraw(replaced);
                }
                self.0.push(NoteRecord {
                    target: note.stage_id.clone().or_else(|| current.cloned()),
                    note: note.clone(),
                    at: event.metadata.timestamp,
                    withdrawn: false,
                    spent: false,
                    applied: Vec::new(),
                });
            }
            EventPayload::SteeringNoteWithdrawn(withdrawn) => {
                self.withdraw(&withdrawn.note_id);
            }
            EventPayload::SteeringNoteApplied(applied) => {
                for record in self.named(&applied.note_id) {
                    record.applied.push(AppliedNote {
                        stage_id: applied.stage_id.clone(),
                        attempt: applied.attempt,
                    });
                }
            }
            EventPayload::StageStarted(started) => {
                for record in self.0.iter_mut().filter(|record| record.target.is_none()) {
                    record.target = Some(started.stage_id.clone());
                }
            }
            EventPayload::StageCompleted(ended) => self.spend(&ended.stage_id),
            EventPayload::StageFailed(ended) => self.spend(&ended.stage_id),
            EventPayload::StageCancelled(ended) => self.spend(&ended.stage_id),
            EventPayload::StageSkipped(skipped) => self.spend(&skipped.stage_id),
            // What holds for stages that are to run again holds again.
            EventPayload::WorkflowRerun(rerun) => {
                for record in &mut self.0 {
                    record.spent = record.note.scope == NoteScope::Stage
                        && record.target.as_ref().is_none_or(|at| !rerun.stages.contains(at));
                }
            }
            EventPayload::WorkflowCompleted(_) | EventPayload::WorkflowFailed(_) => {
                for record in &mut self.0 {
                    record.spent = true;
                }
            }
            _ => {}
        }
    }

    fn withdraw(&mut self, note: &NoteId) {
        for record in self.named(note) {
            record.withdrawn = true;
        }
    }

    fn named<'a>(&'a mut self, note: &'a NoteId) -> impl Iterator<Item = &'a mut NoteRecord> {
        self.0.iter_mut().filter(move |record| record.note.note_id == *note)
    }

    fn spend(&mut self, stage: &StageId) {
        for record in &mut self.0 {
            if record.note.scope == NoteScope::Stage && record.target.as_ref() == Some(stage) {
                record.spent = true;
            }
        }
    }
}
