//! Running programs: what they get, how they end, and that nothing of them stays.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::future::pending;
use std::path::Path;
use std::time::{Duration, Instant};

use correx_effects::{
    Approval, CommandEnd, CommandOutcome, CommandRequest, CommandSpec, Launch, Policy,
    SessionFolders, Stream, run_command,
};

/// A policy that lets `sh` run anything, as only a test would.
const ANY: &str = "version = 1\n[[command]]\nprogram = \"sh\"\narguments = [[\"...\"]]\n";

fn shell(script: &str, output: &Path) -> Launch {
    let request = CommandRequest {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        ..CommandRequest::default()
    };
    let policy = Policy::parse(ANY).unwrap();
    policy.decide_command(&request, &SessionFolders::new(output)).permitted(Approval::None).unwrap()
}

fn spec(script: &str, output: &Path) -> CommandSpec {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    CommandSpec::new(shell(script, output), format!("test-{}-{number}", std::process::id()))
}

async fn run(spec: CommandSpec) -> CommandOutcome {
    run_command(spec, pending(), |_| {}).await.unwrap()
}

/// Runs until the script has written its first line, then cancels; and how long the end took.
async fn cancelled_after_first_line(spec: CommandSpec) -> (CommandOutcome, Duration) {
    let (say, heard) = tokio::sync::oneshot::channel();
    let mut say = Some(say);
    let mut at = None;
    let outcome = run_command(
        spec,
        async {
            let _ = heard.await;
        },
        |_| {
            if let Some(say) = say.take() {
                at = Some(Instant::now());
                let _ = say.send(());
            }
        },
    )
    .await
    .unwrap();
    (outcome, at.unwrap().elapsed())
}

fn is_alive(pid: &str) -> bool {
    match fs::read_to_string(format!("/proc/{}/stat", pid.trim())) {
        Ok(stat) => !stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'),
        Err(_) => false,
    }
}

#[tokio::test]
async fn a_command_reads_its_input_and_writes_its_output() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("not/yet/there");
    let mut spec = spec("cat; echo to the person >&2; pwd", &output);
    spec.stdin = vec![b'x'; 300_000];
    let outcome = run(spec).await;
    assert_eq!(outcome.end, CommandEnd::Exited(0), "{outcome}");
    assert!(outcome.stdout.starts_with(&[b'x'; 300_000]));
    let real = fs::canonicalize(&output).unwrap();
    assert_eq!(&outcome.stdout[300_000..], format!("{}\n", real.display()).as_bytes());
    assert_eq!(outcome.error_tail, b"to the person\n");
}

#[tokio::test]
async fn input_that_is_not_read_hangs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = spec("exit 3", dir.path());
    spec.stdin = vec![b'x'; 10_000_000];
    assert_eq!(run(spec).await.end, CommandEnd::Exited(3));
}

#[tokio::test]
async fn a_command_that_ignores_sigterm_is_ended_with_its_grandchildren_within_a_second() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; sh -c \"trap : TERM; while :; do sleep 60; done\" & \
                  echo $! > grandchild; echo $$ > child; while :; do sleep 60; done' & \
                  while [ ! -s child ]; do sleep 0.01; done; echo ready; while :; do sleep 60; done";
    let (outcome, took) = cancelled_after_first_line(spec(script, dir.path())).await;
    assert_eq!(outcome.end, CommandEnd::Cancelled);
    assert!(took < Duration::from_secs(1), "{took:?}");
    for name in ["child", "grandchild"] {
        let pid = fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(!is_alive(&pid), "{name} {pid}");
    }
    assert!(outcome.unended.is_empty());
}

#[tokio::test]
async fn a_flood_ends_the_command_by_the_name_of_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    for (script, stream) in [("yes", Stream::Output), ("yes >&2", Stream::Messages)] {
        let mut spec = spec(script, dir.path());
        spec.limits.output = 100_000;
        spec.limits.error_tail = 1000;
        let outcome = run(spec).await;
        assert_eq!(outcome.end, CommandEnd::TooMuchOutput { stream, limit: 100_000 });
        assert!(outcome.stdout.len() <= 100_000 && outcome.error_tail.len() <= 1000);
        assert!(outcome.to_string().contains("more than 100000 bytes"), "{outcome}");
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = spec("echo begun; sleep 60", dir.path());
    spec.limits.time = Duration::from_millis(200);
    let outcome = run(spec).await;
    assert_eq!(outcome.end, CommandEnd::TimedOut(Duration::from_millis(200)));
    assert_eq!(outcome.stdout, b"begun\n");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_left_the_session_and_its_parents_is_ended_as_well() {
    let dir = tempfile::tempdir().unwrap();
    // In a session of its own, its parent gone, deaf to SIGTERM, and holding no pipe of ours.
    let script = "(setsid sh -c 'trap \"\" TERM; echo $$ > stray; while :; do sleep 60; done' \
                  </dev/null >/dev/null 2>&1 &) ; while [ ! -s stray ]; do sleep 0.01; done; echo ready; \
                  sleep 60";
    let (outcome, took) = cancelled_after_first_line(spec(script, dir.path())).await;
    assert_eq!(outcome.end, CommandEnd::Cancelled);
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(!is_alive(&fs::read_to_string(dir.path().join("stray")).unwrap()));
}

#[tokio::test]
async fn what_a_command_leaves_running_holds_nothing_up_and_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = run(spec("sleep 60 & echo $! > stray; echo done", dir.path())).await;
    assert_eq!((outcome.end, &outcome.stdout[..]), (CommandEnd::Exited(0), &b"done\n"[..]));
    assert!(outcome.ran_for < Duration::from_secs(10), "{:?}", outcome.ran_for);
    assert!(!is_alive(&fs::read_to_string(dir.path().join("stray")).unwrap()));
    if cfg!(target_os = "linux") {
        assert_eq!(outcome.left_behind, 1);
        assert!(outcome.to_string().contains("1 of its processes"), "{outcome}");
    }
}

#[tokio::test]
async fn a_command_that_obeys_sigterm_can_tidy_up() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap 'echo tidy; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let (outcome, _) = cancelled_after_first_line(spec(script, dir.path())).await;
    assert_eq!(outcome.end, CommandEnd::Cancelled, "also when it says that it succeeded");
    assert_eq!(outcome.stdout, b"ready\ntidy\n");
}

#[tokio::test]
async fn a_command_whose_run_is_dropped_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; echo $$ > first; while :; do sleep 60; done";
    let running = tokio::spawn(run(spec(script, dir.path())));
    let first = dir.path().join("first");
    while fs::read_to_string(&first).unwrap_or_default().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    running.abort();
    let _ = running.await;
    let pid = fs::read_to_string(&first).unwrap();
    let until = Instant::now() + Duration::from_secs(5);
    while is_alive(&pid) && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!is_alive(&pid));
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_killed_program_left_running_is_found_by_the_id_of_its_run() {
    let dir = tempfile::tempdir().unwrap();
    let id = format!("left-{}", std::process::id());
    let mut child = std::process::Command::new("setsid")
        .args(["sh", "-c", "sleep 60 & wait"])
        .env("CORREX_COMMAND", &id)
        .current_dir(dir.path())
        .spawn()
        .unwrap();
    assert_eq!(correx_effects::end_leftovers(&format!("{id}0")), 0);
    while correx_effects::end_leftovers(&id) == 0 {}
    child.wait().unwrap();
    assert_eq!(correx_effects::end_leftovers(&id), 0);
}

#[tokio::test]
async fn how_a_command_ended_is_said_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let failed = run(spec("echo 'no such font' >&2; exit 4", dir.path())).await;
    assert!(!failed.is_success());
    let text = failed.to_string();
    assert!(text.contains("ended with code 4") && text.contains("no such font"), "{text}");
    let killed = run(spec("kill -SEGV $$", dir.path())).await;
    assert_eq!(killed.end, CommandEnd::Signalled(11));
    assert!(killed.to_string().contains("SIGSEGV"), "{killed}");
    let mut long = spec("for i in 1 2 3 4 5 6 7 8 9; do echo message $i >&2; done", dir.path());
    long.limits.error_tail = 20;
    let outcome = run(long).await;
    assert_eq!(
        (outcome.error_tail.as_slice(), outcome.error_bytes),
        (&b"message 8\nmessage 9\n"[..], 90)
    );
}

#[tokio::test]
async fn a_command_gets_nothing_of_ours_but_what_the_policy_says() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{ANY}environment = [\"GIVEN\", \"FIXED=a b\", \"CARGO_MANIFEST_DIR\"]\n");
    let policy = Policy::parse(&text).unwrap();
    let mut request = CommandRequest {
        program: "sh".into(),
        args: vec!["-c".into(), "env; ls /proc/self/fd | wc -l; cat; ps -o sid= -p $$; tty".into()],
        env: vec![("GIVEN".into(), "by the workflow".into())],
        ..CommandRequest::default()
    };
    let folders = SessionFolders::new(dir.path());
    let launch = policy.decide_command(&request, &folders).permitted(Approval::None).unwrap();
    let outcome = run(CommandSpec::new(launch, "environment")).await;
    let text = String::from_utf8(outcome.stdout).unwrap();
    for line in ["GIVEN=by the workflow", "FIXED=a b", "PATH=/usr/local/bin:/usr/bin:/bin"] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    assert!(text.contains("CARGO_MANIFEST_DIR=") && !text.contains("CARGO_PKG_NAME="), "{text}");
    assert!(text.contains("not a tty"), "{text}");
    for (name, value, words) in [
        ("OTHER", "x", "may not set the variable \"OTHER\""),
        ("FIXED", "x", "fixed value"),
        ("PATH", "/tmp", "may not set"),
    ] {
        request.env = vec![(name.into(), value.into())];
        let decided = policy.decide_command(&request, &folders);
        assert!(decided.decision.reason.contains(words), "{}", decided.decision);
        assert!(decided.permitted(Approval::Given).is_err());
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_run_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    let program = |name: &str, content: &[u8], mode: u32| {
        let path = root.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let decide = |program: &str| {
        let text = format!("version = 1\n[[command]]\nprogram = {program:?}\narguments = [[]]\n");
        let request = CommandRequest { program: program.into(), ..CommandRequest::default() };
        Policy::parse(&text)
            .unwrap()
            .decide_command(&request, &SessionFolders::new(root.join("out")))
    };
    let not_runnable = program("data", b"\x7fELF\0", 0o644);
    for (name, words) in [
        (not_runnable.as_str(), "no file that can be run"),
        ("/nowhere/at/all", "there is no program /nowhere/at/all"),
        ("no-such-program", "no program \"no-such-program\" was found in /usr/local/bin"),
    ] {
        let decided = decide(name);
        assert!(decided.decision.reason.contains(words), "{}", decided.decision);
        assert!(decided.decision.rule.contains("[[command]] 1"), "{}", decided.decision);
    }
    let foreign = {
        let mut elf = fs::read("/bin/sh").unwrap();
        elf[18..20].copy_from_slice(&[0xff, 0x7f]);
        elf
    };
    let text_as_interpreter = format!("#!{}\n", program("text", b"echo hello\n", 0o755));
    for (name, content, words) in [
        ("text", &b"echo hello\n"[..], "no shell is used"),
        ("bad", b"\x7fELF\0\0\0\0", "damaged or made for another machine"),
        ("foreign", &foreign, "damaged or made for another machine"),
        ("lost", b"#!/nowhere/at/all\n", "names \"/nowhere/at/all\""),
        ("near", b"#!sh\n", "names \"sh\""),
        ("none", b"#!\n", "names \"\""),
        ("twice", text_as_interpreter.as_bytes(), "no shell is used"),
    ] {
        let decision = decide(&program(name, content, 0o755)).decision;
        assert!(decision.reason.contains(words), "{decision}");
    }
    // What has become something else since it was decided is looked at again.
    let path = program("script", b"#!/bin/sh\necho ran\n", 0o755);
    let launch = decide(&path).permitted(Approval::None).unwrap();
    let outcome = run(CommandSpec::new(launch.clone(), "script")).await;
    assert_eq!(outcome.stdout, b"ran\n", "{outcome}");
    program("script", b"echo hello\n", 0o755);
    let spec = CommandSpec::new(launch.clone(), "text");
    let error = run_command(spec, pending(), |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("no shell is used"), "{error}");
    fs::remove_file(&path).unwrap();
    let error = run_command(CommandSpec::new(launch, "gone"), pending(), |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("is not there any more"), "{error}");
}
