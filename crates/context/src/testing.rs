//! A prompt encoder for tests: one token per word, three per message, two for the reply's mark.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::{ChatMessage, EncodeError, EncodedPrompt, PromptEncoder, TokenCounter};

/// Counts words. Ids are numbered by first sight, so equal words get equal ids and
/// [`WordEncoder::decode`] can tell what was fed.
#[derive(Debug, Default)]
pub struct WordEncoder {
    words: Mutex<BTreeMap<String, u32>>,
}

impl WordEncoder {
    /// Tokens that every message costs beside its words.
    pub const PER_MESSAGE: usize = 3;
    /// Tokens of the mark after which the reply stands.
    pub const REPLY_MARK: usize = 2;

    fn id(&self, word: &str) -> u32 {
        let mut words = self.words.lock().expect("no test panics while encoding");
        let next = words.len() as u32 + 1;
        *words.entry(word.to_owned()).or_insert(next)
    }

    /// The words of `ids`; the template's own tokens (0) are left out.
    pub fn decode(&self, ids: &[u32]) -> String {
        let words = self.words.lock().expect("no test panics while encoding");
        let text: Vec<&str> = ids
            .iter()
            .filter_map(|id| words.iter().find(|(_, known)| *known == id))
            .map(|(word, _)| word.as_str())
            .collect();
        text.join(" ")
    }
}

impl TokenCounter for WordEncoder {
    fn count(&self, text: &str) -> Result<usize, EncodeError> {
        Ok(text.split_whitespace().count())
    }
}

impl PromptEncoder for WordEncoder {
    fn encode(
        &self,
        messages: &[ChatMessage],
        entries: usize,
    ) -> Result<EncodedPrompt, EncodeError> {
        let mut prompt = EncodedPrompt { entry_tokens: vec![0; entries], ..Default::default() };
        for message in messages {
            prompt.ids.extend([0; Self::PER_MESSAGE]);
            prompt.template_tokens += Self::PER_MESSAGE;
            for part in &message.parts {
                for word in part.text.split_whitespace() {
                    prompt.ids.push(self.id(word));
                    prompt.entry_tokens[part.entry] += 1;
                }
            }
        }
        prompt.ids.extend([0; Self::REPLY_MARK]);
        prompt.template_tokens += Self::REPLY_MARK;
        Ok(prompt)
    }
}
