//! The real window with the real model, as a person uses it.

#![allow(clippy::unwrap_used, clippy::panic)] // A test ends at the first surprise.
#![cfg(target_os = "linux")]

mod desktop {
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    use correx_tests::place;
    use correx_tests::terminal::{Terminal, kinds};
    use correx_tests::window::Window;

    /// How long the model may work at one thing.
    const MODEL: Duration = Duration::from_secs(150);

    /// Where pictures go: into the build folder, or (to renew those of the documentation) where
    /// `CORREX_SCREENSHOTS` says.
    fn pictures() -> PathBuf {
        std::env::var_os("CORREX_SCREENSHOTS")
            .map_or_else(|| place::root().join("target/screenshots"), PathBuf::from)
    }

    #[tokio::test]
    async fn a_person_runs_an_example_asks_steers_and_sees_the_note_act() {
        let terminal = Terminal::default();
        let window = Window::open(terminal.data()).await;
        window.css("[data-testid=model-state][data-state=ready]", MODEL).await;

        // An example, on the text that comes with it.
        window.click("new-session").await;
        window.css("[data-testid=example][data-name=meeting-notes]", MODEL).await;
        window
            .page
            .find(fantoccini::Locator::Css("[data-name=meeting-notes]"))
            .await
            .unwrap()
            .click()
            .await
            .unwrap();
        window.click("create-session").await;
        window.css("[data-testid=stage][data-status=running]", MODEL).await;

        // Steer while the first stage is running.
        window.click("mode-steer").await;
        window.picture(&pictures().join("steer.png")).await;
        window.write("composer-input", "Write everything in capital letters.").await;
        window.click("send").await;
        window.css("[data-testid=turn][data-role=USER][data-mode=STEERING]", MODEL).await;
        window.css("[data-testid=note]", MODEL).await;

        // The answer streams: its text grows before it is complete.
        let begun = Instant::now();
        let mut lengths = Vec::new();
        while window.count("[data-testid=turn][data-role=ROUTER][data-status=complete]").await == 0
        {
            let text = window.text("[data-testid=turn][data-role=ROUTER]").await;
            lengths.push(text.len());
            assert!(begun.elapsed() < MODEL, "no answer; lengths seen: {lengths:?}");
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        lengths.dedup();
        assert!(lengths.len() > 3, "the answer came in one piece: {lengths:?}");

        // Ask about it, too.
        window.click("mode-ask").await;
        window.write("composer-input", "Which stage is running?").await;
        window.click("send").await;

        // The note acts, and the window says where.
        let begun = Instant::now();
        while !window.text("[data-testid=note-fate]").await.to_lowercase().contains("applied") {
            assert!(begun.elapsed() < MODEL, "the note was not seen to act");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        window.picture(&pictures().join("run.png")).await;

        // The log is readable beside the open window, and has it all in order.
        let sessions = terminal.json(&["sessions", "--json"]);
        let session = sessions[0]["session_id"].as_str().unwrap();
        let begun = Instant::now();
        loop {
            let events = terminal.events(session);
            let kinds = kinds(&events);
            if kinds.contains(&"workflow_completed") {
                let place = |kind| kinds.iter().position(|found| *found == kind);
                assert!(place("session_created") < place("workflow_started"));
                assert!(place("workflow_started") < place("steering_note_added"));
                assert!(place("steering_note_added") < place("steering_note_applied"));
                let numbers: Vec<u64> =
                    events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
                assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
                break;
            }
            assert!(begun.elapsed() < MODEL, "the run did not end: {kinds:?}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        window.css("[data-testid=run-status]", MODEL).await;
        window.picture(&pictures().join("done.png")).await;
        window.close().await;
    }
}
