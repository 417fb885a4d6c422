//! The workflows that Correx brings, each run to its end by the default model.

#![allow(clippy::unwrap_used, clippy::panic)] // A test ends at the first surprise.

mod real_model {
    use std::collections::BTreeMap;

    use correx_tests::place;
    use correx_tests::terminal::Terminal;
    use serde_json::Value;

    /// The artifacts of an example's run on its own inputs, by name.
    fn run(example: &str, inputs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let terminal = Terminal::default();
        let file = |path: &str| place::example(&format!("{example}/{path}")).display().to_string();
        let mut arguments = vec!["run".to_owned(), file("workflow.toml"), "--yes".to_owned()];
        for (name, path) in inputs {
            arguments.extend(["--input".to_owned(), format!("{name}={}", file(path))]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        terminal.ok(&arguments);
        let artifacts = terminal.json(&["artifacts", "last", "--json"]);
        let text = |artifact: &Value, key: &str| artifact[key].as_str().unwrap().to_owned();
        artifacts.iter().map(|one| (text(one, "name"), text(one, "text"))).collect()
    }

    /// How many of these are in the text.
    fn found(text: &str, wanted: &[&str]) -> usize {
        wanted.iter().filter(|wanted| text.contains(**wanted)).count()
    }

    #[test]
    fn meeting_notes_become_a_summary_actions_and_an_email() {
        let made = run("meeting-notes", &[("notes", "notes.txt")]);
        assert!(made["summary"].contains("Ines Duarte"), "{made:?}");
        assert!(made["actions"].split_whitespace().count() >= 8, "{made:?}");
        assert!(made["email"].contains("Dear"), "{made:?}");
    }

    #[test]
    fn a_report_becomes_points_a_brief_and_a_title() {
        let made = run("brief", &[("report", "report.txt")]);
        let facts = ["7,300", "2017", "310,000", "Mill Street", "Canal Road", "60 percent"];
        assert!(found(&made["outline"], &facts) >= 3, "{made:?}");
        let words = made["brief"].split_whitespace().count();
        assert!((20..=320).contains(&words), "{made:?}");
        assert!(made["title"].split_whitespace().count() <= 40, "{made:?}");
    }

    #[test]
    fn a_table_becomes_three_findings_whose_values_are_in_it() {
        let made = run("csv-findings", &[("table", "visitors.csv")]);
        let table = std::fs::read_to_string(place::example("csv-findings/visitors.csv")).unwrap();
        let findings: Value = serde_json::from_str(&made["findings"]).unwrap();
        let findings = findings["findings"].as_array().unwrap();
        assert_eq!(findings.len(), 3);
        for finding in findings {
            let value = finding["value"].to_string();
            assert!(table.split([',', '\n']).any(|cell| cell == value), "{finding}");
            assert!(finding["finding"].as_str().unwrap().len() > 10);
        }
        assert!(["rising", "falling", "mixed"].contains(&&*made["trend"]));
        assert!(made["report"].split_whitespace().count() >= 10);
    }

    #[test]
    fn a_complaint_is_known_for_one_and_answered_with_an_apology() {
        let made = run("email-triage", &[("mail", "mail.txt")]);
        assert_eq!(made["kind"], "complaint");
        let facts: Value = serde_json::from_str(&made["facts"]).unwrap();
        assert_eq!(facts["sender"], "Clara Jensen");
        assert!(facts["request"].as_str().unwrap().contains("lamp"), "{facts}");
        let answer = made["apology"].to_lowercase();
        assert!(answer.contains("sorry") || answer.contains("apolog"), "{answer}");
        assert!(made.get("answer").is_none_or(|text| text.is_empty()), "{made:?}");
    }

    #[test]
    fn a_diff_is_described_by_its_file_and_functions() {
        let made = run("code-review", &[("diff", "change.diff")]);
        let changes: Value = serde_json::from_str(&made["changes"]).unwrap();
        assert!(changes["file"].as_str().unwrap().starts_with("shop/price"), "{changes}");
        assert!(
            changes["functions"].to_string().contains("total")
                || changes["functions"].to_string().contains("with_tax"),
            "{changes}"
        );
        assert!(["low", "medium", "high"].contains(&&*made["risk"]));
        let names = ["total", "discount", "amount", "price", "with_tax", "round"];
        assert!(found(&made["comments"], &names) >= 1, "{made:?}");
    }

    #[test]
    fn a_translation_is_spanish_and_keeps_every_number() {
        let made = run("translation", &[("text", "text.txt"), ("glossary", "glossary.csv")]);
        let text = &made["translation"];
        assert_eq!(found(text, &["18", "5", "46"]), 3, "{text}");
        assert!(text.to_lowercase().contains("biblioteca"), "{text}");
    }

    #[test]
    fn an_index_of_notes_has_the_names_and_numbers_of_each() {
        let made = run("notes-index", &[("notes", "notes")]);
        let facts = ["2026", "Olga Petrova", "14 January", "1,900", "Ines Duarte", "10:30"];
        assert!(found(&made["index"], &facts) >= 4, "{made:?}");
        assert!(!made["about"].is_empty());
        assert!(made["title"].split_whitespace().count() <= 15, "{made:?}");
    }
}
