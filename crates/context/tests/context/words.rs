//! The words that packs are described in, and their forms on the wire.

use correx_context::testing::WordEncoder;
use correx_context::{
    ChatMessage, ContextLayer, ContextPack, DropReason, EncodedPrompt, MessagePart, PromptEncoder,
    ReplyStart, Role, SourceType, SteeringNote, TokenBudget, TokenCounter,
};
use correx_events::{NoteScope, Timestamp};

use crate::given::{exchange, message, pack_words, summary, system};

#[test]
fn a_budget_is_the_persons_limit_or_what_the_window_leaves_beside_the_reply() {
    for (person, window, reserve, expected) in [
        (4_096, 8_192, 512, 4_096),
        (8_000, 8_192, 512, 7_680),
        (7_680, 8_192, 512, 7_680),
        (4_096, 512, 512, 0),
        (4_096, 256, 512, 0),
        (0, 8_192, 512, 0),
        (usize::MAX, 8_192, 0, 8_192),
    ] {
        let budget = TokenBudget::for_window(person, window, reserve);
        assert_eq!(budget, TokenBudget::new(expected), "{person} {window} {reserve}");
        assert_eq!(budget.limit, expected);
    }
}

#[test]
fn layers_are_ordered_from_what_stays_to_what_goes_first() {
    assert!(ContextLayer::L0 < ContextLayer::L1 && ContextLayer::L1 < ContextLayer::L2);
    let names =
        [ContextLayer::L0, ContextLayer::L1, ContextLayer::L2].map(|layer| layer.to_string());
    assert_eq!(names, ["L0", "L1", "L2"]);
}

#[test]
fn a_source_is_named_as_the_specification_names_it() {
    for (source, name) in [
        (SourceType::SystemPrompt, "systemPrompt"),
        (SourceType::WorkflowStatus, "workflowStatus"),
        (SourceType::SteeringNote("n".into()), "steeringNote:n"),
        (SourceType::Conversation, "conversation"),
        (SourceType::Message, "message"),
        (SourceType::StageSummary("a".into()), "stageSummary:a"),
        (SourceType::Task, "task"),
        (SourceType::Input("notes".into()), "input:notes"),
        (SourceType::Artifact("brief".into()), "artifact:brief"),
        (SourceType::Refusal, "refusal"),
    ] {
        assert_eq!(source.to_string(), name);
        let text = serde_json::to_string(&source).unwrap();
        assert_eq!(serde_json::from_str::<SourceType>(&text).unwrap(), source);
    }
}

#[test]
fn a_person_is_told_why_an_entry_was_left_out() {
    assert!(DropReason::Budget.to_string().contains("token budget"));
    assert!(DropReason::KeepLast(6).to_string().contains("the last 6 turns"));
}

#[test]
fn roles_have_the_names_that_chat_templates_use() {
    let names = [Role::System, Role::User, Role::Assistant].map(Role::as_str);
    assert_eq!(names, ["system", "user", "assistant"]);
}

#[test]
fn a_messages_content_is_its_parts_with_nothing_added() {
    let mut message = ChatMessage::new(Role::User, 4, "one");
    message.parts.push(MessagePart { entry: 5, text: " two\n".into() });
    assert_eq!(message.content(), "one two\n");
    assert_eq!(message.parts[0], MessagePart { entry: 4, text: "one".into() });
    assert_eq!(message.role, Role::User);
}

#[test]
fn a_prompts_total_is_the_entries_and_the_templates_tokens() {
    let prompt =
        EncodedPrompt { entry_tokens: vec![3, 0, 4], template_tokens: 5, ..Default::default() };
    assert_eq!(prompt.total(), 12);
    assert_eq!(EncodedPrompt::default().total(), 0);
}

#[test]
fn an_encoder_is_exact_unless_it_says_otherwise() {
    struct Guess;
    impl TokenCounter for Guess {
        fn count(&self, text: &str) -> Result<usize, correx_context::EncodeError> {
            Ok(text.len() / 4)
        }
    }
    impl PromptEncoder for Guess {
        fn encode(
            &self,
            _: &[ChatMessage],
            entries: usize,
        ) -> Result<EncodedPrompt, correx_context::EncodeError> {
            Ok(EncodedPrompt { entry_tokens: vec![0; entries], ..Default::default() })
        }
        fn is_exact(&self) -> bool {
            false
        }
    }
    assert!(WordEncoder::default().is_exact());
    assert!(!Guess.is_exact());
}

#[test]
fn a_steering_note_survives_json_and_needs_neither_stage_nor_scope() {
    let note = SteeringNote {
        note_id: "n".into(),
        session_id: "s".into(),
        content: "Shorter, please.".into(),
        stage_id: Some("a".into()),
        scope: NoteScope::Onward,
        created_at: Timestamp::UNIX_EPOCH,
    };
    let text = serde_json::to_string(&note).unwrap();
    assert_eq!(serde_json::from_str::<SteeringNote>(&text).unwrap(), note);

    let short = r#"{"note_id":"n","session_id":"s","content":"Shorter, please.","created_at":"1970-01-01T00:00:00Z"}"#;
    let read: SteeringNote = serde_json::from_str(short).unwrap();
    assert_eq!(read, SteeringNote { stage_id: None, scope: NoteScope::Stage, ..note });
}

#[test]
fn a_pack_survives_json() {
    let mut candidates = vec![system("sys"), summary(0, "gone"), summary(1, "kept")];
    candidates.extend(exchange(2, "q", "r"));
    candidates.push(message("now"));
    let limit = crate::given::cost(&candidates) - 1;
    let pack = pack_words(candidates, limit).unwrap();
    assert_eq!(pack.dropped.len(), 1);
    let text = serde_json::to_string(&pack).unwrap();
    assert_eq!(serde_json::from_str::<ContextPack>(&text).unwrap(), pack);
}

#[test]
fn a_layer_that_a_pack_does_not_have_is_empty() {
    let pack = pack_words(vec![system("sys")], 10).unwrap();
    assert_eq!(pack.layer(ContextLayer::L2), []);
    assert_eq!(pack.layer_tokens(ContextLayer::L2), 0);
}

#[test]
fn the_word_encoder_tells_what_was_fed() {
    let encoder = WordEncoder::default();
    let prompt = encoder
        .encode(
            &[ChatMessage::new(Role::User, 0, "b a"), ChatMessage::new(Role::User, 1, "a c")],
            2,
        )
        .unwrap();
    assert_eq!(encoder.decode(&prompt.ids), "b a a c");
    assert_eq!(prompt.entry_tokens, [2, 2]);
    assert_eq!(prompt.ids.len(), prompt.total());
    assert_eq!(encoder.count(" a  b\n").unwrap(), 2);
}

#[test]
fn a_prompt_that_was_kept_before_replies_could_begin_elsewhere_is_still_read() {
    let old = r#"{"ids":[1,2],"entry_tokens":[1],"template_tokens":1}"#;
    let read: EncodedPrompt = serde_json::from_str(old).unwrap();
    assert_eq!(read.reply_start, ReplyStart::Open);
    assert_eq!(serde_json::to_string(&read).unwrap(), old);
    let inside = EncodedPrompt { reply_start: ReplyStart::Thinking, ..read };
    let text = serde_json::to_string(&inside).unwrap();
    assert_eq!(serde_json::from_str::<EncodedPrompt>(&text).unwrap(), inside);
}
