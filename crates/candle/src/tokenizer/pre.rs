//! How text is split before byte pairs are merged.
//!
//! A GGUF file only names its rule. The table says what each name means; an unknown name is
//! refused, because a wrong rule gives wrong tokens with no sign of it.

use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{PreTokenizerWrapper, SplitDelimiterBehavior};

use super::VocabularyError;

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// One way to split text.
#[derive(Debug)]
pub(super) struct Rule {
    /// The names that files use for it.
    names: &'static [&'static str],
    /// Each pattern splits what the ones before it left whole.
    patterns: &'static [&'static str],
    /// Whether a word that is in the vocabulary is taken whole, whatever the merges say.
    pub(super) whole_words_first: bool,
    /// Whether prompts begin with the begin token when the file does not say.
    pub(super) begins_with_bos: bool,
}

static RULES: &[Rule] = &[
    Rule {
        names: &["smollm", "starcoder", "refact", "command-r", "codeshell"],
        patterns: &[r"\p{N}", GPT2],
        whole_words_first: false,
        begins_with_bos: false,
    },
    Rule {
        names: &["gpt-2", "gpt2", "mpt", "olmo", "phi-2", "jina-en", "roberta-bpe"],
        patterns: &[GPT2],
        whole_words_first: false,
        begins_with_bos: false,
    },
    Rule {
        names: &["default"],
        patterns: &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
        whole_words_first: false,
        begins_with_bos: false,
    },
    Rule {
        names: &["llama-bpe", "llama3", "llama-v3"],
        patterns: &[LLAMA3],
        whole_words_first: true,
        begins_with_bos: true,
    },
    Rule {
        names: &["qwen2", "deepseek-r1-qwen", "stablelm2"],
        patterns: &[QWEN2],
        whole_words_first: false,
        begins_with_bos: false,
    },
];

/// The rule that files call `name`.
pub(super) fn rule(name: &str) -> Result<&'static Rule, VocabularyError> {
    RULES.iter().find(|rule| rule.names.contains(&name)).ok_or_else(|| {
        VocabularyError::PreTokenizer {
            name: name.to_owned(),
            known: RULES.iter().map(|rule| rule.names[0]).collect::<Vec<_>>().join(", "),
        }
    })
}

impl Rule {
    /// The rule as the tokenizer applies it: split, then write in the byte alphabet.
    pub(super) fn pre_tokenizer(&self) -> tokenizers::Result<PreTokenizerWrapper> {
        let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
        for pattern in self.patterns {
            let pattern = SplitPattern::Regex((*pattern).to_owned());
            steps.push(Split::new(pattern, SplitDelimiterBehavior::Isolated, false)?.into());
        }
        steps.push(ByteLevel::new(false, false, false).into());
        Ok(Sequence::new(steps).into())
    }
}
