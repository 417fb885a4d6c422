use super::*;

fn split<'a>(name: &str, text: &'a str) -> Vec<&'a str> {
    let mut start = 0;
    let ends = Splitter::new(rule(name).unwrap()).unwrap().ends(text);
    ends.into_iter().map(|end| &text[std::mem::replace(&mut start, end)..end]).collect()
}

#[test]
fn every_known_rule_can_be_carried_out_and_an_unknown_one_is_refused_by_name() {
    for name in names() {
        assert_eq!(split(name, "a b1\n").concat(), "a b1\n", "{name}");
    }
    let message = rule("no-such-rule").unwrap_err().to_string();
    assert!(message.contains("`no-such-rule`") && message.contains("smollm"), "{message}");
}

#[test]
fn rules_split_where_their_models_expect_it() {
    assert_eq!(
        split("smollm", "It's 1234,  ok"),
        ["It", "'s", " ", "1", "2", "3", "4", ",", " ", " ok"]
    );
    assert_eq!(split("gpt-2", "It's 1234,  ok"), ["It", "'s", " 1234", ",", " ", " ok"]);
    assert_eq!(split("llama-bpe", "IT'S 1234\n\n x"), ["IT", "'S", " ", "123", "4", "\n\n", " x"]);
    assert_eq!(split("qwen2", "a 12 (b)\n"), ["a", " ", "1", "2", " (", "b", ")\n"]);
    assert_eq!(split("default", "a=1234!"), ["a", "=", "123", "4", "!"]);
}
