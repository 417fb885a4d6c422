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

    /// Notes every length of the last answer's text.
    const WATCH_ANSWERS: &str = "
        window.grown = [];
        new MutationObserver(() => {
            const answers = document.querySelectorAll('[data-testid=turn][data-role=ROUTER]');
            const length = answers[answers.length - 1]?.textContent.length;
            if (answers.length > 1 && window.grown.at(-1) !== length) window.grown.push(length);
        }).observe(document.body, { subtree: true, childList: true, characterData: true });
    ";

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

        // Steer while the run goes on.
        window.click("mode-steer").await;
        window.picture(&pictures().join("steer.png")).await;
        window.write("composer-input", "Write everything in capital letters.").await;
        window.click("send").await;
        window.css("[data-testid=turn][data-role=USER][data-mode=STEERING]", MODEL).await;
        window.css("[data-testid=note]", MODEL).await;
        window.css("[data-testid=turn][data-role=ROUTER][data-status=complete]", MODEL).await;

        // Ask, too. The answer streams: its text grows before it is complete.
        window.click("mode-ask").await;
        let question = "Describe in five long sentences what a workflow is good for.";
        window.write("composer-input", question).await;
        window.page.execute(WATCH_ANSWERS, Vec::new()).await.unwrap();
        window.click("send").await;
        let begun = Instant::now();
        let complete = "[data-testid=turn][data-role=ROUTER][data-status=complete]";
        while window.count(complete).await < 2 {
            assert!(begun.elapsed() < MODEL, "no answer");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let grown = window.page.execute("return window.grown", Vec::new()).await.unwrap();
        let grown = grown.as_array().unwrap();
        assert!(grown.len() > 4, "the answer came in one piece: {grown:?}");

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

    #[tokio::test]
    async fn a_person_saves_a_copy_of_an_example_and_goes_on_with_it() {
        let terminal = Terminal::default();
        let window = Window::open(terminal.data()).await;
        let folder = terminal.data().join("of my own");
        window.click("new-session").await;
        window.click("new-workflow").await;
        window.write("new-workflow-folder", &folder.display().to_string()).await;
        window.picture(&pictures().join("new-workflow.png")).await;
        window.click("create-workflow").await;
        let said = window.find("workflow-saved").await.text().await.unwrap();
        let file = folder.join("meeting-notes/workflow.toml");
        assert!(said.contains(&file.display().to_string()), "{said}");
        let text = std::fs::read_to_string(&file).unwrap();
        window.find("input-path").await;
        window.picture(&pictures().join("saved-workflow.png")).await;

        // A second copy would lie in the same place: it is refused, and the first is as it was.
        window.click("new-workflow").await;
        window
            .css("[data-testid=new-workflow-dialog] [value=brief]", MODEL)
            .await
            .click()
            .await
            .unwrap();
        let name = window.find("new-workflow-name").await;
        name.clear().await.unwrap();
        name.send_keys("meeting-notes").await.unwrap();
        window.write("new-workflow-folder", &folder.display().to_string()).await;
        window.click("create-workflow").await;
        let alert = window.css("[data-testid=new-workflow-dialog] [role=alert]", MODEL).await;
        let said = alert.text().await.unwrap();
        assert!(said.contains("is there already"), "{said}");
        window.picture(&pictures().join("new-workflow-refused.png")).await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        window.close().await;
    }
}
