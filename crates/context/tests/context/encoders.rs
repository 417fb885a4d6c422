//! Encoders that make packing hard.

use std::sync::atomic::{AtomicUsize, Ordering};

use correx_context::testing::WordEncoder;
use correx_context::{ChatMessage, EncodeError, EncodedPrompt, PromptEncoder, TokenCounter};

/// Pairs the words of the whole prompt from its start; a pair of equal words is one token. Fewer
/// words can be more tokens: `x a a b b` pairs as `x a`, `a b`, `b`, without its `x` as `a a`,
/// `b b`; and the other way round.
pub(crate) struct PairEncoder;

impl TokenCounter for PairEncoder {
    fn count(&self, text: &str) -> Result<usize, EncodeError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(words
            .chunks(2)
            .map(|pair| if pair.first() == pair.get(1) { 1 } else { pair.len() })
            .sum())
    }
}

impl PromptEncoder for PairEncoder {
    fn encode(
        &self,
        messages: &[ChatMessage],
        entries: usize,
    ) -> Result<EncodedPrompt, EncodeError> {
        let words: Vec<(usize, &str)> = messages
            .iter()
            .flat_map(|message| &message.parts)
            .flat_map(|part| part.text.split_whitespace().map(|word| (part.entry, word)))
            .collect();
        let mut prompt = EncodedPrompt { entry_tokens: vec![0; entries], ..Default::default() };
        for pair in words.chunks(2) {
            let merged = pair.len() == 2 && pair[0].1 == pair[1].1;
            for (entry, word) in &pair[..if merged { 1 } else { pair.len() }] {
                prompt.ids.push(word.len() as u32);
                prompt.entry_tokens[*entry] += 1;
            }
        }
        Ok(prompt)
    }
}

/// Counts how often a prompt was rendered.
#[derive(Default)]
pub(crate) struct CountedEncoder {
    inner: WordEncoder,
    renderings: AtomicUsize,
}

impl CountedEncoder {
    pub(crate) fn renderings(&self) -> usize {
        self.renderings.load(Ordering::Relaxed)
    }
}

impl TokenCounter for CountedEncoder {
    fn count(&self, text: &str) -> Result<usize, EncodeError> {
        self.inner.count(text)
    }
}

impl PromptEncoder for CountedEncoder {
    fn encode(
        &self,
        messages: &[ChatMessage],
        entries: usize,
    ) -> Result<EncodedPrompt, EncodeError> {
        self.renderings.fetch_add(1, Ordering::Relaxed);
        self.inner.encode(messages, entries)
    }
}

/// Refuses a prompt, or a text by itself, that holds the word `refused`.
pub(crate) struct RefusingEncoder(pub(crate) Refuses);

#[derive(PartialEq, Eq)]
pub(crate) enum Refuses {
    Prompts,
    Texts,
}

impl TokenCounter for RefusingEncoder {
    fn count(&self, text: &str) -> Result<usize, EncodeError> {
        if self.0 == Refuses::Texts && text.contains("refused") {
            return Err(EncodeError::Tokenizer(text.to_owned()));
        }
        WordEncoder::default().count(text)
    }
}

impl PromptEncoder for RefusingEncoder {
    fn encode(
        &self,
        messages: &[ChatMessage],
        entries: usize,
    ) -> Result<EncodedPrompt, EncodeError> {
        if self.0 == Refuses::Prompts
            && messages.iter().any(|message| message.content().contains("refused"))
        {
            return Err(EncodeError::Template("no".into()));
        }
        WordEncoder::default().encode(messages, entries)
    }
}
