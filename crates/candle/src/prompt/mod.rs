//! Messages to ids, by provenance.
//!
//! Only the template's own text can become control tokens; what a person or a document says is
//! encoded as plain text, also when the template trims it or moves it elsewhere. And every id is
//! counted where it begins: an entry owns the ids that begin inside its text, the rest are the
//! template's.
//!
//! How: the parts are rendered between *marks*, characters that occur nowhere else, and control
//! tokens' texts inside them are broken up by one more such character ([`marks`]). (When a template
//! cuts a part in two, a second rendering settles which control tokens are its own.) The rendering
//! is then cut at the control tokens that are still whole, marks and breakers are taken out, and
//! what is left is encoded as plain text with its owners remembered ([`ownership`]).

mod marks;
mod ownership;

use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use correx_context::{
    ChatMessage, EncodeError, EncodedPrompt, MessagePart, PromptEncoder, ReplyStart, Role,
    TokenCounter,
};
use correx_inference::ThinkingMode;

use crate::reasoning::Reasoning;
use crate::template::{ChatTemplate, SystemRole, TemplateMessage};
use crate::tokenizer::{Strip, Vocabulary, is_blank};

use marks::{Blanks, Guard, Marks, Placed};
use ownership::Piece;

/// Renders and encodes as one model does. Cheap to share between threads.
pub struct ChatEncoder {
    vocabulary: Arc<Vocabulary>,
    template: ChatTemplate,
    control: ControlTokens,
    reasoning: Option<Reasoning>,
}

/// Finds control tokens in rendered text.
struct ControlTokens {
    /// Leftmost-longest, for cutting.
    cut: AhoCorasick,
    /// Every occurrence, for breaking.
    all: AhoCorasick,
    ids: Vec<u32>,
    texts: Vec<String>,
    /// The characters that they begin with.
    firsts: Vec<char>,
}

impl ControlTokens {
    fn new(vocabulary: &Vocabulary) -> Result<Self, EncodeError> {
        let (texts, ids): (Vec<String>, Vec<u32>) =
            vocabulary.control_tokens().map(|(text, id)| (text.to_owned(), id)).unzip();
        let build = |kind| {
            AhoCorasick::builder()
                .match_kind(kind)
                .build(&texts)
                .map_err(|error| EncodeError::Tokenizer(error.to_string()))
        };
        let mut firsts: Vec<char> = texts.iter().filter_map(|text| text.chars().next()).collect();
        firsts.sort_unstable();
        firsts.dedup();
        Ok(Self {
            cut: build(MatchKind::LeftmostLongest)?,
            all: build(MatchKind::Standard)?,
            ids,
            texts,
            firsts,
        })
    }
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

    /// Renders the marked messages.
    fn render(
        &self,
        thinking: ThinkingMode,
        shaped: &[(Role, Vec<MessagePart>)],
        marks: &Marks,
        blanks: Blanks,
        guard: Guard,
    ) -> Result<(Placed, String), EncodeError> {
        let mut placed = Placed::default();
        let marked: Vec<TemplateMessage> = shaped
            .iter()
            .map(|(role, parts)| TemplateMessage {
                role: role.as_str(),
                content: placed.message(marks, &self.control.all, parts, blanks, guard),
            })
            .collect();
        Ok((placed, self.template.render_for(&marked, thinking)?))
    }

    /// What is left of `text`, the piece at `place`, when the control tokens on both sides have
    /// taken white space away.
    fn kept_beside_control(&self, pieces: &[Piece], place: usize, text: &str) -> Range<usize> {
        let strip = |place: Option<usize>| match place.and_then(|place| pieces.get(place)) {
            Some(Piece::Control(pattern)) => self.vocabulary.strip(self.control.ids[*pattern]),
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

    /// The messages as the template can take them.
    fn shaped(&self, messages: &[ChatMessage]) -> Vec<(Role, Vec<MessagePart>)> {
        let mut shaped: Vec<(Role, Vec<MessagePart>)> =
            messages.iter().map(|message| (message.role, message.parts.clone())).collect();
        if self.template.system_role() == SystemRole::Merged {
            let mut system = Vec::new();
            shaped.retain_mut(|(role, parts)| {
                let own = *role != Role::System;
                if !own {
                    system.append(parts);
                }
                own
            });
            if let Some(last) = system.last_mut() {
                last.text.push_str("\n\n");
                match shaped.iter_mut().find(|(role, _)| *role == Role::User) {
                    Some((_, parts)) => {
                        parts.splice(0..0, system);
                    }
                    None => shaped.insert(0, (Role::User, system)),
                }
            }
        }
        shaped
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
    /// Where the template's own words at the end of the prompt leave the model.
    fn reply_start(&self, pieces: &[Piece]) -> ReplyStart {
        let Some(reasoning) = self.reasoning else { return ReplyStart::Open };
        let mut tail = String::new();
        for piece in pieces.iter().rev() {
            match piece {
                Piece::Control(pattern) => {
                    tail.insert_str(0, &self.control.texts[*pattern])
                }
                Piece::Plain { text, owners } => {
                    let owned = owners.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
                    tail.insert_str(0, text.get(owned..).unwrap_or_default());
                    if owned > 0 {
                        break;
                    }
                }
            }
        }
        reasoning.tags().reply_start(&tail)
    }

    fn encode_for(
        &self,
        thinking: ThinkingMode,
        messages: &[ChatMessage],
        entries: usize,
    ) -> Result<EncodedPrompt, EncodeError> {
        let shaped = self.shaped(messages);
        let marks = Marks::beside(
            shaped
                .iter()
                .flat_map(|(_, parts)| parts)
                .map(|part| part.text.as_str())
                .chain([self.template.source()])
                .chain(self.control.texts.iter().map(String::as_str)),
            &self.control.firsts,
        )?;
        let (placed, rendered) =
            self.render(thinking, &shaped, &marks, Blanks::Keep, Guard::Break)?;
        // A second look without white space at the edges shows which of it is the template's own.
        let bare = match placed.has_trimmable() {
            true => {
                let bare = self.render(thinking, &shaped, &marks, Blanks::Drop, Guard::Break);
                bare.ok().map(|(_, bare)| bare)
            }
            false => None,
        };
        let cut = &self.control.cut;
        let mut pieces = ownership::pieces(&rendered, bare.as_deref(), &marks, &placed, cut);
        if ownership::has_torn_parts(&rendered, &marks) {
            // Where a part was cut, a token may have been made of what is left of it. The template
            // itself has those that it also has when content cannot begin one.
            let (placed, shielded) =
                self.render(thinking, &shaped, &marks, Blanks::Keep, Guard::Shield)?;
            let certain = ownership::pieces(&shielded, None, &marks, &placed, cut);
            if !ownership::controls(&certain).eq(ownership::controls(&pieces)) {
                pieces = certain;
            }
        }
        let mut prompt = EncodedPrompt {
            entry_tokens: vec![0; entries],
            reply_start: self.reply_start(&pieces),
            ..Default::default()
        };
        for place in 0..pieces.len() {
            match &pieces[place] {
                Piece::Control(pattern) => {
                    prompt.ids.push(self.control.ids[*pattern]);
                    prompt.template_tokens += 1;
                }
                Piece::Plain { text, owners } => {
                    let kept = self.kept_beside_control(&pieces, place, text);
                    let (ids, starts) = self.vocabulary.encode_with_starts(&text[kept.clone()])?;
                    let owners = &owners[kept];
                    for start in starts {
                        match owners
                            .get(start)
                            .and_then(|owner| *owner)
                            .and_then(|entry| prompt.entry_tokens.get_mut(entry))
                        {
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
mod tests;
