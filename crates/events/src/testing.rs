//! For tests: one payload of every kind, a clock that stands still, ids that count.

use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

use crate::{
    ApprovalCause, ApprovalDenied, ApprovalGranted, ApprovalRequested, ArtifactName,
    ArtifactProduced, BlobHash, CapturedInput, Clock, ContextAssembled, ContextEntryRecord,
    EffectDone, EffectIntended, EffectKind, EffectOutcome, EntryFate, EventId, EventMetadata,
    EventPayload, FailureReason, IdSource, InferenceCompleted, InputKind, InputsCaptured,
    MapPieceCompleted, NoteId, NoteScope, OrchestrationPaused, OrchestrationResumed, PauseReason,
    PieceRef, PolicyDecided, PolicyDenied, PolicyVerdict, SessionCreated, SessionId,
    StageAttemptRefused, StageCancelled, StageCompleted, StageFailed, StageId, StageKind,
    StagePlan, StageRestarted, StageSkipped, StageStarted, SteeringNoteAdded, SteeringNoteApplied,
    SteeringNoteWithdrawn, StoredEvent, WorkflowCompleted, WorkflowFailed, WorkflowRef,
    WorkflowRerun, WorkflowStarted,
};

/// A clock that always tells the same time.
#[derive(Debug, Clone, Copy)]
pub struct FixedClock(pub Timestamp);

impl Default for FixedClock {
    /// Ten seconds after the epoch.
    fn default() -> Self {
        Self(Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(10))
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// Names things `id-1`, `id-2` and so on.
#[derive(Debug, Default)]
pub struct CountingIds(AtomicU64);

impl IdSource for CountingIds {
    fn next_id(&self) -> String {
        format!("id-{}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// `payload` as event number `sequence` of `session`, appended that many seconds after the epoch.
pub fn stored(session: &str, sequence: u64, payload: impl Into<EventPayload>) -> StoredEvent {
    let seconds = i64::try_from(sequence).unwrap_or(i64::MAX);
    StoredEvent {
        metadata: EventMetadata {
            event_id: EventId::new(format!("{session}-{sequence}")),
            session_id: SessionId::new(session),
            sequence,
            timestamp: Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX),
        },
        payload: payload.into(),
    }
}

/// One payload of every kind that this version writes, in the order of [`EventPayload::KINDS`].
/// Every optional field is filled.
pub fn samples() -> Vec<EventPayload> {
    std::iter::successors(after(None), |sample| after(Some(sample))).collect()
}

/// The sample of the kind that follows `sample`'s. A kind without an arm here does not compile.
fn after(sample: Option<&EventPayload>) -> Option<EventPayload> {
    use EventPayload as P;
    Some(match sample {
        None => session_created(),
        Some(P::SessionCreated(_)) => inputs_captured(),
        Some(P::InputsCaptured(_)) => workflow_started(),
        Some(P::WorkflowStarted(_)) => WorkflowCompleted { duration_ms: 81_250 }.into(),
        Some(P::WorkflowCompleted(_)) => WorkflowFailed {
            reason: FailureReason::StageFailed,
            message: "The stage “summary” gave up after 3 attempts; its drafts were kept.".into(),
        }
        .into(),
        Some(P::WorkflowFailed(_)) => {
            OrchestrationPaused { reason: PauseReason::Interrupted }.into()
        }
        Some(P::OrchestrationPaused(_)) => OrchestrationResumed {}.into(),
        Some(P::OrchestrationResumed(_)) => {
            StageStarted { stage_id: stage("summary"), attempt: 1 }.into()
        }
        Some(P::StageStarted(_)) => StageCompleted {
            stage_id: stage("summary"),
            attempt: 2,
            next_stage: Some(stage("actions")),
            words: Some(143),
            output_tokens: Some(201),
            duration_ms: 9_400,
        }
        .into(),
        Some(P::StageCompleted(_)) => StageFailed {
            stage_id: stage("summary"),
            attempt: 3,
            reason: "max_words: 412 words, 150 allowed".into(),
        }
        .into(),
        Some(P::StageFailed(_)) => StageCancelled { stage_id: stage("summary"), attempt: 1 }.into(),
        Some(P::StageCancelled(_)) => StageRestarted {
            stage_id: stage("summary"),
            attempt: 1,
            notes: vec![NoteId::new("note-1"), NoteId::new("note-2")],
            draft: Some(BlobHash::of(b"a draft put aside")),
        }
        .into(),
        Some(P::StageRestarted(_)) => StageAttemptRefused {
            stage_id: stage("summary"),
            attempt: 2,
            validator: "max_words".into(),
            message: "412 words, 150 allowed".into(),
            draft: BlobHash::of(b"a draft refused"),
            piece: Some(PieceRef { round: 0, piece: 3, pieces: 12 }),
        }
        .into(),
        Some(P::StageAttemptRefused(_)) => MapPieceCompleted {
            stage_id: stage("notes"),
            attempt: 1,
            piece: 0,
            pieces: 12,
            result: BlobHash::of(b"a piece"),
            round: Some(1),
            input: Some(BlobHash::of(b"a piece's text")),
            output_tokens: Some(40),
        }
        .into(),
        Some(P::MapPieceCompleted(_)) => ArtifactProduced {
            stage_id: stage("summary"),
            attempt: 2,
            name: ArtifactName::new("summary"),
            hash: BlobHash::of(b"a summary"),
            bytes: 9,
            media_type: "text/markdown".into(),
        }
        .into(),
        Some(P::ArtifactProduced(_)) => context_assembled(),
        Some(P::ContextAssembled(_)) => inference_completed(),
        Some(P::InferenceCompleted(_)) => ApprovalRequested {
            stage_id: stage("check"),
            prompt: "Send this e-mail?".into(),
            artifact: Some(BlobHash::of(b"an e-mail")),
            cause: ApprovalCause::Policy,
            action: Some("run send-mail draft.eml".into()),
            before: Some(BlobHash::of(b"an older e-mail")),
        }
        .into(),
        Some(P::ApprovalRequested(_)) => {
            ApprovalGranted { stage_id: stage("check"), comment: Some("Yes, as it is.".into()) }
                .into()
        }
        Some(P::ApprovalGranted(_)) => {
            ApprovalDenied { stage_id: stage("check"), reason: Some("Too long.".into()) }.into()
        }
        Some(P::ApprovalDenied(_)) => PolicyDenied {
            stage_id: stage("publish"),
            action: "run `make publish`".into(),
            rule: "no commands".into(),
        }
        .into(),
        Some(P::PolicyDenied(_)) => SteeringNoteAdded {
            session_id: SessionId::new("session-1"),
            note_id: NoteId::new("note-1"),
            content: "Écris en français, \"s'il te plaît\" 🙂\nShort sentences.".into(),
            stage_id: Some(stage("summary")),
            scope: NoteScope::Onward,
            replaces: Some(NoteId::new("note-0")),
        }
        .into(),
        Some(P::SteeringNoteAdded(_)) => SteeringNoteApplied {
            note_id: NoteId::new("note-1"),
            stage_id: stage("summary"),
            attempt: 2,
        }
        .into(),
        Some(P::SteeringNoteApplied(_)) => {
            SteeringNoteWithdrawn { note_id: NoteId::new("note-1") }.into()
        }
        Some(P::SteeringNoteWithdrawn(_)) => EffectIntended {
            effect_id: "effect-1".into(),
            stage_id: stage("publish"),
            kind: EffectKind::Write,
            target: "summary.md".into(),
            attempt: Some(1),
            content: Some(BlobHash::of(b"a summary")),
            before: Some(BlobHash::of(b"an older summary")),
        }
        .into(),
        Some(P::EffectIntended(_)) => EffectDone {
            effect_id: "effect-1".into(),
            stage_id: stage("publish"),
            outcome: EffectOutcome::Failed { message: "the disk is full".into() },
            output: Some(BlobHash::of(b"half a summary")),
        }
        .into(),
        Some(P::EffectDone(_)) => StageSkipped {
            stage_id: stage("tell"),
            reason: "inputs.tell == \"yes\"".into(),
            next_stage: Some(stage("publish")),
        }
        .into(),
        Some(P::StageSkipped(_)) => WorkflowRerun {
            from_stage: stage("summary"),
            stages: vec![stage("summary"), stage("publish")],
        }
        .into(),
        Some(P::WorkflowRerun(_)) => PolicyDecided {
            stage_id: stage("publish"),
            action: "write summary.md".into(),
            verdict: PolicyVerdict::NeedsApproval,
            rule: "the default policy".into(),
        }
        .into(),
        Some(P::PolicyDecided(_) | P::Unknown(_)) => return None,
    })
}

fn stage(id: &str) -> StageId {
    StageId::new(id)
}

fn session_created() -> EventPayload {
    SessionCreated {
        title: "Meeting of 3 May".into(),
        workflow: Some(WorkflowRef {
            name: "meeting".into(),
            source: BlobHash::of(b"name = \"meeting\""),
        }),
    }
    .into()
}

fn inputs_captured() -> EventPayload {
    let input = |name: &str, kind, path: Option<&str>| CapturedInput {
        name: name.into(),
        kind,
        path: path.map(Into::into),
        hash: BlobHash::of(name.as_bytes()),
        bytes: 2_048,
    };
    InputsCaptured {
        inputs: vec![
            input("notes", InputKind::File, Some("notes/3 May.txt")),
            input("tone", InputKind::Text, None),
            input("earlier", InputKind::Folder, Some("notes")),
        ],
    }
    .into()
}

fn workflow_started() -> EventPayload {
    let plan = |id: &str, title: &str, kind| StagePlan {
        id: stage(id),
        title: title.into(),
        kind,
        needs: Some(vec![stage("before")]),
    };
    WorkflowStarted {
        workflow: "meeting".into(),
        stages: vec![
            plan("notes", "Notes by topic", StageKind::Map),
            plan("summary", "Summary", StageKind::Generate),
            plan("check", "A person looks", StageKind::Approve),
            plan("publish", "Into a file", StageKind::Write),
            plan("tell", "Tell the others", StageKind::Command),
        ],
        first_stage: Some(stage("notes")),
    }
    .into()
}

fn context_assembled() -> EventPayload {
    let entry = |layer: &str, source: &str, fate| ContextEntryRecord {
        layer: layer.into(),
        source: source.into(),
        tokens: 40,
        text: BlobHash::of(source.as_bytes()),
        fate,
    };
    ContextAssembled {
        stage_id: stage("summary"),
        attempt: 1,
        entries: vec![
            entry("L0", "task", EntryFate::Kept),
            entry("L2", "stageSummary:notes", EntryFate::Dropped { reason: "no room".into() }),
        ],
        template_tokens: 12,
        prompt_tokens: 52,
        budget_limit: 3_584,
        prompt_ids: BlobHash::of(b"ids"),
        piece: Some(PieceRef { round: 0, piece: 3, pieces: 12 }),
        judges: true,
    }
    .into()
}

fn inference_completed() -> EventPayload {
    InferenceCompleted {
        stage_id: stage("summary"),
        attempt: 1,
        model: "SmolLM2-135M-Instruct".into(),
        model_sha256: Some(BlobHash::of(b"weights").as_str().into()),
        prompt_tokens: 52,
        output_tokens: 201,
        thinking_tokens: Some(64),
        thinking: Some(BlobHash::of(b"thinking")),
        reused_tokens: 30,
        prompt_ms: 310,
        reply_ms: 2_750,
        temperature: 0.7,
        top_p: 0.95,
        top_k: 40,
        min_p: 0.05,
        repetition_penalty: 1.1,
        seed: u64::MAX,
        device: "CPU (2 threads)".into(),
        finish_reason: "stop".into(),
        piece: Some(PieceRef { round: 0, piece: 3, pieces: 12 }),
        judges: true,
    }
    .into()
}
