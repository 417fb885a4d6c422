//! Prompts: what came from where, and what is no template.

use correx_orchestration::{Origin, Segment, Template, TemplateValues};
use proptest::prelude::*;

fn values(inputs: &[(&str, &str)]) -> TemplateValues {
    let inputs = inputs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    TemplateValues { inputs: inputs.collect(), ..TemplateValues::default() }
}

fn render(template: &str, inputs: &[(&str, &str)]) -> Vec<Segment> {
    Template::parse(template).unwrap().render(&values(inputs)).unwrap()
}

fn piece(origin: Origin, text: &str) -> Segment {
    Segment { origin, text: text.to_owned() }
}

#[test]
fn a_value_that_a_filter_changed_belongs_to_the_task() {
    assert_eq!(
        render("{{ inputs.a }}-{{ inputs.a | upper }}", &[("a", "abc")]),
        [piece(Origin::Input("a".into()), "abc"), piece(Origin::Task, "-ABC")]
    );
}

#[test]
fn two_equal_inputs_are_told_apart() {
    let same = "same";
    assert_eq!(
        render("{{ inputs.b }} {{ inputs.a }}", &[("a", same), ("b", same)]),
        [
            piece(Origin::Input("b".into()), same),
            piece(Origin::Task, " "),
            piece(Origin::Input("a".into()), same),
        ]
    );
}

#[test]
fn captured_and_truncated_values_leave_no_marks() {
    let text: String = render(
        "{% set x %}<{{ inputs.a }}>{% endset %}{{ x }}{{ x[:9] }}",
        &[("a", "some words here")],
    )
    .iter()
    .map(|segment| segment.text.as_str())
    .collect();
    assert!(text.starts_with("<some words here><"), "{text:?}");
    assert!(!text.contains("0:"), "{text:?}");
}

#[test]
fn a_template_that_never_ends_is_refused() {
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
    assert!(Template::parse(endless).is_err());
}

#[test]
fn unknown_filters_includes_and_the_debug_function_are_refused() {
    assert!(Template::parse("{{ inputs.a | frobnicate }}").is_err());
    assert!(Template::parse("{% if inputs.a %}{{ inputs.a | frobnicate }}{% endif %}").is_err());
    assert!(Template::parse("{% include 'other' %}").is_err());
    let debug = Template::parse("{{ debug() }}").unwrap();
    assert!(debug.variables().contains("debug"));
}

proptest! {
    #[test]
    fn pieces_add_up_to_the_prompt_whatever_the_inputs_say(
        a in "(\u{FDD0}|\u{FDD1}|[0-9]:|[a-z{}% ]|é){0,40}",
        b in "(\u{FDD0}|\u{FDD1}|[0-9]:|[a-z{}% ]|é){0,40}",
    ) {
        let segments = render("A {{ inputs.a }} B {{ inputs.b }} C", &[("a", &a), ("b", &b)]);
        let text: String = segments.iter().map(|segment| segment.text.as_str()).collect();
        prop_assert_eq!(text, format!("A {a} B {b} C"));
        let from_a: String = segments
            .iter()
            .filter(|segment| segment.origin == Origin::Input("a".into()))
            .map(|segment| segment.text.as_str())
            .collect();
        if a != b {
            prop_assert_eq!(from_a, a);
        }
    }
}
