//! Messages to ids, by provenance.
//!
//! Only the template's own text can become control tokens; what a person or a document says is
//! encoded as plain text, also when the template trims it or moves it elsewhere. And every id is
//! counted where it begins: an entry owns the ids that begin inside its text, the rest are the
//! template's.
//!
//! How: a rendered template says of each character where it comes from ([`correx_jinja::Text`]).
//! Control tokens are looked for in the template's own stretches only; what is between them is
//! encoded as plain text, across owners, as the model was trained on it.

use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use correx_context::{
    ChatMessage, EncodeError, EncodedPrompt, PromptEncoder, ReplyStart, TokenCounter,
};
use correx_inference::ThinkingMode;
use correx_jinja::Text;

use crate::reasoning::Reasoning;
use crate::template::ChatTemplate;
use crate::tokenizer::{Strip, Vocabulary, is_blank};

/// Renders and encodes as one model does. Cheap to share between threads.
pub struct ChatEncoder {
    vocabulary: Arc<Vocabulary>,
    template: ChatTemplate,
    control: ControlTokens,
    reasoning: Option<Reasoning>,
}

/// Finds control tokens in the template's text.
struct ControlTokens {
    /// Leftmost-longest.
    texts: AhoCorasick,
    ids: Vec<u32>,
}

impl ControlTokens {
    fn new(vocabulary: &Vocabulary) -> Result<Self, EncodeError> {
        let (texts, ids): (Vec<&str>, Vec<u32>) = vocabulary.control_tokens().unzip();
        let texts = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(texts)
            .map_err(|error| EncodeError::Tokenizer(error.to_string()))?;
        Ok(Self { texts, ids })
    }

    /// Cuts `rendered` into control tokens and plain text.
    fn cut(&self, rendered: &Text) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut plain = 0;
        for (run, origin) in rendered.runs() {
            if origin.is_some() {
                continue;
            }
            for found in self.texts.find_iter(&rendered.as_str()[run.clone()]) {
                let (start, end) = (run.start + found.start(), run.start + found.end());
                if plain < start {
                    pieces.push(Piece::Plain(rendered.part(plain..start)));
                }
                pieces.push(Piece::Control(self.ids[found.pattern().as_usize()]));
                plain = end;
            }
        }
        if plain < rendered.len() {
            pieces.push(Piece::Plain(rendered.part(plain..rendered.len())));
        }
        pieces
    }
}

/// A stretch of a rendered prompt.
enum Piece {
    /// A control token of the template's.
    Control(u32),
    /// Plain text of any owner.
    Plain(Text),
}

impl ChatEncoder {
    /// An encoder of `template` over `vocabulary`.
    pub fn new(vocabulary: Arc<Vocabulary>, template: ChatTemplate) -> Result<Self, EncodeError> {
        let control = ControlTokens::new(&vocabulary)?;
        let reasoning = Reasoning::of(&vocabulary, template.source());
        Ok(Self { vocabulary, template, control, reasoning })
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The template.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// How the model marks its thinking, if it thinks.
    pub fn reasoning(&self) -> Option<Reasoning> {
        self.reasoning
    }

    /// An encoder of prompts that switch the model's thinking.
    pub fn thinking(self: Arc<Self>, thinking: ThinkingMode) -> Arc<dyn PromptEncoder> {
        match thinking {
            ThinkingMode::Auto => self,
            ThinkingMode::Off | ThinkingMode::On => Arc::new(Switched { encoder: self, thinking }),
        }
    }

    /// Where the template's own words at the end of the prompt leave the model.
    fn reply_start(&self, rendered: &Text) -> ReplyStart {
        let Some(reasoning) = self.reasoning else { return ReplyStart::Open };
        let said = rendered.runs().filter(|(_, origin)| origin.is_some()).last();
        let tail = said.map_or(0, |(run, _)| run.end);
        reasoning.tags().reply_start(&rendered.as_str()[tail..])
    }

    /// What is left of `text`, the piece at `place`, when the control tokens on both sides have
    /// taken white space away.
    fn kept_beside_control(&self, pieces: &[Piece], place: usize, text: &str) -> Range<usize> {
        let strip = |place: Option<usize>| match place.and_then(|place| pieces.get(place)) {
            Some(Piece::Control(id)) => self.vocabulary.strip(*id),
            _ => Strip::default(),
        };
        let mut kept = 0..text.len();
        if strip(place.checked_sub(1)).right {
            kept.start = text.len() - text.trim_start_matches(is_blank).len();
        }
        if strip(place.checked_add(1)).left {
            kept.end = kept.start + text[kept.start..].trim_end_matches(is_blank).len();
        }
        kept
    }
}

impl TokenCounter for ChatEncoder {
    fn count(&self, text: &str) -> Result<usize, EncodeError> {
        Ok(self.vocabulary.encode(text)?.len())
    }
}

impl PromptEncoder for ChatEncoder {
    fn encode(
        &self,
        messages: &[ChatMessage],
        entries: usize,
    ) -> Result<EncodedPrompt, EncodeError> {
        self.encode_for(ThinkingMode::Auto, messages, entries)
    }
}

/// An encoder that tells the chat template whether the model is to think.
struct Switched {
    encoder: Arc<ChatEncoder>,
    thinking: ThinkingMode,
}

impl TokenCounter for Switched {
    fn count(&self, text: &str) -> Result<usize, EncodeError> {
        self.encoder.count(text)
    }
}

impl PromptEncoder for Switched {
    fn encode(
        &self,
        messages: &[ChatMessage],
        entries: usize,
    ) -> Result<EncodedPrompt, EncodeError> {
        self.encoder.encode_for(self.thinking, messages, entries)
    }
}

impl ChatEncoder {
    fn encode_for(
        &self,
        thinking: ThinkingMode,
        messages: &[ChatMessage],
        entries: usize,
    ) -> Result<EncodedPrompt, EncodeError> {
        self.encode_rendered(&self.template.render_for(messages, thinking)?, entries)
    }

    fn encode_rendered(
        &self,
        rendered: &Text,
        entries: usize,
    ) -> Result<EncodedPrompt, EncodeError> {
        let mut prompt = EncodedPrompt {
            entry_tokens: vec![0; entries],
            reply_start: self.reply_start(rendered),
            ..Default::default()
        };
        let pieces = self.control.cut(rendered);
        for (place, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Control(id) => {
                    prompt.ids.push(*id);
                    prompt.template_tokens += 1;
                }
                Piece::Plain(text) => {
                    let kept = self.kept_beside_control(&pieces, place, text.as_str());
                    let plain = &text.as_str()[kept.clone()];
                    let (ids, starts) = self.vocabulary.encode_with_starts(plain)?;
                    for start in starts {
                        let owner = text.origin(kept.start + start);
                        match owner.and_then(|entry| prompt.entry_tokens.get_mut(entry)) {
                            Some(count) => *count += 1,
                            None => prompt.template_tokens += 1,
                        }
                    }
                    prompt.ids.extend(ids);
                }
            }
        }
        if let Some(bos) = self.vocabulary.required_bos()
            && prompt.ids.first() != Some(&bos)
        {
            prompt.ids.insert(0, bos);
            prompt.template_tokens += 1;
        }
        Ok(prompt)
    }
}

#[cfg(test)]
mod packs;
#[cfg(test)]
mod tests;
