//! What outputs must satisfy.

use correx_inference::FinishReason::{Length, Stop};
use correx_orchestration::OutputCheck;
use correx_orchestration::validate::examine;

fn refused(text: &str, checks: &[OutputCheck]) -> Option<(&'static str, String)> {
    let refusal = examine(text, Stop, 100, checks).err()?;
    Some((refusal.validator, refusal.message))
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
    assert_eq!(examine("half an", Length, 9, &[]).unwrap_err().validator, "max_tokens");
    assert!(examine("whole", Stop, 9, &[]).is_ok());
}
