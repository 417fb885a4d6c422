//! The way of one message, through the facade.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::*;
use correx_events::*;
use correx_inference::testing::Script;
use correx_inference::{
    InferenceCancellationToken, InferenceProvider, InferenceRouter, ModelCapability, RoutingError,
};
use correx_router::*;

fn say(text: &str) -> Script {
    Script::Say(text.into())
}

fn think(thinking: &str, say: &str) -> Script {
    Script::Think { thinking: thinking.into(), say: say.into() }
}

fn input(text: &str, mode: ChatMode) -> UserInput {
    UserInput {
        session_id: session(),
        text: text.into(),
        mode,
        target: NoteTarget::default(),
        client_message_id: None,
    }
}

fn token() -> InferenceCancellationToken {
    InferenceCancellationToken::new()
}

#[tokio::test]
async fn asking_is_answered_and_emits_no_note() {
    let world = World::new([say("Paris it is")]).given([created(true), started(&["a"])]).await;
    let response = world.say("Where?", ChatMode::Chat).await.unwrap();
    assert_eq!(response, RouterResponse { content: "Paris it is".into(), steering_emitted: false });
    assert_eq!(world.kinds().await, ["session_created", "workflow_started"]);
    assert_eq!(world.provider.requests().len(), 1);
}

#[tokio::test]
async fn steering_is_answered_and_emits_exactly_one_note() {
    let world = World::new([say("Noted")]).given([created(true), started(&["a"])]).await;
    let response = world.say("  Be brief.\n", ChatMode::Steering).await.unwrap();
    assert_eq!(response, RouterResponse { content: "Noted".into(), steering_emitted: true });
    let notes = world.notes().await;
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].content, "Be brief.");
    assert_eq!((&notes[0].session_id, &notes[0].stage_id), (&session(), &None));
}

#[tokio::test]
async fn the_router_appends_nothing_but_steering_notes() {
    let world = World::new([]).given([created(true), started(&["a"])]).await;
    for mode in [ChatMode::Chat, ChatMode::Steering, ChatMode::Chat, ChatMode::Steering] {
        world.say("words", mode).await.unwrap();
    }
    let new = world.kinds().await.split_off(2);
    assert_eq!(new, ["steering_note_added", "steering_note_added"]);
}

#[tokio::test]
async fn the_answer_to_a_steered_message_already_knows_the_note() {
    let world = World::new([]).given([created(true), started(&["a"])]).await;
    world.say("Be brief.", ChatMode::Steering).await.unwrap();
    assert!(world.provider.fed(0).contains("not applied yet: Be brief."));
}

#[tokio::test]
async fn a_note_carries_its_target_and_reach() {
    let world = World::new([]).given([created(true), started(&["a", "b"])]).await;
    let target = NoteTarget { stage_id: Some("b".into()), scope: NoteScope::Onward };
    let input = UserInput { target, ..input("Be brief.", ChatMode::Steering) };
    let answer = world.facade.answer(input, RouterSink::none(), token()).await.unwrap();
    let note = &world.notes().await[0];
    assert_eq!((note.stage_id.clone(), note.scope), (Some("b".into()), NoteScope::Onward));
    assert_eq!(answer.note_id.as_ref(), Some(&note.note_id));
    assert_eq!(world.branch().await[0].note_id, answer.note_id);
    assert!(world.branch().await[0].steering);
}

#[tokio::test]
async fn history_grows_by_two_turns_and_is_capped_at_twice_the_kept_ones() {
    let config = RouterConfig { conversation_keep_last: 3, ..RouterConfig::default() };
    let world = World::with([], config, 8192);
    for number in 1..=5_usize {
        world.say(&format!("message {number}"), ChatMode::Chat).await.unwrap();
        let history = world.facade.history(&session()).await.unwrap();
        assert_eq!(history.len(), (number * 2).min(6));
    }
    let history = world.facade.history(&session()).await.unwrap();
    assert_eq!(history[0].content, "message 3");
    assert_eq!(history[5].content, "ok");
    assert_eq!(history[5].role, TurnRole::Router);
}

#[tokio::test]
async fn the_repository_is_asked_once_per_message() {
    let world = World::new([]).given([created(true), started(&["a"])]).await;
    world.say("one", ChatMode::Chat).await.unwrap();
    assert_eq!(world.repository.calls.load(Ordering::Relaxed), 1);
    world.say("two", ChatMode::Steering).await.unwrap();
    assert_eq!(world.repository.calls.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn the_next_prompt_holds_the_talk_so_far() {
    let world = World::new([say("blue")]);
    world.say("colour?", ChatMode::Chat).await.unwrap();
    world.say("sure?", ChatMode::Chat).await.unwrap();
    let fed = world.provider.fed(1);
    assert!(fed.ends_with("colour? blue sure?"), "{fed}");
}

#[tokio::test]
async fn sessions_do_not_hear_each_other() {
    let world = World::new([]);
    world.facade.on_user_input(&"other".into(), "CANARY", ChatMode::Chat).await.unwrap();
    world.say("hello", ChatMode::Chat).await.unwrap();
    assert!(!world.provider.fed(1).contains("CANARY"));
    assert_eq!(world.facade.history(&session()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn empty_messages_are_refused_and_nothing_is_stored() {
    let world = World::new([]).given([created(true), started(&["a"])]).await;
    for text in ["", "  \n\t "] {
        for mode in [ChatMode::Chat, ChatMode::Steering] {
            assert_eq!(world.say(text, mode).await.unwrap_err(), RouterError::EmptyInput);
        }
    }
    assert!(world.notes().await.is_empty() && world.branch().await.is_empty());
}

#[tokio::test]
async fn a_message_of_too_many_bytes_is_refused_before_anything_is_counted() {
    let world = World::new([]);
    let text = "x".repeat(1 << 20);
    let error = world.say(&text, ChatMode::Chat).await.unwrap_err();
    assert_eq!(error, RouterError::InputTooLong { bytes: 1 << 20, limit: 256 * 1024 });
    assert!(world.branch().await.is_empty());
}

#[tokio::test]
async fn the_longest_allowed_message_is_looked_at() {
    let config = RouterConfig { max_input_bytes: 5, ..RouterConfig::default() };
    let world = World::with([], config, 8192);
    assert!(world.say("12345", ChatMode::Chat).await.is_ok());
    assert!(matches!(
        world.say("123456", ChatMode::Chat).await,
        Err(RouterError::InputTooLong { bytes: 6, limit: 5 })
    ));
}

#[tokio::test]
async fn a_message_of_too_many_tokens_is_refused_with_numbers_and_nothing_is_stored() {
    let world = World::with([], RouterConfig::default(), 1024)
        .given([created(true), started(&["a"])])
        .await;
    let text = "word ".repeat(600);
    for mode in [ChatMode::Chat, ChatMode::Steering] {
        let error = world.say(&text, mode).await.unwrap_err();
        assert!(matches!(error, RouterError::DoesNotFit(_)), "{error}");
        assert!(error.to_string().contains("512 are allowed"), "{error}");
    }
    assert!(world.notes().await.is_empty() && world.branch().await.is_empty());
    assert!(world.provider.requests().is_empty());
}

#[tokio::test]
async fn prompt_and_reply_fit_the_window_and_the_persons_budget() {
    let config = RouterConfig { token_budget: 200, reply_reserve: 300, ..RouterConfig::default() };
    let world = World::with([], config, 400);
    world.say("hello", ChatMode::Chat).await.unwrap();
    let request = &world.provider.requests()[0];
    assert_eq!(request.context_pack.budget_limit, 200);
    assert_eq!(request.generation.max_tokens, 200);
}

#[tokio::test]
async fn the_answer_to_a_note_is_kept_short() {
    let world = World::new([]).given([created(true), started(&["a"])]).await;
    world.say("Be brief.", ChatMode::Steering).await.unwrap();
    world.say("Why?", ChatMode::Chat).await.unwrap();
    let most: Vec<usize> =
        world.provider.requests().iter().map(|request| request.generation.max_tokens).collect();
    assert_eq!(most, [96, 512]);
}

#[tokio::test]
async fn a_plain_chat_cannot_be_steered() {
    let world = World::new([]).given([created(false)]).await;
    let error = world.say("Be brief.", ChatMode::Steering).await.unwrap_err();
    assert_eq!(error, RouterError::CannotSteer(SteeringRefusal::NoWorkflow));
    assert!(world.notes().await.is_empty());
}

#[tokio::test]
async fn a_run_that_has_ended_cannot_be_steered() {
    for end in [completed(), failed()] {
        let world = World::new([]).given([created(true), started(&["a"]), end]).await;
        let error = world.say("Be brief.", ChatMode::Steering).await.unwrap_err();
        assert!(matches!(error, RouterError::CannotSteer(SteeringRefusal::RunEnded(_))));
        assert!(world.notes().await.is_empty() && world.branch().await.is_empty());
    }
}

#[tokio::test]
async fn a_run_that_has_not_started_or_is_paused_can_be_steered() {
    let pause = EventPayload::from(OrchestrationPaused { reason: PauseReason::Person });
    for events in [vec![created(true)], vec![created(true), started(&["a"]), pause]] {
        let world = World::new([]).given(events).await;
        assert!(world.say("Be brief.", ChatMode::Steering).await.unwrap().steering_emitted);
    }
}

#[tokio::test]
async fn a_note_for_a_stage_that_is_over_or_unknown_is_refused() {
    let world = World::new([])
        .given([created(true), started(&["a", "b"]), stage_completed("a", Some("b"))])
        .await;
    for (stage, expected) in [
        ("a", SteeringRefusal::StageEnded("A".into())),
        ("z", SteeringRefusal::NoSuchStage("z".into())),
    ] {
        let target = NoteTarget { stage_id: Some(stage.into()), scope: NoteScope::Stage };
        let input = UserInput { target, ..input("Be brief.", ChatMode::Steering) };
        let error = world.facade.answer(input, RouterSink::none(), token()).await.unwrap_err();
        assert_eq!(error, RouterError::CannotSteer(expected));
    }
    assert!(world.notes().await.is_empty());
}

/// The refusal of a note with this target, if it is refused.
async fn refusal(
    events: Vec<EventPayload>,
    stage: Option<&str>,
    scope: NoteScope,
) -> Option<SteeringRefusal> {
    let world = World::new([]).given(events).await;
    let target = NoteTarget { stage_id: stage.map(Into::into), scope };
    let input = UserInput { target, ..input("Be brief.", ChatMode::Steering) };
    match world.facade.answer(input, RouterSink::none(), token()).await {
        Ok(_) => None,
        Err(RouterError::CannotSteer(refusal)) => {
            assert!(world.notes().await.is_empty(), "nothing is stored");
            Some(refusal)
        }
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_note_that_no_stage_would_follow_is_refused_with_the_reason() {
    use NoteScope::{Onward, Run, Stage};
    use SteeringRefusal::{AsksNoModel, NoneLeft, StageSkipped};
    let kinds = [
        ("read", StageKind::Read),
        ("draft", StageKind::Generate),
        ("save", StageKind::Write),
        ("send", StageKind::Command),
    ];
    let plan: Vec<StagePlan> = kinds
        .iter()
        .map(|(id, kind)| StagePlan {
            id: (*id).into(),
            title: id.to_uppercase(),
            kind: *kind,
            needs: None,
        })
        .collect();
    let start = vec![
        created(true),
        WorkflowStarted {
            workflow: "notes".into(),
            stages: plan,
            first_stage: Some("read".into()),
        }
        .into(),
    ];
    let drafted = [
        start.clone(),
        vec![stage_completed("read", Some("draft")), stage_completed("draft", Some("save"))],
    ]
    .concat();
    let skip = correx_events::StageSkipped {
        stage_id: "draft".into(),
        reason: "x".into(),
        next_stage: Some("save".into()),
    };
    let skipped =
        [start.clone(), vec![stage_completed("read", Some("draft")), skip.into()]].concat();
    let again = WorkflowRerun {
        from_stage: "draft".into(),
        stages: vec!["draft".into(), "save".into(), "send".into()],
    };
    let again = [drafted.clone(), vec![completed(), again.into()]].concat();
    for (events, stage, scope, expected) in [
        (&start, None, Stage, Some(AsksNoModel("READ".into()))),
        (&start, None, Onward, None),
        (&start, Some("save"), Stage, Some(AsksNoModel("SAVE".into()))),
        (&start, Some("save"), Onward, Some(NoneLeft)),
        (&start, None, Run, None),
        (&drafted, None, Onward, Some(NoneLeft)),
        (&drafted, None, Run, Some(NoneLeft)),
        (&skipped, Some("draft"), Stage, Some(StageSkipped("DRAFT".into()))),
        (&skipped, None, Onward, Some(NoneLeft)),
        (&again, None, Onward, None),
        (&again, Some("draft"), Stage, None),
    ] {
        let found = refusal(events.clone(), stage, scope).await;
        assert_eq!(found, expected, "{stage:?} {scope:?}");
    }
}

#[tokio::test]
async fn a_note_can_be_changed_until_a_stage_was_shown_it() {
    let config = RouterConfig { note_allowance: 4, ..RouterConfig::default() };
    let world = World::with([], config, 8192).given([created(true), started(&["a", "b"])]).await;
    let input = UserInput {
        target: NoteTarget { stage_id: Some("b".into()), scope: NoteScope::Stage },
        ..input("one two three", ChatMode::Steering)
    };
    world.facade.answer(input, RouterSink::none(), token()).await.unwrap();
    let old = world.notes().await[0].note_id.clone();
    // The old one needs no room any more: four tokens fit in its place.
    let new = world.facade.edit_note(&session(), &old, " four five six seven ").await.unwrap();
    let notes = world.notes().await;
    assert_eq!(notes.len(), 2, "an event more, nothing is deleted");
    assert_eq!(notes[1].content, "four five six seven");
    assert_eq!(notes[1].replaces, Some(old.clone()));
    assert_eq!((notes[1].stage_id.clone(), notes[1].scope), (Some("b".into()), NoteScope::Stage));
    assert_eq!(world.provider.requests().len(), 1, "a change asks for no answer");

    let refused = |error: RouterError| match error {
        RouterError::CannotSteer(refusal) => refusal,
        other => panic!("{other}"),
    };
    let again = world.facade.edit_note(&session(), &old, "x").await.unwrap_err();
    assert_eq!(refused(again), SteeringRefusal::Withdrawn);
    let unknown = world.facade.edit_note(&session(), &"none".into(), "x").await.unwrap_err();
    assert_eq!(refused(unknown), SteeringRefusal::UnknownNote("none".into()));
    let long = world.facade.edit_note(&session(), &new, "1 2 3 4 5").await.unwrap_err();
    assert!(matches!(refused(long), SteeringRefusal::NoRoom { used: 0, .. }));
    let empty = world.facade.edit_note(&session(), &new, " ").await.unwrap_err();
    assert_eq!(empty, RouterError::EmptyInput);

    let applied = SteeringNoteApplied { note_id: new.clone(), stage_id: "b".into(), attempt: 1 };
    let world = world.given([applied.into()]).await;
    let used = world.facade.edit_note(&session(), &new, "x").await.unwrap_err();
    assert_eq!(refused(used), SteeringRefusal::Used { stage: "B".into(), attempt: 1 });
    assert_eq!(world.notes().await.len(), 2);
}

#[tokio::test]
async fn notes_share_one_allowance() {
    let config = RouterConfig { note_allowance: 5, ..RouterConfig::default() };
    let world = World::with([], config, 8192).given([created(true), started(&["a"])]).await;
    world.say("one two three", ChatMode::Steering).await.unwrap();
    let error = world.say("four five six", ChatMode::Steering).await.unwrap_err();
    let expected = SteeringRefusal::NoRoom { tokens: 3, used: 3, allowance: 5 };
    assert_eq!(error, RouterError::CannotSteer(expected));
    assert!(world.say("four five", ChatMode::Steering).await.is_ok());
    assert_eq!(world.notes().await.len(), 2);
}

#[tokio::test]
async fn a_failed_answer_keeps_the_note_and_leaves_the_history_as_it_was() {
    let world = World::new([say("first"), Script::Fail("out of memory".into())])
        .given([created(true), started(&["a"])])
        .await;
    world.say("hello", ChatMode::Chat).await.unwrap();
    let before = world.facade.history(&session()).await.unwrap();
    let error = world.say("Be brief.", ChatMode::Steering).await.unwrap_err();
    let note = world.notes().await[0].note_id.clone();
    assert_eq!(error.note(), &NoteOutcome::Emitted(note));
    assert!(error.to_string().contains("out of memory"));
    assert_eq!(world.facade.history(&session()).await.unwrap(), before);
    let branch = world.branch().await;
    assert_eq!(branch[2].content, "Be brief.");
    assert!(matches!(branch[3].status, TurnStatus::Failed { .. }));
}

#[tokio::test]
async fn a_failed_question_says_that_no_note_was_emitted() {
    let world = World::new([Script::Fail("x".into())]);
    let error = world.say("hello", ChatMode::Chat).await.unwrap_err();
    assert_eq!(error.note(), &NoteOutcome::NotEmitted);
}

#[tokio::test]
async fn answering_again_emits_no_second_note_and_takes_the_answers_place() {
    let world = World::new([Script::Fail("x".into()), say("second try"), say("third try")])
        .given([created(true), started(&["a"])])
        .await;
    world.say("Be brief.", ChatMode::Steering).await.unwrap_err();
    for expected in ["second try", "third try"] {
        let answer = world.facade.retry(&session(), RouterSink::none(), token()).await.unwrap();
        assert_eq!(answer.response.content, expected);
        assert!(answer.response.steering_emitted);
        let history = world.facade.history(&session()).await.unwrap();
        let texts: Vec<_> = history.iter().map(|turn| turn.content.as_str()).collect();
        assert_eq!(texts, ["Be brief.", expected]);
    }
    assert_eq!(world.notes().await.len(), 1);
    assert_eq!(world.branch().await.len(), 2);
    let seeds: Vec<u64> =
        world.provider.requests().iter().map(|request| request.generation.seed).collect();
    assert_ne!(seeds[1], seeds[2]);
}

#[tokio::test]
async fn answering_again_leaves_the_exchanges_before_as_they_are() {
    let world = World::new([say("blue"), say("yes"), say("no")]);
    world.say("colour?", ChatMode::Chat).await.unwrap();
    world.say("sure?", ChatMode::Chat).await.unwrap();
    world.facade.retry(&session(), RouterSink::none(), token()).await.unwrap();
    assert!(world.provider.fed(2).ends_with("colour? blue sure?"));
    let history = world.facade.history(&session()).await.unwrap();
    let texts: Vec<_> = history.iter().map(|turn| turn.content.as_str()).collect();
    assert_eq!(texts, ["colour?", "blue", "sure?", "no"]);
}

#[tokio::test]
async fn there_is_nothing_to_answer_again_in_a_new_session() {
    let world = World::new([]);
    let error = world.facade.retry(&session(), RouterSink::none(), token()).await.unwrap_err();
    assert_eq!(error, RouterError::NothingToRetry);
}

#[tokio::test]
async fn a_message_sent_twice_acts_once() {
    let world = World::new([]).given([created(true), started(&["a"])]).await;
    let input = UserInput {
        client_message_id: Some("m1".into()),
        ..input("Be brief.", ChatMode::Steering)
    };
    let first = world.facade.answer(input.clone(), RouterSink::none(), token()).await.unwrap();
    let second = world.facade.answer(input, RouterSink::none(), token()).await.unwrap();
    assert_eq!(first.note_id, second.note_id);
    assert_eq!(world.notes().await.len(), 1);
    assert_eq!(world.branch().await.len(), 2);
}

#[tokio::test]
async fn a_note_that_was_stored_before_a_crash_is_not_stored_again() {
    let world = World::new([]).given([created(true), started(&["a"])]).await;
    let id = Some(ClientMessageId::new("m1"));
    let stored_before = note("n-old", "Be brief.", None, NoteScope::Stage);
    let append = Append::any(session(), vec![stored_before]).once(id.clone());
    world.store.append(append).await.unwrap();
    let input = UserInput { client_message_id: id, ..input("Be brief.", ChatMode::Steering) };
    let answer = world.facade.answer(input, RouterSink::none(), token()).await.unwrap();
    assert_eq!(answer.note_id, Some("n-old".into()));
    assert_eq!(world.notes().await.len(), 1);
    assert_eq!(world.provider.fed(0).matches("Be brief.").count(), 2);
}

#[tokio::test]
async fn a_stopped_answer_keeps_what_was_written_and_frees_the_session() {
    let world = World::new([Script::SayAndWait("half an".into()), say("next")])
        .given([created(true), started(&["a"])])
        .await;
    let cancel = token();
    let facade = world.facade.clone();
    let running = tokio::spawn({
        let cancel = cancel.clone();
        async move {
            facade.answer(input("Be brief.", ChatMode::Steering), RouterSink::none(), cancel).await
        }
    });
    while world.provider.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(world.notes().await.len(), 1, "the note is there before the answer is");
    cancel.cancel();
    let answer = running.await.unwrap().unwrap();
    assert_eq!(answer.response.content, "half an");
    assert!(answer.response.steering_emitted);
    assert_eq!(answer.turn.status, TurnStatus::Stopped);
    world.say("go on", ChatMode::Chat).await.unwrap();
    assert!(world.provider.fed(1).contains("Be brief. half an"));
}

#[tokio::test]
async fn a_note_does_not_wait_for_the_answer_that_is_being_written() {
    let world = World::new([Script::SayAndWait("long".into())])
        .given([created(true), started(&["a"])])
        .await;
    let cancel = token();
    let first = tokio::spawn({
        let (facade, cancel) = (world.facade.clone(), cancel.clone());
        async move { facade.answer(input("hm?", ChatMode::Chat), RouterSink::none(), cancel).await }
    });
    while world.provider.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let second = tokio::spawn({
        let facade = world.facade.clone();
        async move {
            let input = input("Be brief.", ChatMode::Steering);
            facade.answer(input, RouterSink::none(), InferenceCancellationToken::new()).await
        }
    });
    while world.notes().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(!second.is_finished());
    cancel.cancel();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(world.branch().await.len(), 4);
}

#[tokio::test]
async fn the_message_is_kept_before_the_model_is_asked() {
    let world = World::new([Script::SayAndWait("x".into())]);
    let cancel = token();
    let running = tokio::spawn({
        let (facade, cancel) = (world.facade.clone(), cancel.clone());
        async move { facade.answer(input("mine", ChatMode::Chat), RouterSink::none(), cancel).await }
    });
    while world.provider.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let branch = world.branch().await;
    assert_eq!(branch[0].content, "mine");
    assert_eq!(branch[1].status, TurnStatus::Pending);
    cancel.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_history_is_filled_from_the_transcript_after_a_restart() {
    let world = World::new([say("blue"), say("yes")]);
    world.say("colour?", ChatMode::Chat).await.unwrap();
    let mut interrupted = world.branch().await[1].clone();
    interrupted.turn_id = "dangling".into();
    interrupted.parent = Some(world.branch().await[1].turn_id.clone());
    interrupted.status = TurnStatus::Pending;
    world.transcripts.append(vec![interrupted]).await.unwrap();

    let restarted = DefaultRouterFacade::new(world.parts.clone(), world.config.clone());
    let texts: Vec<String> =
        restarted.history(&session()).await.unwrap().into_iter().map(|turn| turn.content).collect();
    assert_eq!(texts, ["colour?", "blue"]);
    assert_eq!(world.branch().await[2].status, TurnStatus::Stopped);
    restarted.on_user_input(&session(), "sure?", ChatMode::Chat).await.unwrap();
    let seeds: Vec<u64> =
        world.provider.requests().iter().map(|request| request.generation.seed).collect();
    assert_ne!(seeds[0], seeds[1], "the second answer of a talk draws anew, also after a restart");
    assert!(world.provider.fed(1).ends_with("colour? blue sure?"));
    assert_eq!(world.branch().await.len(), 5);
}

#[tokio::test]
async fn without_a_transcript_store_the_talk_lives_in_memory() {
    let world = World::new([say("blue")]);
    let parts = RouterParts { transcripts: None, ..world.parts.clone() };
    let facade = DefaultRouterFacade::new(parts, world.config.clone());
    facade.on_user_input(&session(), "colour?", ChatMode::Chat).await.unwrap();
    assert_eq!(facade.history(&session()).await.unwrap().len(), 2);
    assert!(world.branch().await.is_empty());
    facade.forget(&session()).await;
    assert!(facade.history(&session()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_conversation_that_cannot_be_kept_says_whether_the_note_was() {
    let world = World::new([]).given([created(true), started(&["a"])]).await;
    world.facade.history(&session()).await.unwrap();
    world.transcripts.broken.store(true, Ordering::Relaxed);
    let error = world.say("Be brief.", ChatMode::Steering).await.unwrap_err();
    assert!(matches!(error.note(), NoteOutcome::Emitted(_)));
    assert!(world.provider.requests().is_empty());
}

#[tokio::test]
async fn the_stream_tells_the_turns_and_the_text_in_order() {
    let world = World::new([think("hm", "one two")]);
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = {
        let seen = seen.clone();
        RouterSink::new(move |event| {
            let line = match event {
                RouterStreamEvent::Turn(turn) => format!("{:?} {:?}", turn.role, turn.status),
                RouterStreamEvent::Prompt { done, total, .. } => format!("read {}", done == total),
                RouterStreamEvent::Thinking { text, tokens, .. } => {
                    format!("thinks {text:?} {tokens}")
                }
                RouterStreamEvent::Text { text, tokens, .. } => format!("{text:?} {tokens}"),
            };
            seen.lock().unwrap().push(line);
        })
    };
    world.facade.answer(input("hi", ChatMode::Chat), sink, token()).await.unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "User Complete",
            "Router Pending",
            "read true",
            "thinks \"hm\" 1",
            "\"one \" 2",
            "\"two\" 3",
            "Router Complete"
        ]
    );
}

#[tokio::test]
async fn what_was_thought_is_kept_with_its_turn_and_out_of_every_later_prompt() {
    let script = [think("two and two pigeons", "four"), say("five"), say("six")];
    let world = World::new(script);
    world.say("how many", ChatMode::Chat).await.unwrap();
    let kept = world.branch().await.pop().unwrap();
    assert_eq!((kept.content.as_str(), &kept.status), ("four", &TurnStatus::Complete));
    let thinking = kept.thinking.clone().unwrap();
    assert_eq!((thinking.text.as_str(), thinking.tokens), ("two and two pigeons", 4));
    world.say("and one", ChatMode::Chat).await.unwrap();
    assert!(world.provider.fed(1).contains("four"));
    assert!(!world.provider.fed(1).contains("pigeons"), "{}", world.provider.fed(1));
    // Nor when the history is filled from what was kept.
    let facade = DefaultRouterFacade::new(world.parts.clone(), world.config.clone());
    facade.on_user_input(&session(), "and one more", ChatMode::Chat).await.unwrap();
    assert!(world.provider.fed(2).contains("five"));
    assert!(!world.provider.fed(2).contains("pigeons"), "{}", world.provider.fed(2));
}

#[tokio::test]
async fn an_answer_that_never_came_out_of_its_thinking_is_a_failure_and_the_thinking_is_kept() {
    let script = [Script::ThinkTooLong("on and on".into()), say("four")];
    let world = World::new(script).given([created(true), started(&["a"])]).await;
    let error = world.say("Be brief.", ChatMode::Steering).await.unwrap_err();
    let RouterError::NoAnswer { reason, note } = &error else { panic!("{error:?}") };
    assert!(reason.contains("whole reply of 3 tokens thinking"), "{reason}");
    assert!(reason.contains("reply_reserve"), "{reason}");
    assert!(matches!(note, NoteOutcome::Emitted(_)));
    let kept = world.branch().await.pop().unwrap();
    assert_eq!(kept.content, "");
    assert_eq!(kept.thinking.unwrap().text, "on and on");
    assert!(matches!(kept.status, TurnStatus::Failed { .. }));
    assert!(kept.report.is_some());
    // It is no part of the history, and can be tried again.
    assert!(world.facade.history(&session()).await.unwrap().is_empty());
    let again = world.facade.retry(&session(), RouterSink::none(), token()).await.unwrap();
    assert_eq!(again.response.content, "four");
    assert!(!world.provider.fed(1).contains("on and on"));
    assert_eq!(world.notes().await.len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_stopped_while_it_thinks_keeps_the_thinking_and_leaves_the_history() {
    let world = World::new([Script::ThinkAndWait("let me see".into())]);
    let (cancel, facade) = (token(), world.facade.clone());
    let running = tokio::spawn({
        let cancel = cancel.clone();
        async move { facade.answer(input("well", ChatMode::Chat), RouterSink::none(), cancel).await }
    });
    while world.provider.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    cancel.cancel();
    let turn = running.await.unwrap().unwrap().turn;
    assert_eq!((turn.content.as_str(), &turn.status), ("", &TurnStatus::Stopped));
    assert_eq!(turn.thinking.unwrap().text, "let me see");
    assert!(world.facade.history(&session()).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_conversation_answers_at_once_unless_it_is_told_to_think() {
    use correx_inference::ThinkingMode;
    for mode in [ThinkingMode::Off, ThinkingMode::On] {
        let config = RouterConfig { thinking: mode, ..RouterConfig::default() };
        let world = World::with([say("four")], config, 8192);
        world.say("how many", ChatMode::Chat).await.unwrap();
        let asked = world.provider.thinking_asked();
        assert!(!asked.is_empty() && asked.iter().all(|each| *each == mode), "{asked:?}");
    }
    assert_eq!(RouterConfig::default().thinking, ThinkingMode::Off);
}

#[tokio::test]
async fn an_answer_reports_what_the_model_was_shown() {
    let world = World::new([say("one two")]).given([created(true), started(&["a"])]).await;
    let answer = world
        .facade
        .answer(input("hi there", ChatMode::Chat), RouterSink::none(), token())
        .await
        .unwrap();
    let report = answer.turn.report.unwrap();
    let fed = world.provider.requests()[0].context_pack.prompt.ids.len();
    assert_eq!(report.prompt_tokens, fed);
    let shown: usize = report
        .entries
        .iter()
        .filter(|entry| entry.dropped.is_none())
        .map(|entry| entry.tokens)
        .sum();
    assert_eq!(shown + report.template_tokens, fed);
    assert_eq!((report.output_tokens, report.exact), (2, true));
}

#[tokio::test]
async fn measuring_counts_the_next_prompt_and_stores_nothing() {
    let world = World::new([]).given([created(true), started(&["a"])]).await;
    let empty = world.facade.measure(&session(), "", ChatMode::Chat).await.unwrap();
    let draft = world.facade.measure(&session(), "three more words", ChatMode::Chat).await.unwrap();
    let (empty, draft) = (empty.pack.unwrap(), draft.pack.unwrap());
    assert_eq!(draft.budget_used, empty.budget_used + 3);
    world.say("three more words", ChatMode::Chat).await.unwrap();
    let fed = &world.provider.requests()[0].context_pack;
    assert_eq!(fed.budget_used, draft.budget_used);
    assert!(world.notes().await.is_empty());
}

#[tokio::test]
async fn measuring_says_what_would_be_refused() {
    let world = World::with([], RouterConfig::default(), 1024)
        .given([created(true), started(&["a"]), completed()])
        .await;
    let draft = world.facade.measure(&session(), "Be brief.", ChatMode::Steering).await.unwrap();
    assert!(matches!(draft.refusal, Some(SteeringRefusal::RunEnded("COMPLETED"))));
    assert_eq!(draft.reply_reserve, 512);
    let long = world.facade.measure(&session(), &"w ".repeat(600), ChatMode::Chat).await.unwrap();
    assert!(long.pack.is_err() && long.without.is_some() && long.refusal.is_none());
}

/// A router without a model, or with one that never comes.
enum NoModel {
    Broken,
    NeverReady,
}

#[async_trait::async_trait]
impl InferenceRouter for NoModel {
    async fn route(
        &self,
        _stage: Option<&StageId>,
        _required: &[ModelCapability],
    ) -> Result<Arc<dyn InferenceProvider>, RoutingError> {
        match self {
            NoModel::Broken => Err(RoutingError::Load("the model file is missing".into())),
            NoModel::NeverReady => std::future::pending().await,
        }
    }
}

#[tokio::test]
async fn without_a_model_a_note_is_still_kept_and_acts() {
    let world = World::new([]).given([created(true), started(&["a"])]).await;
    let parts = RouterParts { inference: Arc::new(NoModel::Broken), ..world.parts.clone() };
    let facade = DefaultRouterFacade::new(parts, world.config.clone());
    let error =
        facade.on_user_input(&session(), "Be brief.", ChatMode::Steering).await.unwrap_err();
    assert!(matches!(error, RouterError::Routing { note: NoteOutcome::Emitted(_), .. }));
    assert_eq!(world.notes().await.len(), 1);
    // Without a tokenizer only what fits for certain is let in.
    let long = "x".repeat(513);
    let error = facade.on_user_input(&session(), &long, ChatMode::Steering).await.unwrap_err();
    assert!(matches!(error, RouterError::CannotSteer(SteeringRefusal::NoRoom { .. })));
}

#[tokio::test]
async fn stopping_while_the_model_loads_keeps_the_message() {
    let world = World::new([]);
    let parts = RouterParts { inference: Arc::new(NoModel::NeverReady), ..world.parts.clone() };
    let facade = DefaultRouterFacade::new(parts, world.config.clone());
    let cancel = token();
    cancel.cancel();
    let answer =
        facade.answer(input("hello", ChatMode::Chat), RouterSink::none(), cancel).await.unwrap();
    assert_eq!(answer.turn.status, TurnStatus::Stopped);
    assert_eq!(world.branch().await[0].content, "hello");
    assert!(facade.history(&session()).await.unwrap().is_empty());
}

/// A log in which something else happens just before a note is appended.
struct Busy {
    inner: Arc<MemoryEventStore>,
    meanwhile: Mutex<Vec<EventPayload>>,
}

#[async_trait::async_trait]
impl EventStore for Busy {
    async fn append(&self, append: Append) -> Result<Vec<StoredEvent>, AppendError> {
        let next = self.meanwhile.lock().expect("not poisoned").pop();
        if let Some(payload) = next {
            self.inner.append(Append::any(session(), vec![payload])).await?;
        }
        self.inner.append(append).await
    }

    async fn read(&self, session: &SessionId, from: u64) -> Result<Vec<StoredEvent>, ReadError> {
        self.inner.read(session, from).await
    }

    fn subscribe(&self) -> tokio::sync::broadcast::Receiver<Arc<StoredEvent>> {
        self.inner.subscribe()
    }
}

#[tokio::test]
async fn a_run_that_ends_just_before_the_note_refuses_it() {
    let world = World::new([]).given([created(true), started(&["a"])]).await;
    let busy = Busy { inner: world.store.clone(), meanwhile: Mutex::new(vec![completed()]) };
    let parts = RouterParts { event_store: Arc::new(busy), ..world.parts.clone() };
    let facade = DefaultRouterFacade::new(parts, world.config.clone());
    let error =
        facade.on_user_input(&session(), "Be brief.", ChatMode::Steering).await.unwrap_err();
    assert!(matches!(error, RouterError::CannotSteer(SteeringRefusal::RunEnded(_))));
    assert!(world.notes().await.is_empty());
}

#[tokio::test]
async fn a_run_that_only_moves_on_meanwhile_takes_the_note() {
    let world = World::new([]).given([created(true), started(&["a", "b"])]).await;
    let busy = Busy {
        inner: world.store.clone(),
        meanwhile: Mutex::new(vec![stage_completed("a", Some("b"))]),
    };
    let parts = RouterParts { event_store: Arc::new(busy), ..world.parts.clone() };
    let facade = DefaultRouterFacade::new(parts, world.config.clone());
    facade.on_user_input(&session(), "Be brief.", ChatMode::Steering).await.unwrap();
    assert_eq!(
        world.kinds().await,
        ["session_created", "workflow_started", "stage_completed", "steering_note_added"]
    );
    assert!(world.provider.fed(0).contains("Stage: b"));
}

/// A log on which somebody else is always faster.
struct Restless {
    inner: Arc<MemoryEventStore>,
    attempts: AtomicU64,
}

#[async_trait::async_trait]
impl EventStore for Restless {
    async fn append(&self, _append: Append) -> Result<Vec<StoredEvent>, AppendError> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        Err(AppendError::VersionConflict { expected: 2, actual: 3 })
    }

    async fn read(&self, session: &SessionId, from: u64) -> Result<Vec<StoredEvent>, ReadError> {
        self.inner.read(session, from).await
    }

    fn subscribe(&self) -> tokio::sync::broadcast::Receiver<Arc<StoredEvent>> {
        self.inner.subscribe()
    }
}

#[tokio::test]
async fn a_note_gives_up_on_a_log_that_never_comes_to_rest() {
    let world = World::new([]).given([created(true), started(&["a"])]).await;
    let restless = Arc::new(Restless { inner: world.store.clone(), attempts: AtomicU64::new(0) });
    let parts = RouterParts { event_store: restless.clone(), ..world.parts.clone() };
    let facade = DefaultRouterFacade::new(parts, world.config.clone());
    let error =
        facade.on_user_input(&session(), "Be brief.", ChatMode::Steering).await.unwrap_err();
    assert!(matches!(error, RouterError::Append(AppendError::VersionConflict { .. })));
    assert_eq!(error.note(), &NoteOutcome::NotEmitted);
    assert_eq!(restless.attempts.load(Ordering::Relaxed), 16);
    assert!(world.provider.requests().is_empty() && world.branch().await.is_empty());
}
