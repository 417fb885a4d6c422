//! Whatever a person does, in whatever order: the log stays consistent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use correx_events::{EventPayload, NoteId, StoredEvent};
use proptest::prelude::*;

use crate::support::{ASKING, Act, Scripted, World, note};

#[derive(Debug, Clone)]
enum Deed {
    Steer,
    Withdraw(u8),
    Pause,
    Resume,
    Cancel,
    Approve,
    Release,
    Kill,
    Wait(u8),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        4 => Just(Deed::Steer),
        1 => (0..4_u8).prop_map(Deed::Withdraw),
        2 => Just(Deed::Pause),
        4 => Just(Deed::Resume),
        1 => Just(Deed::Cancel),
        2 => Just(Deed::Approve),
        4 => Just(Deed::Release),
        1 => Just(Deed::Kill),
        4 => (0..30_u8).prop_map(Deed::Wait),
    ];
    prop::collection::vec(deed, 1..14)
}

async fn live_through(deeds: &[Deed]) -> (Vec<StoredEvent>, usize) {
    let text =
        ASKING.replace("prompt = \"Write a draft.\"", "prompt = \"Write a draft.\"\nretries = 1");
    let acts = [Act::Say(""), Act::Hold("One"), Act::Hold("Two"), Act::Say("x"), Act::CutOff("y")];
    let model = Scripted::new(acts.iter().cycle().take(60).cloned());
    let mut world = World::started(&text, &[], model).await;
    let mut notes = 0_u8;
    for deed in deeds {
        let (orchestrator, session) = (&world.orchestrator, &world.session);
        // A deed that is refused changes nothing; which ones are is tested elsewhere.
        match deed {
            Deed::Steer if !world.state().await.status.has_ended() => {
                let id = format!("n{notes}");
                notes += 1;
                world.steer(note(&id, &format!("Follow {id}."))).await;
            }
            Deed::Steer => {}
            Deed::Withdraw(which) => {
                let note = NoteId::new(format!("n{which}"));
                let _ = orchestrator.withdraw_note(session, &note).await;
            }
            Deed::Pause => drop(orchestrator.pause(session).await),
            Deed::Resume => drop(orchestrator.resume(session).await),
            Deed::Cancel => drop(orchestrator.cancel(session).await),
            Deed::Approve => drop(orchestrator.approve(session, &"check".into(), None, None).await),
            Deed::Release => world.model.release.add_permits(1),
            Deed::Kill => {
                world = world.restarted().await;
                world.orchestrator.recover(&world.session).await.unwrap();
            }
            Deed::Wait(ms) => tokio::time::sleep(Duration::from_millis(u64::from(*ms))).await,
        }
    }
    // From here on nothing is in the way: the run must come to an end.
    world.model.release.add_permits(1000);
    for _ in 0..1000 {
        if world.state().await.status.has_ended() {
            break;
        }
        let (orchestrator, session) = (&world.orchestrator, &world.session);
        let _ = orchestrator.resume(session).await;
        let _ = orchestrator.approve(session, &"check".into(), None, None).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    world.ended().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let calls = world.model.calls.lock().unwrap().len();
    (world.events().await, calls)
}

fn inconsistency(events: &[StoredEvent], calls_made: usize) -> Option<String> {
    let mut attempts: BTreeMap<String, u32> = BTreeMap::new();
    let mut uses = BTreeSet::new();
    let mut withdrawn = BTreeSet::new();
    let mut done = BTreeSet::new();
    let mut calls = 0;
    let mut ended = false;
    for event in events {
        if ended {
            return Some(format!("{} after the end", event.payload.kind()));
        }
        match &event.payload {
            EventPayload::StageStarted(started) => {
                let last = attempts.entry(started.stage_id.to_string()).or_insert(0);
                if started.attempt != *last + 1 {
                    return Some(format!("attempt {} after {last}", started.attempt));
                }
                if done.contains(&started.stage_id) {
                    return Some(format!("{} runs again", started.stage_id));
                }
                *last = started.attempt;
            }
            EventPayload::SteeringNoteWithdrawn(note) => {
                withdrawn.insert(note.note_id.clone());
            }
            EventPayload::SteeringNoteApplied(used) => {
                if withdrawn.contains(&used.note_id) {
                    return Some(format!("{} is used though withdrawn", used.note_id));
                }
                if attempts[used.stage_id.as_str()] != used.attempt {
                    return Some("a note is applied to another attempt".to_owned());
                }
                if !uses.insert((used.note_id.clone(), used.stage_id.clone(), used.attempt)) {
                    return Some(format!("{} is applied twice", used.note_id));
                }
            }
            EventPayload::InferenceCompleted(_) => calls += 1,
            EventPayload::StageCompleted(completed) if !done.insert(completed.stage_id.clone()) => {
                return Some(format!("{} is completed twice", completed.stage_id));
            }
            EventPayload::WorkflowCompleted(_) | EventPayload::WorkflowFailed(_) => ended = true,
            _ => {}
        }
    }
    if calls > calls_made {
        return Some("more calls in the log than the model got".to_owned());
    }
    if !ended {
        return Some("it never ended".to_owned());
    }
    // A note that was given before a stage was completed was shown to it, or withdrawn.
    let mut given: BTreeSet<NoteId> = BTreeSet::new();
    let mut gone: BTreeSet<NoteId> = BTreeSet::new();
    for event in events {
        match &event.payload {
            EventPayload::SteeringNoteAdded(note) => drop(given.insert(note.note_id.clone())),
            EventPayload::SteeringNoteWithdrawn(note) => drop(gone.insert(note.note_id.clone())),
            EventPayload::StageCompleted(completed) if completed.words.is_some() => {
                for note in given.difference(&gone) {
                    let used = (note.clone(), completed.stage_id.clone(), completed.attempt);
                    if !uses.contains(&used) {
                        return Some(format!("{note} was lost on {}", completed.stage_id));
                    }
                }
            }
            _ => {}
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_person_does_the_log_stays_consistent(deeds in deeds()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (events, calls) = runtime.block_on(live_through(&deeds));
        let problem = inconsistency(&events, calls);
        let kinds: Vec<&str> = events.iter().map(|event| event.payload.kind()).collect();
        prop_assert!(problem.is_none(), "{problem:?} in {kinds:#?}");
    }
}
