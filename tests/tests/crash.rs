//! A process that ends without warning loses nothing that was acknowledged.

#![allow(clippy::unwrap_used, clippy::panic)] // A test ends at the first surprise.

mod real_model {
    use correx_tests::place;
    use correx_tests::terminal::{Terminal, kinds};

    #[test]
    fn a_killed_run_is_shown_as_interrupted_and_goes_on_where_it_was() {
        let terminal = Terminal::default();
        let workflow = place::example("meeting-notes/workflow.toml");
        let notes = place::example("meeting-notes/notes.txt");
        let (workflow, notes) = (workflow.to_str().unwrap(), notes.to_str().unwrap());

        // Killed in the middle of its second stage, as seen from another process.
        let mut running = terminal.start(&["run", workflow, "--input", notes, "--json"]);
        // Only then others look: one that came first would own the data directory and end with it.
        running.next_line().unwrap();
        let (session, before) = loop {
            let sessions = terminal.run(&["sessions", "--json"]);
            let text = String::from_utf8(sessions.stdout).unwrap();
            let session = text
                .lines()
                .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
                .find_map(|line| line["session_id"].as_str().map(ToOwned::to_owned));
            if let Some(session) = session {
                let events = terminal.events(&session);
                let second = events.iter().any(|event| {
                    event["payload"]["type"] == "stage_started"
                        && event["payload"]["stage_id"] == "actions"
                });
                if second {
                    break (session, events);
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
        };
        running.kill();

        // Nothing that had been read is lost, and the run is interrupted.
        let after = terminal.events(&session);
        assert_eq!(after[..before.len()], before[..]);
        let last = after.last().unwrap();
        assert_eq!(last["payload"]["type"], "orchestration_paused");
        assert_eq!(last["payload"]["reason"], "interrupted");
        let listed = terminal.json(&["sessions", "--json"]);
        assert_eq!(listed[0]["status"], "PAUSED");
        assert_eq!(listed[0]["waiting_for"], "interrupted");

        // It goes on from its last completed stage.
        terminal.ok(&["resume", &session]);
        let events = terminal.events(&session);
        assert_eq!(events[..after.len()], after[..]);
        assert_eq!(kinds(&events).last(), Some(&"workflow_completed"));
        let done: Vec<&str> = events
            .iter()
            .filter(|event| event["payload"]["type"] == "stage_completed")
            .filter_map(|event| event["payload"]["stage_id"].as_str())
            .collect();
        assert_eq!(done, ["summary", "actions", "email"]);
        let numbers: Vec<u64> =
            events.iter().filter_map(|event| event["sequence"].as_u64()).collect();
        assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn a_session_whose_model_was_missing_is_started_when_the_model_is_there() {
        let terminal = Terminal::default();
        let run = terminal.run(&["run", "meeting-notes", "--model", "no-such.gguf"]);
        assert_eq!(run.status.code(), Some(1));
        assert!(!kinds(&terminal.events("last")).contains(&"workflow_started"));
        terminal.ok(&["resume", "last"]);
        assert_eq!(kinds(&terminal.events("last")).last(), Some(&"workflow_completed"));
    }
}

mod long {
    mod real_model {
        use std::collections::BTreeMap;
        use std::fs;
        use std::hash::{BuildHasher, RandomState};
        use std::process::Stdio;
        use std::time::{Duration, Instant};

        use correx_tests::terminal::{Terminal, kinds, lines};
        use serde_json::Value;

        const KILLS: usize = 200;

        /// Commands that leave a mark each time they run, files, and a model between them.
        const WORKFLOW: &str = r#"
name = "Crash"
[[input]]
name = "notes"
type = "text"
[[stage]]
id = "one"
kind = "command"
program = "sh"
args = ["-c", "sleep 0.1; echo one >> ledger; sleep 0.1; cat"]
stdin = "inputs.notes"
[[stage]]
id = "copy"
kind = "write"
from = "artifacts.one"
path = "copy.txt"
[[stage]]
id = "answer"
kind = "choose"
options = ["good", "bad"]
prompt = "{{ inputs.notes }} Is that good or bad?"
[[stage]]
id = "two"
kind = "command"
program = "sh"
args = ["-c", "echo two >> ledger; sleep 0.1"]
[[stage]]
id = "kept"
kind = "write"
from = "artifacts.answer"
path = "answer.txt"
"#;
        const POLICY: &str =
            "version = 1\n[[command]]\nprogram = \"sh\"\narguments = [[\"-c\", \"...\"]]\n";
        const NOTES: &str = "Ana ships on Friday.";

        /// Uniform numbers from a seed (SplitMix64, Steele et al. 2014).
        struct Random(u64);

        impl Random {
            fn below(&mut self, limit: u64) -> u64 {
                self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = self.0;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                (z ^ (z >> 31)) % limit
            }
        }

        struct Trial {
            terminal: Terminal,
            random: Random,
            /// How long an undisturbed run takes.
            whole: Duration,
            kills: usize,
            /// Where runs stood when they were killed: the kind of the last event.
            moments: BTreeMap<String, usize>,
            ends: BTreeMap<&'static str, usize>,
        }

        impl Trial {
            /// Starts the program and kills it at a random moment, unless it ends before.
            fn disturb(&mut self, arguments: &[&str]) {
                let mut child = self
                    .terminal
                    .command(arguments)
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                // Some come to their end, so that later stages are reached.
                let limit = u64::try_from(self.whole.as_micros()).unwrap() * 3 / 2 + 1;
                std::thread::sleep(Duration::from_micros(self.random.below(limit)));
                if child.try_wait().unwrap().is_none() {
                    child.kill().unwrap();
                    self.kills += 1;
                }
                child.wait().unwrap();
            }

            fn sessions(&self) -> Vec<String> {
                let listed = lines(&self.terminal.ok(&["sessions", "--json"]));
                listed
                    .iter()
                    .filter_map(|line| line["session_id"].as_str().map(ToOwned::to_owned))
                    .collect()
            }

            fn output(&self, session: &str, name: &str) -> Option<String> {
                let folder = self.terminal.data().join("output").join(session);
                fs::read_to_string(folder.join(name)).ok()
            }

            fn times_run(&self, session: &str, mark: &str) -> usize {
                let ledger = self.output(session, "ledger").unwrap_or_default();
                ledger.lines().filter(|line| *line == mark).count()
            }

            /// Drives a session to its end, killing on the way while kills are wanted.
            fn session(&mut self, session: &str) {
                let mut seen: Vec<Value> = Vec::new();
                for _round in 0..500 {
                    let events = self.terminal.events(session);
                    assert!(events.len() >= seen.len(), "events are lost: {:?}", kinds(&events));
                    assert_eq!(events[..seen.len()], seen[..], "what was told has changed");
                    for (at, event) in events.iter().enumerate() {
                        assert_eq!(event["sequence"], at + 1);
                    }
                    for mark in ["one", "two"] {
                        assert!(self.times_run(session, mark) <= 1, "{mark} ran twice");
                    }
                    let last = events.last().map(|event| event["payload"].clone()).unwrap();
                    seen = events;
                    let kind = last["type"].as_str().unwrap();
                    let stood = seen.iter().rfind(|event| !is_about_the_run(event)).unwrap();
                    let stood = stood["payload"]["type"].as_str().unwrap().to_owned();
                    *self.moments.entry(stood).or_default() += 1;
                    let open = open_question(&seen);
                    let arguments: Vec<&str> = match (kind, open) {
                        ("workflow_completed" | "workflow_failed", _) => {
                            return self.ended(session, &seen);
                        }
                        (_, Some(question)) => {
                            assert_eq!(question["cause"], "half_done", "{question}");
                            let stage = question["stage_id"].as_str().unwrap();
                            // Looking at what was to be done, as the person is told to.
                            match self.times_run(session, stage) {
                                0 => vec!["approve", session],
                                _ => vec!["approve", session, "--deny", "it was done"],
                            }
                        }
                        _ => vec!["resume", session],
                    };
                    match self.kills < KILLS {
                        true => self.disturb(&arguments),
                        false => {
                            self.terminal.run(&arguments);
                        }
                    }
                }
                panic!("the run never ended: {:?}", kinds(&seen));
            }

            fn ended(&mut self, session: &str, events: &[Value]) {
                let last = &events.last().unwrap()["payload"];
                if last["type"] == "workflow_failed" {
                    assert_eq!(last["reason"], "approval_denied", "{last}");
                    assert!(last["message"].as_str().unwrap().contains("it was done"), "{last}");
                    *self.ends.entry("ended by the person's no").or_default() += 1;
                    return;
                }
                *self.ends.entry("completed").or_default() += 1;
                for mark in ["one", "two"] {
                    assert_eq!(self.times_run(session, mark), 1, "{mark}");
                }
                let answer = self.output(session, "answer.txt").unwrap();
                assert!(["good", "bad"].contains(&answer.as_str()), "{answer}");
                assert_eq!(self.output(session, "copy.txt").unwrap(), NOTES);
                let done: Vec<&str> = events
                    .iter()
                    .filter(|event| event["payload"]["type"] == "stage_completed")
                    .filter_map(|event| event["payload"]["stage_id"].as_str())
                    .collect();
                assert_eq!(done, ["one", "copy", "answer", "two", "kept"], "each stage once");
                let written = events.iter().filter(|event| {
                    event["payload"]["type"] == "effect_done"
                        && event["payload"]["outcome"]["kind"] == "succeeded"
                });
                assert_eq!(written.count(), 4, "each effect once");
            }
        }

        fn is_about_the_run(event: &Value) -> bool {
            let kind = event["payload"]["type"].as_str().unwrap_or_default();
            ["orchestration_paused", "orchestration_resumed"].contains(&kind)
        }

        /// What a person is being asked.
        fn open_question(events: &[Value]) -> Option<Value> {
            let at = events.iter().rposition(|event| {
                let kind = &event["payload"]["type"];
                kind == "approval_requested" || kind == "approval_granted"
            })?;
            let answered = events[at..].iter().any(|event| {
                let kind = &event["payload"]["type"];
                kind == "approval_granted" || kind == "approval_denied" || kind == "stage_started"
            });
            (!answered).then(|| events[at]["payload"].clone())
        }

        #[test]
        fn of_two_hundred_kills_none_loses_an_event_or_repeats_an_effect() {
            let terminal = Terminal::default();
            fs::write(terminal.data().join("policy.toml"), POLICY).unwrap();
            let workflow = terminal.data().join("crash.toml");
            fs::write(&workflow, WORKFLOW).unwrap();
            let seed = RandomState::new().hash_one("seed");
            let given = format!("notes={NOTES}");
            let file = workflow.to_str().unwrap().to_owned();
            let run = ["run", file.as_str(), "--text", given.as_str()];
            // The shortest of a few: a busy machine would stretch every wait that follows.
            let undisturbed = |_| {
                let begun = Instant::now();
                terminal.ok(&run);
                begun.elapsed()
            };
            let whole = (0..3).map(undisturbed).min().unwrap();
            let mut trial = Trial {
                terminal,
                random: Random(seed),
                whole,
                kills: 0,
                moments: BTreeMap::new(),
                ends: BTreeMap::new(),
            };
            let mut known = trial.sessions();
            while trial.kills < KILLS {
                trial.disturb(&run);
                for session in trial.sessions() {
                    if !known.contains(&session) {
                        trial.session(&session);
                        known.push(session);
                    }
                }
            }
            let Trial { kills, moments, ends, whole, .. } = &trial;
            println!("{kills} kills, seed {seed}, a whole run takes {whole:?}");
            println!("where they stood: {moments:?}");
            println!("{} sessions: {ends:?}", known.len());
            assert!(ends.contains_key("completed"), "{ends:?}");
            assert!(moments.len() >= 5, "the kills came at few moments: {moments:?}");
        }
    }
}
