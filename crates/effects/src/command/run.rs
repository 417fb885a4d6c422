//! Running one program.

use std::collections::VecDeque;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep_until, timeout};

use crate::executable::interpreters;

use super::tree::{Ended, Manner, Tree};
use super::{CommandEnd, CommandError, CommandOutcome, CommandSpec, MARKER, OutputPiece, Stream};

/// How long the output of a program that has ended is waited for, while something else holds it open.
const SETTLE: Duration = Duration::from_millis(250);
/// How long an ended program's status is waited for.
const REAP: Duration = Duration::from_millis(300);
const BUFFER: usize = 64 * 1024;

/// Runs a program until it ends, `cancelled` completes, or it goes beyond a limit; then it is ended
/// with everything that it started, within a second: asked first, then killed.
///
/// `on_output` sees what it writes as it comes. Needs a tokio runtime with I/O and time. When the
/// future is dropped, everything is killed at once.
///
/// Errors mean that nothing was run; however a program ends is an outcome.
pub async fn run_command(
    spec: CommandSpec,
    cancelled: impl Future<Output = ()> + Send,
    mut on_output: impl FnMut(OutputPiece<'_>) + Send,
) -> Result<CommandOutcome, CommandError> {
    let begun = Instant::now();
    let mut child = spawn(&spec)?;
    let mut tree = Tree::new(child.id(), &spec.id);
    let writing = child.stdin().take().map(|mut stdin| {
        let bytes = spec.stdin.clone();
        // A program that does not read everything is no failure.
        tokio::spawn(async move {
            let _ = stdin.write_all(&bytes).await;
            let _ = stdin.shutdown().await;
        })
    });
    let mut output = Collected::new(&spec);
    let mut stdout = Source::new(child.stdout().take());
    let mut stderr = Source::new(child.stderr().take());
    let mut exited: Option<ExitStatus> = None;
    let deadline = tokio::time::Instant::now() + spec.limits.time;
    let mut settled = deadline;
    tokio::pin!(cancelled);

    let stopped = loop {
        if exited.is_some() && !stdout.is_open() && !stderr.is_open() {
            break None;
        }
        tokio::select! {
            biased;
            () = &mut cancelled => break Some(CommandEnd::Cancelled),
            () = sleep_until(deadline), if exited.is_none() => {
                break Some(CommandEnd::TimedOut(spec.limits.time));
            }
            () = sleep_until(settled), if exited.is_some() => break None,
            bytes = stdout.read(), if stdout.is_open() => {
                if let Some(end) = output.take(Stream::Output, bytes, &mut on_output) {
                    break Some(end);
                }
            }
            bytes = stderr.read(), if stderr.is_open() => {
                if let Some(end) = output.take(Stream::Messages, bytes, &mut on_output) {
                    break Some(end);
                }
            }
            // Of the program itself, not of everything in its job.
            status = child.inner_mut().wait(), if exited.is_none() => {
                settled = tokio::time::Instant::now() + SETTLE;
                exited = Some(status.unwrap_or_default());
            }
        }
    };

    let manner = if exited.is_some() { Manner::AtOnce } else { Manner::AskFirst };
    let ended =
        end(&mut tree, &mut *child, manner, &mut stdout, &mut stderr, &mut output, &mut on_output)
            .await;
    if let Some(writing) = writing {
        writing.abort();
    }
    let left_behind = if exited.is_some() { ended.found } else { 0 };
    if exited.is_none() {
        exited = timeout(REAP, child.inner_mut().wait()).await.ok().and_then(Result::ok);
    }
    let end = stopped.unwrap_or_else(|| end_of(exited));
    Ok(CommandOutcome {
        program: spec.launch.called.to_string_lossy().into_owned(),
        end,
        stdout: output.stdout,
        error_tail: output.tail.into(),
        error_bytes: output.error_bytes,
        ran_for: begun.elapsed(),
        left_behind,
        unended: ended.unended,
    })
}

/// Ends everything that is left, while what it still writes is taken in so that nothing waits for us.
async fn end(
    tree: &mut Tree,
    child: &mut dyn ChildWrapper,
    manner: Manner,
    stdout: &mut Source<impl AsyncRead + Unpin>,
    stderr: &mut Source<impl AsyncRead + Unpin>,
    output: &mut Collected,
    on_output: &mut (impl FnMut(OutputPiece<'_>) + Send),
) -> Ended {
    // A Windows job ends as a whole; elsewhere there is nothing to do here that the tree does not.
    if cfg!(windows) {
        let _ = child.start_kill();
    }
    let ending = tree.end(manner);
    tokio::pin!(ending);
    let mut ended: Option<Ended> = None;
    let mut until = tokio::time::Instant::now();
    loop {
        let is_read = !stdout.is_open() && !stderr.is_open();
        if ended.is_some() && (is_read || tokio::time::Instant::now() > until) {
            break;
        }
        tokio::select! {
            biased;
            bytes = stdout.read(), if stdout.is_open() => {
                output.take(Stream::Output, bytes, on_output);
            }
            bytes = stderr.read(), if stderr.is_open() => {
                output.take(Stream::Messages, bytes, on_output);
            }
            found = &mut ending, if ended.is_none() => {
                ended = Some(found);
                until = tokio::time::Instant::now() + SETTLE;
            }
            // Everything is ended, and what was in the pipes has been read.
            () = std::future::ready(()), if ended.is_some() => break,
        }
    }
    ended.unwrap_or_default()
}

fn spawn(spec: &CommandSpec) -> Result<Box<dyn ChildWrapper>, CommandError> {
    let launch = &spec.launch;
    let unusable = |error: io::Error| CommandError::WorkingFolder {
        path: launch.cwd.clone(),
        reason: error.to_string(),
    };
    std::fs::create_dir_all(&launch.cwd).map_err(unusable)?;
    if std::fs::canonicalize(&launch.cwd).map_err(unusable)? != launch.cwd {
        let reason = "it is not the folder any more that was allowed".to_owned();
        return Err(CommandError::WorkingFolder { path: launch.cwd.clone(), reason });
    }
    interpreters(&launch.program).map_err(CommandError::Unrunnable)?;
    let mut command = CommandWrap::with_new(&launch.program, |command| {
        #[cfg(unix)]
        command.arg0(&launch.called);
        command
            .args(&launch.args)
            .env_clear()
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .env(MARKER, &spec.id)
            .current_dir(&launch.cwd)
            .stdin(if spec.stdin.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    });
    command.wrap(process_wrap::tokio::KillOnDrop);
    #[cfg(unix)]
    command.wrap(process_wrap::tokio::ProcessSession);
    #[cfg(windows)]
    command.wrap(process_wrap::tokio::JobObject);
    command.spawn().map_err(|error| {
        let path = launch.program.clone();
        let reason = error.to_string();
        match error.kind() {
            io::ErrorKind::NotFound => CommandError::Absent(path),
            io::ErrorKind::PermissionDenied => CommandError::NotExecutable { path, reason },
            io::ErrorKind::ArgumentListTooLong => CommandError::ArgumentsTooLong(path),
            // ENOEXEC and ERROR_BAD_EXE_FORMAT have no kind of their own.
            _ if matches!(error.raw_os_error(), Some(8 | 193)) => {
                CommandError::NotExecutable { path, reason }
            }
            _ => CommandError::System { path, reason },
        }
    })
}

fn end_of(status: Option<ExitStatus>) -> CommandEnd {
    let Some(status) = status else { return CommandEnd::Exited(-1) };
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return CommandEnd::Signalled(signal);
    }
    CommandEnd::Exited(status.code().unwrap_or(-1))
}

/// One end of a pipe.
struct Source<R> {
    pipe: Option<R>,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Source<R> {
    fn new(pipe: Option<R>) -> Self {
        Self { pipe, buffer: vec![0; BUFFER] }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// The next bytes; none at the end.
    async fn read(&mut self) -> &[u8] {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        match pipe.read(&mut self.buffer).await {
            Ok(read) if read > 0 => &self.buffer[..read],
            _ => {
                self.pipe = None;
                &[]
            }
        }
    }
}

/// What a command has written so far.
struct Collected {
    stdout: Vec<u8>,
    tail: VecDeque<u8>,
    error_bytes: u64,
    limit: usize,
    tail_limit: usize,
}

impl Collected {
    fn new(spec: &CommandSpec) -> Self {
        Self {
            stdout: Vec::new(),
            tail: VecDeque::new(),
            error_bytes: 0,
            limit: spec.limits.output,
            tail_limit: spec.limits.error_tail,
        }
    }

    /// Takes bytes in, as far as the limit goes; the end that it means when it is reached.
    fn take(
        &mut self,
        stream: Stream,
        bytes: &[u8],
        on_output: &mut impl FnMut(OutputPiece<'_>),
    ) -> Option<CommandEnd> {
        let limit = self.limit;
        let is_over = match stream {
            Stream::Output => {
                let kept = &bytes[..bytes.len().min(limit - self.stdout.len())];
                if !kept.is_empty() {
                    self.stdout.extend_from_slice(kept);
                    on_output(OutputPiece { stream, bytes: kept });
                }
                kept.len() < bytes.len()
            }
            Stream::Messages => {
                self.error_bytes += bytes.len() as u64;
                self.tail.extend(bytes);
                let surplus = self.tail.len().saturating_sub(self.tail_limit);
                self.tail.drain(..surplus);
                let is_over = self.error_bytes > limit as u64;
                if !bytes.is_empty() && !is_over {
                    on_output(OutputPiece { stream, bytes });
                }
                is_over
            }
        };
        is_over.then_some(CommandEnd::TooMuchOutput { stream, limit })
    }
}
