//! What the tests pack.

use correx_context::testing::WordEncoder;
use correx_context::{
    Candidate, CompressionStrategy, ContextEntry, ContextLayer, ContextPack, ContextPackId,
    PackError, PackRequest, Role, SourceType, TokenBudget, pack,
};

pub(crate) fn request(candidates: Vec<Candidate>, limit: usize) -> PackRequest {
    PackRequest {
        id: ContextPackId("pack".into()),
        session_id: Some("s".into()),
        stage_id: Some("a".into()),
        candidates,
        already_dropped: Vec::new(),
        budget: TokenBudget::new(limit),
        strategies: vec![CompressionStrategy::L0Immutable],
    }
}

pub(crate) fn pack_words(
    candidates: Vec<Candidate>,
    limit: usize,
) -> Result<ContextPack, PackError> {
    pack(request(candidates, limit), &WordEncoder::default())
}

/// A text that is never dropped.
pub(crate) fn fixed(source: SourceType, role: Role, content: &str) -> Candidate {
    Candidate {
        layer: ContextLayer::L0,
        source,
        role,
        content: content.into(),
        separator: "\n\n",
        drop_group: None,
    }
}

pub(crate) fn system(content: &str) -> Candidate {
    fixed(SourceType::SystemPrompt, Role::System, content)
}

pub(crate) fn message(content: &str) -> Candidate {
    fixed(SourceType::Message, Role::User, content)
}

/// A stage summary that goes in its turn.
pub(crate) fn summary(group: usize, content: &str) -> Candidate {
    Candidate {
        layer: ContextLayer::L2,
        source: SourceType::StageSummary(format!("stage-{group}").into()),
        drop_group: Some(group),
        ..system(content)
    }
}

/// A person's turn and the answer to it, which go together.
pub(crate) fn exchange(group: usize, asked: &str, answered: &str) -> [Candidate; 2] {
    [(Role::User, asked), (Role::Assistant, answered)].map(|(role, content)| Candidate {
        layer: ContextLayer::L1,
        drop_group: Some(group),
        ..fixed(SourceType::Conversation, role, content)
    })
}

/// What a pack of words costs: the words, each message's marks, the reply's mark.
pub(crate) fn cost(kept: &[Candidate]) -> usize {
    let words = |text: &str| text.split_whitespace().count();
    let mut total = WordEncoder::REPLY_MARK;
    for (index, candidate) in kept.iter().enumerate() {
        let joins = index > 0 && kept[index - 1].role == candidate.role;
        total += words(&candidate.content)
            + if joins { words(candidate.separator) } else { WordEncoder::PER_MESSAGE };
    }
    total
}

pub(crate) fn contents<'a>(entries: impl IntoIterator<Item = &'a ContextEntry>) -> Vec<&'a str> {
    entries.into_iter().map(|entry| entry.content.as_str()).collect()
}

pub(crate) fn dropped(pack: &ContextPack) -> Vec<&str> {
    contents(pack.dropped.iter().map(|dropped| &dropped.entry))
}
