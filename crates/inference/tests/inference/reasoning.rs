//! A reply's thinking is told from its answer, however it comes.

use correx_context::ReplyStart;
use correx_inference::{ReasoningSplitter, ReasoningTag, ReasoningTags, Split};
use proptest::prelude::*;

const THINK: ReasoningTags = ReasoningTags { open: "<think>", close: "</think>" };

fn add(all: &mut Split, more: Split) {
    all.thinking.push_str(&more.thinking);
    all.answer.push_str(&more.answer);
}

fn split(tags: Option<ReasoningTags>, start: ReplyStart, pieces: &[&str]) -> (String, String) {
    let mut splitter = ReasoningSplitter::new(tags, start);
    let mut all = Split::default();
    for piece in pieces {
        add(&mut all, splitter.push(piece));
    }
    add(&mut all, splitter.finish());
    (all.thinking, all.answer)
}

fn reply(start: ReplyStart, text: &str) -> (String, String) {
    split(Some(THINK), start, &[text])
}

fn parts(thinking: &str, answer: &str) -> (String, String) {
    (thinking.to_owned(), answer.to_owned())
}

#[test]
fn what_stands_between_the_tags_at_the_beginning_is_thinking() {
    for (text, thinking, answer) in [
        ("<think>\nTwo and two.\n</think>\n\nFour.\n", "Two and two.", "Four.\n"),
        (" \n<think>a\n\nb</think>c", "a\n\nb", "c"),
        ("<think>\n\n</think>\n\nFour.", "", "Four."),
        ("<think></think>", "", ""),
        ("<think>Only thought", "Only thought", ""),
        ("<think>cut off </thi", "cut off </thi", ""),
        ("<think>if a < b </i> then</think>yes", "if a < b </i> then", "yes"),
        ("  Four.  ", "", "  Four.  "),
        ("<thin ice>", "", "<thin ice>"),
        ("<thi", "", "<thi"),
        ("", "", ""),
        (" \n ", "", " \n "),
    ] {
        assert_eq!(reply(ReplyStart::Open, text), parts(thinking, answer), "{text:?}");
    }
}

#[test]
fn tags_in_the_answer_are_text() {
    for text in ["The tags are <think> and </think>.", "`<think>` opens it", "</think> closes it"] {
        assert_eq!(reply(ReplyStart::Open, text), parts("", text));
        assert_eq!(reply(ReplyStart::Answer, text), parts("", text));
        let thought = format!("<think>Tags?</think>{text}");
        assert_eq!(reply(ReplyStart::Open, &thought), parts("Tags?", text));
    }
}

#[test]
fn a_model_without_tags_never_has_its_text_cut() {
    for start in [ReplyStart::Open, ReplyStart::Thinking, ReplyStart::Answer] {
        for text in ["<think>a</think>b", " <think>\n", "a</think>b"] {
            assert_eq!(split(None, start, &[text]), parts("", text));
        }
    }
}

#[test]
fn a_prompt_can_open_the_thinking_or_close_it() {
    for (text, thinking, answer) in [
        ("Two.\n</think>\n\nFour.", "Two.", "Four."),
        ("<think>\nTwo.</think>Four.", "Two.", "Four."),
        ("\n</think>\n\nFour.", "", "Four."),
        ("Two and <think> is a tag</think>Four.", "Two and <think> is a tag", "Four."),
        ("Still thinking", "Still thinking", ""),
    ] {
        assert_eq!(reply(ReplyStart::Thinking, text), parts(thinking, answer), "{text:?}");
    }
    let asked = "<think>is what you asked for</think>";
    assert_eq!(reply(ReplyStart::Answer, asked), parts("", asked));
    for (tail, start) in [
        ("<|im_start|>assistant\n", ReplyStart::Open),
        ("<|im_start|>assistant\n<think>\n", ReplyStart::Thinking),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", ReplyStart::Answer),
        ("", ReplyStart::Open),
    ] {
        assert_eq!(THINK.reply_start(tail), start, "{tail:?}");
    }
}

#[test]
fn nothing_is_held_back_that_cannot_be_a_tag_any_more() {
    let mut splitter = ReasoningSplitter::new(Some(THINK), ReplyStart::Open);
    let mut said = |text| {
        let split = splitter.push(text);
        (split.thinking, split.answer)
    };
    assert_eq!(said(" "), parts("", ""));
    assert_eq!(said("<thi"), parts("", ""));
    assert_eq!(said("nk>\nOne"), parts("One", ""));
    assert_eq!(said(" \n"), parts("", ""));
    assert_eq!(said("two <"), parts(" \ntwo", ""));
    assert_eq!(said("3 </think"), parts(" <3", ""));
    assert_eq!(said(">"), parts("", ""));
    assert_eq!(said("\n\n"), parts("", ""));
    assert_eq!(said("Four"), parts("", "Four"));
    assert_eq!(said(" <think"), parts("", " <think"));
}

#[test]
fn tags_that_come_as_control_tokens_mean_the_same_and_leave_no_text() {
    let said = |start, steps: &[Result<&str, ReasoningTag>]| {
        let mut splitter = ReasoningSplitter::new(Some(THINK), start);
        let mut all = Split::default();
        for step in steps {
            let more = match step {
                Ok(text) => splitter.push(text),
                Err(tag) => splitter.push_tag(*tag),
            };
            add(&mut all, more);
        }
        add(&mut all, splitter.finish());
        (all.thinking, all.answer)
    };
    let (open, close) = (Err(ReasoningTag::Open), Err(ReasoningTag::Close));
    assert_eq!(
        said(ReplyStart::Open, &[open, Ok("\nTwo. "), close, Ok("\n\nFour."), open, Ok("x")]),
        parts("Two.", "Four.x")
    );
    assert_eq!(said(ReplyStart::Open, &[Ok("\n"), open, Ok("Two <"), close]), parts("Two <", ""));
    assert_eq!(said(ReplyStart::Open, &[Ok("<thi"), open, Ok("x")]), parts("", "<thix"));
    assert_eq!(said(ReplyStart::Open, &[close, Ok("Four.")]), parts("", "Four."));
    assert_eq!(said(ReplyStart::Thinking, &[open, Ok("a"), close, Ok("b")]), parts("a", "b"));
    assert_eq!(said(ReplyStart::Thinking, &[close, Ok("\nb")]), parts("", "b"));
    assert_eq!(said(ReplyStart::Answer, &[open, Ok("a"), close, Ok("b")]), parts("", "ab"));
}

#[test]
fn the_tags_are_those_that_the_template_or_the_vocabulary_knows() {
    let none = |_: &str| false;
    assert_eq!(ReasoningTags::choose("{{ messages }}", none), None);
    assert_eq!(ReasoningTags::choose("{% if '</think>' in content %}", none), Some(THINK));
    let has = |token: &str| ["[THINK]", "[/THINK]"].contains(&token);
    assert_eq!(ReasoningTags::choose("", has).unwrap().open, "[THINK]");
    // One tag alone is no pair.
    assert_eq!(ReasoningTags::choose("", |token| token == "<think>"), None);
    // Where several are known, the pair for which most speaks.
    let tags = ReasoningTags::choose("<think> [THINK] [/THINK]", has).unwrap();
    assert_eq!(tags.close, "[/THINK]");
    assert_eq!(ReasoningTags::choose("<seed:think>", none).unwrap().close, "</seed:think>");
}

/// Texts full of tags and parts of them.
fn texts() -> impl Strategy<Value = String> {
    let bit = prop_oneof![
        Just("<think>"),
        Just("</think>"),
        Just("<thi"),
        Just("</th"),
        Just("nk>"),
        Just("<"),
        Just("ink>"),
        Just(" "),
        Just("\n"),
        Just("a"),
        Just("é🙂"),
        Just("</think"),
        Just(">"),
    ];
    prop::collection::vec(bit, 0..24).prop_map(|bits| bits.concat())
}

proptest! {
    #[test]
    fn any_cut_into_pieces_gives_the_same(
        text in texts(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        start in prop_oneof![
            Just(ReplyStart::Open), Just(ReplyStart::Thinking), Just(ReplyStart::Answer),
        ],
    ) {
        let mut places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
        places.push(text.len());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| *cut.get(&places)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&str> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        let cut = split(Some(THINK), start, &pieces);
        prop_assert_eq!(&cut, &reply(start, &text));
        let single: Vec<String> = text.chars().map(String::from).collect();
        let single: Vec<&str> = single.iter().map(String::as_str).collect();
        prop_assert_eq!(cut, split(Some(THINK), start, &single));
    }

    #[test]
    fn no_word_is_lost_or_made_up(text in texts()) {
        let (thinking, answer) = reply(ReplyStart::Open, &text);
        prop_assert_eq!(thinking.trim(), &thinking);
        if thinking.is_empty() && !text.trim_start().starts_with("<think>") {
            prop_assert_eq!(&answer, &text);
        } else if text.trim_start().trim_start_matches("<think>").contains("</think>") {
            let rest = text.trim_start().strip_prefix("<think>").unwrap();
            let (inner, after) = rest.split_once("</think>").unwrap();
            prop_assert_eq!((inner.trim(), after.trim_start()), (&*thinking, &*answer));
        }
    }
}
