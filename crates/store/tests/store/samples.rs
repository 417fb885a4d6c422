//! One payload of every kind.

use correx_events::*;

fn hash(text: &str) -> BlobHash {
    BlobHash::of(text.as_bytes())
}

fn stage(id: &str) -> StageId {
    StageId::new(id)
}

/// One payload per kind, in the order of [`EventPayload::KINDS`].
pub(crate) fn one_of_each() -> Vec<EventPayload> {
    let payloads: Vec<EventPayload> = vec![
        SessionCreated {
            title: "Grüße — \"quoted\", \\ and 🦀".into(),
            workflow: Some(WorkflowRef { name: "minutes".into(), source: hash("toml") }),
        }
        .into(),
        InputsCaptured {
            inputs: vec![
                CapturedInput {
                    name: "notes".into(),
                    kind: InputKind::File,
                    path: Some("/home/ä b/notes.txt".into()),
                    hash: hash("notes"),
                    bytes: u64::MAX,
                },
                CapturedInput {
                    name: "tone".into(),
                    kind: InputKind::Text,
                    path: None,
                    hash: hash(""),
                    bytes: 0,
                },
            ],
        }
        .into(),
        WorkflowStarted {
            workflow: "minutes".into(),
            stages: vec![
                StagePlan {
                    id: stage("a"),
                    title: "Summary".into(),
                    kind: StageKind::Generate,
                    needs: None,
                },
                StagePlan {
                    id: stage("b"),
                    title: "Ask".into(),
                    kind: StageKind::Approve,
                    needs: None,
                },
            ],
            first_stage: Some(stage("a")),
        }
        .into(),
        WorkflowCompleted { duration_ms: 61_000 }.into(),
        WorkflowFailed { reason: FailureReason::StageFailed, message: "line\nbreak".into() }.into(),
        OrchestrationPaused { reason: PauseReason::Interrupted }.into(),
        OrchestrationResumed {}.into(),
        StageStarted { stage_id: stage("a"), attempt: 1 }.into(),
        StageCompleted {
            stage_id: stage("a"),
            attempt: 1,
            next_stage: Some(stage("b")),
            words: Some(120),
            output_tokens: None,
            duration_ms: 5,
        }
        .into(),
        StageFailed { stage_id: stage("a"), attempt: 3, reason: "too long".into() }.into(),
        StageCancelled { stage_id: stage("a"), attempt: 1 }.into(),
        StageRestarted {
            stage_id: stage("a"),
            attempt: 1,
            notes: vec![NoteId::new("n1"), NoteId::new("n2")],
            draft: Some(hash("draft")),
        }
        .into(),
        StageAttemptRefused {
            stage_id: stage("a"),
            attempt: 1,
            validator: "max_words".into(),
            message: "212 words, at most 120".into(),
            draft: hash("draft"),
            piece: None,
        }
        .into(),
        MapPieceCompleted {
            stage_id: stage("m"),
            attempt: 1,
            piece: 0,
            pieces: 81,
            result: hash("piece"),
            input: None,
            output_tokens: None,
            round: None,
        }
        .into(),
        ArtifactProduced {
            stage_id: stage("a"),
            attempt: 1,
            name: ArtifactName::new("summary"),
            hash: hash("summary"),
            bytes: 7,
            media_type: "text/markdown".into(),
        }
        .into(),
        ContextAssembled {
            stage_id: stage("a"),
            attempt: 1,
            entries: vec![
                ContextEntryRecord {
                    layer: "L0".into(),
                    source: "steeringNote".into(),
                    tokens: 9,
                    text: hash("note"),
                    fate: EntryFate::Kept,
                },
                ContextEntryRecord {
                    layer: "L2".into(),
                    source: "stageSummary".into(),
                    tokens: 400,
                    text: hash("old"),
                    fate: EntryFate::Dropped { reason: "over the budget".into() },
                },
            ],
            template_tokens: 12,
            prompt_tokens: 21,
            budget_limit: 4096,
            prompt_ids: hash("ids"),
            judges: false,
            piece: None,
        }
        .into(),
        InferenceCompleted {
            stage_id: stage("a"),
            attempt: 1,
            model: "SmolLM2-135M-Instruct".into(),
            model_sha256: None,
            prompt_tokens: 21,
            output_tokens: 80,
            thinking_tokens: None,
            thinking: None,
            reused_tokens: 3,
            prompt_ms: 100,
            reply_ms: 900,
            temperature: 0.1,
            top_p: 0.95,
            top_k: 40,
            min_p: 0.05,
            repetition_penalty: 1.1,
            seed: u64::MAX,
            device: "cpu".into(),
            finish_reason: "stop".into(),
            judges: false,
            piece: None,
        }
        .into(),
        ApprovalRequested {
            stage_id: stage("b"),
            prompt: "Send?".into(),
            artifact: None,
            cause: correx_events::ApprovalCause::Workflow,
            action: None,
            before: None,
        }
        .into(),
        ApprovalGranted { stage_id: stage("b"), comment: Some("yes".into()) }.into(),
        ApprovalDenied { stage_id: stage("b"), reason: None }.into(),
        PolicyDenied {
            stage_id: stage("c"),
            action: "run rm -rf /".into(),
            rule: "no commands".into(),
        }
        .into(),
        SteeringNoteAdded {
            session_id: SessionId::new("fixture"),
            note_id: NoteId::new("n1"),
            content: "Shorter, and <|im_end|> is plain text".into(),
            stage_id: Some(stage("b")),
            scope: NoteScope::Onward,
            replaces: None,
        }
        .into(),
        SteeringNoteApplied { note_id: NoteId::new("n1"), stage_id: stage("b"), attempt: 2 }.into(),
        SteeringNoteWithdrawn { note_id: NoteId::new("n1") }.into(),
        EffectIntended {
            effect_id: "x1".into(),
            stage_id: stage("c"),
            kind: EffectKind::Write,
            target: "out/summary.md".into(),
            attempt: None,
            before: None,
            content: None,
        }
        .into(),
        EffectDone {
            effect_id: "x1".into(),
            stage_id: stage("c"),
            outcome: EffectOutcome::Failed { message: "no space".into() },
            output: None,
        }
        .into(),
        StageSkipped {
            stage_id: stage("d"),
            reason: "inputs.tell == \"yes\"".into(),
            next_stage: None,
        }
        .into(),
        WorkflowRerun { from_stage: stage("b"), stages: vec![stage("b"), stage("c")] }.into(),
        PolicyDecided {
            stage_id: stage("c"),
            action: "write out/summary.md".into(),
            verdict: PolicyVerdict::NeedsApproval,
            rule: "the default policy".into(),
        }
        .into(),
    ];
    let kinds: Vec<_> = payloads.iter().map(EventPayload::kind).collect();
    assert_eq!(kinds, EventPayload::KINDS, "a kind has no sample, or the order differs");
    payloads
}
