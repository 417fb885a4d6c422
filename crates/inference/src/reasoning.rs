//! Thinking: what some models write before their answer, between tags.
//!
//! A reply thinks at most once, at its very beginning. Everywhere else the tags are text: a person
//! may ask about them. And a model that does not know any tags never has its text cut:
//! [`ReasoningTags::choose`] wants them in the chat template or in the vocabulary.

use correx_context::ReplyStart;
use serde::{Deserialize, Serialize};

/// Whether a model that can be told so thinks before it answers. The others do as they were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingMode {
    /// Nothing is said about it.
    #[default]
    Auto,
    /// It answers at once.
    Off,
    /// It thinks first.
    On,
}

/// The tags around a model's thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasoningTags {
    /// Opens the thinking.
    pub open: &'static str,
    /// Closes it.
    pub close: &'static str,
}

/// The pairs that are known. Not among them: forms in which a channel is named by words of its own
/// (gpt-oss), because there a role mark and a control token end the thinking.
const KNOWN: &[ReasoningTags] = &[
    ReasoningTags { open: "<think>", close: "</think>" },
    ReasoningTags { open: "<thinking>", close: "</thinking>" },
    ReasoningTags { open: "[THINK]", close: "[/THINK]" },
    ReasoningTags { open: "<seed:think>", close: "</seed:think>" },
    ReasoningTags { open: "<mm:think>", close: "</mm:think>" },
    ReasoningTags { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
    ReasoningTags { open: "<reasoning>", close: "</reasoning>" },
];

impl ReasoningTags {
    /// The tags that a model uses, if any: those that its chat template mentions and those that are
    /// tokens of their own, the pair for which most speaks.
    pub fn choose(template: &str, is_token: impl Fn(&str) -> bool) -> Option<Self> {
        let evidence = |tags: &Self| {
            let mentioned =
                [tags.open, tags.close].into_iter().filter(|tag| template.contains(tag));
            let tokens = is_token(tags.open) && is_token(tags.close);
            mentioned.count() + usize::from(tokens)
        };
        let mut best = None;
        for tags in KNOWN {
            let weight = evidence(tags);
            if weight > best.map_or(0, |(weight, _)| weight) {
                best = Some((weight, *tags));
            }
        }
        best.map(|(_, tags)| tags)
    }

    /// Where a prompt that ends with `tail` (the template's own words, without anybody else's)
    /// leaves the model.
    pub fn reply_start(&self, tail: &str) -> ReplyStart {
        let tail = tail.trim_end();
        match () {
            () if tail.ends_with(self.close) => ReplyStart::Answer,
            () if tail.ends_with(self.open) => ReplyStart::Thinking,
            () => ReplyStart::Open,
        }
    }
}

/// One of the two tags, where it came as a control token, which has no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningTag {
    /// The opening one.
    Open,
    /// The closing one.
    Close,
}

/// What is certain of a reply, by where it belongs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// More of the thinking.
    pub thinking: String,
    /// More of the answer.
    pub answer: String,
}

/// Separates a reply's thinking from its answer while it comes.
///
/// However the text is cut into pieces, what comes out adds up to the same. No more is held back
/// than could still be a tag, and white space beside one: the thinking has none at its ends, and
/// the answer behind a thinking has none at its beginning. Nothing else is changed.
#[derive(Debug)]
pub struct ReasoningSplitter {
    tags: Option<ReasoningTags>,
    place: Place,
    held: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing but white space so far.
    Start,
    /// In a thinking that the prompt opened: models like to open it again.
    Opened,
    /// In a thinking without words so far.
    Silent,
    /// In a thinking.
    Thinking,
    /// Behind the closing tag, nothing but white space so far.
    Closed,
    Answer,
}

impl ReasoningSplitter {
    /// For a reply of a model that thinks between `tags` (`None`: it does not), to a prompt that
    /// leaves it at `start`.
    pub fn new(tags: Option<ReasoningTags>, start: ReplyStart) -> Self {
        let place = match (tags, start) {
            (None, _) | (_, ReplyStart::Answer) => Place::Answer,
            (_, ReplyStart::Open) => Place::Start,
            (_, ReplyStart::Thinking) => Place::Opened,
        };
        Self { tags, place, held: String::new() }
    }

    /// Whether the answer has not begun.
    pub fn is_before_answer(&self) -> bool {
        self.place != Place::Answer
    }

    /// Whether what follows is the answer: no thinking is open, and none can begin.
    pub fn thinking_is_over(&self) -> bool {
        matches!(self.place, Place::Closed | Place::Answer)
    }

    /// Takes the next text of the reply and returns what is certain now.
    pub fn push(&mut self, text: &str) -> Split {
        let mut split = Split::default();
        self.held.push_str(text);
        if let Some(tags) = self.tags {
            while self.advance(tags, &mut split) {}
        }
        if self.place == Place::Answer {
            split.answer.push_str(&std::mem::take(&mut self.held));
        }
        split
    }

    /// Takes a tag that came as a control token. Where it means nothing, nothing comes of it.
    pub fn push_tag(&mut self, tag: ReasoningTag) -> Split {
        let mut split = Split::default();
        match (self.place, tag) {
            (Place::Start | Place::Opened, ReasoningTag::Open) if self.held.trim().is_empty() => {
                self.held.clear();
                self.place = Place::Silent;
            }
            (Place::Start, ReasoningTag::Open) => {
                self.place = Place::Answer;
                split.answer = std::mem::take(&mut self.held);
            }
            (Place::Opened | Place::Silent | Place::Thinking, ReasoningTag::Close) => {
                split.thinking = self.last_thought();
                self.place = Place::Closed;
            }
            _ => {}
        }
        split
    }

    /// What is left when no more comes.
    pub fn finish(&mut self) -> Split {
        match self.place {
            Place::Opened | Place::Silent | Place::Thinking => {
                Split { thinking: self.last_thought(), answer: String::new() }
            }
            Place::Start | Place::Closed | Place::Answer => {
                Split { thinking: String::new(), answer: std::mem::take(&mut self.held) }
            }
        }
    }

    /// What is held of a thinking that ends here.
    fn last_thought(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        match self.place {
            Place::Thinking => held.trim_end().to_owned(),
            _ => held.trim().to_owned(),
        }
    }

    /// Goes one place on, if what is held says where to.
    fn advance(&mut self, tags: ReasoningTags, split: &mut Split) -> bool {
        match self.place {
            Place::Start | Place::Opened => {
                let words = self.held.trim_start();
                if let Some(rest) = words.strip_prefix(tags.open) {
                    self.held = rest.to_owned();
                    self.place = Place::Silent;
                } else if tags.open.starts_with(words) {
                    return false;
                } else {
                    self.place = match self.place {
                        Place::Opened => Place::Silent,
                        _ => Place::Answer,
                    };
                }
                true
            }
            Place::Silent => {
                self.held = self.held.trim_start().to_owned();
                if self.held.is_empty() {
                    return false;
                }
                self.place = Place::Thinking;
                true
            }
            Place::Thinking => match self.held.find(tags.close) {
                Some(end) => {
                    split.thinking.push_str(self.held[..end].trim_end());
                    self.held.drain(..end + tags.close.len());
                    self.place = Place::Closed;
                    true
                }
                None => {
                    let tag = partial(&self.held, tags.close);
                    let certain = self.held[..self.held.len() - tag].trim_end().len();
                    split.thinking.extend(self.held.drain(..certain));
                    false
                }
            },
            Place::Closed => {
                self.held = self.held.trim_start().to_owned();
                if self.held.is_empty() {
                    return false;
                }
                self.place = Place::Answer;
                true
            }
            Place::Answer => false,
        }
    }
}

/// How many bytes at the end of `text` could be the beginning of `tag`.
fn partial(text: &str, tag: &str) -> usize {
    (1..tag.len().min(text.len() + 1))
        .rev()
        .find(|length| tag.is_char_boundary(*length) && text.ends_with(&tag[..*length]))
        .unwrap_or(0)
}
