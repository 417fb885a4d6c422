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
