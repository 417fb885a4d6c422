//! The router's state rebuilt from the log.

mod common;

use std::sync::Arc;

use common::*;
use correx_events::*;
use correx_router::*;
use correx_sessions::{DefaultEventReplayer, IncrementalReplayer};
use proptest::prelude::*;

fn projector() -> RouterProjector<DefaultRouterReducer> {
    RouterProjector::new(DefaultRouterReducer)
}

fn log() -> Arc<MemoryEventStore> {
    Arc::new(MemoryEventStore::new(Arc::new(FixedClock), Arc::new(Counted::default())))
}

fn full(store: Arc<MemoryEventStore>) -> DefaultRouterRepository {
    DefaultRouterRepository::new(Arc::new(DefaultEventReplayer::new(store, projector())))
}

fn incremental(store: Arc<MemoryEventStore>) -> DefaultRouterRepository {
    DefaultRouterRepository::new(Arc::new(IncrementalReplayer::new(store, projector())))
}

#[tokio::test]
async fn an_empty_log_gives_the_initial_state() {
    let seen = full(log()).get_router_state(&session()).await.unwrap();
    assert_eq!(seen.state, RouterState::default());
    assert_eq!(seen.version, 0);
}

#[tokio::test]
async fn a_start_and_two_completed_stages_give_two_memories_in_order() {
    let store = log();
    let events = vec![
        started(&["a", "b", "c"]),
        stage_completed("a", Some("b")),
        stage_completed("b", Some("c")),
    ];
    store.append(Append::any(session(), events)).await.unwrap();
    let seen = full(store).get_router_state(&session()).await.unwrap();
    let stages: Vec<_> = seen.state.l2_memory.iter().map(|entry| &entry.stage_id).collect();
    assert_eq!(stages, [&StageId::new("a"), &StageId::new("b")]);
    assert!(seen.state.l2_memory.iter().all(|entry| entry.outcome == StageOutcomeKind::Success));
    assert_eq!(seen.state.current_stage_id, Some("c".into()));
    assert_eq!(seen.version, 3);
}

#[tokio::test]
async fn the_same_log_gives_the_same_state_every_time() {
    let store = log();
    let events = vec![started(&["a"]), note("n", "x", None, NoteScope::Run), stage_failed("a")];
    store.append(Append::any(session(), events)).await.unwrap();
    let repository = full(store);
    let first = repository.get_router_state(&session()).await.unwrap();
    let second = repository.get_router_state(&session()).await.unwrap();
    assert_eq!(first, second);
}

#[tokio::test]
async fn one_sessions_events_do_not_reach_another() {
    let store = log();
    store.append(Append::any("other".into(), vec![started(&["secret"])])).await.unwrap();
    let repository = incremental(store.clone());
    repository.get_router_state(&"other".into()).await.unwrap();
    let seen = repository.get_router_state(&session()).await.unwrap();
    assert_eq!(seen.state, RouterState::default());
}

#[tokio::test]
async fn what_is_appended_later_is_seen_by_the_next_call() {
    let store = log();
    let repository = incremental(store.clone());
    store.append(Append::any(session(), vec![started(&["a"])])).await.unwrap();
    repository.get_router_state(&session()).await.unwrap();
    store.append(Append::any(session(), vec![completed()])).await.unwrap();
    let seen = repository.get_router_state(&session()).await.unwrap();
    assert_eq!(seen.state.workflow_status, WorkflowStatus::Completed);
    assert_eq!(seen.version, 2);
}

fn any_payload() -> impl Strategy<Value = EventPayload> {
    let stage = || prop::sample::select(vec!["a", "b", "c", "d"]);
    prop_oneof![
        Just(created(true)),
        Just(started(&["a", "b", "c"])),
        Just(completed()),
        Just(failed()),
        Just(OrchestrationPaused { reason: PauseReason::Person }.into()),
        Just(OrchestrationResumed {}.into()),
        (stage(), 1_u32..4).prop_map(|(stage, attempt)| stage_started(stage, attempt)),
        (stage(), prop::option::of(stage())).prop_map(|(stage, next)| stage_completed(stage, next)),
        stage().prop_map(stage_failed),
        (stage(), 1_u32..4).prop_map(|(stage, attempt)| StageCancelled {
            stage_id: stage.into(),
            attempt
        }
        .into()),
        ("n[1-3]", prop::option::of(stage())).prop_map(|(id, stage)| note(
            &id,
            "words",
            stage,
            NoteScope::Onward
        )),
        "n[1-3]".prop_map(|id| SteeringNoteWithdrawn { note_id: id.into() }.into()),
        ("n[1-3]", stage(), 1_u32..4).prop_map(|(id, stage, attempt)| SteeringNoteApplied {
            note_id: id.into(),
            stage_id: stage.into(),
            attempt
        }
        .into()),
        "[a-z]{1,8}".prop_map(|kind| EventPayload::Unknown(UnknownPayload {
            json: format!(r#"{{"type":"x_{kind}"}}"#),
            kind: format!("x_{kind}"),
            reason: UnknownReason::NewKind,
        })),
    ]
}

proptest! {
    #[test]
    fn incremental_projection_equals_full_replay(
        batches in prop::collection::vec(prop::collection::vec(any_payload(), 0..5), 0..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = log();
            let step_by_step = incremental(store.clone());
            for batch in batches {
                store.append(Append::any(session(), batch)).await.unwrap();
                let incremental = step_by_step.get_router_state(&session()).await.unwrap();
                let whole = full(store.clone()).get_router_state(&session()).await.unwrap();
                prop_assert_eq!(incremental, whole);
            }
            Ok(())
        })?;
    }
}
