//! How well the language of a text is told, on sentences written for this.

use std::collections::BTreeMap;

use correx_orchestration::validate::Language;

/// Code to sentences: the same ten, in every language.
fn sentences() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in include_str!("languages.txt").lines() {
        let (code, sentence) = line.split_once('\t').unwrap();
        all.entry(code).or_default().push(sentence);
    }
    all
}

/// Texts of so many sentences: how many there are, how many were refused in their own language, and
/// the share of those refused in place of another one.
fn measured(length: usize) -> (usize, usize, f64) {
    let all = sentences();
    let (mut texts, mut falsely, mut pairs, mut found) = (0, 0, 0, 0);
    for (code, sentences) in &all {
        for text in sentences.windows(length).map(|window| window.join(" ")) {
            texts += 1;
            falsely += usize::from(code.parse::<Language>().unwrap().contradicts(&text));
            for other in all.keys().filter(|other| !alike(code, other)) {
                pairs += 1;
                found += usize::from(other.parse::<Language>().unwrap().contradicts(&text));
            }
        }
    }
    (texts, falsely, found as f64 / pairs as f64)
}

fn alike(code: &str, other: &str) -> bool {
    code == other || (["da", "nb"].contains(&code) && ["da", "nb"].contains(&other))
}

#[test]
fn a_right_language_is_not_refused_and_a_wrong_one_mostly_is() {
    for (length, least) in [(1, 0.7), (2, 0.9), (5, 0.98)] {
        let (texts, falsely, found) = measured(length);
        println!(
            "{length}: {texts} texts, {falsely} falsely refused, {:.1} % found",
            found * 100.0
        );
        assert_eq!(falsely, 0, "of {texts} texts of {length}");
        assert!(found >= least, "{found} of {length}");
    }
}

#[test]
fn what_is_too_short_or_no_prose_is_not_refused() {
    let german: Language = "de".parse().unwrap();
    for text in ["Yes.", "OK, 42 %", "https://example.org/the-long-name-of-a-page-in-english", ""] {
        assert!(!german.contradicts(text), "{text}");
    }
    let code = "Hier steht ein Beispiel für die Funktion, die das Ergebnis zurückgibt:\n\n```\n\
        // This function returns the result of the whole computation and nothing else at all.\n```\n";
    assert!(!german.contradicts(code));
    assert!(
        german.contradicts(
            "This is an answer in English, although German was asked for by the person."
        )
    );
}

#[test]
fn languages_are_named_by_their_codes() {
    let name = |code: &str| code.parse::<Language>().map(|language| language.name());
    assert_eq!(name("de"), Ok("German"));
    assert_eq!(name("de-AT"), Ok("German"));
    assert_eq!(name("POR"), Ok("Portuguese"));
    assert!(name("xx").is_err());
    assert!(name("deutsch").is_err());
}
