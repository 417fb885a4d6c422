//! Whatever is packed, under every template: what was counted is what is fed.

use correx_context::{
    Candidate, ContextLayer, ContextPackId, PackError, PackRequest, SourceType, TokenBudget, pack,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;
use crate::template::ModelFacts;
use crate::testing::{CONTROL, FixedClock, default_gguf, small_pieces, small_vocabulary};
use correx_context::Role;

/// Our templates, the built-in ones and those in the style of families.
fn templates() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["builtin", "families"] {
        let path = format!("{}/src/template/{folder}", env!("CARGO_MANIFEST_DIR"));
        for file in std::fs::read_dir(path).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    found.sort();
    assert!(found.len() > 25);
    found
}

fn encoders() -> Vec<(String, ChatEncoder)> {
    let default = Vocabulary::from_gguf(&default_gguf()).unwrap();
    let vocabularies = [default, small_vocabulary(), small_pieces()].map(Arc::new);
    let mut encoders = Vec::new();
    for (name, source) in templates() {
        for vocabulary in &vocabularies {
            let facts = ModelFacts { bos: "<s>", eos: "</s>", ..ModelFacts::default() };
            let clock = Arc::new(FixedClock::default());
            let template = ChatTemplate::new(Some(&source), &facts, clock);
            assert_eq!(template.notice(), None, "{name}");
            let encoder = ChatEncoder::new(vocabulary.clone(), template).unwrap();
            encoders.push((name.clone(), encoder));
        }
    }
    encoders
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z ,.!?\n]{0,12}",
        1 => any::<String>(),
        1 => "[ \n\t]{0,3}",
        2 => prop::sample::select(vec![
            "<think>", "</think>", "\n\n", "hello world", "<tool_response>", "</tool_response>",
            "/no_think", "<<SYS>>", "```", "{{ x }}", "{% if %}", "🙂", "世界", "e\u{301}", "\u{a0}",
            "\u{fdd0}", "\u{e000}",
        ]).prop_map(str::to_owned),
        1 => prop::sample::select(CONTROL.to_vec()).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

/// System text and summaries, exchanges, status and message, as the router arranges them.
#[derive(Debug, Clone)]
struct Conversation {
    system: Vec<String>,
    exchanges: Vec<(String, String)>,
    last: Vec<String>,
    limit: usize,
}

fn any_conversation() -> impl Strategy<Value = Conversation> {
    (
        prop::collection::vec(any_text(), 0..3),
        prop::collection::vec((any_text(), any_text()), 0..5),
        prop::collection::vec(any_text(), 1..3),
        prop_oneof![Just(100_000), 20usize..300],
    )
        .prop_map(|(system, exchanges, last, limit)| Conversation {
            system,
            exchanges,
            last,
            limit,
        })
}

impl Conversation {
    fn candidates(&self) -> Vec<Candidate> {
        let candidate = |layer, role, content: &String, drop_group| Candidate {
            layer,
            source: SourceType::Conversation,
            role,
            content: content.clone(),
            separator: "\n\n",
            drop_group,
        };
        let mut all = Vec::new();
        for text in &self.system {
            all.push(candidate(ContextLayer::L0, Role::System, text, None));
        }
        for (age, (question, answer)) in self.exchanges.iter().enumerate() {
            all.push(candidate(ContextLayer::L1, Role::User, question, Some(age)));
            all.push(candidate(ContextLayer::L1, Role::Assistant, answer, Some(age)));
        }
        for text in &self.last {
            all.push(candidate(ContextLayer::L0, Role::User, text, None));
        }
        all
    }
}

/// A rendered prompt as a tokenizer without our care would encode it: every control token's text
/// is one.
fn encoded_whole(encoder: &ChatEncoder, rendered: &str) -> Vec<u32> {
    let mut control: Vec<(&str, u32)> = encoder.vocabulary.control_tokens().collect();
    control.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    let mut ids = Vec::new();
    let mut plain = 0;
    let mut place = 0;
    while place < rendered.len() {
        let found = control.iter().find(|(text, _)| rendered[place..].starts_with(text));
        match found {
            Some((text, id)) => {
                if plain < place {
                    ids.extend(encoder.vocabulary.encode(&rendered[plain..place]).unwrap());
                }
                ids.push(*id);
                place += text.len();
                plain = place;
            }
            None => place += rendered[place..].chars().next().map_or(1, char::len_utf8),
        }
    }
    if plain < rendered.len() {
        ids.extend(encoder.vocabulary.encode(&rendered[plain..]).unwrap());
    }
    if let Some(bos) = encoder.vocabulary.required_bos()
        && ids.first() != Some(&bos)
    {
        ids.insert(0, bos);
    }
    ids
}

fn check(name: &str, encoder: &ChatEncoder, talk: &Conversation) -> Result<(), TestCaseError> {
    let request = PackRequest {
        id: ContextPackId("pack".into()),
        session_id: None,
        stage_id: None,
        candidates: talk.candidates(),
        already_dropped: Vec::new(),
        budget: TokenBudget::new(talk.limit),
        strategies: Vec::new(),
    };
    let packed = match pack(request, encoder) {
        Ok(packed) => packed,
        Err(PackError::TooLarge { needed, limit, .. }) => {
            prop_assert!(needed > limit);
            return Ok(());
        }
        Err(error) => return Err(TestCaseError::fail(format!("{name}: {error}"))),
    };
    let counted: usize = packed.entries().map(|entry| entry.tokens).sum();
    let fed = packed.prompt.ids.len();
    prop_assert_eq!(counted + packed.prompt.template_tokens, fed, "{}", name);
    prop_assert_eq!(packed.budget_used, fed, "{}", name);
    prop_assert!(fed <= talk.limit, "{}", name);

    // Where content says nothing that could be taken for a control token, the ids are those of the
    // whole text; else it has no control token more than the template has of its own.
    let rendered = encoder.template.render(&packed.messages).unwrap();
    let whole = encoded_whole(encoder, rendered.as_str());
    let is_control = |id: &&u32| encoder.control.ids.contains(id);
    let said_tokens = packed.messages.iter().any(|message| {
        let said = message.content();
        said.contains(['<', '>', '[', ']', '|', '｜'])
    });
    if said_tokens {
        let own = packed.prompt.ids.iter().filter(is_control).count();
        let naive = whole.iter().filter(is_control).count();
        prop_assert!(own <= naive, "{}", name);
        let quiet = rendered.runs().filter(|(_, origin)| origin.is_none());
        let own_text: String = quiet.map(|(range, _)| &rendered.as_str()[range]).collect();
        let most = encoder.control.texts.find_iter(&own_text).count();
        prop_assert!(own <= most + 1, "{}", name);
    } else {
        prop_assert_eq!(&packed.prompt.ids, &whole, "{}", name);
    }
    Ok(())
}

/// Checks `conversations`, each under every template and vocabulary.
fn check_all(conversations: u32) {
    let encoders = encoders();
    let mut runner = TestRunner::new(ProptestConfig::with_cases(conversations));
    let result = runner.run(&any_conversation(), |talk| {
        encoders.iter().try_for_each(|(name, encoder)| check(name, encoder, &talk))
    });
    result.unwrap();
}

#[test]
fn the_count_of_a_pack_is_the_number_of_ids_fed_under_every_template() {
    check_all(12);
}

mod long {
    #[test]
    fn the_count_of_a_thousand_packs_is_the_number_of_ids_fed_under_every_template() {
        super::check_all(1000);
    }
}
