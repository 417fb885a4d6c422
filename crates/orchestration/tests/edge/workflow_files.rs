//! Workflow files: what is read, and how mistakes are shown.

use correx_events::{ArtifactName, StageKind};
use correx_orchestration::{Step, Workflow, WorkflowProblem};
use proptest::prelude::*;

use crate::support::{ASKING, THREE};

/// `line:column: message` of every mistake.
fn mistakes(text: &str) -> Vec<String> {
    match Workflow::parse(text) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.errors.iter().map(ToString::to_string).collect(),
    }
}

fn only(text: &str) -> String {
    let mut mistakes = mistakes(text);
    assert_eq!(mistakes.len(), 1, "{mistakes:#?}");
    mistakes.remove(0)
}

/// A workflow with one generate stage whose body is `body`; the body begins in line 5.
fn stage(body: &str) -> String {
    format!("name = \"W\"\n[[stage]]\nid = \"one\"\nkind = \"generate\"\n{body}\n")
}

#[test]
fn a_good_file_is_read_with_its_defaults() {
    let workflow = Workflow::parse(THREE).unwrap();
    assert_eq!(workflow.source(), THREE);
    assert_eq!(workflow.inputs[0].name, "notes");
    assert_eq!(workflow.stages[0].title, "Summary");
    let Step::Generate(step) = &workflow.stages[0].step else { panic!("a generate stage") };
    assert_eq!((step.retries, step.media_type.as_str()), (2, "text/markdown"));
    assert_eq!(step.output, ArtifactName::new("summary"));
    let kinds: Vec<StageKind> =
        Workflow::parse(ASKING).unwrap().plan().into_iter().map(|plan| plan.kind).collect();
    assert_eq!(kinds, [StageKind::Generate, StageKind::Approve, StageKind::Generate]);
}

#[test]
fn an_id_with_a_dash_gives_an_output_that_templates_can_name() {
    let text = "name=\"W\"\n[[stage]]\nid=\"to-do\"\nkind=\"generate\"\nprompt=\"x\"\n\
                [[stage]]\nid=\"b\"\nkind=\"generate\"\nprompt=\"{{ artifacts.to_do }}\"";
    assert_eq!(mistakes(text), [""; 0]);
}

#[test]
fn a_misspelt_key_is_shown_where_it_is_with_the_nearest_known_one() {
    let text = stage("promt = \"x\"\nprompt = \"y\"");
    assert_eq!(
        only(&text),
        "5:1: unknown key \"promt\" in a generate stage; did you mean \"prompt\"?"
    );
    let errors = Workflow::parse(&text).unwrap_err().in_file("flow.toml");
    assert!(errors.to_string().starts_with("flow.toml:5:1: unknown key"), "{errors}");
    assert_eq!(errors.errors[0].excerpt, "promt");
}

#[test]
fn every_mistake_is_reported_at_once_in_the_order_of_the_text() {
    let text = r#"
nam = "W"
[generation]
temperature = -1
[[input]]
name = "notes"
type = "fiel"
[[stage]]
id = "one"
kind = "generate"
max_tokens = 0
prompt = "{{ inputs.nots }}"
[stage.check]
min_words = 9
max_words = 3
must_match = "("
[[stage]]
id = "one"
kind = "generate"
prompt = 7
"#;
    let lines: Vec<String> = mistakes(text)
        .iter()
        .map(|mistake| mistake.split(':').next().unwrap().to_owned())
        .collect();
    // `name` is missing (the top), and `nam` is unknown.
    let expected = ["1", "2", "4", "7", "11", "12", "14", "16", "18", "18", "20"];
    assert_eq!(lines, expected, "{:#?}", mistakes(text));
}

#[test]
fn every_syntax_error_is_reported_and_what_only_follows_from_it_is_not() {
    let text =
        "name = \"W\"\nprompt = = 3\n[[stage]]\nid = \"one\"\nkind \"generate\"\nprmpt = 1\n";
    let errors = Workflow::parse(text).unwrap_err().errors;
    let syntax = |problem: &WorkflowProblem| matches!(problem, WorkflowProblem::Syntax(_));
    let lines: Vec<usize> =
        errors.iter().filter(|error| syntax(&error.problem)).map(|error| error.line).collect();
    assert!(lines.contains(&2) && lines.contains(&5), "{errors:#?}");
    assert!(errors.iter().any(|error| error.line == 6), "{errors:#?}");
    let missing = |problem: &WorkflowProblem| matches!(problem, WorkflowProblem::Missing { .. });
    assert!(!errors.iter().any(|error| missing(&error.problem)), "{errors:#?}");
}

#[test]
fn columns_count_characters() {
    let text = stage("prompt = \"ü{{ inputs.x }}\"");
    assert!(only(&text).starts_with("5:15: unknown variable \"inputs.x\""), "{}", only(&text));
}

#[test]
fn an_unknown_variable_is_shown_inside_a_long_prompt() {
    let text = stage("prompt = \"\"\"\nLine one\nLine {{ inputs.two }}\n\"\"\"");
    let mistake = only(&text);
    assert!(mistake.starts_with("7:9: unknown variable \"inputs.two\""), "{mistake}");
}

#[test]
fn artifacts_can_only_be_used_by_the_stages_after_them() {
    let pair = |first: &str, second: &str| {
        format!(
            "name=\"W\"\n[[stage]]\nid=\"one\"\nkind=\"generate\"\nprompt=\"{first}\"\n[[stage]]\nid=\"two\"\n{second}"
        )
    };
    let generate = "kind=\"generate\"\nprompt=\"x\"";
    let approve = "kind=\"approve\"\nprompt=\"ok?\"";
    let mistake = only(&pair("{{ artifacts.two }}", generate));
    assert!(mistake.contains("a later stage produces it"), "{mistake}");
    let mistake = only(&pair("{{ artifacts.one }}", generate));
    assert!(mistake.contains("this stage itself produces it"), "{mistake}");
    let mistake = only(&pair("{{ artifacts.two }}", approve));
    assert!(mistake.contains("an approve stage produces nothing"), "{mistake}");
    let mistake = only(&pair("x", "kind=\"generate\"\nprompt=\"{{ artifacts.on }}\""));
    assert!(mistake.contains("did you mean \"artifacts.one\"?"), "{mistake}");
    let mistake = only(&pair("x", "kind=\"approve\"\nprompt=\"ok?\"\nshow=\"three\""));
    assert!(mistake.contains("no earlier stage produces \"three\""), "{mistake}");
}

#[test]
fn names_outside_inputs_and_artifacts_are_unknown() {
    for text in ["{{ notes }}", "{{ inputs }}", "{{ inputs['notes'] }}", "{{ env.HOME }}"] {
        let mistake = only(&stage(&format!("prompt = '''{text}'''")));
        assert!(mistake.contains("unknown variable"), "{mistake}");
    }
    let own = stage("prompt = \"{% for i in range(3) %}{{ i }}{{ loop.index }}{% endfor %}\"");
    assert_eq!(mistakes(&own), [""; 0]);
}

#[test]
fn a_broken_template_is_shown_at_its_place() {
    let mistake = only(&stage("prompt = \"\"\"\nHello\n{{ inputs. }}\n\"\"\""));
    assert!(mistake.starts_with("7:"), "{mistake}");
    assert!(mistake.contains("the template cannot be used"), "{mistake}");
}

#[test]
fn duplicates_name_the_line_of_the_first() {
    let text = "name=\"W\"\n[[stage]]\nid=\"one\"\nkind=\"generate\"\nprompt=\"x\"\n\
                [[stage]]\nid=\"two\"\nkind=\"generate\"\noutput=\"one\"\nprompt=\"x\"";
    let mistake = only(text);
    assert_eq!(mistake, "9:8: the output name \"one\" is already used in line 3");
}

#[test]
fn an_unknown_kind_is_refused_with_the_nearest_known() {
    for (kind, nearest) in [("genrate", "generate"), ("comand", "command"), ("writes", "write")] {
        let mistake = only(&stage("prompt = \"x\"").replace("generate", kind));
        assert!(mistake.contains(&format!("did you mean \"{nearest}\"?")), "{mistake}");
    }
}

/// A workflow with one stage of a kind that touches the world outside.
fn outside(kind: &str, keys: &str) -> String {
    format!(
        "name=\"W\"\n[[input]]\nname=\"notes\"\ntype=\"text\"\n\
         [[stage]]\nid=\"one\"\nkind=\"{kind}\"\n{keys}"
    )
}

#[test]
fn stages_that_touch_the_world_outside_are_read() {
    for (kind, keys) in [
        ("command", "program=\"wc\""),
        (
            "command",
            "program=\"wc\"\nargs=[\"-l\", \"{{ inputs.notes }}\"]\nstdin=\"inputs.notes\"\ncwd=\"~/x\"\n\
             env={LANG=\"C\"}\noutput=\"count\"\nmedia_type=\"text/csv\"\nmax_output_bytes=100\n\
             exit_codes=[0, 1]\ntimeout_seconds=5",
        ),
        ("write", "from=\"inputs.notes\"\npath=\"a.md\""),
        ("write", "from=\"inputs.notes\"\npath=\"{{ inputs.notes }}.md\"\nexisting=\"fail\""),
        ("read", "paths=[\"a.md\", \"{{ inputs.notes }}\"]\noutput=\"text\""),
    ] {
        let parsed = Workflow::parse(&outside(kind, keys));
        assert!(parsed.is_ok(), "{kind} {keys}: {parsed:?}");
    }
}

#[test]
fn what_such_a_stage_cannot_have_is_refused() {
    for (kind, keys, part) in [
        ("command", "", "a command stage needs \"program\""),
        ("command", "program=\"{{ inputs.notes }}\"", "\"program\""),
        ("command", "program=\"wc\"\nstdin=\"inputs.note\"", "notes"),
        ("command", "program=\"wc\"\nexit_codes=[]", "\"exit_codes\" must be a list of numbers"),
        ("command", "program=\"wc\"\nexit_codes=[256]", "\"exit_codes\" must be a list of numbers"),
        ("command", "program=\"wc\"\nmax_output_bytes=0", "\"max_output_bytes\" must be between"),
        ("command", "program=\"wc\"\nenv=[\"A=b\"]", "\"env\""),
        ("command", "program=\"wc\"\nprompt=\"x\"", "prompt"),
        ("write", "path=\"a\"", "a write stage needs \"from\""),
        ("write", "from=\"inputs.notes\"", "a write stage needs \"path\""),
        ("write", "from=\"inputs.notes\"\npath=\"a\"\nexisting=\"aks\"", "did you mean \"ask\"?"),
        ("write", "from=\"inputs.notes\"\npath=\"a\"\noutput=\"b\"", "output"),
        ("read", "", "a read stage needs \"paths\""),
        ("read", "paths=[]", "a list with at least one file or folder"),
        ("read", "paths=[\"{{ inputs.x }}\"]", "inputs.x"),
    ] {
        let found = mistakes(&outside(kind, keys));
        assert!(found.iter().any(|mistake| mistake.contains(part)), "{kind} {keys}: {found:#?}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for (text, part) in [
        (String::new(), "a workflow needs \"name\""),
        ("name=\"W\"".to_owned(), "the workflow has no stages"),
        ("name=\"W\"\nversion=2".to_owned(), "version 2 of the workflow file is not known"),
        ("name=\"W\"\nstage=3".to_owned(), "must be a list of tables"),
        (stage(""), "a generate stage needs \"prompt\""),
        (stage("prompt = \"x\"\nmax_tokens = 0"), "\"max_tokens\" must be between 1"),
        (stage("prompt = \"x\"\ntemperature = nan"), "\"temperature\" must be between 0"),
        (stage("prompt = \"x\"\ntop_p = \"1\""), "\"top_p\" must be a number, not a text"),
        (stage("prompt = \"x\"\nseed = -1"), "\"seed\" must be a whole number from 0"),
        (stage("prompt = \"x\"\nsystem = \"{{ inputs.a }}\""), "\"system\" is shown as it is"),
        (stage("prompt = \" \""), "\"prompt\" must be a text with something in it"),
        (stage("prompt = \"x\"").replace("\"one\"", "\"1 one\""), "cannot be the id of a stage"),
        (stage("prompt = \"x\"\n[stage.check]\nmust_match = [1]"), "a list of texts, not a whole"),
        (stage("prompt = \"x\"\n[stage.check]\nmust_match = '['"), "not a regular expression"),
    ] {
        let found = mistakes(&text);
        assert!(found.iter().any(|mistake| mistake.contains(part)), "{part}: {found:#?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_makes_the_parser_panic(
        cut in 0..1000_usize,
        length in 0..40_usize,
        put in "[\\[\\]={}%\"'a-z0-9.\n\u{e9}\u{0}#-]{0,12}",
    ) {
        let mut letters: Vec<char> = [THREE, ASKING].concat().chars().collect();
        let start = cut.min(letters.len());
        let end = (start + length).min(letters.len());
        letters.splice(start..end, put.chars());
        let text: String = letters.into_iter().collect();
        if let Err(errors) = Workflow::parse(&text) {
            let lines = text.lines().count().max(1) + 1;
            prop_assert!(!errors.errors.is_empty());
            prop_assert!(errors.errors.iter().all(|e| (1..=lines).contains(&e.line) && e.column >= 1));
        }
    }

    #[test]
    fn noise_is_never_a_workflow_and_never_a_panic(text in "\\PC{0,200}") {
        prop_assert!(Workflow::parse(&text).is_err());
    }
}
