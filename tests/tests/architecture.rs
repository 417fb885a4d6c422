//! What ARCHITECTURE.md says of the tests is true.

#![allow(clippy::unwrap_used)] // A test ends at the first surprise.

use std::collections::BTreeSet;
use std::path::Path;

use correx_tests::place;

/// The names of all test functions below `folder`.
fn tests_below(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            for (number, line) in lines.iter().enumerate() {
                let Some(rest) = line.trim_start_matches("async ").strip_prefix("fn ") else {
                    continue;
                };
                let attributes = &lines[number.saturating_sub(4)..number];
                if attributes
                    .iter()
                    .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
                {
                    found.extend(rest.split('(').next().map(str::to_owned));
                }
            }
        }
    }
}

#[test]
fn every_test_that_the_rules_name_exists() {
    let mut tests = BTreeSet::new();
    for folder in ["crates", "tests"] {
        tests_below(&place::root().join(folder), &mut tests);
    }
    let document = std::fs::read_to_string(place::root().join("ARCHITECTURE.md")).unwrap();
    let rules: Vec<&str> = document
        .lines()
        .skip_while(|line| !line.starts_with("## Rules and the tests"))
        .filter(|line| {
            line.starts_with("| ") && !line.starts_with("| rule") && !line.contains("---")
        })
        .collect();
    assert!(rules.len() > 40, "the tables were not found");
    for rule in rules {
        let column = rule.trim_end_matches([' ', '|']).rsplit('|').next().unwrap();
        let names: Vec<&str> = column.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test: {rule}");
        for name in names {
            assert!(tests.contains(name), "there is no test {name}: {rule}");
        }
    }
}
