//! What a model was shown, or would be.

use correx_context::{ContextLayer, ContextPack, SourceType};
use correx_events::{ContextAssembled, EntryFate, InferenceCompleted};
use correx_protocol::{ContextView, EntryView, Layer};
use correx_router::{Draft, ReplyReport};

use super::count;

/// What a stage's attempt was shown; the texts are to be read by their address.
pub fn context_of_attempt(
    stage_title: &str,
    assembled: &ContextAssembled,
    inference: Option<&InferenceCompleted>,
    reply_reserve: usize,
) -> ContextView {
    let entries = assembled
        .entries
        .iter()
        .map(|entry| EntryView {
            layer: match entry.layer.as_str() {
                "L1" => Layer::L1,
                "L2" => Layer::L2,
                _ => Layer::L0,
            },
            source: for_people(&entry.source),
            tokens: count(entry.tokens),
            text: None,
            hash: Some(entry.text.clone()),
            dropped: match &entry.fate {
                EntryFate::Kept => None,
                EntryFate::Dropped { reason } => Some(reason.clone()),
            },
        })
        .collect();
    let reused = inference
        .filter(|done| done.stage_id == assembled.stage_id && done.attempt == assembled.attempt)
        .map(|done| count(done.reused_tokens));
    ContextView {
        title: format!("{stage_title}, attempt {}", assembled.attempt),
        entries,
        template_tokens: count(assembled.template_tokens),
        prompt_tokens: count(assembled.prompt_tokens),
        reply_reserve: count(reply_reserve),
        budget_limit: count(assembled.budget_limit),
        reused_tokens: reused,
        exact: true,
    }
}

/// What the router's model was shown for an answer.
pub fn context_of_reply(report: &ReplyReport) -> ContextView {
    let entries = report
        .entries
        .iter()
        .map(|entry| EntryView {
            layer: layer(entry.layer),
            source: for_people(&entry.source.to_string()),
            tokens: count(entry.tokens),
            text: Some(entry.content.clone()),
            hash: None,
            dropped: entry.dropped.clone(),
        })
        .collect();
    ContextView {
        title: "Router".into(),
        entries,
        template_tokens: count(report.template_tokens),
        prompt_tokens: count(report.prompt_tokens),
        reply_reserve: count(report.reply_reserve),
        budget_limit: count(report.budget_limit),
        reused_tokens: Some(count(report.reused_tokens)),
        exact: report.exact,
    }
}

/// What the router's model would be shown. The message being typed is not sent back.
pub fn context_of_pack(pack: &ContextPack, reply_reserve: usize, exact: bool) -> ContextView {
    let kept = pack.entries().map(|entry| (entry, None));
    let dropped =
        pack.dropped.iter().map(|dropped| (&dropped.entry, Some(dropped.reason.to_string())));
    let entries = kept
        .chain(dropped)
        .map(|(entry, dropped)| EntryView {
            layer: layer(entry.layer),
            source: for_people(&entry.source.to_string()),
            tokens: count(entry.tokens),
            text: (entry.source != SourceType::Message).then(|| entry.content.clone()),
            hash: None,
            dropped,
        })
        .collect();
    ContextView {
        title: "Router, next answer".into(),
        entries,
        template_tokens: count(pack.prompt.template_tokens),
        prompt_tokens: count(pack.budget_used),
        reply_reserve: count(reply_reserve),
        budget_limit: count(pack.budget_limit),
        reused_tokens: None,
        exact,
    }
}

/// The prompt of a draft; without its message when it does not fit; `None` when not even that
/// could be made.
pub fn context_of_draft(draft: &Draft) -> Option<ContextView> {
    let pack = draft.pack.as_ref().ok().or(draft.without.as_ref())?;
    Some(context_of_pack(pack, draft.reply_reserve, draft.exact))
}

fn layer(layer: ContextLayer) -> Layer {
    match layer {
        ContextLayer::L0 => Layer::L0,
        ContextLayer::L1 => Layer::L1,
        ContextLayer::L2 => Layer::L2,
    }
}

/// A source's stored name in words.
fn for_people(source: &str) -> String {
    let (kind, name) = source.split_once(':').unwrap_or((source, ""));
    match kind {
        "systemPrompt" => "instructions".into(),
        "workflowStatus" => "status of the run".into(),
        "steeringNote" => "steering note".into(),
        "conversation" => "conversation".into(),
        "message" => "your message".into(),
        "stageSummary" => format!("summary of {name}"),
        "task" => "task".into(),
        "input" => format!("input {name}"),
        "artifact" => format!("artifact {name}"),
        "refusal" => "why the last attempt was refused".into(),
        _ => source.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use correx_context::testing::WordEncoder;
    use correx_context::{Candidate, ContextPackId, PackRequest, Role, TokenBudget, pack};
    use correx_events::{BlobHash, ContextEntryRecord};

    use super::*;

    fn assembled() -> ContextAssembled {
        let entry = |source: &str, fate| ContextEntryRecord {
            layer: "L0".into(),
            source: source.into(),
            tokens: 5,
            text: BlobHash::of(source.as_bytes()),
            fate,
        };
        ContextAssembled {
            stage_id: "draft".into(),
            attempt: 2,
            entries: vec![
                entry("input:notes", EntryFate::Kept),
                entry("steeringNote:n1", EntryFate::Dropped { reason: "no room".into() }),
            ],
            template_tokens: 7,
            prompt_tokens: 12,
            budget_limit: 100,
            prompt_ids: BlobHash::of(b"ids"),
            judges: false,
            piece: None,
        }
    }

    #[test]
    fn an_attempts_entries_are_addresses_with_their_fate() {
        let view = context_of_attempt("Draft", &assembled(), None, 80);
        assert_eq!(view.title, "Draft, attempt 2");
        assert_eq!((view.prompt_tokens, view.template_tokens, view.reply_reserve), (12, 7, 80));
        assert_eq!(view.entries[0].source, "input notes");
        assert_eq!(view.entries[0].hash, Some(BlobHash::of(b"input:notes")));
        assert_eq!(view.entries[0].text, None);
        assert_eq!(view.entries[1].source, "steering note");
        assert_eq!(view.entries[1].dropped.as_deref(), Some("no room"));
        assert_eq!(view.reused_tokens, None);
    }

    #[test]
    fn the_rows_of_a_packs_view_add_up_to_its_prompt() {
        let candidate = |source, content: &str, drop_group: Option<usize>| Candidate {
            layer: if drop_group.is_some() { ContextLayer::L1 } else { ContextLayer::L0 },
            source,
            role: Role::User,
            content: content.into(),
            separator: "\n",
            drop_group,
        };
        let request = PackRequest {
            id: ContextPackId("p".into()),
            session_id: None,
            stage_id: None,
            candidates: vec![
                candidate(SourceType::Conversation, "old words that go", Some(0)),
                candidate(SourceType::SystemPrompt, "stay", None),
                candidate(SourceType::Message, "secret draft", None),
            ],
            already_dropped: Vec::new(),
            budget: TokenBudget::new(8),
            strategies: Vec::new(),
        };
        let pack = pack(request, &WordEncoder::default()).unwrap();
        let view = context_of_pack(&pack, 9, true);
        let kept: u32 =
            view.entries.iter().filter(|entry| entry.dropped.is_none()).map(|e| e.tokens).sum();
        assert_eq!(kept + view.template_tokens, view.prompt_tokens);
        assert!(view.entries.iter().any(|entry| entry.dropped.is_some()));
        let texts: Vec<_> = view.entries.iter().filter_map(|entry| entry.text.as_deref()).collect();
        assert!(!texts.contains(&"secret draft"));
    }
}
