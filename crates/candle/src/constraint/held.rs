//! A reply that takes its form once it has done with thinking.

use correx_context::ReplyStart;

use super::{Constraint, Progress, Stuck};
use crate::reasoning::{Reasoning, ReplyText};
use crate::tokenizer::Vocabulary;

/// Where more tokens than this may come, the reply is free to say what it likes: the inside of a
/// text. Elsewhere it writes what the form asks for, again and again if need be, and there is
/// nothing to be kept from repeating.
const FREE: usize = 256;

/// A form, and where the reply is in it.
pub(crate) struct Held {
    constraint: Constraint,
    place: Place,
    /// The ids by which the model begins to think.
    opening: Vec<u32>,
    /// What the answer has said that repetition is judged by: tokens with letters or digits.
    words: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing has come: it may think first.
    Start,
    /// So many ids of the opening tag have come.
    Opening(usize),
    Thinking,
    Answer,
}

/// What may come next.
pub(crate) enum Permitted {
    /// Anything.
    All,
    /// One of these ids.
    Only(Vec<u32>),
}

impl Held {
    /// A reply that `start`s where the prompt left it, of a model that thinks by `reasoning`.
    pub(crate) fn new(
        constraint: Constraint,
        reasoning: Option<Reasoning>,
        start: ReplyStart,
        vocabulary: &Vocabulary,
    ) -> Self {
        let opening = reasoning.map(|reasoning| reasoning.opening(vocabulary)).unwrap_or_default();
        let place = match (reasoning, start) {
            (None, _) | (_, ReplyStart::Answer) => Place::Answer,
            (_, ReplyStart::Thinking) => Place::Thinking,
            (_, ReplyStart::Open) if opening.is_empty() => Place::Answer,
            (_, ReplyStart::Open) => Place::Start,
        };
        Self { constraint, place, opening, words: Vec::new() }
    }

    /// The ids that may come next.
    pub(crate) fn permitted(&mut self) -> Result<Permitted, Stuck> {
        Ok(match self.place {
            Place::Thinking => Permitted::All,
            Place::Opening(done) => Permitted::Only(vec![self.opening[done]]),
            Place::Answer => Permitted::Only(self.constraint.permitted()?),
            Place::Start => {
                let mut ids = self.constraint.permitted()?;
                if let Err(place) = ids.binary_search(&self.opening[0]) {
                    ids.insert(place, self.opening[0]);
                }
                Permitted::Only(ids)
            }
        })
    }

    /// The ids that the next one should rather not repeat, when `permitted` may come.
    pub(crate) fn words(&self, permitted: &[u32]) -> &[u32] {
        if permitted.len() > FREE { &self.words } else { &[] }
    }

    /// Goes on by `id`, which `text` has taken already.
    pub(crate) fn take(
        &mut self,
        id: u32,
        text: &ReplyText,
        vocabulary: &Vocabulary,
    ) -> Result<Progress, Stuck> {
        match self.place {
            Place::Start if id == self.opening[0] => self.opened(1),
            Place::Opening(done) => self.opened(done + 1),
            Place::Thinking if text.thinking_is_over() => {
                self.place = Place::Answer;
                // The token that ended the thinking can hold more.
                return match text.answer().trim_start() {
                    "" => Ok(Progress::Open),
                    begun => self.constraint.take_text(begun),
                };
            }
            Place::Thinking => {}
            Place::Start | Place::Answer => {
                self.place = Place::Answer;
                let says = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
                if vocabulary.reply_bytes(id).iter().any(says) {
                    self.words.push(id);
                }
                return self.constraint.take(id);
            }
        }
        Ok(Progress::Open)
    }

    fn opened(&mut self, done: usize) {
        self.place = if done < self.opening.len() { Place::Opening(done) } else { Place::Thinking };
    }
}
