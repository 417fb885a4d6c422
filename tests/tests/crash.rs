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
        let running = terminal.start(&["run", workflow, "--input", notes, "--json"]);
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
