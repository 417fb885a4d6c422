use correx_documents::{Piece, cut, group};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// What must hold of every cut.
fn assert_cut(text: &str, limit: usize, pieces: &[Piece], count: &dyn Fn(&str) -> usize) {
    let mut end = 0;
    for piece in pieces {
        assert_eq!(piece.range.start, end, "the pieces adjoin");
        end = piece.range.end;
        assert!(!piece.text.trim().is_empty(), "no piece is empty");
        assert!(text[piece.range.clone()].contains(&piece.text));
        assert_eq!(
            text[piece.range.clone()].trim(),
            piece.text.trim(),
            "only white space is trimmed"
        );
        assert_eq!(piece.tokens, count(&piece.text));
        let one = piece.text.trim().graphemes(true).count() == 1;
        assert!(piece.tokens <= limit || one, "{} of {limit}: {:?}", piece.tokens, piece.text);
    }
    if text.trim().is_empty() {
        assert!(pieces.is_empty());
    } else {
        assert_eq!(end, text.len(), "the whole text is covered");
    }
    let graphemes: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).collect();
    for piece in pieces {
        assert!(graphemes.binary_search(&piece.range.start).is_ok(), "no grapheme is cut");
    }
}

fn texts(pieces: &[Piece]) -> Vec<&str> {
    pieces.iter().map(|piece| piece.text.as_str()).collect()
}

#[test]
fn a_text_that_fits_is_one_piece() {
    let text = "# A\n\nOne two.\n\n## B\n\nThree.\n";
    assert_eq!(texts(&cut(text, 8, &words)), ["# A\n\nOne two.\n\n## B\n\nThree."]);
    assert!(cut(" \n ", 8, &words).is_empty());
}

#[test]
fn pieces_end_before_headings_and_say_what_they_stand_under() {
    let section = "one two three four five six seven eight nine ten. ".repeat(3);
    let text = format!(
        "# Book\n\nIntro.\n\n## First\n\n{section}\n\n### Deep\n\n{section}\n\n## Second\n\n{section}"
    );
    let pieces = cut(&text, 40, &words);
    let starts: Vec<&str> = pieces.iter().filter_map(|piece| piece.text.lines().next()).collect();
    assert_eq!(starts, ["# Book", "### Deep", "## Second"]);
    let paths: Vec<&str> = pieces.iter().map(|piece| piece.headings.as_str()).collect();
    assert_eq!(paths, ["", "# Book > ## First", "# Book"]);
}

#[test]
fn a_heading_is_not_left_at_the_end_of_a_piece() {
    let text =
        "One two three four five six.\n\nTitle\n=====\n\nSeven eight nine ten eleven twelve.";
    for limit in 8..14 {
        for piece in cut(text, limit, &words) {
            assert!(!piece.text.trim_end().ends_with("====="), "{limit}: {:?}", piece.text);
        }
    }
}

#[test]
fn pieces_end_after_sentences_also_where_lines_are_wrapped_and_dots_do_not_end_them() {
    let text = "Dr. Meier met Ms. Lee at 5 p.m. on the\n3. of May. They spoke about the\nhouse. Nobody else came.";
    let pieces = cut(text, 13, &words);
    assert_eq!(
        texts(&pieces),
        [
            "Dr. Meier met Ms. Lee at 5 p.m. on the\n3. of May.",
            "They spoke about the\nhouse. Nobody else came."
        ]
    );
    let german = "Die Miete beträgt z. B. 900 EUR. Sie ist am 3. Mai fällig. Dann nicht mehr.";
    assert_eq!(cut(german, 8, &words)[0].text, "Die Miete beträgt z. B. 900 EUR.");
}

#[test]
fn what_looks_like_a_heading_in_code_is_none_and_code_keeps_its_indentation() {
    let code = "    # comment one two\n".repeat(6);
    let text = format!("# A\n\n```\n{code}```\n\nEnd of it.");
    let pieces = cut(&text, 12, &words);
    assert!(pieces.iter().all(|piece| piece.headings.is_empty() || piece.headings == "# A"));
    assert!(pieces[1].text.starts_with("    # comment"), "{:?}", pieces[1].text);
}

#[test]
fn the_last_piece_is_no_crumb() {
    let text = "Here are five words now. ".repeat(21);
    let sizes: Vec<usize> = cut(&text, 50, &words).iter().map(|piece| piece.tokens).collect();
    assert_eq!(sizes.len(), 3);
    assert!(sizes.iter().all(|size| *size >= 30), "{sizes:?}");
}

#[test]
fn a_word_that_is_too_long_is_cut_between_graphemes() {
    let text = "e\u{301}".repeat(50) + "👨‍👩‍👧" + &"क्षि".repeat(20);
    let letters = |text: &str| text.graphemes(true).count();
    let pieces = cut(&text, 7, &letters);
    assert_cut(&text, 7, &pieces, &letters);
    assert!(pieces.len() < 15, "{}", pieces.len());
}

#[test]
fn short_texts_are_put_together_and_none_is_lost() {
    let texts = ["a b c", "d e", "f", "g h i j", "k"];
    assert_eq!(group(&texts, "\n\n", 6, &words), [0..3, 3..5]);
    assert_eq!(group(&["a b c", "d"], "\n\n", 2, &words), [0..1, 1..2]);
    assert!(group(&[], "\n\n", 2, &words).is_empty());
}

/// A counter that is odd in every way that a counter can be.
fn odd(seed: u64) -> impl Fn(&str) -> usize {
    move |text: &str| {
        let sum: u64 = text.bytes().map(u64::from).sum::<u64>().wrapping_mul(seed | 1);
        match seed % 5 {
            // Parts count less, or more, than the whole; or nothing; or anything.
            0 => text.len() * text.len() / 7,
            1 => text.len().isqrt(),
            2 => text.matches(['a', ' ']).count(),
            3 => (sum % 40) as usize,
            _ => text.chars().filter(|c| !c.is_whitespace()).count().div_ceil(3),
        }
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "# A\n",
        "## B\n\n",
        "Title\n---\n",
        "One two three. ",
        "wo gehst du hin? ",
        "- item\n",
        "1. item\n",
        "```\n",
        "| a | b |\n",
        "\n\n",
        "   ",
        "\r\n",
        "word",
        "e\u{301}",
        "👨‍👩‍👧",
        "🇩🇪",
        "。",
        "漢字",
        "\u{600}",
        " \u{301}",
        "\u{2029}",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "\u{FEFF}",
        "क्षि",
        "#",
        ". ",
        "\u{200D}",
        "\u{85}",
    ]);
    prop::collection::vec(parts, 0..40).prop_map(|parts| parts.concat())
}

/// Headings, sentences and list items, a line each.
fn lines() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "# A\n",
        "## B\n",
        "One two three.\n\n",
        "Where do you go?\n\n",
        "- item\n\n",
    ]);
    prop::collection::vec(line, 0..60).prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn pieces_cover_the_text_and_hold_the_limit_whatever_counts(
        text in any_text(), limit in 1..60_usize, seed in any::<u64>(),
    ) {
        let count = odd(seed);
        let pieces = cut(&text, limit, &count);
        assert_cut(&text, limit, &pieces, &count);
    }

    #[test]
    fn headings_stay_with_what_follows_where_both_fit(text in lines(), limit in 8..40_usize) {
        let pieces = cut(&text, limit, &words);
        for (piece, next) in pieces.iter().zip(pieces.iter().skip(1)) {
            let content = |text: &str| -> Vec<String> {
                text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
            };
            let (before, after) = (content(&piece.text), content(&next.text));
            let is_heading = |line: &&String| line.starts_with('#');
            // Headings in a row and the line that they stand over may be more than a piece; then
            // some heading must end one.
            let upper: usize = before.iter().rev().take_while(is_heading).map(|line| words(line)).sum();
            let lower: usize = after.iter().take_while(is_heading).map(|line| words(line)).sum();
            let over = after.iter().find(|line| !is_heading(line)).map_or(0, |line| words(line));
            prop_assert!(upper == 0 || upper + lower + over > limit, "{:?} | {:?}", piece.text, next.text);
        }
    }

    #[test]
    fn groups_cover_the_texts_and_hold_the_limit(
        texts in prop::collection::vec("[a-c ]{0,12}", 0..20), limit in 1..30_usize, seed in any::<u64>(),
    ) {
        let count = odd(seed);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let groups = group(&texts, "\n", limit, &count);
        let all: Vec<usize> = groups.iter().cloned().flatten().collect();
        prop_assert_eq!(all, (0..texts.len()).collect::<Vec<_>>());
        for group in groups {
            prop_assert!(!group.is_empty());
            prop_assert!(group.len() == 1 || count(&texts[group].join("\n")) <= limit);
        }
    }
}
