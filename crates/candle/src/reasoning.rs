//! A model's thinking, from the ids of its reply.

use correx_inference::{ReasoningSplitter, ReasoningTag, ReasoningTags, Split, Thinking};

use crate::stream::{StopText, TextStream};
use crate::tokenizer::Vocabulary;
use correx_context::ReplyStart;

/// How a model marks its thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reasoning {
    tags: ReasoningTags,
    /// The tags' ids where they are control tokens, which have no text in a reply.
    open: Option<u32>,
    close: Option<u32>,
}

impl Reasoning {
    /// How the model with this vocabulary and chat template does it; `None`: it does not think.
    pub fn of(vocabulary: &Vocabulary, template: &str) -> Option<Self> {
        let tags = ReasoningTags::choose(template, |text| vocabulary.is_own_token(text))?;
        let id = |tag: &str| {
            vocabulary.control_tokens().find(|(text, _)| *text == tag).map(|(_, id)| id)
        };
        Some(Self { tags, open: id(tags.open), close: id(tags.close) })
    }

    /// The tags.
    pub fn tags(&self) -> ReasoningTags {
        self.tags
    }

    /// The ids by which a model with this vocabulary begins to think.
    pub(crate) fn opening(&self, vocabulary: &Vocabulary) -> Vec<u32> {
        match self.open {
            Some(id) => vec![id],
            None => vocabulary.encode(self.tags.open).unwrap_or_default(),
        }
    }

    fn tag(&self, id: u32) -> Option<ReasoningTag> {
        match Some(id) {
            id if id == self.open => Some(ReasoningTag::Open),
            id if id == self.close => Some(ReasoningTag::Close),
            _ => None,
        }
    }
}

/// The text of a reply as its ids come: what is thought and what is answered.
pub(crate) struct ReplyText {
    reasoning: Option<Reasoning>,
    stream: TextStream,
    stop: StopText,
    splitter: ReasoningSplitter,
    thinking: String,
    answer: String,
    tokens: usize,
    thinking_tokens: usize,
}

impl ReplyText {
    /// The reply of a model to a prompt that leaves it at `start`; it ends at `stop`.
    pub(crate) fn new(
        reasoning: Option<Reasoning>,
        start: ReplyStart,
        stop: Option<&'static str>,
    ) -> Self {
        let tags = reasoning.map(|reasoning| reasoning.tags);
        Self {
            reasoning,
            stream: TextStream::new(),
            stop: StopText::new(stop),
            splitter: ReasoningSplitter::new(tags, start),
            thinking: String::new(),
            answer: String::new(),
            tokens: 0,
            thinking_tokens: 0,
        }
    }

    /// Takes the reply's next id; returns the text that is certain now.
    pub(crate) fn push(&mut self, id: u32, vocabulary: &Vocabulary) -> Split {
        self.push_token(self.reasoning.and_then(|known| known.tag(id)), vocabulary.reply_bytes(id))
    }

    fn push_token(&mut self, tag: Option<ReasoningTag>, bytes: &[u8]) -> Split {
        self.tokens += 1;
        let split = match tag {
            // No character goes on behind a tag.
            Some(tag) => {
                let mut rest = self.stop.push(&self.stream.finish());
                rest.push_str(&self.stop.finish());
                let mut split = self.splitter.push(&rest);
                let more = self.splitter.push_tag(tag);
                split.thinking.push_str(&more.thinking);
                split.answer.push_str(&more.answer);
                split
            }
            None => {
                let text = self.stop.push(&self.stream.push(bytes));
                self.splitter.push(&text)
            }
        };
        if self.splitter.is_before_answer() {
            self.thinking_tokens = self.tokens;
        }
        self.keep(split)
    }

    /// Whether the model has thought and is done with it.
    pub(crate) fn thinking_is_over(&self) -> bool {
        self.splitter.thinking_is_over()
    }

    /// The answer so far.
    pub(crate) fn answer(&self) -> &str {
        &self.answer
    }

    /// Whether the text that ends a reply has come.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stop.is_met()
    }

    /// What is left when no more comes.
    pub(crate) fn finish(&mut self) -> Split {
        let mut rest = self.stop.push(&self.stream.finish());
        rest.push_str(&self.stop.finish());
        let mut split = self.splitter.push(&rest);
        let more = self.splitter.finish();
        split.thinking.push_str(&more.thinking);
        split.answer.push_str(&more.answer);
        self.keep(split)
    }

    /// The whole answer, and the thinking before it.
    pub(crate) fn into_parts(self) -> (String, Option<Thinking>) {
        let thinking = (!self.thinking.is_empty())
            .then_some(Thinking { text: self.thinking, tokens: self.thinking_tokens });
        (self.answer, thinking)
    }

    fn keep(&mut self, split: Split) -> Split {
        self.thinking.push_str(&split.thinking);
        self.answer.push_str(&split.answer);
        split
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAGS: ReasoningTags = ReasoningTags { open: "<think>", close: "</think>" };

    fn reply(start: ReplyStart, tokens: &[Result<&[u8], ReasoningTag>]) -> ReplyText {
        let reasoning = Reasoning { tags: TAGS, open: None, close: None };
        let mut reply = ReplyText::new(Some(reasoning), start, None);
        for token in tokens {
            match token {
                Ok(bytes) => reply.push_token(None, bytes),
                Err(tag) => reply.push_token(Some(*tag), b""),
            };
        }
        reply.finish();
        reply
    }

    fn thought(text: &str, tokens: usize) -> Option<Thinking> {
        Some(Thinking { text: text.into(), tokens })
    }

    #[test]
    fn tags_of_text_and_of_control_tokens_are_one() {
        let text = reply(
            ReplyStart::Open,
            &[Ok(b"<th"), Ok(b"ink>\n"), Ok(b"two"), Ok(b"\n</think"), Ok(b">\n\n"), Ok(b"Four.")],
        );
        assert_eq!(text.into_parts(), ("Four.".into(), thought("two", 5)));
        let control = reply(
            ReplyStart::Open,
            &[Err(ReasoningTag::Open), Ok(b"two"), Err(ReasoningTag::Close), Ok(b"Four"), Ok(b".")],
        );
        assert_eq!(control.into_parts(), ("Four.".into(), thought("two", 3)));
    }

    #[test]
    fn characters_in_pieces_stay_whole_on_both_sides_of_a_tag() {
        let (first, second) = "é".as_bytes().split_at(1);
        let pieces = [Ok(first), Ok(second), Ok(b"</think>" as &[u8]), Ok(first), Ok(second)];
        let whole = reply(ReplyStart::Thinking, &pieces);
        assert_eq!(whole.into_parts(), ("é".into(), thought("é", 4)));
        // One that is broken off by a control tag stays on its side.
        let broken = [Ok(first), Err(ReasoningTag::Close), Ok(b"x" as &[u8])];
        let (answer, thinking) = reply(ReplyStart::Thinking, &broken).into_parts();
        assert_eq!((answer.as_str(), thinking.unwrap().text.as_str()), ("x", "\u{fffd}"));
    }

    #[test]
    fn an_empty_thinking_is_none_and_one_without_an_end_has_no_answer() {
        let empty = reply(ReplyStart::Open, &[Ok(b"<think>\n\n</think>\n\n"), Ok(b"Four.")]);
        assert_eq!(empty.into_parts(), ("Four.".into(), None));
        let endless = reply(ReplyStart::Thinking, &[Ok(b"Hm, "), Ok(b"two or three?")]);
        assert_eq!(endless.into_parts(), (String::new(), thought("Hm, two or three?", 2)));
    }
}
