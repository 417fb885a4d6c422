//! What a policy file says: commands, argument patterns, mistakes.

#![allow(clippy::unwrap_used)] // A test ends at the first surprise.

use std::path::PathBuf;

use correx_effects::{
    Approval, ArgumentPattern, CommandRequest, Decision, NamePattern, POLICY_TEMPLATE, Policy,
    SessionFolders, Verdict,
};
use proptest::prelude::*;

fn request(program: &str, args: &[&str]) -> CommandRequest {
    CommandRequest {
        program: program.into(),
        args: args.iter().map(|text| (*text).to_owned()).collect(),
        ..CommandRequest::default()
    }
}

fn output() -> PathBuf {
    std::env::temp_dir().join("correx-effects-no-such-folder")
}

/// The decision about a command; whatever it is, an approval must not lift a denial.
#[track_caller]
fn decide(policy: &Policy, request: &CommandRequest) -> Decision {
    let decided = policy.decide_command(request, &SessionFolders::new(output()));
    let decision = decided.decision.clone();
    let approved = decided.permitted(Approval::Given);
    assert_eq!(approved.is_ok(), decision.verdict != Verdict::Denied, "{decision}");
    decision
}

#[track_caller]
fn mistakes(text: &str) -> Vec<(usize, usize, String)> {
    let errors = Policy::parse(text).unwrap_err().errors;
    errors.into_iter().map(|error| (error.line, error.column, error.problem.to_string())).collect()
}

#[test]
fn the_template_means_the_default_and_its_examples_can_be_used() {
    let template = Policy::parse(POLICY_TEMPLATE).unwrap();
    let folders = SessionFolders::new(output());
    for path in ["a.md", "/etc/passwd", "../a"] {
        let verdict =
            |policy: &Policy| policy.decide_write(path.as_ref(), &folders).decision.verdict;
        assert_eq!(verdict(&template), verdict(&Policy::default()), "{path}");
    }
    // Every line that is commented out and is TOML.
    let opened: Vec<&str> = POLICY_TEMPLATE
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(line) if line.starts_with('[') || line.contains(" = ") => line,
            _ => line,
        })
        .collect();
    assert!(opened.contains(&"[[command]]"));
    Policy::parse(&opened.join("\n")).unwrap();
}

#[test]
fn every_example_of_the_documentation_can_be_used() {
    let document = include_str!("../../../docs/policy.md");
    let examples: Vec<&str> =
        document.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() == 2);
    for example in examples {
        let text = if example.contains("version = 1") {
            example.to_owned()
        } else {
            format!("version = 1\n{example}")
        };
        assert!(Policy::parse(&text).is_ok(), "{example}\n{:?}", Policy::parse(&text));
    }
}

#[test]
fn every_mistake_is_reported_at_once_with_its_place() {
    let text = "[[command]]\nprogram = \"bin/sh\"\narguments = [\"-c\"]\n\
                [[command]]\nprogramm = \"x\"\narguments = []\nenvironment = [\"LD_PRELOAD\", \"PATH=x\", \"A B\"]\n\
                [write]\nfolders = [\"reports\"]\nexisting = \"allow\"\n\
                [deny]\nfiles = [\"a/b\", 3]\nfolder = []\n";
    let found = mistakes(text);
    let expected = [
        (1, 1, "a policy needs \"version\""),
        (2, 11, "neither a bare name nor an absolute path"),
        (3, 13, "in double brackets"),
        (4, 1, "a [[command]] needs \"program\""),
        (5, 1, "did you mean \"program\"?"),
        (6, 13, "no command line is allowed by an empty list"),
        (7, 16, "decides which code is run"),
        (7, 30, "PATH is always set"),
        (7, 40, "is no variable"),
        (9, 12, "must be absolute or begin with ~/"),
        (10, 12, "must be \"ask\" or \"deny\""),
        (12, 10, "has no / in it"),
        (12, 17, "must be a list of texts, not a whole number"),
        (13, 1, "did you mean \"folders\"?"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for ((line, column, text), (at_line, at_column, words)) in found.iter().zip(expected) {
        assert!(text.contains(words), "{line}:{column}: {text} / {words}");
        assert_eq!((*line, *column), (at_line, at_column), "{text}");
    }
    assert_eq!(
        mistakes("version = 2\n"),
        [(
            1,
            11,
            "version 2 of the policy file is not known; this version reads version 1".to_owned()
        )]
    );
    assert!(mistakes("version = 1\n[deny\n")[0].2.contains("not valid TOML"));
    let problem =
        mistakes("version = 1\n[[command]]\nprogram = \"x\"\narguments = [[\"...\", \"a\"]]\n");
    assert_eq!((problem[0].0, problem[0].1), (4, 15));
    assert!(problem[0].2.contains("can only be the last one"), "{problem:?}");
    // A file with a mistake in one rule allows nothing at all.
    let broken = Policy::broken(Policy::parse("version = 1\n[writ]\n").unwrap_err());
    assert_eq!(decide(&broken, &request("sh", &[])).verdict, Verdict::Denied);
}

#[cfg(unix)]
mod commands {
    use super::*;

    const TEXT: &str = r#"
version = 1
[[command]]
program = "cat"
arguments = [["*.md"], ["-n", "*.md"]]
[[command]]
program = "/bin/sh"
arguments = [["-c", "..."]]
approval = true
[[command]]
program = "sh"
arguments = [["-c", "true"]]
[[command]]
program = "head"
arguments = [["..."]]
[[command]]
program = "tail"
arguments = [["..."]]
[approval]
programs = ["tail"]
[deny]
programs = ["head", "dd"]
"#;

    fn policy() -> Policy {
        Policy::parse(TEXT).unwrap()
    }

    #[test]
    fn no_command_is_allowed_by_default() {
        let decision = decide(&Policy::default(), &request("cat", &["a.md"]));
        assert_eq!(decision.verdict, Verdict::Denied);
        assert_eq!(decision.rule, "the default policy");
        assert!(decision.reason.contains("add a [[command]]"), "{decision}");
    }

    #[test]
    fn a_decision_names_its_rule_and_what_was_wanted() {
        let decision = decide(&policy(), &request("cat", &["my notes.md"]));
        assert_eq!(decision.verdict, Verdict::Allowed);
        assert_eq!(decision.rule, "policy.toml: [[command]] 1 (cat)");
        let wanted = format!("run cat \"my notes.md\" in {}", output().display());
        assert_eq!(decision.action, wanted);
    }

    #[test]
    fn only_the_arguments_that_are_named_are_allowed() {
        for args in [
            &[][..],
            &["a.txt"],
            &["a.md", "b.md"],
            &["-n"],
            &["-n", "-A.md"],
            &["--show-all.md"],
            &["../a.md"],
            &["x/a.md"],
            &["a.md\n"],
            &["A.MD"],
            &[" -n", "a.md"],
        ] {
            let decision = decide(&policy(), &request("cat", args));
            assert_eq!(decision.verdict, Verdict::Denied, "{args:?}");
            assert!(decision.reason.contains("[\"-n\", \"*.md\"]"), "{decision}");
        }
    }

    #[test]
    fn of_several_entries_the_strictest_holds_and_names_mean_files() {
        let decision = decide(&policy(), &request("sh", &["-c", "true"]));
        assert_eq!(decision.verdict, Verdict::NeedsApproval, "{decision}");
        assert_eq!(decision.rule, "policy.toml: [[command]] 2 (/bin/sh): approval = true");
        // The same file by another path.
        let decision = decide(&policy(), &request("/usr/bin/../bin/cat", &["a.md"]));
        assert_eq!(decision.verdict, Verdict::Allowed, "{decision}");
        let decision = decide(&policy(), &request("tail", &[]));
        assert_eq!(decision.verdict, Verdict::NeedsApproval);
        assert_eq!(decision.rule, "policy.toml: [approval] programs \"tail\"");
    }

    #[test]
    fn a_denied_program_is_denied_by_every_name_also_after_an_approval() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        let link = root.join("harmless");
        std::os::unix::fs::symlink("/usr/bin/head", &link).unwrap();
        let link = link.to_str().unwrap();
        let text = format!("{TEXT}[[command]]\nprogram = {link:?}\narguments = [[\"...\"]]\n");
        let text = text.replace("[[command]]\nprogram = \"tail\"", "[[command]]\nprogram = \"dd\"\narguments = [[\"...\"]]\n[[command]]\nprogram = \"tail\"");
        let policy = Policy::parse(&text).unwrap();
        for program in ["head", "/usr/bin/head", "/bin/head", link, "dd"] {
            let decision = decide(&policy, &request(program, &["-n1"]));
            assert_eq!(decision.verdict, Verdict::Denied, "{program}");
            assert!(decision.rule.contains("[deny] programs"), "{program}: {decision}");
        }
    }

    #[test]
    fn names_that_are_no_programs_are_refused() {
        for program in ["", " ", "bin/cat", "./cat", "../cat", "cat\0", "cat; rm", "~/cat", "."] {
            let decision = decide(&policy(), &request(program, &["a.md"]));
            assert_eq!(decision.verdict, Verdict::Denied, "{program:?}");
        }
        let decision = decide(&policy(), &request("cat", &["a\0.md"]));
        assert_eq!(decision.verdict, Verdict::Denied, "{decision}");
    }

    #[test]
    fn a_program_that_a_workflow_could_replace_is_not_run() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        std::fs::create_dir(root.join("bin")).unwrap();
        let tool = root.join("bin/tool");
        std::fs::copy("/bin/cat", &tool).unwrap();
        let rule = format!("version = 1\n[[command]]\nprogram = {tool:?}\narguments = [[]]\n");
        let request = request(tool.to_str().unwrap(), &[]);
        assert_eq!(decide(&Policy::parse(&rule).unwrap(), &request).verdict, Verdict::Allowed);
        let write = format!("{rule}[write]\nfolders = [{root:?}]\n");
        let decision = decide(&Policy::parse(&write).unwrap(), &request);
        assert_eq!(decision.verdict, Verdict::Denied);
        assert!(decision.reason.contains("could replace it"), "{decision}");
    }

    #[test]
    fn a_command_works_in_the_output_folder_or_where_its_entry_says() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        for name in ["out", "work/secret", "outside"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("outside"), root.join("out/link")).unwrap();
        let text = format!(
            "version = 1\n[[command]]\nprogram = \"cat\"\narguments = [[]]\nfolders = [{:?}]\n\
             [deny]\nfolders = [{:?}]\n",
            root.join("work"),
            root.join("work/secret")
        );
        let policy = Policy::parse(&text).unwrap();
        let folders = SessionFolders::new(root.join("out"));
        for (cwd, verdict) in [
            (root.join("work"), Verdict::Allowed),
            (root.join("out"), Verdict::Allowed),
            (PathBuf::from("not-yet"), Verdict::Allowed),
            (PathBuf::from("link"), Verdict::Denied),
            (PathBuf::from("../outside"), Verdict::Denied),
            (root.join("work/secret"), Verdict::Denied),
            (root.join("work/missing"), Verdict::Denied),
        ] {
            let request = CommandRequest { cwd: Some(cwd.clone()), ..request("cat", &[]) };
            let decision = policy.decide_command(&request, &folders).decision;
            assert_eq!(decision.verdict, verdict, "{cwd:?}: {decision}");
        }
    }
}

fn matches(pattern: &[&str], arguments: &[&str]) -> bool {
    ArgumentPattern::parse(pattern).unwrap().matches(arguments)
}

#[test]
fn a_pattern_stands_for_whole_arguments_in_their_order() {
    assert!(matches(&[], &[]) && !matches(&[], &["a"]));
    assert!(matches(&["a", "b"], &["a", "b"]) && !matches(&["a", "b"], &["b", "a"]));
    assert!(matches(&["a", "..."], &["a"]) && matches(&["a", "..."], &["a", "-b", "../c"]));
    assert!(!matches(&["a", "..."], &["b"]) && !matches(&["a", "..."], &[]));
    assert!(matches(&["*.md"], &["ä b.md"]) && !matches(&["*.md"], &[".md"]));
    assert!(matches(&["--out=*"], &["--out=a.md"]) && !matches(&["--out=*"], &["--out="]));
    assert!(!matches(&["--out=*"], &["--out=a/b"]) && matches(&["--out=**"], &["--out=a/b"]));
    assert!(!matches(&["--out=**"], &["--out=../b"]) && !matches(&["--out=**"], &["--out=a/../b"]));
    assert!(!matches(&["*"], &["-rf"]) && !matches(&["**"], &["--"]) && matches(&["-*"], &["-rf"]));
    assert!(matches(&["\\*", "\\...", "\\\\"], &["*", "...", "\\"]));
    assert!(!matches(&["\\*"], &["a"]));
    for (pattern, words) in [
        (&["...", "a"][..], "only be the last"),
        (&["a..."], "must stand alone"),
        (&["a\\n"], "means nothing"),
        (&["***"], "means nothing"),
        (&["a\\"], "means nothing"),
    ] {
        let (_, problem) = ArgumentPattern::parse(pattern).unwrap_err();
        assert!(problem.to_string().contains(words), "{pattern:?}: {problem}");
    }
}

#[test]
fn names_match_without_regard_to_case() {
    let key = NamePattern::parse("*.key").unwrap();
    assert!(key.matches("a.KEY") && key.matches(".key") && key.matches("-x.key"));
    assert!(!key.matches("a.key.txt"));
    assert!(NamePattern::parse("Secret*").unwrap().matches("secret"));
}

proptest! {
    #[test]
    fn a_text_without_wildcards_matches_itself_and_nothing_else(
        text in "[a-z./ =-]{0,6}",
        other in "[a-z./ =-]{0,6}",
    ) {
        prop_assume!(!text.contains("..."));
        let pattern = ArgumentPattern::parse(&[&text]).unwrap();
        prop_assert!(pattern.matches(&[&text]));
        prop_assert_eq!(pattern.matches(&[&other]), text == other);
    }

    #[test]
    fn a_wildcard_makes_no_option_no_way_up_and_no_other_number_of_arguments(
        pattern in "[a-c*]{0,3}[a-c.*]{0,4}",
        arguments in prop::collection::vec("[a-c./*-]{0,6}", 0..4),
    ) {
        prop_assume!(pattern != "...");
        let Ok(parsed) = ArgumentPattern::parse(&[&pattern]) else { return Ok(()) };
        if parsed.matches(&arguments) {
            prop_assert_eq!(arguments.len(), 1);
            let argument = &arguments[0];
            if pattern.contains('*') {
                prop_assert!(!argument.starts_with('-'), "{} {}", pattern, argument);
                prop_assert!(!argument.split('/').any(|name| name == ".."), "{} {}", pattern, argument);
                prop_assert!(!argument.contains('/') || pattern.contains("**"));
            } else {
                prop_assert_eq!(argument, &pattern);
            }
        }
    }

    #[test]
    fn a_star_stands_for_what_a_regular_expression_says(
        pattern in "[ab*]{1,6}",
        argument in "[ab]{0,8}",
    ) {
        prop_assume!(!pattern.contains("***"));
        // Another way to the same answer: every cut of the argument is tried.
        fn fits(pattern: &str, text: &str) -> bool {
            if let Some(rest) = pattern.strip_prefix("**").or_else(|| pattern.strip_prefix('*')) {
                (1..=text.len()).any(|cut| fits(rest, &text[cut..]))
            } else if let Some(first) = pattern.chars().next() {
                text.starts_with(first) && fits(&pattern[1..], &text[1..])
            } else {
                text.is_empty()
            }
        }
        let parsed = ArgumentPattern::parse(&[&pattern]).unwrap();
        prop_assert_eq!(parsed.matches(&[&argument]), fits(&pattern, &argument));
    }
}
