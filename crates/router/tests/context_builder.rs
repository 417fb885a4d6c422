//! What the router's model is shown, and what is left out.

mod common;

use common::*;
use correx_context::testing::WordEncoder;
use correx_context::*;
use correx_events::*;
use correx_router::context_builder::{PLAIN_CHAT_PROMPT, SYSTEM_PROMPT};
use correx_router::*;
use proptest::prelude::*;

fn build(state: &RouterState, limit: usize) -> Result<ContextPack, PackError> {
    build_keeping(state, limit, 6)
}

fn build_keeping(
    state: &RouterState,
    limit: usize,
    keep_last: usize,
) -> Result<ContextPack, PackError> {
    let config = RouterConfig { conversation_keep_last: keep_last, ..RouterConfig::default() };
    DefaultRouterContextBuilder::new(config).build(
        state,
        TokenBudget::new(limit),
        &WordEncoder::default(),
    )
}

/// A run with `stages` finished stages and a talk of `exchanges` exchanges and one open message.
fn busy(stages: usize, exchanges: usize) -> RouterState {
    let ids: Vec<String> = (0..=stages).map(|number| format!("stage{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut events = vec![created(true), started(&ids)];
    for pair in ids.windows(2) {
        events.push(stage_completed(pair[0], Some(pair[1])));
    }
    let mut state = given(events);
    for number in 0..exchanges {
        state.conversation_history.push(turn(TurnRole::User, &format!("question {number} please")));
        state.conversation_history.push(turn(TurnRole::Router, &format!("answer {number} given")));
    }
    state.conversation_history.push(turn(TurnRole::User, "the open message"));
    state
}

fn contents(pack: &ContextPack, layer: ContextLayer) -> Vec<&str> {
    pack.layer(layer).iter().map(|entry| entry.content.as_str()).collect()
}

#[test]
fn everything_is_there_when_the_budget_is_large() {
    let pack = build(&busy(2, 2), 4096).unwrap();
    let l0 = contents(&pack, ContextLayer::L0);
    assert_eq!(l0, [SYSTEM_PROMPT, "Status: RUNNING, Stage: stage2"]);
    assert_eq!(
        contents(&pack, ContextLayer::L1),
        [
            "question 0 please",
            "answer 0 given",
            "question 1 please",
            "answer 1 given",
            "the open message"
        ]
    );
    assert_eq!(
        contents(&pack, ContextLayer::L2),
        [
            "Stage stage0 (SUCCESS): finished on attempt 1: 214 words, 301 tokens, 4.1 s",
            "Stage stage1 (SUCCESS): finished on attempt 1: 214 words, 301 tokens, 4.1 s",
        ]
    );
    let last = pack.layer(ContextLayer::L1).last().unwrap();
    assert_eq!((&last.source, last.role), (&SourceType::Message, Role::User));
    assert!(pack.dropped.is_empty());
    assert_eq!(pack.compression_metadata.entries_dropped, 0);
}

#[test]
fn the_pack_is_named_after_its_session() {
    assert_eq!(build(&busy(1, 0), 4096).unwrap().id.0, "s1-router-pack");
    let pack = build(&RouterState::default(), 4096).unwrap();
    assert_eq!(pack.id.0, "unknown-router-pack");
    assert_eq!((pack.session_id, pack.stage_id), (None, None));
}

#[test]
fn the_status_names_no_stage_when_none_is_current() {
    let pack = build(&given([started(&["a"]), completed()]), 4096).unwrap();
    assert!(contents(&pack, ContextLayer::L0).contains(&"Status: COMPLETED, Stage: none"));
}

#[test]
fn the_current_stage_is_the_packs_stage() {
    assert_eq!(build(&busy(1, 0), 4096).unwrap().stage_id, Some("stage1".into()));
}

#[test]
fn oldest_summaries_go_first_when_the_budget_shrinks() {
    let state = busy(5, 0);
    let all = build(&state, 4096).unwrap();
    let pack = build(&state, all.budget_used - 1).unwrap();
    let kept = contents(&pack, ContextLayer::L2);
    assert_eq!(kept.len(), 4);
    assert!(kept[0].starts_with("Stage stage1 "));
    assert_eq!(pack.dropped.len(), 1);
    assert!(pack.dropped[0].entry.content.starts_with("Stage stage0 "));
    assert_eq!(pack.dropped[0].reason, DropReason::Budget);
    assert_eq!(pack.compression_metadata.truncated_layers, [ContextLayer::L2]);
}

#[test]
fn conversation_goes_only_after_every_summary() {
    let state = busy(2, 2);
    let without_summaries = {
        let mut state = state.clone();
        state.l2_memory.clear();
        build(&state, 4096).unwrap().budget_used
    };
    let pack = build(&state, without_summaries).unwrap();
    assert!(pack.layer(ContextLayer::L2).is_empty());
    assert_eq!(pack.layer(ContextLayer::L1).len(), 5);
}

#[test]
fn an_overflowing_conversation_loses_whole_exchanges_and_one_more_than_needed() {
    let state = busy(0, 4);
    let all = build_keeping(&state, 4096, 20).unwrap();
    let pack = build_keeping(&state, all.budget_used - 1, 20).unwrap();
    assert_eq!(
        contents(&pack, ContextLayer::L1),
        [
            "question 2 please",
            "answer 2 given",
            "question 3 please",
            "answer 3 given",
            "the open message"
        ]
    );
    assert_eq!(pack.dropped.len(), 4);
}

#[test]
fn the_window_never_begins_with_an_answer() {
    // Six turns end in the open message: the sixth from the end is an answer.
    let pack = build(&busy(0, 5), 4096).unwrap();
    let l1 = contents(&pack, ContextLayer::L1);
    assert_eq!(l1[0], "question 3 please");
    assert_eq!(l1.len(), 5);
}

#[test]
fn conversation_is_capped_at_the_newest_turns_and_says_so() {
    let pack = build_keeping(&busy(0, 8), 4096, 3).unwrap();
    assert_eq!(
        contents(&pack, ContextLayer::L1),
        ["question 7 please", "answer 7 given", "the open message"]
    );
    assert_eq!(pack.dropped.len(), 14);
    assert!(pack.dropped.iter().all(|dropped| dropped.reason == DropReason::KeepLast(3)));
    assert_eq!(pack.dropped[0].entry.content, "question 0 please");
}

#[test]
fn the_message_being_answered_stays_whatever_is_kept() {
    for keep_last in 0..3 {
        let pack = build_keeping(&busy(0, 2), 4096, keep_last).unwrap();
        assert_eq!(contents(&pack, ContextLayer::L1).last(), Some(&"the open message"));
    }
}

#[test]
fn l0_and_the_message_are_never_dropped_but_refused_with_numbers() {
    let state = busy(3, 3);
    let bare = {
        let mut state = state.clone();
        state.l2_memory.clear();
        state.conversation_history.drain(..6);
        build(&state, 4096).unwrap().budget_used
    };
    let pack = build(&state, bare).unwrap();
    assert_eq!(pack.layer(ContextLayer::L0).len(), 2);
    assert_eq!(contents(&pack, ContextLayer::L1), ["the open message"]);
    match build(&state, bare - 1).unwrap_err() {
        PackError::TooLarge { needed, limit, largest, .. } => {
            assert_eq!((needed, limit), (bare, bare - 1));
            assert_eq!(largest, SourceType::SystemPrompt);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn active_notes_are_l0_and_say_where_they_were_applied() {
    let applied =
        SteeringNoteApplied { note_id: "n1".into(), stage_id: "draft".into(), attempt: 2 };
    let pack = build(
        &given([
            started(&["draft", "check"]),
            note("n1", "Be brief.", None, NoteScope::Onward),
            applied.into(),
            note("n2", "Use euros.", Some("check"), NoteScope::Stage),
            note("n3", "Name the owner.", None, NoteScope::Run),
            note("n4", "Forget this.", None, NoteScope::Run),
            SteeringNoteWithdrawn { note_id: "n4".into() }.into(),
        ]),
        4096,
    )
    .unwrap();
    assert_eq!(
        contents(&pack, ContextLayer::L0)[2..],
        [
            "Steering note from DRAFT onward, applied in DRAFT (attempt 2): Be brief.",
            "Steering note for CHECK, not applied yet: Use euros.",
            "Steering note for the whole run, not applied yet: Name the owner.",
        ]
    );
}

#[test]
fn only_the_note_that_the_message_became_is_just_given() {
    let mut state = given([
        started(&["draft"]),
        note("n1", "Be brief.", None, NoteScope::Run),
        note("n2", "Use euros.", None, NoteScope::Run),
    ]);
    let notes = |state: &RouterState| -> Vec<String> {
        contents(&build(state, 4096).unwrap(), ContextLayer::L0)[2..]
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    state.conversation_history = vec![turn(TurnRole::User, "Use euros.")];
    assert_eq!(
        notes(&state),
        [
            "Steering note for the whole run, not applied yet: Be brief.",
            "Steering note for the whole run, just given, not applied yet: Use euros.",
        ]
    );
    for last in [turn(TurnRole::User, "Be brief."), turn(TurnRole::Router, "Use euros.")] {
        state.conversation_history = vec![last];
        assert!(notes(&state).iter().all(|note| !note.contains("just given")));
    }
}

#[test]
fn what_changes_least_comes_first_and_the_message_last() {
    let mut state = busy(1, 1);
    state.notes =
        given([started(&["stage0", "stage1"]), note("n", "Be brief.", None, NoteScope::Run)]).notes;
    let pack = build(&state, 4096).unwrap();
    let roles: Vec<Role> = pack.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User]);
    let system = pack.messages[0].content();
    assert!(system.starts_with(SYSTEM_PROMPT) && system.contains("Stage stage0 (SUCCESS)"));
    let last = pack.messages[3].content();
    let order: Vec<usize> = ["Status: RUNNING", "Steering note", "the open message"]
        .iter()
        .map(|part| last.find(part).unwrap())
        .collect();
    assert!(order.is_sorted());
}

#[test]
fn prompts_of_one_conversation_share_everything_before_the_last_turn() {
    let before = busy(1, 1);
    let mut after = before.clone();
    after.workflow_status = WorkflowStatus::Paused;
    after.conversation_history.push(turn(TurnRole::Router, "an answer"));
    after.conversation_history.push(turn(TurnRole::User, "next"));
    let (before, after) = (build(&before, 4096).unwrap(), build(&after, 4096).unwrap());
    assert_eq!(before.messages[..3], after.messages[..3]);
}

#[test]
fn a_plain_chat_is_told_to_help_and_keeps_its_status_in_the_system_text() {
    let mut state = given([created(false)]);
    state.conversation_history = vec![turn(TurnRole::User, "hello")];
    let pack = build(&state, 4096).unwrap();
    assert_eq!(contents(&pack, ContextLayer::L0), [PLAIN_CHAT_PROMPT, "Status: IDLE, Stage: none"]);
    assert_eq!(pack.messages[1].content(), "hello");
}

#[test]
fn a_session_with_a_workflow_is_told_about_the_run_before_it_starts() {
    let pack = build(&given([created(true)]), 4096).unwrap();
    assert_eq!(contents(&pack, ContextLayer::L0)[0], SYSTEM_PROMPT);
}

#[test]
fn without_an_open_message_every_turn_is_conversation() {
    let mut state = given([created(false)]);
    state.conversation_history =
        vec![turn(TurnRole::User, "hello"), turn(TurnRole::Router, "good day")];
    let pack = build(&state, 4096).unwrap();
    let sources: Vec<_> =
        pack.layer(ContextLayer::L1).iter().map(|entry| entry.source.clone()).collect();
    assert_eq!(sources, [SourceType::Conversation, SourceType::Conversation]);
}

#[test]
fn no_event_payload_artifact_or_tool_output_can_enter_a_pack() {
    let secret = "THE-ARTIFACT-TEXT";
    let state = given([
        created(true),
        InputsCaptured {
            inputs: vec![CapturedInput {
                name: secret.into(),
                kind: InputKind::Text,
                path: Some(secret.into()),
                hash: BlobHash::of(secret.as_bytes()),
                bytes: 9,
            }],
        }
        .into(),
        started(&["draft", "check"]),
        stage_started("draft", 1),
        StageAttemptRefused {
            stage_id: "draft".into(),
            attempt: 1,
            validator: "must_match".into(),
            message: secret.into(),
            draft: BlobHash::of(secret.as_bytes()),
            piece: None,
        }
        .into(),
        ArtifactProduced {
            stage_id: "draft".into(),
            attempt: 2,
            name: secret.into(),
            hash: BlobHash::of(secret.as_bytes()),
            bytes: 9,
            media_type: secret.into(),
        }
        .into(),
        EffectIntended {
            effect_id: "e".into(),
            stage_id: "draft".into(),
            kind: EffectKind::Command,
            target: secret.into(),
            attempt: None,
            before: None,
            content: None,
        }
        .into(),
        EffectDone {
            effect_id: "e".into(),
            stage_id: "draft".into(),
            outcome: EffectOutcome::Failed { message: secret.into() },
            output: None,
        }
        .into(),
        stage_completed("draft", Some("check")),
    ]);
    let pack = build(&state, 4096).unwrap();
    let shown = serde_json::to_string(&pack).unwrap();
    assert!(!shown.contains(secret), "{shown}");
    assert!(!shown.contains(BlobHash::of(secret.as_bytes()).as_str()));
    for kind in EventPayload::KINDS {
        assert!(!shown.contains(&format!("\"{kind}\"")));
    }
    for entry in pack.entries() {
        assert!(matches!(
            entry.source,
            SourceType::SystemPrompt
                | SourceType::WorkflowStatus
                | SourceType::SteeringNote(_)
                | SourceType::Conversation
                | SourceType::Message
                | SourceType::StageSummary(_)
        ));
    }
}

proptest! {
    #[test]
    fn packs_fit_keep_l0_drop_the_oldest_and_keep_time_order(
        stages in 0_usize..8,
        exchanges in 0_usize..8,
        keep_last in 0_usize..20,
        limit in 0_usize..400,
    ) {
        let state = busy(stages, exchanges);
        let Ok(pack) = build_keeping(&state, limit, keep_last) else {
            let bare = build_keeping(&busy(stages, 0), 10_000, 0).unwrap();
            let summaries = bare.layer_tokens(ContextLayer::L2);
            prop_assert!(bare.budget_used - summaries > limit);
            return Ok(());
        };
        prop_assert!(pack.budget_used <= limit);
        prop_assert_eq!(pack.budget_used, pack.prompt.ids.len());
        prop_assert_eq!(pack.layer(ContextLayer::L0).len(), 2);
        // What stays of each layer is its newest part, in time order.
        let everything: Vec<String> = state.l2_memory.iter()
            .map(|entry| format!("Stage {} (SUCCESS): {}", entry.stage_id, entry.summary))
            .collect();
        let kept = contents(&pack, ContextLayer::L2);
        prop_assert_eq!(&everything[everything.len() - kept.len()..], &kept[..]);
        let talk: Vec<&str> =
            state.conversation_history.iter().map(|turn| turn.content.as_str()).collect();
        let kept = contents(&pack, ContextLayer::L1);
        prop_assert_eq!(&talk[talk.len() - kept.len()..], &kept[..]);
        prop_assert!(kept.len() <= keep_last.max(1));
        prop_assert!(kept[0].starts_with("question") || kept.len() == 1);
        // No conversation is lost to the budget while a summary is still there.
        let talk_lost = pack.dropped.iter().any(|dropped|
            dropped.reason == DropReason::Budget && dropped.entry.layer == ContextLayer::L1);
        prop_assert!(!talk_lost || pack.layer(ContextLayer::L2).is_empty());
        prop_assert_eq!(pack.compression_metadata.entries_dropped, pack.dropped.len());
    }
}
