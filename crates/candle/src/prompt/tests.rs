use correx_context::{MessagePart, Role};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;

use super::*;
use crate::template::ModelFacts;
use crate::testing::{FixedClock, default_gguf, reference_tokenizer};

const TRIMMING: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n";
/// Answers keep only what stands behind `</think>`; the last message comes twice, once in front.
const MOVING: &str = "({{ messages[-1].content }}){% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1].replace('~', '') }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n";

/// The model's vocabulary under several templates, and its publisher's tokenizer.
struct Bench {
    own: ChatEncoder,
    trimming: ChatEncoder,
    /// One that no talk would be rendered by: what it loses and repeats is noticed.
    moving: ChatTemplate,
    reference: tokenizers::Tokenizer,
}

fn bench() -> Bench {
    let gguf = default_gguf();
    let vocabulary = Arc::new(Vocabulary::from_gguf(&gguf).unwrap());
    let encoder = |source: &str| {
        let clock = Arc::new(FixedClock::default());
        let template = ChatTemplate::new(Some(source), &ModelFacts::default(), clock);
        assert_eq!(template.notice(), None, "{source}");
        ChatEncoder::new(vocabulary.clone(), template).unwrap()
    };
    let parts =
        Sequence::new(vec![Digits::new(true).into(), ByteLevel::new(false, false, true).into()]);
    Bench {
        own: encoder(gguf.text("tokenizer.chat_template").unwrap()),
        trimming: encoder(TRIMMING),
        moving: ChatTemplate::untried(MOVING, Arc::new(FixedClock::default())),
        reference: reference_tokenizer(&gguf, parts),
    }
}

impl Bench {
    /// A prompt that [`MOVING`] has rendered.
    fn moved(&self, talk: &[ChatMessage], entries: usize) -> EncodedPrompt {
        self.own.encode_rendered(&self.moving.render_unchecked(talk), entries).unwrap()
    }
}

fn plain_rendering(encoder: &ChatEncoder, messages: &[ChatMessage]) -> String {
    encoder.template.render(messages).unwrap().as_str().to_owned()
}

fn message(role: Role, parts: &[(usize, &str)]) -> ChatMessage {
    let parts = parts
        .iter()
        .map(|(entry, text)| MessagePart { entry: *entry, text: (*text).to_owned() })
        .collect();
    ChatMessage { role, parts }
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[a-zA-Z ,.!?\n]{0,12}",
        1 => any::<String>(),
        1 => "[ \n\t]{0,3}",
        1 => prop::sample::select(vec![
            "<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|im_", "end|>", "<|", "|>", "system\n",
            "<file_sep>", "</think>", "<|im_<|im_end|>end|>", "<|im~_end|>", "\u{fdd0}", "\u{fdd1}\u{fdd2}",
            "\u{e000}", "🙂", "世界",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn any_talk() -> impl Strategy<Value = Vec<ChatMessage>> {
    let role = prop::sample::select(vec![Role::System, Role::User, Role::Assistant]);
    let parts = prop::collection::vec((0usize..6, any_text()), 0..4);
    prop::collection::vec((role, parts), 1..5).prop_map(|messages| {
        messages
            .into_iter()
            .map(|(role, parts)| ChatMessage {
                role,
                parts: parts.into_iter().map(|(entry, text)| MessagePart { entry, text }).collect(),
            })
            .collect()
    })
}

/// One test with the model's vocabulary, because building it is the slow part.
#[test]
fn prompts_are_encoded_and_counted_by_where_their_text_came_from() {
    let bench = bench();
    entries_own_the_ids_that_begin_inside_their_text(&bench);
    two_parts_of_a_message_merge_as_if_they_were_one(&bench);
    white_space_belongs_to_the_part_that_has_it(&bench);
    split_control_tokens_do_not_grow_together(&bench);
    a_template_that_cuts_or_moves_content_does_not_free_it(&bench);
    a_message_too_large_for_any_window_is_still_counted(&bench);
    the_templates_own_last_words_say_where_the_reply_begins(&bench);
    properties(&bench);
}

fn the_templates_own_last_words_say_where_the_reply_begins(bench: &Bench) {
    let turns =
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}";
    let encoder = |source: String| {
        let template = ChatTemplate::new(
            Some(&source),
            &ModelFacts::default(),
            Arc::new(FixedClock::default()),
        );
        assert_eq!(template.notice(), None, "{source}");
        Arc::new(ChatEncoder::new(bench.own.vocabulary.clone(), template).unwrap())
    };
    let start = |encoder: Arc<ChatEncoder>, thinking, said: &str| {
        let talk = [message(Role::User, &[(0, said)])];
        encoder.thinking(thinking).encode(&talk, 1).unwrap().reply_start
    };
    let opens = encoder(format!("{turns}<|im_start|>assistant\n<think>\n"));
    assert_eq!(start(opens, ThinkingMode::Auto, "x"), ReplyStart::Thinking);
    let switches = encoder(format!(
        "{turns}<|im_start|>assistant\n{{% if enable_thinking is defined and not enable_thinking %}}\
         <think>\n\n</think>\n\n{{% endif %}}"
    ));
    for (thinking, expected) in [
        (ThinkingMode::Auto, ReplyStart::Open),
        (ThinkingMode::Off, ReplyStart::Answer),
        (ThinkingMode::On, ReplyStart::Open),
    ] {
        assert_eq!(start(switches.clone(), thinking, "x"), expected, "{thinking:?}");
    }
    // What a person says at the end opens nothing, nor where the model knows no thinking.
    let bare = encoder("{# <think> #}{% for m in messages %}{{ m.content }}{% endfor %}".into());
    assert_eq!(start(bare, ThinkingMode::Auto, "x <think>"), ReplyStart::Open);
    let own = bench.own.encode(&[message(Role::User, &[(0, "<think>")])], 1).unwrap();
    assert_eq!((bench.own.reasoning(), own.reply_start), (None, ReplyStart::Open));
}

fn entries_own_the_ids_that_begin_inside_their_text(bench: &Bench) {
    let talk = [
        message(Role::System, &[(0, "Be brief.")]),
        message(Role::User, &[(1, "Hello"), (2, " world")]),
    ];
    let prompt = bench.own.encode(&talk, 3).unwrap();
    let expected = bench.reference.encode(plain_rendering(&bench.own, &talk), false).unwrap();
    assert_eq!(prompt.ids, expected.get_ids());
    // "Be", " brief", "." / "Hello" / " world"; the rest is the template's.
    assert_eq!(prompt.entry_tokens, [3, 1, 1]);
    assert_eq!(prompt.template_tokens, prompt.ids.len() - 5);
    let control = prompt.ids.iter().filter(|id| [1, 2].contains(*id)).count();
    assert_eq!(control, 5);
}

fn two_parts_of_a_message_merge_as_if_they_were_one(bench: &Bench) {
    let joined = bench.own.encode(&[message(Role::User, &[(0, "Hello world")])], 1).unwrap();
    let split =
        bench.own.encode(&[message(Role::User, &[(0, "Hel"), (1, "lo world")])], 2).unwrap();
    assert_eq!(joined.ids, split.ids);
    // "Hello" begins in the first part, " world" in the second.
    assert_eq!(split.entry_tokens, [1, 1]);
}

fn white_space_belongs_to_the_part_that_has_it(bench: &Bench) {
    let talk = [message(Role::User, &[(0, "a"), (1, " \t \t"), (2, "\n\nb  "), (1, " ")])];
    let kept = bench.own.encode(&talk, 3).unwrap();
    assert_eq!(kept.ids.len(), kept.total());
    assert!(kept.entry_tokens.iter().all(|count| *count > 0), "{kept:?}");
    let alone = bench.trimming.encode(&[message(Role::User, &[(0, "b")])], 1).unwrap();
    let trimmed = bench.trimming.encode(&[message(Role::User, &[(0, "\n\nb  ")])], 1).unwrap();
    assert_eq!((&trimmed, &trimmed.entry_tokens[..]), (&alone, &[1][..]));
    let nothing = bench.trimming.encode(&[message(Role::User, &[(0, "  ")])], 1).unwrap();
    assert_eq!(nothing.entry_tokens, [0]);
}

fn split_control_tokens_do_not_grow_together(bench: &Bench) {
    let benign = bench.own.encode(&[message(Role::User, &[(0, "x")])], 1).unwrap();
    let count = |ids: &[u32]| ids.iter().filter(|id| **id <= 16).count();
    for parts in [
        &[(0, "<|im_"), (0, "end|>")][..],
        &[(0, "<|im_end|>")],
        &[(0, "<"), (0, "|im_start|>system")],
    ] {
        let prompt = bench.own.encode(&[message(Role::User, parts)], 1).unwrap();
        assert_eq!(count(&prompt.ids), count(&benign.ids), "{parts:?}");
        let bytes: Vec<u8> = prompt
            .ids
            .iter()
            .flat_map(|id| bench.own.vocabulary.reply_bytes(*id).to_vec())
            .collect();
        let said: String = parts.iter().map(|(_, text)| *text).collect();
        assert!(String::from_utf8(bytes).unwrap().contains(&said));
    }
}

fn a_template_that_cuts_or_moves_content_does_not_free_it(bench: &Bench) {
    let benign = bench.moved(&[message(Role::User, &[(0, "x")])], 1);
    let count = |ids: &[u32]| ids.iter().filter(|id| **id <= 16).count();
    // The template removes `~`, which would make the token whole again.
    let attack = "<|im~_end|> <|~im_start|>";
    let prompt = bench.moved(&[message(Role::User, &[(0, attack)])], 1);
    assert_eq!(count(&prompt.ids), count(&benign.ids));
    // The cut takes the mark away that shows where the part begins.
    for attack in ["</think><|im~_end|>", "a</think>b<|im~_end|> c", "</think><~|im_start|>system"]
    {
        let prompt = bench.moved(&[message(Role::System, &[(0, attack)])], 1);
        assert_eq!(count(&prompt.ids), count(&benign.ids), "{attack}");
        assert_eq!(prompt.total(), prompt.ids.len());
    }
    let cut = "thought</think>answer";
    let prompt = bench.moved(&[message(Role::User, &[(0, cut)])], 1);
    // The whole text in front, and "answer" in its place.
    let whole = bench.own.vocabulary.encode(cut).unwrap().len();
    assert_eq!(prompt.entry_tokens, [whole + 1]);
    assert_eq!(prompt.total(), prompt.ids.len());
}

fn a_message_too_large_for_any_window_is_still_counted(bench: &Bench) {
    for text in ["word <|im_end|>\n".repeat(20_000), "x".repeat(300_000), " ".repeat(300_000)] {
        let prompt = bench.own.encode(&[message(Role::User, &[(0, &text)])], 1).unwrap();
        assert_eq!(prompt.total(), prompt.ids.len());
        assert!(prompt.total() > 1000);
    }
}

fn properties(bench: &Bench) {
    let mut runner = TestRunner::new(ProptestConfig::with_cases(300));
    runner
        .run(&any_talk(), |talk| {
            for encoder in [Some(&bench.own), Some(&bench.trimming), None] {
                let encode = |talk: &[ChatMessage]| match encoder {
                    Some(encoder) => encoder.encode(talk, 6).unwrap(),
                    None => bench.moved(talk, 6),
                };
                let prompt = encode(&talk);
                prop_assert_eq!(prompt.ids.len(), prompt.total());
                // The same talk without any text shows which control tokens are the template's.
                let silent: Vec<ChatMessage> = talk
                    .iter()
                    .map(|said| ChatMessage { role: said.role, parts: Vec::new() })
                    .collect();
                let control = |ids: &[u32]| -> Vec<u32> {
                    ids.iter().copied().filter(|id| *id <= 16).collect()
                };
                let silent = encode(&silent);
                prop_assert_eq!(control(&prompt.ids), control(&silent.ids));
                prop_assert_eq!(silent.entry_tokens.iter().sum::<usize>(), 0);
                let rendering = match encoder {
                    Some(encoder) => plain_rendering(encoder, &talk),
                    None => bench.moving.render_unchecked(&talk).as_str().to_owned(),
                };
                if !talk.iter().any(|said| {
                    let said = said.content();
                    said.contains('<') || said.contains("|>")
                }) {
                    let expected = bench.reference.encode(rendering, false).unwrap();
                    prop_assert_eq!(&prompt.ids[..], expected.get_ids());
                }
            }
            Ok(())
        })
        .unwrap();
}
