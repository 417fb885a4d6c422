//! Stages that touch the world outside: what policy says, what is asked, what happens once, and
//! what is known of it after a crash.

use std::fs;
use std::time::{Duration, Instant};

use correx_events::{
    ApprovalCause, ApprovalRequested, EffectOutcome, EventPayload, FailureReason, PauseReason,
    PolicyVerdict, StageId,
};
use correx_orchestration::{Recovery, RunControlError};
use correx_sessions::{RunState, StageStatus, WorkflowStatus};

use crate::support::{ASKING, Act, Scripted, World};

/// Any shell script, as only a test would allow it.
const SHELL: &str = "[[command]]\nprogram = \"sh\"\narguments = [[\"...\"]]\n";

/// A workflow with one command, a shell script.
fn shell(script: &str, more: &str) -> String {
    format!(
        "name=\"Shell\"\n[[input]]\nname=\"notes\"\ntype=\"text\"\n[[stage]]\nid=\"one\"\n\
         kind=\"command\"\nprogram=\"sh\"\nargs=[\"-c\", '''{script}''']\noutput=\"said\"\n{more}"
    )
}

/// A workflow that writes its input into a file.
fn writes(path: &str, more: &str) -> String {
    format!(
        "name=\"Writes\"\n[[input]]\nname=\"notes\"\ntype=\"text\"\n[[stage]]\nid=\"one\"\n\
         kind=\"write\"\nfrom=\"inputs.notes\"\npath='{path}'\n{more}"
    )
}

const NOTES: &[(&str, &str)] = &[("notes", "new text")];

async fn world(text: &str, policy: &str) -> World {
    let world = World::alone(text, NOTES, Scripted::new([])).await;
    world.outside.allow(policy);
    world
}

/// Started under a policy.
async fn run(text: &str, policy: &str) -> World {
    let world = world(text, policy).await;
    world.orchestrator.start(&world.session).await.unwrap();
    world
}

async fn asks(world: &World) -> ApprovalRequested {
    let asking = world.when(|state| state.pause == Some(PauseReason::Approval)).await;
    asking.stages.into_iter().find_map(|stage| stage.question).unwrap()
}

async fn says_yes(world: &World) -> Result<(), RunControlError> {
    world.orchestrator.approve(&world.session, &"one".into(), None, None).await
}

fn error(state: &RunState) -> String {
    state.stages[0].error.clone().unwrap_or_default()
}

async fn verdicts(world: &World) -> Vec<(PolicyVerdict, String)> {
    let events = world.events().await;
    let decided = events.into_iter().filter_map(|event| match event.payload {
        EventPayload::PolicyDecided(decided) => Some((decided.verdict, decided.rule)),
        _ => None,
    });
    decided.collect()
}

#[tokio::test]
async fn a_command_gets_its_input_and_its_output_becomes_the_artifact() {
    let script = r#"printf "%s/%s/" "$1" "$KIND"; cat"#;
    let text = shell(script, "stdin=\"inputs.notes\"\nenv={KIND=\"a b\"}\nmedia_type=\"text/csv\"")
        .replace("'''", "\"\"\"")
        .replace("\"\"\"printf", "'''printf")
        .replace("cat\"\"\"]", "cat''', \"sh\", \"<{{ inputs.notes }}>\"]");
    let policy = format!("{SHELL}environment = [\"KIND\"]\n");
    let world = run(&text, &policy).await;
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{}", error(&state));
    let made = &state.stages[0].artifacts[0];
    assert_eq!((made.name.as_str(), made.media_type.as_str()), ("said", "text/csv"));
    assert_eq!(world.text(&made.hash).await, "<new text>/a b/new text");
    let kinds = world.kinds().await;
    let expected = [
        "stage_started",
        "policy_decided",
        "effect_intended",
        "effect_done",
        "artifact_produced",
        "stage_completed",
        "workflow_completed",
    ];
    assert_eq!(kinds[3..], expected);
    assert_eq!(verdicts(&world).await[0].0, PolicyVerdict::Allowed);
    assert!(verdicts(&world).await[0].1.contains("[[command]] 1 (sh)"));
}

#[tokio::test]
async fn what_a_model_wrote_is_one_argument_whatever_it_holds() {
    let text = "name=\"W\"\n[[stage]]\nid=\"draft\"\nkind=\"generate\"\nprompt=\"x\"\n[[stage]]\n\
                id=\"one\"\nkind=\"command\"\nprogram=\"printf\"\nargs=[\"%s|\", \"{{ artifacts.draft }}\"]";
    let model = Scripted::new([Act::Say("a b; touch pwned $(touch pwned) `x` && \"q\"")]);
    let world = World::alone(text, &[], model).await;
    world.outside.allow("[[command]]\nprogram = \"printf\"\narguments = [[\"%s|\", \"**\"]]");
    world.orchestrator.start(&world.session).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{:?}", state.failure);
    let said = world.text(&state.stages[1].artifacts[0].hash).await;
    assert_eq!(said, "a b; touch pwned $(touch pwned) `x` && \"q\"|");
    assert_eq!(world.outside.read("pwned"), None);
}

#[tokio::test]
async fn without_a_rule_nothing_happens_and_the_run_says_which_rule_is_missing() {
    for (text, what) in [
        (shell("touch made", ""), "run"),
        (writes("/etc/correx-was-here", ""), "write"),
        (writes("../../outside.txt", ""), "write"),
        (
            "name=\"W\"\n[[stage]]\nid=\"one\"\nkind=\"read\"\npaths=[\"/etc/passwd\"]".into(),
            "read",
        ),
    ] {
        let given =
            if text.contains("inputs.") || text.contains("[[input]]") { NOTES } else { &[] };
        let world = World::started(&text, given, Scripted::new([])).await;
        let state = world.ended().await;
        let failure = state.failure.clone().unwrap();
        assert_eq!(failure.reason, FailureReason::PolicyDenied, "{text}");
        assert!(failure.message.contains(what), "{}", failure.message);
        assert!(failure.message.contains("Nothing of it was done"), "{}", failure.message);
        assert_eq!(world.count("policy_denied").await, 1);
        assert_eq!(world.count("effect_intended").await, 0);
        assert!(!world.outside.output("").exists(), "not even the folder is made");
        let yes = says_yes(&world).await;
        assert_eq!(yes, Err(RunControlError::NotAsking("one".into())));
    }
}

#[tokio::test]
async fn a_command_that_policy_denies_and_a_person_approves_is_still_denied() {
    let asking = format!("{SHELL}approval = true\n");
    let world = run(&shell("touch made", ""), &asking).await;
    let question = asks(&world).await;
    assert_eq!(question.cause, ApprovalCause::Policy);
    assert!(question.prompt.contains("touch made"), "{}", question.prompt);
    // While the person thinks, the policy becomes stricter.
    world.outside.allow(&format!("{asking}[deny]\nprograms = [\"sh\"]\n"));
    says_yes(&world).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.failure.unwrap().reason, FailureReason::PolicyDenied);
    assert_eq!(world.outside.read("made"), None);
    assert_eq!(world.count("effect_intended").await, 0);
}

#[tokio::test]
async fn an_approved_command_runs_once_and_a_refused_one_never() {
    let asking = format!("{SHELL}approval = true\n");
    let text = shell("echo x >> made", "");
    let world = run(&text, &asking).await;
    asks(&world).await;
    assert_eq!(world.outside.read("made"), None, "not before the answer");
    says_yes(&world).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed);
    assert_eq!(state.stages[0].attempt, 1, "an answer is no new attempt");
    assert_eq!(world.outside.read("made").as_deref(), Some("x\n"));
    let rules: Vec<PolicyVerdict> =
        verdicts(&world).await.into_iter().map(|(verdict, _)| verdict).collect();
    assert_eq!(rules[0], PolicyVerdict::NeedsApproval);

    let world = run(&text, &asking).await;
    asks(&world).await;
    world.orchestrator.deny(&world.session, &"one".into(), Some("no".into())).await.unwrap();
    assert_eq!(world.ended().await.failure.unwrap().reason, FailureReason::ApprovalDenied);
    assert_eq!(world.outside.read("made"), None);
}

#[tokio::test]
async fn an_approval_is_for_exactly_what_was_asked() {
    let world = world(&writes("a.txt", ""), "").await;
    fs::create_dir_all(world.outside.output("")).unwrap();
    fs::write(world.outside.output("a.txt"), "first").unwrap();
    world.orchestrator.start(&world.session).await.unwrap();
    let question = asks(&world).await;
    assert_eq!(world.text(&question.before.unwrap()).await, "first");
    // The file becomes another one before the answer: the yes was not about that.
    fs::write(world.outside.output("a.txt"), "second").unwrap();
    says_yes(&world).await.unwrap();
    let question = world
        .when(|state| {
            let question = state.stages[0].question.as_ref();
            question.is_some_and(|question| question.before.is_some())
                && state.pause == Some(PauseReason::Approval)
        })
        .await;
    let before = question.stages[0].question.clone().unwrap().before.unwrap();
    assert_eq!(world.text(&before).await, "second");
    assert_eq!(world.outside.read("a.txt").as_deref(), Some("second"));
    says_yes(&world).await.unwrap();
    world.ended().await;
    assert_eq!(world.outside.read("a.txt").as_deref(), Some("new text"));
}

#[tokio::test]
async fn a_new_file_is_written_and_one_that_is_there_only_after_a_yes() {
    let world = run(&writes("sub/a.txt", ""), "").await;
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{}", error(&state));
    assert_eq!(world.outside.read("sub/a.txt").as_deref(), Some("new text"));
    assert!(state.stages[0].artifacts.is_empty());
    let effect = &state.stages[0].effects[0];
    assert_eq!(effect.outcome, Some(EffectOutcome::Succeeded));
    assert_eq!(effect.intended.target, world.outside.output("sub/a.txt").display().to_string());

    let world = self::world(&writes("a.txt", ""), "").await;
    fs::create_dir_all(world.outside.output("")).unwrap();
    fs::write(world.outside.output("a.txt"), "old text").unwrap();
    world.orchestrator.start(&world.session).await.unwrap();
    let question = asks(&world).await;
    assert_eq!(question.cause, ApprovalCause::Existing);
    assert_eq!(world.text(&question.before.unwrap()).await, "old text");
    assert_eq!(world.text(&question.artifact.unwrap()).await, "new text");
    world.orchestrator.deny(&world.session, &"one".into(), None).await.unwrap();
    world.ended().await;
    assert_eq!(world.outside.read("a.txt").as_deref(), Some("old text"));
}

#[tokio::test]
async fn a_workflow_can_refuse_to_replace_anything() {
    let world = world(&writes("a.txt", "existing=\"fail\""), "").await;
    fs::create_dir_all(world.outside.output("")).unwrap();
    fs::write(world.outside.output("a.txt"), "old text").unwrap();
    world.orchestrator.start(&world.session).await.unwrap();
    let state = world.ended().await;
    assert!(error(&state).contains("is there already"), "{}", error(&state));
    assert_eq!(world.outside.read("a.txt").as_deref(), Some("old text"));
}

#[tokio::test]
async fn links_lead_nowhere_that_is_not_allowed() {
    let world = world(&writes("link/a.txt", ""), "").await;
    let elsewhere = world.outside.path("elsewhere");
    fs::create_dir_all(world.outside.output("")).unwrap();
    fs::create_dir_all(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, world.outside.output("link")).unwrap();
    world.orchestrator.start(&world.session).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.failure.unwrap().reason, FailureReason::PolicyDenied);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[tokio::test]
async fn read_makes_an_artifact_of_files_and_folders_and_names_what_it_could_not_read() {
    let text = "name=\"W\"\n[[stage]]\nid=\"one\"\nkind=\"read\"\npaths=['HERE/notes', 'HERE/list.csv']\noutput=\"all\"";
    let world = World::alone(
        "name=\"W\"\n[[stage]]\nid=\"x\"\nkind=\"generate\"\nprompt=\"x\"",
        &[],
        Scripted::new([]),
    )
    .await;
    let here = world.outside.path("");
    let notes = world.outside.path("notes");
    fs::create_dir_all(&notes).unwrap();
    fs::write(notes.join("a.md"), "# Ana\nships on Friday").unwrap();
    fs::write(notes.join("b.bin"), [0_u8, 159, 146, 150]).unwrap();
    fs::write(notes.join("secret.key"), "hush").unwrap();
    fs::write(here.join("list.csv"), "name,age\nBo,3\n").unwrap();
    let text = text.replace("HERE", &here.display().to_string());
    let other = World::alone(&text, &[], Scripted::new([])).await;
    other
        .outside
        .allow(&format!("[read]\nfolders = ['{}']\n[deny]\nfiles = [\"*.key\"]", here.display()));
    other.orchestrator.start(&other.session).await.unwrap();
    let state = other.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{}", error(&state));
    let made = other.text(&state.stages[0].artifacts[0].hash).await;
    assert!(made.contains("ships on Friday"), "{made}");
    assert!(made.contains("Bo"), "{made}");
    assert!(!made.contains("hush"), "{made}");
    assert!(made.contains("b.bin") && made.contains("secret.key"), "{made}");
    assert_eq!(other.count("policy_decided").await, 2);
    assert_eq!(other.count("effect_intended").await, 0, "reading changes nothing");
}

#[tokio::test]
async fn a_failed_command_says_how_it_ended_and_what_it_wrote_is_kept() {
    for (script, more, part) in [
        ("echo so far; echo oh no >&2; exit 3", "", "code 3"),
        ("kill -KILL $$", "", "signal"),
        ("sleep 30", "timeout_seconds=1", "longer than 1 s"),
        ("yes", "max_output_bytes=100", "more than"),
        ("trap '' TERM; while :; do sleep 0.1; done", "timeout_seconds=1", "longer than 1 s"),
        ("printf '\\377\\376'", "", "no text"),
        ("exit 0", "exit_codes=[1]", "exit_codes"),
    ] {
        let world = run(&shell(script, more), SHELL).await;
        let state = world.ended().await;
        assert_eq!(state.status, WorkflowStatus::Failed, "{script}");
        assert!(error(&state).contains(part), "{script}: {}", error(&state));
        let effect = &state.stages[0].effects[0];
        assert!(matches!(effect.outcome, Some(EffectOutcome::Failed { .. })), "{script}");
        assert!(state.stages[0].artifacts.is_empty(), "{script}");
        if script.contains("so far") {
            assert!(error(&state).contains("oh no"), "{}", error(&state));
            assert_eq!(world.text(effect.output.as_ref().unwrap()).await, "so far\n");
        }
    }
}

#[tokio::test]
async fn other_exit_codes_can_be_as_good_as_zero() {
    let world = run(&shell("echo found; exit 1", "exit_codes=[0, 1]"), SHELL).await;
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{}", error(&state));
    assert_eq!(world.text(&state.stages[0].artifacts[0].hash).await, "found\n");
}

#[tokio::test]
async fn cancelling_ends_a_command_with_its_children_soon_and_says_so() {
    let script = "(trap '' TERM; sleep 30; touch late) & echo up > up; wait";
    let world = run(&shell(script, ""), SHELL).await;
    world.when(|_| world.outside.read("up").is_some()).await;
    let asked = Instant::now();
    world.orchestrator.cancel(&world.session).await.unwrap();
    let state = world
        .when(|state| {
            state.stages[0].effects.first().is_some_and(|effect| effect.outcome.is_some())
        })
        .await;
    assert!(asked.elapsed() < Duration::from_secs(5), "asked first, killed after 0.4 seconds");
    assert_eq!(state.failure.clone().unwrap().reason, FailureReason::Cancelled);
    assert_eq!(world.outside.read("late"), None);
    let effect = &state.stages[0].effects[0];
    assert!(matches!(effect.outcome, Some(EffectOutcome::Failed { .. })));
}

#[tokio::test]
async fn a_pause_lets_a_command_finish_and_keeps_what_it_made() {
    let text = shell("echo up > up; while [ ! -e go ]; do sleep 0.02; done; echo done", "")
        + "\n[[stage]]\nid=\"two\"\nkind=\"generate\"\nprompt=\"{{ artifacts.said }}\"";
    let world = run(&text, SHELL).await;
    world.when(|_| world.outside.read("up").is_some()).await;
    world.orchestrator.pause(&world.session).await.unwrap();
    fs::write(world.outside.output("go"), "").unwrap();
    let state = world.when(|state| state.stages[0].status == StageStatus::Done).await;
    assert_eq!(state.status, WorkflowStatus::Paused);
    assert_eq!(world.model.calls_of("two"), 0);
    world.orchestrator.resume(&world.session).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed);
    assert_eq!(world.count("effect_intended").await, 1);
}

#[tokio::test]
async fn a_run_that_was_paused_in_its_last_command_completes_when_it_is_resumed() {
    let world =
        run(&shell("echo up > up; while [ ! -e go ]; do sleep 0.02; done", ""), SHELL).await;
    world.when(|_| world.outside.read("up").is_some()).await;
    world.orchestrator.pause(&world.session).await.unwrap();
    fs::write(world.outside.output("go"), "").unwrap();
    let state = world.when(|state| state.stages[0].status == StageStatus::Done).await;
    assert_eq!(state.status, WorkflowStatus::Paused);
    world.orchestrator.resume(&world.session).await.unwrap();
    assert_eq!(world.ended().await.status, WorkflowStatus::Completed);
    assert_eq!(world.count("effect_intended").await, 1);
}

/// A world in which the process ends after the effect and before its record: the log has no
/// `effect_done`.
async fn ended_before_the_record(world: World, seen: &str) -> World {
    world.log.refuse(Some("effect_done"));
    world.orchestrator.start(&world.session).await.unwrap();
    world.when(|_| world.outside.read(seen).is_some()).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.log.refuse(None);
    // A stalled run is told so; the process ends here.
    let world = world.restarted().await;
    let found = world.orchestrator.recover(&world.session).await;
    assert!(matches!(found, Ok(Recovery::Interrupted | Recovery::Nothing)), "{found:?}");
    world
}

#[tokio::test]
async fn a_write_that_was_done_when_the_process_ended_is_not_done_again() {
    let world = world(&writes("a.txt", ""), "").await;
    let world = ended_before_the_record(world, "a.txt").await;
    let written = fs::metadata(world.outside.output("a.txt")).unwrap().modified().unwrap();
    world.orchestrator.resume(&world.session).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{}", error(&state));
    assert_eq!(world.count("effect_intended").await, 1);
    assert_eq!(world.count("approval_requested").await, 0);
    let now = fs::metadata(world.outside.output("a.txt")).unwrap().modified().unwrap();
    assert_eq!(written, now);
}

#[tokio::test]
async fn a_write_that_had_not_happened_when_the_process_ended_is_done_on_resume() {
    let world = world(&writes("a.txt", ""), "").await;
    let world = ended_before_the_record(world, "a.txt").await;
    fs::remove_file(world.outside.output("a.txt")).unwrap();
    world.orchestrator.resume(&world.session).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{}", error(&state));
    assert_eq!(world.outside.read("a.txt").as_deref(), Some("new text"));
    let outcomes: Vec<bool> = state.stages[0]
        .effects
        .iter()
        .map(|effect| effect.outcome == Some(EffectOutcome::Succeeded))
        .collect();
    assert_eq!(outcomes, [false, true], "the first is recorded as not done");
}

#[tokio::test]
async fn a_file_that_somebody_changed_after_a_half_done_write_is_asked_about() {
    let world = world(&writes("a.txt", ""), "").await;
    let world = ended_before_the_record(world, "a.txt").await;
    fs::write(world.outside.output("a.txt"), "by hand").unwrap();
    world.orchestrator.resume(&world.session).await.unwrap();
    let question = asks(&world).await;
    assert_eq!(question.cause, ApprovalCause::HalfDone);
    assert_eq!(world.text(&question.before.clone().unwrap()).await, "by hand");
    assert_eq!(world.outside.read("a.txt").as_deref(), Some("by hand"));
    says_yes(&world).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{}", error(&state));
    assert_eq!(world.outside.read("a.txt").as_deref(), Some("new text"));
}

#[tokio::test]
async fn a_half_done_command_is_never_run_again_without_a_yes() {
    for yes in [true, false] {
        let world = world(&shell("echo x >> made", ""), SHELL).await;
        let world = ended_before_the_record(world, "made").await;
        world.orchestrator.resume(&world.session).await.unwrap();
        let question = asks(&world).await;
        assert_eq!(question.cause, ApprovalCause::HalfDone);
        assert!(question.prompt.contains("echo x >> made"), "{}", question.prompt);
        assert_eq!(world.outside.read("made").as_deref(), Some("x\n"));
        // The question outlives another restart.
        let world = world.restarted().await;
        world.orchestrator.recover(&world.session).await.unwrap();
        assert_eq!(asks(&world).await, question);
        let stage = StageId::from("one");
        match yes {
            true => world.orchestrator.approve(&world.session, &stage, None, None).await.unwrap(),
            false => world.orchestrator.deny(&world.session, &stage, None).await.unwrap(),
        }
        let state = world.ended().await;
        let (status, made) = match yes {
            true => (WorkflowStatus::Completed, "x\nx\n"),
            false => (WorkflowStatus::Failed, "x\n"),
        };
        assert_eq!(state.status, status, "{}", error(&state));
        assert_eq!(world.outside.read("made").as_deref(), Some(made));
    }
}

#[tokio::test]
async fn a_half_done_command_is_not_even_asked_about_when_policy_denies_it_by_now() {
    let world = world(&shell("echo x >> made", ""), SHELL).await;
    let world = ended_before_the_record(world, "made").await;
    world.outside.allow("");
    world.orchestrator.resume(&world.session).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.failure.unwrap().reason, FailureReason::PolicyDenied);
    assert_eq!(world.outside.read("made").as_deref(), Some("x\n"));
}

/// Asking, and the draft goes into a file.
const SAVE: &str = r#"
[[stage]]
id = "file"
kind = "write"
from = "artifacts.draft"
path = "draft.md"
"#;

#[tokio::test]
async fn what_a_person_changes_while_approving_is_what_later_stages_get() {
    let world =
        World::started(&[ASKING, SAVE].concat(), &[], Scripted::new([Act::Say("A draft")])).await;
    asks(&world).await;
    let edited = Some("My own text".to_owned());
    world.orchestrator.approve(&world.session, &"check".into(), None, edited).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed, "{:?}", state.failure);
    assert!(world.model.call(1).prompt().contains("Polish My own text"));
    assert_eq!(world.outside.read("draft.md").as_deref(), Some("My own text"));
    // What the model wrote is still there to be seen.
    let first = &state.stages[0].artifacts[0];
    assert_eq!(world.text(&first.hash).await, "A draft");
}

#[tokio::test]
async fn only_what_an_approve_stage_shows_can_be_changed() {
    let asking = format!("{SHELL}approval = true\n");
    let world = run(&shell("echo x", ""), &asking).await;
    asks(&world).await;
    let edited = Some("rm -rf".to_owned());
    let refused = world.orchestrator.approve(&world.session, &"one".into(), None, edited).await;
    assert_eq!(refused, Err(RunControlError::NotEditable("one".into())));
    assert_eq!(world.state().await.pause, Some(PauseReason::Approval));
}

const THREE: &str = r#"
name = "Three"
[[stage]]
id = "a"
kind = "generate"
prompt = "Write a."
[[stage]]
id = "b"
kind = "generate"
prompt = "From {{ artifacts.a }}"
[[stage]]
id = "file"
kind = "write"
from = "artifacts.b"
path = "b.txt"
"#;

#[tokio::test]
async fn a_finished_run_runs_again_from_any_stage_and_keeps_what_was_made() {
    let model = Scripted::new([Act::Say("first a"), Act::Say("first b"), Act::Say("second b")]);
    let world = World::started(THREE, &[], model).await;
    let refused = world.orchestrator.rerun(&world.session, &"b".into()).await;
    world.ended().await;
    if let Err(error) = &refused {
        assert!(matches!(error, RunControlError::WrongState { .. }), "{error}");
    }
    let unknown = world.orchestrator.rerun(&world.session, &"x".into()).await.unwrap_err();
    assert!(unknown.to_string().contains("a, b, file"), "{unknown}");

    world.orchestrator.rerun(&world.session, &"b".into()).await.unwrap();
    // The file is there by now, and replacing it is asked about.
    let question = asks(&world).await;
    assert_eq!(question.cause, ApprovalCause::Existing);
    world.orchestrator.approve(&world.session, &"file".into(), None, None).await.unwrap();
    let state = world.ended().await;
    assert_eq!(state.status, WorkflowStatus::Completed);
    assert_eq!((world.model.calls_of("a"), world.model.calls_of("b")), (1, 2));
    assert!(world.model.call(2).prompt().contains("From first a"));
    assert_eq!(world.outside.read("b.txt").as_deref(), Some("second b"));
    let b = state.stage(&"b".into()).unwrap();
    let made: Vec<&correx_events::BlobHash> = b.artifacts.iter().map(|made| &made.hash).collect();
    assert_eq!(made.len(), 2, "what was made before is kept");
    assert_eq!(world.text(made[0]).await, "first b");
    assert_eq!(world.text(made[1]).await, "second b");
    assert_eq!(b.produced().count(), 1, "and counts no more");
}

#[tokio::test]
async fn a_failed_run_runs_again_from_the_stage_that_failed() {
    let text = shell("test -e ready && echo ok", "");
    let world = run(&text, SHELL).await;
    assert_eq!(world.ended().await.status, WorkflowStatus::Failed);
    fs::write(world.outside.output("ready"), "").unwrap();
    world.orchestrator.rerun(&world.session, &"one".into()).await.unwrap();
    let state = world.when(|state| state.status == WorkflowStatus::Completed).await;
    assert_eq!(world.text(&state.stages[0].artifacts[0].hash).await, "ok\n");
    assert_eq!(state.failure, None);
}
