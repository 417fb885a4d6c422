use correx_context::MessagePart;
use correx_events::Timestamp;
use correx_gguf::testing::Writer;
use serde_json::Value as Json;

use super::*;
use crate::testing::FixedClock;

fn facts() -> ModelFacts<'static> {
    ModelFacts { bos: "<s>", eos: "</s>", ..ModelFacts::default() }
}

fn template(source: &str) -> ChatTemplate {
    ChatTemplate::new(Some(source), &facts(), Arc::new(FixedClock::default()))
}

fn talk(messages: &[(Role, &str)]) -> Vec<ChatMessage> {
    messages.iter().map(|(role, text)| said(*role, text)).collect()
}

fn rendered(template: &ChatTemplate, messages: &[(Role, &str)]) -> String {
    template.render(&talk(messages)).unwrap().as_str().to_owned()
}

fn builtin_for(tokens: &[&str], names: &[&'static str], pre: &'static str) -> ChatTemplate {
    let facts = ModelFacts { names: names.to_vec(), pre, marks: tokens.to_vec(), ..facts() };
    ChatTemplate::new(None, &facts, Arc::new(FixedClock::default()))
}

#[test]
fn a_missing_template_is_replaced_by_one_that_fits_the_vocabulary_with_a_notice() {
    let template = builtin_for(&["<|im_start|>", "<|im_end|>"], &[], "");
    let notice = template.notice().unwrap();
    assert!(notice.contains("no chat template"), "{notice}");
    assert!(notice.contains("ChatML"), "{notice}");
    assert!(notice.contains("vocabulary has <|im_start|> and <|im_end|>"), "{notice}");
    assert_eq!(
        rendered(&template, &[(Role::System, "Be brief."), (Role::User, "Hi")]),
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    );
}

#[test]
fn the_built_in_form_is_chosen_by_tokens_then_by_name_and_says_why() {
    let llama_3 = ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"];
    for (tokens, names, pre, form) in [
        (&llama_3[..], &["llama"][..], "llama-bpe", "Llama 3"),
        (&["<start_of_turn>", "<end_of_turn>"], &["gemma3"], "", "Gemma"),
        (&["<|user|>", "<|assistant|>", "<|end|>", "<|system|>"], &["phi3"], "", "Phi 3"),
        (&["<|im_start|>", "<|im_sep|>", "<|im_end|>"], &["phi3"], "", "Phi 4"),
        (&["<|user|>", "<|assistant|>"], &["stablelm"], "", "Zephyr"),
        (&["[gMASK]", "<sop>", "<|user|>", "<|assistant|>"], &["glm4"], "", "GLM 4"),
        (&["[INST]", "[/INST]"], &["llama"], "default", "Mistral v3"),
        (&["[INST]", "[/INST]"], &["llama"], "tekken", "Mistral v3 (Tekken)"),
        (&[], &["llama", "Llama-2-7b-Chat"], "", "Llama 2"),
        (&[], &["llama", "Mistral 7B Instruct v0.1"], "", "Mistral v1"),
        (&[], &["llama", "zephyr-7b-beta"], "", "Zephyr"),
        (&[], &["llama", "Some base model"], "", "plain text (User: … Assistant: …)"),
    ] {
        let template = builtin_for(tokens, names, pre);
        let notice = template.notice().unwrap();
        assert!(notice.contains(&format!("the built-in form {form} is used, because")), "{notice}");
        assert_eq!(template.stop_text().is_some(), form.starts_with("plain"), "{form}");
        let all = [
            (Role::System, "the system"),
            (Role::User, "question one"),
            (Role::Assistant, "answer"),
            (Role::User, "question two"),
        ];
        let shown = rendered(&template, &all);
        let places: Vec<usize> = all.iter().map(|(_, text)| shown.find(text).unwrap()).collect();
        assert!(places.is_sorted(), "{shown}");
    }
}

#[test]
fn broken_hostile_and_lossy_templates_are_replaced_not_obeyed() {
    let loops = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    let floods = "{% for a in range(1000) %}{{ 'x' * 1000000 }}{% endfor %}";
    let doubles = "{% set n = namespace(x='x') %}{% for a in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}";
    for source in [
        "{% for message in messages %}",
        "{{ nothing.at.all }}",
        "{{ raise_exception('no') }}",
        "{% include '/etc/passwd' %}",
        "only this",
        "{{ messages[0].content }}",
        loops,
        floods,
        doubles,
        &"{{ (".repeat(1000),
        &format!("{{{{ {}1 }}}}", "not ".repeat(50_000)),
        &format!("{{% set {}a", "(".repeat(100_000)),
        &"x".repeat(1 << 20),
        "",
    ] {
        let template = template(source);
        let start: String = source.chars().take(40).collect();
        let notice = template.notice().unwrap();
        assert!(notice.contains("does not work"), "{start} {notice}");
        assert!(rendered(&template, &[(Role::User, "Hi")]).contains("User: Hi"), "{start}");
    }
}

/// Each message as `{{ said }}`, in the form that most models know.
fn turns(each: &str, said: &str) -> String {
    format!(
        "{{% for m in {each} %}}<|im_start|>{{{{ m.role }}}}\n{{{{ {said} }}}}<|im_end|>\n{{% endfor %}}<|im_start|>assistant\n"
    )
}

#[test]
fn a_template_that_loses_changes_repeats_or_reorders_what_is_said_is_replaced() {
    for source in [
        turns("messages", "m.content[:12]"),
        turns("messages", "m.content | upper"),
        turns("messages", "m.content ~ m.content"),
        turns("messages", "m.content | replace('\n', ' ')"),
        turns("messages", "m.content.split() | join(' ')"),
        turns("messages | reverse", "m.content"),
        turns("messages[-4:]", "m.content"),
        turns("messages[:4]", "m.content"),
        turns("messages + messages", "m.content"),
        "{% if messages | length > 5 %}{{ raise_exception('too long') }}{% endif %}".to_owned()
            + &turns("messages", "m.content"),
    ] {
        let template = template(&source);
        let notice = template.notice().unwrap_or_else(|| panic!("accepted: {source}"));
        assert!(notice.contains("does not work"), "{notice}");
    }
}

#[test]
fn what_a_template_loses_only_of_a_real_talk_is_noticed_and_said() {
    let long = (0..120).map(|n| match n % 2 {
        0 => (Role::User, format!("question {n}")),
        _ => (Role::Assistant, format!("answer {n}")),
    });
    let long: Vec<ChatMessage> = long.map(|(role, text)| said(role, &text)).collect();
    let secret = talk(&[(Role::User, "the secret: 12")]);
    for (source, talk) in [
        (turns("messages[-100:]", "m.content"), &long),
        (turns("messages", "m.content | replace('secret', '')"), &secret),
        (
            "{% if messages | length > 100 %}{{ raise_exception('too long') }}{% endif %}"
                .to_owned()
                + &turns("messages", "m.content"),
            &long,
        ),
    ] {
        let template = template(&source);
        assert_eq!(template.notice(), None, "{source}");
        rendered(&template, &[(Role::User, "Hi")]);
        assert_eq!(template.notice(), None, "a talk that it shows changes nothing");
        let shown = template.render(talk).unwrap();
        for message in talk {
            assert!(shown.as_str().contains(&message.content()), "{source}");
        }
        assert!(template.notice().unwrap().contains("does not work"), "{source}");
        let after = rendered(&template, &[(Role::User, "Hi")]);
        assert!(!after.contains("<|im_start|>"), "it stays with the form that it took: {after}");
    }
}

#[test]
fn thinking_may_be_dropped_from_answers_and_nothing_else_may() {
    let source = turns(
        "messages",
        "m.content.split('</think>')[-1].strip() if m.role == 'assistant' else m.content",
    );
    let template = template(&source);
    let shown = rendered(
        &template,
        &[
            (Role::User, "a</think>b"),
            (Role::Assistant, "<think>hm</think>\n\nFour."),
            (Role::User, "c"),
        ],
    );
    assert!(
        shown.contains("a</think>b")
            && shown.contains("\nFour.<|im_end|>")
            && !shown.contains("hm")
    );
    assert_eq!(template.notice(), None);
    let source = turns("messages", "m.content.split('</think>')[-1]");
    let template = self::template(&source);
    assert!(rendered(&template, &[(Role::User, "a</think>b")]).contains("a</think>b"));
    assert!(template.notice().is_some());
}

#[test]
fn a_template_that_refuses_the_system_role_is_given_none() {
    let source = "{{ bos_token }}{% for m in messages %}\
        {% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}\
        [{{ m.role }}]{{ m.content | trim }}{{ eos_token }}{% endfor %}";
    let template = template(source);
    assert_eq!((template.notice(), template.shape().system), (None, SystemRole::Merged));
    assert_eq!(rendered(&template, &[(Role::User, " x ")]), "<s>[user]x</s>");
    assert_eq!(
        rendered(&template, &[(Role::System, "a"), (Role::User, "b")]),
        "<s>[user]a\n\nb</s>"
    );
    assert_eq!(rendered(&template, &[(Role::System, "a")]), "<s>[user]a</s>");
}

/// A template in the style of a family of models.
fn family(name: &str) -> ChatTemplate {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/template/families/");
    template(&std::fs::read_to_string(format!("{folder}{name}.jinja")).unwrap())
}

#[test]
fn what_a_template_cannot_take_is_found_out_and_brought_into_its_shape() {
    for (name, system, turns, content) in [
        ("qwen-thinking", SystemRole::Own, Turns::Free, ContentForm::Text),
        ("deepseek-thinking", SystemRole::Own, Turns::Free, ContentForm::Text),
        ("strict-turns", SystemRole::Merged, Turns::Alternating, ContentForm::Text),
        ("strict-turns-with-system", SystemRole::Own, Turns::Alternating, ContentForm::Text),
        ("no-system", SystemRole::Merged, Turns::Free, ContentForm::Text),
        ("silent-system", SystemRole::Merged, Turns::Free, ContentForm::Text),
        ("parts", SystemRole::Own, Turns::Free, ContentForm::Parts),
        ("parts-or-text", SystemRole::Own, Turns::Free, ContentForm::Text),
        ("dated", SystemRole::Own, Turns::Free, ContentForm::Text),
        ("generation-block", SystemRole::Own, Turns::Free, ContentForm::Text),
        ("command-like", SystemRole::Own, Turns::Alternating, ContentForm::Text),
        ("channels", SystemRole::Own, Turns::Free, ContentForm::Text),
    ] {
        let template = family(name);
        assert_eq!(template.notice(), None, "{name}");
        assert_eq!(*template.shape(), Shape { system, turns, content }, "{name}");
        let all = [
            (Role::System, "the system"),
            (Role::User, "one"),
            (Role::User, "two"),
            (Role::Assistant, "three"),
            (Role::User, "four"),
        ];
        let shown = rendered(&template, &all);
        assert!(all.iter().all(|(_, text)| shown.contains(text)), "{name}: {shown}");
    }
    assert_eq!(
        rendered(&family("parts"), &[(Role::User, "Hi")]),
        "<s><|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    );
}

#[test]
fn templates_render_as_python_renders_them() {
    let cases: Vec<Json> = serde_json::from_str(include_str!("recorded.json")).unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/template/");
    assert!(cases.len() > 100);
    for case in cases {
        let file = case["file"].as_str().unwrap();
        let template = template(&std::fs::read_to_string(format!("{folder}{file}")).unwrap());
        assert_eq!(template.notice(), None, "{file}");
        let messages: Vec<ChatMessage> = case["variables"]["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| {
                let role = match message["role"].as_str().unwrap() {
                    "system" => Role::System,
                    "user" => Role::User,
                    _ => Role::Assistant,
                };
                said(role, message["content"].as_str().unwrap())
            })
            .collect();
        let shown = template.unchecked(&Shape::default(), &messages, ThinkingMode::Auto);
        match (shown, case["output"].as_str()) {
            (Ok(shown), Some(expected)) => assert_eq!(shown.as_str(), expected, "{file}"),
            (Err(EncodeError::Template(_)), None) => {}
            (own, expected) => panic!("{file}\n{own:?}\n{expected:?}"),
        }
    }
}

#[test]
fn every_entry_keeps_its_text_through_merging_and_trimming() {
    let part = |entry, text: &str| MessagePart { entry, text: text.to_owned() };
    let messages = [
        ChatMessage { role: Role::System, parts: vec![part(0, "rules"), part(1, " more")] },
        ChatMessage { role: Role::User, parts: vec![part(2, "  hello"), part(3, " there  ")] },
    ];
    let text = family("no-system").render(&messages).unwrap();
    let owned: Vec<(Option<usize>, &str)> =
        text.runs().map(|(range, origin)| (origin, &text.as_str()[range])).collect();
    assert_eq!(
        owned,
        [
            (None, "<s><start_of_turn>user\n"),
            (Some(0), "rules"),
            (Some(1), " more\n\n"),
            (Some(2), "  hello"),
            (Some(3), " there"),
            (None, "<end_of_turn>\n<start_of_turn>model\n"),
        ]
    );
}

#[test]
fn a_file_with_several_templates_gives_its_default_one() {
    let names = |names: &[&str]| names.iter().collect::<correx_gguf::Texts>();
    for (texts, names, expected) in [
        (&[("", "D"), (".tool_use", "T")][..], names(&["tool_use"]), Some("D")),
        (&[(".default", "D"), (".tool_use", "T")], names(&["tool_use", "default"]), Some("D")),
        (&[(".chat", "C"), (".tool_use", "T")], names(&["tool_use", "chat"]), Some("C")),
        (&[(".tool_use", "T")], names(&["tool_use"]), None),
        (&[], names(&[]), None),
    ] {
        let mut writer = Writer::new().entry("tokenizer.chat_templates", names);
        for (name, text) in texts {
            writer = writer.entry(&format!("tokenizer.chat_template{name}"), *text);
        }
        let bytes = writer.to_bytes();
        let gguf = Gguf::read(std::io::Cursor::new(&bytes), bytes.len() as u64).unwrap();
        assert_eq!(source_in(&gguf), expected);
    }
}

#[test]
fn dates_are_the_clocks() {
    let clock = FixedClock(Timestamp::from_second(1_700_000_000).unwrap());
    let template = ChatTemplate::new(
        Some("{{ strftime_now('%Y') }}{% for m in messages %}{{ m.content }}{% endfor %}"),
        &facts(),
        Arc::new(clock),
    );
    assert_eq!(rendered(&template, &[(Role::User, "x")]), "2023x");
}

#[test]
fn templates_that_can_switch_the_thinking_are_told_whether_to() {
    let source = "{% for m in messages %}{{ m.content }}{% endfor %}\
        {% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}\
        {{ enable_thinking | default('own way') }}";
    let template = template(source);
    let shown = |mode| {
        let shown = template.render_for(&[said(Role::User, "x ")], mode).unwrap();
        shown.as_str().to_lowercase()
    };
    assert_eq!(shown(ThinkingMode::Auto), "x own way");
    assert_eq!(shown(ThinkingMode::Off), "x <think></think>false");
    assert_eq!(shown(ThinkingMode::On), "x true");
}
