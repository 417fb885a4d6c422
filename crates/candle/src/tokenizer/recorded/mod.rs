//! Small vocabularies of every kind, with what llama.cpp says about them.
//!
//! `tests/peer/record.py` writes the files. Where the peer broke down there is no answer.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use correx_context::{ChatMessage, MessagePart, PromptEncoder, Role};
use correx_events::SystemClock;
use correx_gguf::testing::Writer;
use correx_gguf::{Floats, Gguf, Numbers, Texts};
use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::prompt::ChatEncoder;
use crate::stream::TextStream;
use crate::template::{ChatTemplate, ModelFacts};

#[derive(Deserialize)]
struct Recorded {
    model: String,
    /// Texts and types.
    tokens: Vec<(String, i32)>,
    merges: Option<Vec<String>>,
    scores: Option<Vec<f32>>,
    texts: Vec<String>,
    #[serde(default)]
    rules: Vec<RuleAnswers>,
    #[serde(default)]
    cases: Vec<Case>,
    /// The control token that begins a turn.
    #[serde(default)]
    begin: String,
    #[serde(default)]
    stops: Vec<u32>,
    /// What tokens say, in hexadecimal digits.
    #[serde(default)]
    replies: Vec<String>,
}

#[derive(Deserialize)]
struct RuleAnswers {
    names: Vec<String>,
    ids: Vec<Option<Vec<u32>>>,
}

#[derive(Deserialize)]
struct Case {
    space_prefix: bool,
    ids: Vec<Vec<u32>>,
    /// Of the first texts, each between two turns' beginnings.
    prompts: Vec<Vec<u32>>,
}

impl Recorded {
    fn pairs() -> Self {
        serde_json::from_str(include_str!("pairs.json")).unwrap()
    }

    fn scores() -> Self {
        serde_json::from_str(include_str!("scores.json")).unwrap()
    }

    fn characters() -> Self {
        serde_json::from_str(include_str!("characters.json")).unwrap()
    }

    fn gguf(&self, told: impl FnOnce(Writer) -> Writer) -> Gguf {
        let mut writer = Writer::new()
            .entry("general.architecture", "llama")
            .entry("tokenizer.ggml.model", self.model.as_str())
            .entry(
                "tokenizer.ggml.tokens",
                self.tokens.iter().map(|(text, _)| text).collect::<Texts>(),
            )
            .entry(
                "tokenizer.ggml.token_type",
                self.tokens.iter().map(|(_, kind)| *kind).collect::<Numbers>(),
            );
        if let Some(merges) = &self.merges {
            writer = writer.entry("tokenizer.ggml.merges", merges.iter().collect::<Texts>());
        }
        if let Some(scores) = &self.scores {
            writer =
                writer.entry("tokenizer.ggml.scores", scores.iter().copied().collect::<Floats>());
        }
        let bytes = told(writer).to_bytes();
        let size = bytes.len() as u64;
        Gguf::read(Cursor::new(bytes), size).unwrap()
    }

    /// The file with the space prefix as said, and its vocabulary.
    fn vocabulary(&self, space_prefix: bool) -> (Gguf, Vocabulary) {
        let gguf = self.gguf(|writer| match self.model.as_str() {
            "llama" => writer.entry("tokenizer.ggml.add_space_prefix", space_prefix),
            _ => writer,
        });
        let vocabulary = Vocabulary::from_gguf(&gguf).unwrap();
        (gguf, vocabulary)
    }

    fn control(&self) -> impl Iterator<Item = &str> {
        let control = |kind: i32| kind == 2 || kind == 3;
        self.tokens.iter().filter(move |(_, kind)| control(*kind)).map(|(text, _)| text.as_str())
    }
}

#[test]
fn every_rule_gives_the_ids_that_llama_cpp_gives() {
    let recorded = Recorded::pairs();
    let mut seen = 0;
    for rule in &recorded.rules {
        for name in &rule.names {
            let gguf = recorded.gguf(|writer| writer.entry("tokenizer.ggml.pre", name.as_str()));
            let vocabulary = Vocabulary::from_gguf(&gguf).unwrap();
            seen += 1;
            for (text, expected) in recorded.texts.iter().zip(&rule.ids) {
                let Some(expected) = expected else { continue };
                assert_eq!(vocabulary.encode(text).unwrap(), *expected, "{name}: {text:?}");
            }
        }
    }
    assert_eq!(seen, pre_tokenizer_names().count());
}

#[test]
fn scores_and_characters_give_what_llama_cpp_gives() {
    for recorded in [Recorded::scores(), Recorded::characters()] {
        for case in &recorded.cases {
            let (_, vocabulary) = recorded.vocabulary(case.space_prefix);
            for (text, expected) in recorded.texts.iter().zip(&case.ids) {
                let ids = vocabulary.encode(text).unwrap();
                assert_eq!(ids, *expected, "{} {}: {text:?}", recorded.model, case.space_prefix);
            }
            assert_eq!(vocabulary.stops(), recorded.stops);
            for (id, expected) in (0u32..).zip(&recorded.replies) {
                assert_eq!(hex::encode(vocabulary.reply_bytes(id)), *expected, "{id}");
            }
        }
    }
}

#[test]
fn a_prompt_is_what_llama_cpp_makes_of_the_rendered_template() {
    let mut compared = 0;
    for recorded in [Recorded::scores(), Recorded::characters()] {
        let turn = &recorded.begin;
        let template = format!(
            "{{% for m in messages %}}{turn}user\n{{{{ m.content }}}}{{% endfor %}}{turn}  assistant\n\n"
        );
        for case in &recorded.cases {
            let (gguf, vocabulary) = recorded.vocabulary(case.space_prefix);
            let facts = ModelFacts::from_gguf(&gguf, None, None);
            let template = ChatTemplate::new(Some(&template), &facts, Arc::new(SystemClock));
            assert_eq!(template.notice(), None);
            let bos = vocabulary.required_bos();
            let encoder = ChatEncoder::new(Arc::new(vocabulary), template).unwrap();
            for (text, expected) in recorded.texts.iter().zip(&case.prompts) {
                if recorded.control().any(|control| text.contains(control)) {
                    continue;
                }
                let parts = vec![MessagePart { entry: 0, text: text.clone() }];
                let messages = [ChatMessage { role: Role::User, parts }];
                let ids = encoder.encode(&messages, 1).unwrap().ids;
                let expected: Vec<u32> = bos.into_iter().chain(expected.iter().copied()).collect();
                assert_eq!(ids, expected, "{} {}: {text:?}", recorded.model, case.space_prefix);
                compared += 1;
            }
        }
    }
    assert!(compared > 40, "{compared}");
}

#[test]
fn an_added_space_belongs_to_what_follows_and_bytes_to_their_character() {
    let (_, vocabulary) = Recorded::scores().vocabulary(true);
    for text in ["the of", " the", "x", "<h1>the<h1> ", "\u{10ffff}a\u{10ffff}", "▁the", ""] {
        let (ids, starts) = vocabulary.encode_with_starts(text).unwrap();
        assert_eq!(ids, vocabulary.encode(text).unwrap());
        assert!(starts.is_sorted() && starts.iter().all(|start| text.is_char_boundary(*start)));
        assert!(starts.first().is_none_or(|first| *first == 0), "{text:?}: {starts:?}");
        // What each id says is there where it begins, but for the space in front of a stretch.
        for (place, (id, start)) in ids.iter().zip(&starts).enumerate() {
            let said = String::from_utf8_lossy(vocabulary.reply_bytes(*id)).into_owned();
            let rest = text[*start..].replace('▁', " ");
            let whole = rest.starts_with(said.trim_start_matches(' ')) || rest.starts_with(&said);
            assert!(whole || said.contains('\u{fffd}'), "{text:?} {place}: {said:?} {rest:?}");
        }
    }
    let (_, starts) = vocabulary.encode_with_starts("\u{10ffff}b").unwrap();
    // The space, four bytes of one character, and a letter.
    assert_eq!(starts, [0, 0, 0, 0, 0, 4]);
}

#[test]
fn a_rule_that_is_not_known_is_refused_unless_another_is_chosen() {
    let recorded = Recorded::pairs();
    let odd = recorded.gguf(|writer| writer.entry("tokenizer.ggml.pre", 7u32));
    let error = Vocabulary::from_gguf(&odd).err().unwrap().to_string();
    assert!(error.contains("`tokenizer.ggml.pre` is no text"), "{error}");
    assert!(Vocabulary::from_gguf_with(&odd, Some("qwen2")).is_ok());
    let gguf = recorded.gguf(|writer| writer.entry("tokenizer.ggml.pre", "brand-new"));
    let message = Vocabulary::from_gguf(&gguf).err().unwrap().to_string();
    assert!(message.contains("`brand-new`") && message.contains("--pre-tokenizer"), "{message}");
    let chosen = Vocabulary::from_gguf_with(&gguf, Some("qwen2")).unwrap();
    let told = recorded.gguf(|writer| writer.entry("tokenizer.ggml.pre", "qwen2"));
    let told = Vocabulary::from_gguf(&told).unwrap();
    for text in &recorded.texts {
        assert_eq!(chosen.encode(text).unwrap(), told.encode(text).unwrap());
    }
    assert!(Vocabulary::from_gguf_with(&gguf, Some("nothing")).is_err());
}

#[test]
fn kinds_that_are_no_chat_models_are_refused_by_name() {
    for kind in ["bert", "t5", "rwkv", "plamo2", "hybriddna"] {
        let gguf = Recorded { model: kind.into(), ..Recorded::pairs() }.gguf(|writer| writer);
        let message = Vocabulary::from_gguf(&gguf).err().unwrap().to_string();
        assert!(message.contains(&format!("`{kind}`")), "{message}");
    }
}

#[test]
fn sequences_begin_and_end_as_the_file_says() {
    let recorded = Recorded::scores();
    let sequence = |told: &dyn Fn(Writer) -> Writer| {
        Vocabulary::from_gguf(&recorded.gguf(told)).unwrap().encode_sequence("x").unwrap()
    };
    let plain = recorded.vocabulary(true).1.encode("x").unwrap();
    assert_eq!(sequence(&|writer| writer), [&[1], &plain[..]].concat());
    assert_eq!(sequence(&|writer| writer.entry("tokenizer.ggml.add_bos_token", false)), plain);
    let both = sequence(&|writer| writer.entry("tokenizer.ggml.add_eos_token", true));
    assert_eq!(both, [&[1], &plain[..], &[2]].concat());
}

#[test]
fn megabytes_of_one_thing_are_cut_into_tokens() {
    let (_, scores) = Recorded::scores().vocabulary(false);
    let (_, characters) = Recorded::characters().vocabulary(false);
    let gguf = Recorded::pairs().gguf(|writer| writer.entry("tokenizer.ggml.pre", "superbpe"));
    let pairs = Vocabulary::from_gguf(&gguf).unwrap();
    for text in
        ["a".repeat(1 << 20), " ".repeat(1 << 20), "👨‍👩‍👧‍👦".repeat(1 << 15), "\n".repeat(1 << 20)]
    {
        for vocabulary in [&scores, &characters, &pairs] {
            let ids = vocabulary.encode(&text).unwrap();
            let said: Vec<u8> =
                ids.iter().flat_map(|id| vocabulary.reply_bytes(*id)).copied().collect();
            assert!(said == text.as_bytes(), "{} bytes of {:?}", said.len(), &text[..4]);
        }
    }
}

/// Every kind of vocabulary, with one that puts a space in front.
fn every_kind() -> Vec<Vocabulary> {
    let gguf = Recorded::pairs().gguf(|writer| writer.entry("tokenizer.ggml.pre", "gpt-2"));
    vec![
        Vocabulary::from_gguf(&gguf).unwrap(),
        Recorded::scores().vocabulary(true).1,
        Recorded::scores().vocabulary(false).1,
        Recorded::characters().vocabulary(false).1,
    ]
}

#[test]
fn what_any_ids_say_streams_as_it_is_decoded_at_once() {
    let kinds = every_kind();
    let sequence = prop::collection::vec(0u32..900, 0..60);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(300));
    runner
        .run(&sequence, |ids| {
            for vocabulary in &kinds {
                let bytes: Vec<u8> =
                    ids.iter().flat_map(|id| vocabulary.reply_bytes(*id)).copied().collect();
                let whole = String::from_utf8_lossy(&bytes).into_owned();
                let mut stream = TextStream::new();
                let (mut text, mut given) = (String::new(), 0);
                for id in &ids {
                    let piece = vocabulary.reply_bytes(*id);
                    given += piece.len();
                    text.push_str(&stream.push(piece));
                    // Nothing is held back but the beginning of one character.
                    let sure = String::from_utf8_lossy(&bytes[..given]);
                    prop_assert!(sure.starts_with(&text) && sure.len() <= text.len() + 3 * 3);
                }
                text.push_str(&stream.finish());
                prop_assert_eq!(&text, &whole);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn what_is_encoded_is_said_again() {
    let kinds = every_kind();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(300));
    let text = prop::collection::vec(
        prop_oneof![
            any::<String>(),
            "[ \n\ta-z0-9'.]{0,20}",
            prop::sample::select(vec!["<h1>", "  ", "世界", "🇩🇪", "<|user|>", "</s>"])
                .prop_map(str::to_owned),
        ],
        0..5,
    )
    // A run of spaces that a file defines as a token written with `▁` is said so; the peer does
    // the same.
    .prop_map(|pieces| pieces.concat().replace(['▁', '\u{1}'], "").replace("     ", "-"));
    runner
        .run(&text, |text| {
            // The first kind lacks a token for what one merge makes, so it may lose text.
            for vocabulary in &kinds[2..] {
                let ids = vocabulary.encode(&text).unwrap();
                let said: Vec<u8> =
                    ids.iter().flat_map(|id| vocabulary.reply_bytes(*id)).copied().collect();
                prop_assert_eq!(String::from_utf8(said).unwrap(), text.clone());
            }
            Ok(())
        })
        .unwrap();
}

/// The peer's own texts, where its vocabularies lie beside the checkout.
#[test]
fn vocabularies_beside_the_checkout_give_the_ids_recorded_with_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/peer-vocab");
    let Ok(files) = std::fs::read_dir(folder) else { return };
    for path in files.map(|file| file.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "gguf") {
            continue;
        }
        let beside = |ending: &str| {
            std::fs::read_to_string(path.with_extension(format!("gguf.{ending}"))).unwrap()
        };
        let (texts, ids) = (beside("inp"), beside("out"));
        let texts: Vec<&str> = texts.split("\n__ggml_vocab_test__\n").collect();
        let vocabulary = Vocabulary::open(&path).unwrap();
        let mut compared = 0;
        for (text, ids) in texts.iter().zip(ids.lines()) {
            let expected: Vec<u32> = ids.split_whitespace().map(|id| id.parse().unwrap()).collect();
            assert_eq!(vocabulary.encode(text).unwrap(), expected, "{path:?}: {text:?}");
            compared += 1;
        }
        assert!(compared > 20, "{path:?}: {compared}");
    }
}
