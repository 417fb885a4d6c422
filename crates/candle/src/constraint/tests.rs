use correx_context::ReplyStart;
use correx_inference::GenerationConfig;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::*;
use crate::reasoning::{Reasoning, ReplyText};
use crate::sampler::Sampler;
use crate::testing::{default_gguf, small_pieces, small_vocabulary, small_vocabulary_with};

/// Tokens after which a reply should have ended.
const MOST: usize = 4000;

/// What a model whose logits are nothing but noise says in `format`; nothing if it came to no end.
/// A penalty that is far too high does its worst.
fn babble(forms: &Forms, format: &ResponseFormat, seed: u64) -> Option<String> {
    let mut constraint = forms.compile(format).unwrap().unwrap();
    let config = GenerationConfig { seed, repetition_penalty: 1e30, ..GenerationConfig::default() };
    let mut sampler = Sampler::new(&config);
    let mut noise = ChaCha8Rng::seed_from_u64(seed);
    let (mut said, mut ids) = (Vec::new(), Vec::new());
    let vocabulary = &forms.vocabulary;
    while ids.len() < MOST {
        let permitted = constraint.permitted().unwrap();
        let mut logits: Vec<f32> =
            (0..vocabulary.len()).map(|_| noise.random_range(-9.0..9.0)).collect();
        let id = sampler.choose_among(&permitted, &mut logits, &ids).unwrap();
        assert!(permitted.binary_search(&id).is_ok());
        if vocabulary.is_stop(id) {
            return Some(String::from_utf8(said).unwrap());
        }
        assert!(!vocabulary.plain_bytes(id).is_empty(), "{id} is no text");
        said.extend_from_slice(vocabulary.plain_bytes(id));
        ids.push(id);
        if constraint.take(id).unwrap() == Progress::Complete {
            return Some(String::from_utf8(said).unwrap());
        }
    }
    None
}

fn forms() -> [Forms; 2] {
    [small_vocabulary(), small_pieces()].map(|vocabulary| Forms::new(Arc::new(vocabulary)))
}

/// Schemas whose values have an end, three levels deep at most.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        (0usize..4, 0usize..6).prop_map(|(least, more)| {
            json!({"type": "string", "minLength": least, "maxLength": least + more})
        }),
        prop::collection::vec("[a-z\"\\\\ é世]{0,4}", 1..4)
            .prop_map(|texts| json!({"enum": texts})),
        (-300i64..300, 0i64..500).prop_map(|(least, more)| {
            json!({"type": "integer", "minimum": least, "maximum": least + more})
        }),
        Just(json!({"type": "integer"})),
        Just(json!({"type": ["boolean", "null"]})),
        Just(json!({"const": {"a": [1, "two"]}})),
        Just(json!({"type": "string", "pattern": "^[A-Z]{2}-[0-9]{1,3}$"})),
        Just(json!({"type": "string", "format": "date"})),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), 0usize..2, 0usize..3).prop_map(|(items, least, more)| {
                let most = least + more;
                json!({"type": "array", "items": items, "minItems": least, "maxItems": most})
            }),
            (prop::collection::vec(inner.clone(), 1..4), any::<[bool; 4]>()).prop_map(
                |(values, required)| {
                    let named: Vec<(String, Value)> = (0..)
                        .zip(values)
                        .map(|(place, value)| (format!("k{place} \"é\""), value))
                        .collect();
                    let required: Vec<&String> = named
                        .iter()
                        .zip(required)
                        .filter_map(|((name, _), required)| required.then_some(name))
                        .collect();
                    let required = json!(required);
                    let properties: serde_json::Map<_, _> = named.into_iter().collect();
                    json!({"type": "object", "properties": properties, "required": required})
                }
            ),
            (inner.clone(), inner).prop_map(|(one, other)| json!({"anyOf": [one, other]})),
        ]
    })
}

/// JSON without what numbers are written with, outside its strings.
fn without_numbers(json: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    json.chars()
        .filter(|&letter| {
            let was_text = is_text;
            match letter {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => is_text = !is_text,
                _ => {}
            }
            was_text || !(letter.is_ascii_digit() || "+-.eE".contains(letter))
        })
        .collect()
}

#[test]
fn whatever_the_logits_say_the_reply_is_json_by_its_schema() {
    let forms = forms();
    let mut runner = TestRunner::new(ProptestConfig::with_cases(300));
    runner
        .run(&(schemas(), any::<u64>(), 0usize..2), |(schema, seed, which)| {
            let format = ResponseFormat::JsonSchema(schema.clone());
            let text = babble(&forms[which], &format, seed).expect("it comes to an end");
            let value: Value = serde_json::from_str(&text)
                .map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
            let problem = jsonschema::validator_for(&schema).unwrap().validate(&value).err();
            prop_assert!(problem.is_none(), "{problem:?}: {text} by {schema}");
            // Compact, in the schema's order. A number can be written in many ways, such as -0.
            prop_assert_eq!(without_numbers(&text), without_numbers(&value.to_string()));
            Ok(())
        })
        .unwrap();
}

#[test]
fn whatever_the_logits_say_the_reply_is_one_of_the_choices() {
    let forms = forms();
    let texts = prop_oneof![
        "[a-c]{1,3}",
        any::<String>().prop_filter("said", |text| !text.is_empty()),
        prop::sample::select(vec!["yes", "yes, but", "a|b", ".*", "^$", "a/b", "\\d", "(", "\n"])
            .prop_map(str::to_owned),
    ];
    let mut runner = TestRunner::new(ProptestConfig::with_cases(150));
    let cases = (prop::collection::vec(texts, 1..5), any::<u64>(), 0usize..2);
    runner
        .run(&cases, |(choices, seed, which)| {
            let format = ResponseFormat::Choice(choices.clone());
            let text = babble(&forms[which], &format, seed).expect("it comes to an end");
            prop_assert!(choices.contains(&text), "{text:?} of {choices:?}");
            Ok(())
        })
        .unwrap();
}

#[test]
fn whatever_the_logits_say_the_reply_matches_its_expression() {
    let forms = forms();
    for regex in [
        "[0-9]{4}-[0-9]{2}-[0-9]{2}",
        "^(yes|no)( \\(.{1,20}\\))?$",
        "(a|ab)(c|bcd)(d*)x",
        "[^\\n]{3,30}\\n/end",
        "\\p{Lu}\\w{0,5}\\$",
        "a$|^b",
        "x?",
    ] {
        let rule = format!("^(?:{})$", whole(regex));
        let rule = regex_automata::meta::Regex::new(&rule).unwrap();
        for seed in 0..20 {
            for forms in &forms {
                let format = ResponseFormat::Regex(regex.to_owned());
                let text = babble(forms, &format, seed).expect("it comes to an end");
                assert!(rule.is_match(&text), "{text:?} by {regex}");
            }
        }
    }
}

#[test]
fn every_one_of_the_choices_can_be_said() {
    let forms = forms();
    let choices = ["a", "ab", "abc", "世界", "🙂"].map(str::to_owned).to_vec();
    let format = ResponseFormat::Choice(choices.clone());
    for (forms, choice) in forms.iter().flat_map(|forms| choices.iter().map(move |it| (forms, it)))
    {
        let vocabulary = &forms.vocabulary;
        let mut constraint = forms.compile(&format).unwrap().unwrap();
        let mut progress = Progress::Open;
        for byte in choice.bytes() {
            let permitted = constraint.permitted().unwrap();
            let id = permitted.iter().find(|id| vocabulary.plain_bytes(**id) == [byte]).unwrap();
            progress = constraint.take(*id).unwrap();
        }
        let may_stop = constraint.permitted().unwrap().contains(&vocabulary.stops()[0]);
        assert!(may_stop, "{choice}");
        // Only the longest of those that begin alike is done by itself.
        let goes_on = ["a", "ab"].contains(&choice.as_str());
        assert_eq!(progress == Progress::Complete, !goes_on, "{choice}");
    }
}

#[test]
fn what_cannot_be_followed_is_refused_with_what_is_wrong() {
    let forms = Forms::new(Arc::new(small_vocabulary()));
    let refused = |format: ResponseFormat| match forms.compile(&format) {
        Err(error) => error,
        Ok(_) => panic!("{format:?} is taken"),
    };
    let choice = |texts: &[&str]| {
        refused(ResponseFormat::Choice(texts.iter().map(|text| (*text).to_owned()).collect()))
    };
    assert_eq!(choice(&[]), FormatError::NoChoice);
    assert_eq!(choice(&["yes", ""]), FormatError::EmptyChoice);
    assert!(matches!(choice(&[&"x".repeat(LONGEST_CHOICE + 1)]), FormatError::TooLarge(_)));
    for (schema, word) in [
        (json!({"type": "strin"}), "strin"),
        (json!({"type": "array", "minItems": 3, "maxItems": 2}), "minItems"),
        (json!({"type": "integer", "minimum": 3, "maximum": 2}), "minimum"),
        (json!({"not": {"type": "string"}}), "not"),
        (json!({"$ref": "#/$defs/missing"}), "missing"),
        (json!({"$ref": "https://example.com/schema"}), "example.com"),
        (json!({"type": "string", "pattern": "("}), ""),
    ] {
        let error = refused(ResponseFormat::JsonSchema(schema.clone()));
        assert!(matches!(&error, FormatError::Schema(text) if text.contains(word)), "{error:?}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    for regex in ["(", "[", "a{2", "(?=a)", "\\1"] {
        let error = refused(ResponseFormat::Regex(regex.to_owned()));
        assert!(matches!(error, FormatError::Regex(_)), "{regex}: {error:?}");
    }
}

#[test]
fn what_would_take_too_much_is_refused_soon() {
    let forms = Forms::new(Arc::new(small_vocabulary()));
    let mut doubled = json!({"type": "string", "maxLength": 9});
    for _ in 0..12 {
        doubled = json!({"type": "object", "properties": {"a": doubled, "b": doubled}});
    }
    let any_of: Vec<Value> = (0..16)
        .map(|place| {
            let name = format!("k{place}");
            let either =
                [json!({"required": [name]}), json!({"properties": {name: {"type": "null"}}})];
            json!({"anyOf": either})
        })
        .collect();
    let all = json!({"allOf": any_of});
    for schema in [doubled, all] {
        let error = forms.compile(&ResponseFormat::JsonSchema(schema)).err();
        assert!(matches!(error, Some(FormatError::TooLarge(_))), "{error:?}");
    }
    let long = format!("[{}]", "ab".repeat(LONGEST_REGEX / 2));
    let error = forms.compile(&ResponseFormat::Regex(long)).err();
    assert!(matches!(error, Some(FormatError::TooLarge(_))), "{error:?}");
    let nested = format!("{}a{}", "(".repeat(4000), ")".repeat(4000));
    assert!(forms.compile(&ResponseFormat::Regex(nested)).is_err());
}

#[test]
fn control_tokens_and_marks_are_no_part_of_a_text_and_stops_come_at_its_end() {
    let vocabulary = Arc::new(Vocabulary::from_gguf(&default_gguf()).unwrap());
    let forms = Forms::new(vocabulary.clone());
    let format = ResponseFormat::JsonSchema(json!({"type": "string"}));
    let mut constraint = forms.compile(&format).unwrap().unwrap();
    for id in vocabulary.encode("\"<|im_end|> in a").unwrap() {
        assert_eq!(constraint.take(id).unwrap(), Progress::Open);
        let permitted = constraint.permitted().unwrap();
        assert!(vocabulary.control_tokens().all(|(_, id)| permitted.binary_search(&id).is_err()));
        assert!(permitted.len() > 30_000, "{}", permitted.len());
    }
    let quote = vocabulary.encode("\"").unwrap();
    assert_eq!(constraint.take(quote[0]).unwrap(), Progress::Complete);
    assert_eq!(constraint.permitted().unwrap(), vocabulary.stops());

    let marked = Arc::new(small_vocabulary_with(&["<tool_call>", "\n\n\n"]));
    let open = Forms::new(marked.clone()).compile(&ResponseFormat::Regex("(?s:.*)".into()));
    let permitted = open.unwrap().unwrap().permitted().unwrap();
    let said = |text: &[u8]| permitted.iter().any(|id| marked.reply_bytes(*id) == text);
    assert!(said(b"\n\n\n") && said(b"<") && !said(b"<tool_call>"));
    assert!(marked.stops().iter().all(|stop| permitted.contains(stop)));
}

/// A reply that is steered by hand.
struct Reply {
    held: Held,
    text: ReplyText,
    vocabulary: Arc<Vocabulary>,
}

impl Reply {
    fn new(own: &[&str], start: ReplyStart) -> Self {
        let vocabulary = Arc::new(small_vocabulary_with(own));
        let reasoning = Reasoning::of(&vocabulary, "<think></think>");
        let format = ResponseFormat::Choice(vec!["hello".to_owned(), "world".to_owned()]);
        let constraint = Forms::new(vocabulary.clone()).compile(&format).unwrap().unwrap();
        Self {
            held: Held::new(constraint, reasoning, start, &vocabulary),
            text: ReplyText::new(reasoning, start, None),
            vocabulary,
        }
    }

    fn permits(&mut self, text: &str) -> bool {
        let id = self.vocabulary.encode(text).unwrap()[0];
        match self.held.permitted().unwrap() {
            Permitted::All => true,
            Permitted::Only(ids) => ids.contains(&id),
        }
    }

    fn say(&mut self, text: &str) -> Progress {
        let mut progress = Progress::Open;
        for id in self.vocabulary.encode(text).unwrap() {
            if let Permitted::Only(ids) = self.held.permitted().unwrap() {
                assert!(ids.contains(&id), "{text:?} is not permitted");
            }
            self.text.push(id, &self.vocabulary);
            progress = self.held.take(id, &self.text, &self.vocabulary).unwrap();
        }
        progress
    }
}

#[test]
fn a_form_begins_behind_the_thinking_and_without_thinking_at_once() {
    for own in [&["<think>", "</think>"][..], &[]] {
        // It may think, or answer at once; nothing else.
        let mut reply = Reply::new(own, ReplyStart::Open);
        assert!(reply.permits("<think>") && reply.permits("hello") && !reply.permits("x"));
        assert_eq!(reply.say("<think>"), Progress::Open);
        assert_eq!(reply.say("\nIs it {hello}? <think> no.\n</think>"), Progress::Open);
        assert!(reply.permits("world") && !reply.permits("x") && !reply.permits("<think>"));
        assert_eq!(reply.say("world"), Progress::Complete);
        let mut reply = Reply::new(own, ReplyStart::Open);
        assert_eq!(reply.say("hello"), Progress::Complete);
        // The prompt has opened the thinking.
        let mut reply = Reply::new(own, ReplyStart::Thinking);
        assert_eq!(reply.say("anything</think>"), Progress::Open);
        assert!(!reply.permits("anything"));
        assert_eq!(reply.say("hello"), Progress::Complete);
        // The prompt has switched it off.
        let mut reply = Reply::new(own, ReplyStart::Answer);
        assert!(!reply.permits("<think>") && reply.permits("hello"));
    }
    // A token that holds the end of the thinking and the beginning of the answer.
    let mut reply = Reply::new(&["think>he"], ReplyStart::Thinking);
    assert_eq!(reply.say("so </think>he"), Progress::Open);
    assert!(reply.permits("l") && !reply.permits("w"));
    assert_eq!(reply.say("llo"), Progress::Complete);
}
