//! What outputs must satisfy.

use correx_inference::FinishReason;
use correx_inference::FinishReason::{Length, Stop};
use correx_orchestration::validate::examine;
use correx_orchestration::validate::facts::{lost_numbers, unknown_names, unknown_numbers};
use correx_orchestration::validate::wording::longest_copy;
use correx_orchestration::{Examined, OutputCheck, OutputRefusal, Step, Workflow};
use proptest::prelude::*;

fn examined(
    text: &str,
    finish: FinishReason,
    shown: &[&str],
    checks: &[OutputCheck],
) -> Result<(), OutputRefusal> {
    let count = |text: &str| text.chars().count();
    examine(&Examined { text, finish, max_tokens: 9, count: &count, shown }, checks)
}

fn refused(text: &str, checks: &[OutputCheck]) -> Option<(&'static str, String)> {
    let refusal = examined(text, Stop, &[], checks).err()?;
    Some((refusal.validator, refusal.message))
}

/// The checks of a workflow file, or what is wrong with them.
fn parsed(checks: &str) -> Result<Vec<OutputCheck>, String> {
    let text = format!(
        "name = \"x\"\n[[stage]]\nid = \"s\"\nkind = \"generate\"\nprompt = \"go\"\n[stage.check]\n{checks}"
    );
    let workflow = Workflow::parse(&text).map_err(|errors| errors.to_string())?;
    match &workflow.stages[0].step {
        Step::Generate(step) => Ok(step.checks.clone()),
        step => Err(format!("{step:?}")),
    }
}

/// What the checks of a workflow file say of a text.
fn said(checks: &str, text: &str) -> Option<String> {
    refused(text, &parsed(checks).unwrap()).map(|(_, message)| message)
}

#[test]
fn word_limits_include_their_bounds() {
    let checks = [OutputCheck::MinWords(2), OutputCheck::MaxWords(3)];
    assert_eq!(refused("one", &checks).unwrap().0, "min_words");
    assert_eq!(refused("one two", &checks), None);
    assert_eq!(refused("one two three", &checks), None);
    assert_eq!(refused("one two three four", &checks).unwrap().0, "max_words");
}

#[test]
fn patterns_are_required_and_forbidden() {
    let checks = [
        OutputCheck::must_match("(?m)^- ").unwrap(),
        OutputCheck::must_not_match("(?i)as an ai").unwrap(),
    ];
    assert_eq!(refused("- buy milk", &checks), None);
    assert_eq!(refused("buy milk", &checks).unwrap().0, "must_match");
    assert_eq!(refused("- As an AI I can't", &checks).unwrap().0, "must_not_match");
}

#[test]
fn a_refusal_says_everything_that_is_wrong_and_quotes_nothing() {
    let checks = [OutputCheck::MinWords(5), OutputCheck::must_match("Friday").unwrap()];
    let (validator, message) = refused("confidential words", &checks).unwrap();
    assert_eq!(validator, "min_words");
    assert!(message.contains("at least 5 words"), "{message}");
    assert!(message.contains("Friday"), "{message}");
    assert!(!message.contains("confidential"), "{message}");
}

#[test]
fn a_cut_off_reply_is_refused_even_without_checks() {
    assert_eq!(examined("half an", Length, &[], &[]).unwrap_err().validator, "max_tokens");
    assert!(examined("whole", Stop, &[], &[]).is_ok());
}

#[test]
fn of_a_cut_off_reply_only_what_holds_for_a_part_is_said() {
    let checks =
        parsed("min_words = 50\nformat = \"json\"\nmust_not_contain = \"secret\"").unwrap();
    let refusal = examined("{\"a\": secret", Length, &[], &checks).unwrap_err();
    assert_eq!(
        refusal.message,
        "Write a shorter answer; the last one was cut off at 9 tokens. Do not write \"secret\"; the last answer had it."
    );
}

#[test]
fn at_most_three_things_are_asked_at_once_the_most_important_first() {
    let checks = parsed(
        "max_copied_words = 1\nmust_not_match = \"a\"\nmust_contain = [\"x1\", \"x2\"]\nmin_words = 9\nformat = \"json\"",
    )
    .unwrap();
    let refusal = examined("a b c", Stop, &["a b c"], &checks).unwrap_err();
    assert_eq!(refusal.validator, "format");
    assert_eq!(
        refusal.message,
        "Write one valid JSON value and nothing else; the last answer had a mistake in line 1, column 1. \
         Write at least 9 words; the last answer had 3 words. \
         Write \"x1\" in the answer; the last answer did not have it."
    );
    let long = format!("must_contain = \"{}\"", "y".repeat(5000));
    assert!(said(&long, "a").unwrap().len() < 300);
}

#[test]
fn tokens_sentences_and_lines_are_counted() {
    assert_eq!(
        said("max_tokens = 3", "abcd").unwrap(),
        "Write at most 3 tokens; the last answer had 4 tokens."
    );
    assert!(said("min_tokens = 4", "abcd").is_none());
    let text = "# Title\n\nMr. Lee came. He left.\n\n- one\n- two";
    assert!(said("min_sentences = 4\nmax_sentences = 4", text).is_none());
    assert_eq!(
        said("max_sentences = 1", "One. Two.").unwrap(),
        "Write at most 1 sentence; the last answer had 2 sentences."
    );
    assert!(said("min_lines = 4\nmax_lines = 4", text).is_none());
    assert!(said("min_lines = 3", "a\n\nb").is_some());
}

#[test]
fn phrases_are_compared_as_people_read_them() {
    for text in ["a STRASSE b", "Die Straße", "stra\u{AD}sse", "ﬅrasse".replace('ﬅ', "ST").as_str()]
    {
        assert!(said("must_contain = \"Strasse\"", text).is_none(), "{text}");
    }
    assert!(said("must_contain = \"it's 5 - 6\"", "He says:\nIt’s\u{A0}5 –\n6").is_none());
    assert!(said("must_contain = \"Καλημέρα ΚΌΣΜΟΣ\"", "καλημέρα κόσμος").is_none());
    assert!(said("must_not_contain = [\"as an AI\"]", "As  an\nai I").is_some());
    assert!(said("must_contain = [\"a\", \"b\"]", "a").unwrap().contains("\"b\""));
}

#[test]
fn runs_of_words_from_what_was_shown_are_counted() {
    let source = "The old bridge, built in 1890, will stay closed until the repairs are finished.";
    let checks = parsed("max_copied_words = 5").unwrap();
    let of = |text: &str| examined(text, Stop, &["other", source], &checks);
    assert!(of("Until the repairs are done, the old bridge is closed.").is_ok());
    let refusal = of("They say: \"will STAY closed - until the\nrepairs\" end.").unwrap_err();
    assert_eq!(
        refusal.message,
        "Use your own words and copy at most 5 words in a row; the last answer copied 6 in a row."
    );
    // Of two texts that stand beside each other nothing is put together.
    assert_eq!(longest_copy("a b c d", &["a b", "c d"]), 2);
}

proptest! {
    #[test]
    fn the_longest_copy_is_what_looking_at_every_run_finds(
        answer in prop::collection::vec(0..4_u8, 0..25), source in prop::collection::vec(0..5_u8, 0..40),
    ) {
        let text = |words: &[u8]| words.iter().map(u8::to_string).collect::<Vec<_>>().join(" ");
        let longest = (0..=answer.len())
            .rev()
            .find(|length| {
                *length == 0 || answer.windows(*length).any(|run| source.windows(*length).any(|at| at == run))
            })
            .unwrap_or(0);
        prop_assert_eq!(longest_copy(&text(&answer), &[&text(&source)]), longest as u64);
    }

    #[test]
    fn no_text_makes_a_check_panic(text in "[\\PC\n|`#{}\",\\[\\]:-]{0,60}") {
        let all = "format = \"markdown\"\nlanguage = \"de\"\nmax_copied_words = 3\nmax_sentences = 2\nmust_contain = \"a\"";
        for more in [all, "format = \"csv\"", "format = \"json\"", "[stage.check.schema]\ntype = \"object\""] {
            let checks = parsed(more).unwrap();
            let _ = examined(&text, Stop, &[&text], &checks);
        }
    }
}

#[test]
fn numbers_that_were_not_shown_are_counted_and_those_that_were_lost_are_named() {
    let shown = "On 12.06.2026 at 14:30 we ordered 1,500 parts for 4\u{a0}000.50 euros (3.5 %).";
    for same in [
        "1. 1500 parts on 12 June 2026",
        "1.500 parts, 4,000.5 euros",
        "2) 4'000.50 and 3,5 percent\n3. 1,500.00",
        "The price was 4.000,50.",
        "\u{ff11}\u{ff12} June",
    ] {
        assert_eq!(unknown_numbers(same, &[shown]), 0, "{same}");
    }
    assert_eq!(unknown_numbers("15 parts, 4000 euros, in 2025", &[shown]), 3);
    assert_eq!(unknown_numbers("12000 and 12 000", &["It cost 12 000 in all."]), 0);
    let answer = "1500 parts on 12 June 2026 at 14:30";
    assert_eq!(lost_numbers(answer, &[shown]), ["06", "4'000.50", "3.5"]);
    assert_eq!(lost_numbers("6. 12.06.2026, 14:30, 1500, 4000.5, 3.5", &[shown]), [""; 0]);
    let parsed = parsed("known_numbers = true\nkept_numbers = true\nknown_names = false").unwrap();
    assert_eq!(parsed.len(), 2);
    let told = |text| examined(text, Stop, &["7 of 9"], &parsed).map_err(|refusal| refusal.message);
    assert_eq!(told("9 and 7"), Ok(()));
    assert_eq!(
        told("7 and 8"),
        Err("Write these numbers too: 9. The last answer left them out. Write only numbers that \
             stand in the text above; the last answer had 1 number from elsewhere."
            .to_owned())
    );
    let cut_off = examined("7", Length, &["7 of 9"], &parsed).unwrap_err();
    assert!(!cut_off.message.contains("too: 9"), "{cut_off:?}");
}

#[test]
fn names_that_were_not_shown_are_counted() {
    let shown = "Ana Keller met Bo\u{2019}s team in Turku on Monday; NASA was there.";
    for known in [
        "Yesterday Ana's team met. Then Keller went to Turku.",
        "# Notes from the Great Meeting\n- Everyone met Ana\n\u{201c}Nobody left,\u{201d} said Bo.",
        "The people of nasa and NASA: Good friends of Bo and I.",
        "IT IS LATE, SAYS PETER, OK",
    ] {
        assert_eq!(unknown_names(known, &[shown]), 0, "{known}");
    }
    assert_eq!(unknown_names("Then Ana met Peter Smith. Later Ana saw Peter.", &[shown]), 2);
    let checks = parsed("known_names = true").unwrap();
    let refusal = examined("So Ana met Peter.", Stop, &[shown], &checks).unwrap_err();
    assert_eq!(refusal.validator, "known_names");
    assert!(!refusal.message.contains("Peter"), "{}", refusal.message);
}

proptest! {
    #[test]
    fn numbers_are_told_as_sets_tell_them(
        shown in proptest::collection::vec(0..40_u32, 0..12),
        answer in proptest::collection::vec(0..40_u32, 0..12),
    ) {
        let text = |numbers: &[u32]| {
            numbers.iter().map(|number| format!("so {number} of it, ")).collect::<String>()
        };
        let (shown_text, answer_text) = (text(&shown), text(&answer));
        let unknown = answer.iter().filter(|number| !shown.contains(number)).count() as u64;
        prop_assert_eq!(unknown_numbers(&answer_text, &[&shown_text]), unknown);
        let mut lost: Vec<String> = Vec::new();
        for number in shown.iter().filter(|number| !answer.contains(number)) {
            if !lost.contains(&number.to_string()) {
                lost.push(number.to_string());
            }
        }
        prop_assert_eq!(lost_numbers(&answer_text, &[&shown_text]), lost);
    }

    #[test]
    fn what_was_shown_is_never_refused(text in "[\\PC\n0-9A-Z.,' -]{0,80}") {
        prop_assert_eq!(unknown_numbers(&text, &[&text]), 0);
        prop_assert_eq!(lost_numbers(&text, &[&text]), Vec::<String>::new());
        prop_assert_eq!(unknown_names(&text, &[&text]), 0);
    }
}

#[test]
fn json_is_valid_json_and_nothing_else() {
    assert!(said("format = \"json\"", "{\"a\": [1, null]}").is_none());
    assert!(said("format = \"json\"", "{\"a\": [1").unwrap().contains("ended too early"));
    assert!(said("format = \"json\"", "```json\n{}\n```").unwrap().contains("without ```"));
    assert!(said("format = \"json\"", "{\"confidential\": x}").unwrap().contains("column 18"));
}

#[test]
fn csv_has_the_same_fields_in_every_row() {
    assert!(said("format = \"csv\"", "a,b\n\"1,5\",2\n").is_none());
    assert!(said("format = \"csv\"", "a,b\n1,5,2").unwrap().contains("2 fields in every row"));
    let columns = "format = \"csv\"\ncolumns = [\"name\", \"sum\"]";
    assert!(said(columns, "name, sum\nA,1").is_none());
    assert!(said(columns, "Name;Sum\nA;1").unwrap().contains("first row is name,sum"));
}

#[test]
fn markdown_has_whole_tables_and_ends_its_code() {
    let of = |text: &str| said("format = \"markdown\"", text);
    assert!(
        of("# A\n\n| a | b |\n|---|:-:|\n| 1 | `x|y` \\| z |\n\n```\n| x\n```\na | b").is_none()
    );
    assert!(of("```rust\nlet x = 1;\n").unwrap().contains("Close every code block"));
    assert!(of("| a | b |\n| 1 | 2 |").unwrap().contains("under the head"));
    assert!(of("a | b\n--- | ---\n1 | 2\n3").is_none());
    assert!(of("Text\n\n| a | b |\n| - | - |\n| 1 |").unwrap().contains("line 5"));
}

#[test]
fn json_is_held_against_a_schema_and_mistakes_are_said_in_its_words() {
    let schema = r#"
        [stage.check.schema]
        type = "object"
        required = ["items"]
        additionalProperties = false
        [stage.check.schema.properties.items]
        type = "array"
        minItems = 1
        [stage.check.schema.properties.items.items]
        type = "object"
        required = ["name", "due"]
        [stage.check.schema.properties.items.items.properties]
        name = { type = "string", minLength = 1 }
        urgency = { enum = ["low", "high"] }
    "#;
    assert!(said(schema, r#"{"items": [{"name": "a", "due": 1, "urgency": "low"}]}"#).is_none());
    let message =
        said(schema, r#"{"items": [{"name": "", "urgency": "secret"}, {"name": 5}]}"#).unwrap();
    for part in [
        "\"due\" is missing in \"items[]\"",
        "\"items[].name\" must not be empty",
        "\"items[].urgency\" must be one of [\"low\",\"high\"]",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let message = said(schema, r#"{"secret": 1}"#).unwrap();
    assert!(message.contains("\"items\" is missing") && !message.contains("secret"), "{message}");
    assert!(said(schema, "no").unwrap().contains("valid JSON"));
    assert!(said("schema = '{\"type\": \"integer\"}'", "5").is_none());
}

#[test]
fn a_schema_that_cannot_be_used_or_reaches_outside_is_a_mistake_of_the_file() {
    for (schema, part) in [
        ("schema = '{\"type\": \"strin\"}'", "JSON Schema"),
        ("schema = '{\"type\"'", "JSON Schema"),
        ("schema = '{\"$ref\": \"https://example.org/x\"}'", "JSON Schema"),
        ("schema = '{\"$ref\": \"file:///etc/passwd\"}'", "JSON Schema"),
        ("schema = 5", "as a table"),
    ] {
        let error = parsed(schema).unwrap_err();
        assert!(error.contains(part), "{schema}: {error}");
    }
}

#[test]
fn mistakes_in_checks_are_named() {
    for (checks, part) in [
        ("language = \"gr\"", "unknown language \"gr\""),
        ("format = \"yaml\"", "unknown format \"yaml\""),
        ("columns = [\"a\"]", "beside format = \"csv\""),
        ("min_lines = 5\nmax_lines = 4", "min_lines is 5 and max_lines is 4"),
        ("must_contain = \" \"", "something in them"),
        ("max_copied_word = 5", "did you mean \"max_copied_words\"?"),
    ] {
        let error = parsed(checks).unwrap_err();
        assert!(error.contains(part), "{checks}: {error}");
    }
}
