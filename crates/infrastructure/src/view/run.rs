//! A run.

use std::collections::{BTreeMap, BTreeSet};

use correx_events::{
    ApprovalCause, BlobHash, CapturedInput, EffectKind, EffectOutcome, FailureReason,
    MapPieceCompleted, NoteScope, PauseReason, PolicyDecided, PolicyVerdict, StageId, StagePlan,
    Timestamp,
};
use correx_protocol::{
    AppliedView, ArtifactView, AttemptView, EffectState, EffectView, InputView, NoteView,
    PiecesView, PolicyView, QuestionCause, QuestionView, RunView, SessionSummary, StageStatus,
    StageView, SteerScope, ThoughtView, WaitReason, WorkflowStatus,
};
use correx_sessions::{
    DraftReason, DraftRecord, EffectRecord, NoteRecord, RunState, StageRecord,
    StageStatus as DomainStageStatus, Thought, WorkflowStatus as DomainStatus,
};
use correx_store::SessionRecord;

use super::{context_of_attempt, count};

/// What the workflow's file says beyond the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Planned {
    /// Its stages in order.
    pub stages: Vec<StagePlan>,
    /// The most tokens each may write: what its prompt keeps free.
    pub max_tokens: BTreeMap<StageId, usize>,
}

/// A run as it is. Before its start, its stages are those that `planned` has.
pub fn run(state: &RunState, planned: &Planned) -> RunView {
    let stages = if state.stages.is_empty() {
        planned
            .stages
            .iter()
            .cloned()
            .map(StageRecord::new)
            .map(|record| stage(&record, 0))
            .collect()
    } else {
        let reserve = |record: &StageRecord| {
            planned.max_tokens.get(&record.plan.id).copied().unwrap_or_default()
        };
        state.stages.iter().map(|record| stage(record, reserve(record))).collect()
    };
    RunView {
        status: status(state.status),
        waiting_for: waiting_for(state),
        failure: state
            .failure
            .as_ref()
            .filter(|failure| failure.reason != FailureReason::Cancelled)
            .map(|failure| failure.message.clone()),
        current_stage: state.current_stage.clone(),
        stages,
        notes: state.notes.all().iter().map(note).collect(),
        inputs: state.inputs.iter().map(input).collect(),
        last_event: count(state.version),
        started_at: state.started_at.map(time),
        ended_at: state.ended_at.map(time),
    }
}

/// A session's row in the list.
pub fn summary(record: &SessionRecord, state: &RunState, planned: &Planned) -> SessionSummary {
    let stages_total =
        if state.stages.is_empty() { planned.stages.len() } else { state.stages.len() };
    let done = state.stages.iter().filter(|record| record.status.is_over()).count();
    let current = state.current_stage.as_ref().and_then(|stage| state.stage(stage));
    SessionSummary {
        session_id: record.session_id.clone(),
        title: if record.title.is_empty() { state.title.clone() } else { record.title.clone() },
        workflow: state.workflow.as_ref().map(|workflow| workflow.name.clone()),
        status: status(state.status),
        waiting_for: waiting_for(state),
        current_stage: current.map(|record| record.plan.title.clone()),
        stages_done: count(done),
        stages_total: count(stages_total),
        updated_at: time(record.updated_at),
    }
}

fn status(status: DomainStatus) -> WorkflowStatus {
    match status {
        DomainStatus::Idle => WorkflowStatus::Idle,
        DomainStatus::Running => WorkflowStatus::Running,
        DomainStatus::Paused => WorkflowStatus::Paused,
        DomainStatus::Completed => WorkflowStatus::Completed,
        DomainStatus::Failed => WorkflowStatus::Failed,
    }
}

fn waiting_for(state: &RunState) -> Option<WaitReason> {
    state.pause.map(|reason| match reason {
        PauseReason::Person => WaitReason::Person,
        PauseReason::Approval => WaitReason::Approval,
        PauseReason::Interrupted => WaitReason::Interrupted,
    })
}

fn stage(record: &StageRecord, reply_reserve: usize) -> StageView {
    StageView {
        stage_id: record.plan.id.clone(),
        title: record.plan.title.clone(),
        kind: kind(&record.plan),
        status: stage_status(record.status),
        attempt: record.attempt,
        started_at: record.started_at.map(time),
        duration_ms: record.duration_ms,
        words: record.words,
        output_tokens: record.output_tokens,
        artifacts: record
            .artifacts
            .iter()
            .map(|artifact| ArtifactView {
                name: artifact.name.to_string(),
                hash: artifact.hash.clone(),
                bytes: artifact.bytes,
                media_type: artifact.media_type.clone(),
                attempt: artifact.attempt,
            })
            .collect(),
        policy: record.policy.iter().map(policy).collect(),
        effects: record.effects.iter().map(effect).collect(),
        pieces: pieces(&record.pieces),
        drafts: record.drafts.iter().map(draft).collect(),
        thinking: record
            .artifacts
            .last()
            .and_then(|artifact| record.thought_in(artifact.attempt))
            .as_ref()
            .map(thought),
        question: record.question.as_ref().map(|question| QuestionView {
            prompt: question.prompt.clone(),
            artifact: question.artifact.clone(),
            cause: match question.cause {
                ApprovalCause::Workflow => QuestionCause::Workflow,
                ApprovalCause::Policy => QuestionCause::Policy,
                ApprovalCause::Existing => QuestionCause::Existing,
                ApprovalCause::HalfDone => QuestionCause::HalfDone,
            },
            action: question.action.clone(),
            before: question.before.clone(),
        }),
        error: record.error.clone(),
        context: record.context.as_ref().map(|assembled| {
            context_of_attempt(
                &record.plan.title,
                assembled,
                record.inference.as_ref(),
                reply_reserve,
            )
        }),
    }
}

fn policy(decided: &PolicyDecided) -> PolicyView {
    PolicyView {
        action: decided.action.clone(),
        asks: decided.verdict == PolicyVerdict::NeedsApproval,
        rule: decided.rule.clone(),
    }
}

fn effect(record: &EffectRecord) -> EffectView {
    let (state, message) = match &record.outcome {
        None => (EffectState::Begun, None),
        Some(EffectOutcome::Succeeded) => (EffectState::Done, None),
        Some(EffectOutcome::Failed { message }) => (EffectState::Failed, Some(message.clone())),
    };
    let kind = match record.intended.kind {
        EffectKind::Write => "write",
        EffectKind::Command => "command",
    };
    EffectView {
        kind: kind.to_owned(),
        target: record.intended.target.clone(),
        attempt: record.intended.attempt.unwrap_or(1),
        state,
        message,
        output: record.output.clone().filter(|hash| *hash != BlobHash::of(b"")),
    }
}

/// How far the latest round is. A piece that was done again counts once.
fn pieces(done: &[MapPieceCompleted]) -> Option<PiecesView> {
    let last = done.last()?;
    let same =
        |piece: &&MapPieceCompleted| (piece.round, piece.pieces) == (last.round, last.pieces);
    let numbers: BTreeSet<u32> = done.iter().filter(same).map(|piece| piece.piece).collect();
    Some(PiecesView {
        done: count(numbers.len()),
        total: last.pieces,
        round: last.round.unwrap_or(0).saturating_add(1),
    })
}

/// The kind's stable name, the one that workflow files use.
pub(super) fn kind(plan: &StagePlan) -> String {
    serde_json::to_value(plan.kind)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn stage_status(status: DomainStageStatus) -> StageStatus {
    match status {
        DomainStageStatus::Pending => StageStatus::Pending,
        DomainStageStatus::Running => StageStatus::Running,
        DomainStageStatus::Waiting => StageStatus::Waiting,
        DomainStageStatus::Done => StageStatus::Done,
        DomainStageStatus::Failed => StageStatus::Failed,
        DomainStageStatus::Cancelled => StageStatus::Cancelled,
        DomainStageStatus::Skipped => StageStatus::Skipped,
    }
}

fn draft(draft: &DraftRecord) -> AttemptView {
    let reason = match &draft.reason {
        DraftReason::Steered { notes } if notes.is_empty() => {
            "put aside before it was finished".to_owned()
        }
        DraftReason::Steered { notes } if notes.len() == 1 => {
            "put aside for a steering note".to_owned()
        }
        DraftReason::Steered { notes } => format!("put aside for {} steering notes", notes.len()),
        DraftReason::Refused { validator, message } => format!("refused ({validator}): {message}"),
    };
    AttemptView {
        attempt: draft.attempt,
        reason,
        // An attempt that only thought has written nothing that could be looked at.
        draft: draft.draft.clone().filter(|hash| *hash != BlobHash::of(b"")),
        thinking: draft.thinking.as_ref().map(thought),
    }
}

fn thought(thought: &Thought) -> ThoughtView {
    ThoughtView { hash: thought.text.clone(), tokens: count(thought.tokens) }
}

fn note(record: &NoteRecord) -> NoteView {
    NoteView {
        note_id: record.note.note_id.clone(),
        content: record.note.content.clone(),
        stage_id: record.target.clone(),
        scope: match record.note.scope {
            NoteScope::Stage => SteerScope::Stage,
            NoteScope::Onward => SteerScope::Onward,
            NoteScope::Run => SteerScope::Run,
        },
        withdrawn: record.withdrawn,
        applied: record
            .applied
            .iter()
            .map(|used| AppliedView { stage_id: used.stage_id.clone(), attempt: used.attempt })
            .collect(),
        at: time(record.at),
    }
}

/// How far a note reaches, in the domain's terms.
pub fn note_scope(scope: SteerScope) -> NoteScope {
    match scope {
        SteerScope::Stage => NoteScope::Stage,
        SteerScope::Onward => NoteScope::Onward,
        SteerScope::Run => NoteScope::Run,
    }
}

fn input(input: &CapturedInput) -> InputView {
    InputView {
        name: input.name.clone(),
        path: input.path.clone(),
        hash: input.hash.clone(),
        bytes: input.bytes,
    }
}

/// RFC 3339, in UTC.
fn time(time: Timestamp) -> String {
    time.to_string()
}

#[cfg(test)]
mod tests {
    use correx_events::{
        EventId, EventMetadata, EventPayload, NoteId, OrchestrationPaused, SessionCreated,
        StageKind, StageRestarted, StageStarted, SteeringNoteAdded, SteeringNoteApplied,
        StoredEvent, WorkflowRef, WorkflowStarted,
    };
    use correx_sessions::{Reducer, RunReducer};
    use correx_store::Shelf;

    use super::*;

    fn given(payloads: Vec<EventPayload>) -> RunState {
        let mut state = RunReducer.initial();
        for (sequence, payload) in (1..).zip(payloads) {
            let metadata = EventMetadata {
                event_id: EventId::new(format!("e{sequence}")),
                session_id: "s".into(),
                sequence,
                timestamp: Timestamp::from_second(sequence.try_into().unwrap()).unwrap(),
            };
            state = RunReducer.reduce(state, &StoredEvent { metadata, payload });
        }
        state
    }

    fn plan(id: &str) -> StagePlan {
        StagePlan {
            id: id.into(),
            title: format!("The {id}"),
            kind: StageKind::Generate,
            needs: None,
        }
    }

    fn created() -> EventPayload {
        let source = BlobHash::of(b"source");
        let workflow = Some(WorkflowRef { name: "Notes".into(), source });
        SessionCreated { title: "Monday".into(), workflow }.into()
    }

    fn started() -> EventPayload {
        let stages = vec![plan("draft"), plan("mail")];
        let first_stage = Some("draft".into());
        WorkflowStarted { workflow: "Notes".into(), stages, first_stage }.into()
    }

    fn record(title: &str) -> SessionRecord {
        SessionRecord {
            session_id: "s".into(),
            title: title.into(),
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
            last_sequence: 0,
            shelf: Shelf::Active,
        }
    }

    #[test]
    fn before_the_start_the_planned_stages_are_shown() {
        let state = given(vec![created()]);
        let planned = Planned { stages: vec![plan("draft"), plan("mail")], ..Planned::default() };
        let view = run(&state, &planned);
        assert_eq!(view.status, WorkflowStatus::Idle);
        let ids: Vec<&str> = view.stages.iter().map(|stage| stage.stage_id.as_str()).collect();
        assert_eq!(ids, ["draft", "mail"]);
        assert!(view.stages.iter().all(|stage| stage.status == StageStatus::Pending));
        assert_eq!(view.stages[0].kind, "generate");
        let row = summary(&record("Renamed"), &state, &planned);
        assert_eq!((row.stages_done, row.stages_total), (0, 2));
        assert_eq!(row.title, "Renamed");
        assert_eq!(row.workflow.as_deref(), Some("Notes"));
    }

    #[test]
    fn a_session_that_nobody_named_has_the_title_it_was_created_with() {
        let row = summary(&record(""), &given(vec![created()]), &Planned::default());
        assert_eq!(row.title, "Monday");
    }

    #[test]
    fn a_notes_fate_and_the_draft_that_it_put_aside_are_shown() {
        let attempt = |attempt| StageStarted { stage_id: "draft".into(), attempt };
        let note_id = NoteId::new("n1");
        let state = given(vec![
            created(),
            started(),
            attempt(1).into(),
            SteeringNoteAdded {
                session_id: "s".into(),
                note_id: note_id.clone(),
                content: "Be brief".into(),
                stage_id: None,
                scope: NoteScope::Onward,
                replaces: None,
            }
            .into(),
            StageRestarted {
                stage_id: "draft".into(),
                attempt: 1,
                notes: vec![note_id.clone()],
                draft: Some(BlobHash::of(b"half")),
            }
            .into(),
            attempt(2).into(),
            SteeringNoteApplied { note_id, stage_id: "draft".into(), attempt: 2 }.into(),
        ]);
        let view = run(&state, &Planned::default());
        assert_eq!(view.current_stage, Some("draft".into()));
        assert_eq!(view.last_event, 7);
        let [note] = view.notes.as_slice() else { panic!("one note") };
        assert_eq!(note.content, "Be brief");
        assert_eq!(note.scope, SteerScope::Onward);
        assert_eq!(note.applied, [AppliedView { stage_id: "draft".into(), attempt: 2 }]);
        assert_eq!(view.stages[0].status, StageStatus::Running);
        assert_eq!(view.stages[0].drafts[0].reason, "put aside for a steering note");
        assert_eq!(view.stages[0].drafts[0].draft, Some(BlobHash::of(b"half")));
    }

    #[test]
    fn an_interrupted_run_says_that_it_can_be_resumed() {
        let paused = OrchestrationPaused { reason: PauseReason::Interrupted };
        let state = given(vec![created(), started(), paused.into()]);
        let view = run(&state, &Planned::default());
        assert_eq!(view.status, WorkflowStatus::Paused);
        assert_eq!(view.waiting_for, Some(WaitReason::Interrupted));
        let row = summary(&record("t"), &state, &Planned::default());
        assert_eq!(row.waiting_for, Some(WaitReason::Interrupted));
        assert_eq!(row.current_stage.as_deref(), Some("The draft"));
    }
}
