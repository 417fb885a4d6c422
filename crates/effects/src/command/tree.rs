//! Everything that a command has started, and ending it.
//!
//! A command is the first process of a session of its own. On Linux what it started is also found
//! when it left that session: as a child of a child, and by the variable that every process inherits.

use std::time::Duration;

/// How long a process that was asked to end may take.
const GRACE: Duration = Duration::from_millis(400);
/// How long killing is repeated, for what starts new processes meanwhile.
const PERSIST: Duration = Duration::from_millis(400);
const PAUSE: Duration = Duration::from_millis(10);

/// How something is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// It is asked, and killed after a while.
    AskFirst,
    /// It is killed.
    AtOnce,
}

/// What was found and ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ended {
    /// How many processes were there.
    pub(super) found: usize,
    /// Those that are still there.
    pub(super) unended: Vec<u32>,
}

/// The processes of one command. Killed when it is dropped before it was ended.
#[derive(Debug)]
pub(super) struct Tree {
    members: Option<Members>,
}

impl Tree {
    pub(super) fn new(first: Option<u32>, id: &str) -> Self {
        Self { members: Some(Members::new(first, id)) }
    }

    pub(super) async fn end(&mut self, manner: Manner) -> Ended {
        let Some(members) = self.members.clone() else { return Ended::default() };
        // If this future is dropped, the task goes on, and `drop` kills at once.
        let ending = tokio::task::spawn_blocking(move || members.end(manner));
        let ended = ending.await.unwrap_or_default();
        self.members = None;
        ended
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some(members) = self.members.take() {
            members.end(Manner::AtOnce);
        }
    }
}

/// Ends what a command with this id left running when the program was killed, and says how many
/// processes it were. Only on Linux they can be found. Blocks for up to a second.
pub fn end_leftovers(id: &str) -> usize {
    Members::new(None, id).end(Manner::AskFirst).found
}

#[cfg(target_os = "linux")]
use linux::Members;
#[cfg(not(target_os = "linux"))]
use other::Members;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::fs;
    use std::process;
    use std::thread;
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::super::MARKER;
    use super::{Ended, GRACE, Manner, PAUSE, PERSIST};

    #[derive(Debug, Clone)]
    pub(super) struct Members {
        first: Option<Process>,
        marker: Vec<u8>,
    }

    /// A process; a number alone may come to mean another one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Process {
        number: u32,
        /// When it began, in the system's ticks.
        begun: u64,
    }

    struct Found {
        process: Process,
        parent: u32,
        session: u32,
        is_running: bool,
    }

    impl Members {
        pub(super) fn new(first: Option<u32>, id: &str) -> Self {
            let first = first.and_then(look).map(|found| found.process);
            Self { first, marker: format!("{MARKER}={id}").into_bytes() }
        }

        /// Those that are running now.
        fn running(&self) -> BTreeSet<Process> {
            let Ok(entries) = fs::read_dir("/proc") else { return BTreeSet::new() };
            let numbers = entries
                .flatten()
                .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
                .filter(|number| *number != process::id());
            let all: Vec<Found> = numbers.filter_map(look).collect();
            let mut members: BTreeSet<u32> = BTreeSet::new();
            for found in &all {
                let is_first = Some(found.process) == self.first;
                let in_session = self.first.is_some_and(|first| {
                    found.session == first.number && found.process.begun >= first.begun
                });
                if is_first || in_session || self.is_marked(found.process.number) {
                    members.insert(found.process.number);
                }
            }
            // Children of members, and theirs.
            loop {
                let before = members.len();
                let children = all.iter().filter(|found| members.contains(&found.parent));
                let children: Vec<u32> = children.map(|found| found.process.number).collect();
                members.extend(children);
                if members.len() == before {
                    break;
                }
            }
            all.iter()
                .filter(|found| found.is_running && members.contains(&found.process.number))
                .map(|found| found.process)
                .collect()
        }

        fn is_marked(&self, number: u32) -> bool {
            let Ok(environment) = fs::read(format!("/proc/{number}/environ")) else { return false };
            environment.split(|byte| *byte == 0).any(|variable| variable == self.marker)
        }

        pub(super) fn end(&self, manner: Manner) -> Ended {
            let mut seen = BTreeSet::new();
            if manner == Manner::AskFirst {
                let until = Instant::now() + GRACE;
                let mut asked = BTreeSet::new();
                loop {
                    let running = self.running();
                    if running.is_empty() || Instant::now() >= until {
                        break;
                    }
                    for process in running.difference(&asked) {
                        send(*process, Signal::TERM);
                    }
                    asked.extend(running);
                    thread::sleep(PAUSE);
                }
                seen.extend(asked);
            }
            let until = Instant::now() + PERSIST;
            loop {
                let running = self.running();
                for process in &running {
                    send(*process, Signal::KILL);
                }
                seen.extend(&running);
                if running.is_empty() || Instant::now() >= until {
                    let unended = running.iter().map(|process| process.number).collect();
                    return Ended { found: seen.len(), unended };
                }
                thread::sleep(Duration::from_millis(2));
            }
        }
    }

    /// Sends a signal to exactly this process: the handle is taken first, then it is looked at again.
    fn send(process: Process, signal: Signal) {
        let Some(pid) = i32::try_from(process.number).ok().and_then(Pid::from_raw) else { return };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => {
                if look(process.number).is_some_and(|found| found.process == process) {
                    // Gone already, or not ours to end: seen in what is left.
                    let _ = pidfd_send_signal(handle, signal);
                }
            }
            Err(rustix::io::Errno::NOSYS) => {
                let _ = rustix::process::kill_process(pid, signal);
            }
            Err(_) => {}
        }
    }

    /// What `/proc/N/stat` says (see proc_pid_stat(5)); the name before the last `)` may hold anything.
    fn look(number: u32) -> Option<Found> {
        let stat = fs::read(format!("/proc/{number}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        Some(Found {
            process: Process { number, begun: fields.get(19)?.parse().ok()? },
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            is_running: !matches!(*fields.first()?, "Z" | "X" | "x"),
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::thread;
    use std::time::Instant;

    use super::{Ended, GRACE, Manner, PAUSE, PERSIST};

    #[derive(Debug, Clone)]
    pub(super) struct Members {
        #[cfg(unix)]
        group: Option<rustix::process::Pid>,
    }

    impl Members {
        #[cfg(unix)]
        pub(super) fn new(first: Option<u32>, _id: &str) -> Self {
            let first = first.and_then(|first| i32::try_from(first).ok());
            Self { group: first.and_then(rustix::process::Pid::from_raw) }
        }

        #[cfg(not(unix))]
        pub(super) fn new(_first: Option<u32>, _id: &str) -> Self {
            Self {}
        }

        /// A Windows job was ended as a whole already.
        #[cfg(not(unix))]
        pub(super) fn end(&self, _manner: Manner) -> Ended {
            let _ = (GRACE, PAUSE, PERSIST, Instant::now, thread::sleep);
            Ended::default()
        }

        #[cfg(unix)]
        pub(super) fn end(&self, manner: Manner) -> Ended {
            use rustix::process::{Signal, kill_process_group, test_kill_process_group};
            let Some(group) = self.group else { return Ended::default() };
            let is_left = || test_kill_process_group(group).is_ok();
            let found = usize::from(is_left());
            let mut wait = |signal, time| {
                let until = Instant::now() + time;
                while is_left() && Instant::now() < until {
                    let _ = kill_process_group(group, signal);
                    thread::sleep(PAUSE);
                }
            };
            if manner == Manner::AskFirst {
                wait(Signal::TERM, GRACE);
            }
            wait(Signal::KILL, PERSIST);
            Ended { found, unended: Vec::new() }
        }
    }
}
