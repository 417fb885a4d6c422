//! The rules by the names that files use.
//!
//! The names, patterns and defaults are those of llama.cpp (release of its Python package 0.3.36).

use super::sets;
use super::steps::{Alphabet, Blanks, Digits, Pattern, Span, Step};

/// What a vocabulary's pieces are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Symbols {
    /// Bytes, each written as one character of the byte alphabet.
    Bytes,
    /// Characters as they are; what is not in the vocabulary falls back to `<0x..>` tokens.
    Characters,
    /// The same, with spaces written as `▁`.
    Spaced,
}

/// One way to split text, and what else follows from its name.
#[derive(Debug)]
pub(in super::super) struct Rule {
    /// The names that files use for it.
    pub(super) names: &'static [&'static str],
    /// Each splits what the ones before it left whole.
    pub(super) steps: &'static [Step],
    /// What the pieces are made of.
    pub(in super::super) symbols: Symbols,
    /// Whether a piece that is in the vocabulary is taken whole, whatever the merges say.
    pub(in super::super) whole_pieces_first: bool,
    /// The same for pieces of newlines only.
    pub(in super::super) whole_newlines_first: bool,
    /// Whether prompts begin with the begin token.
    pub(in super::super) begins_with_bos: Begins,
}

/// Whether prompts begin with the begin token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Begins {
    /// Only when the file says so.
    IfTold,
    /// Unless the file says no.
    UnlessTold,
    /// Whatever the file says.
    Always,
}

const PLAIN: Rule = Rule {
    names: &[],
    steps: &[],
    symbols: Symbols::Bytes,
    whole_pieces_first: false,
    whole_newlines_first: false,
    begins_with_bos: Begins::IfTold,
};

/// A step over the categories that leaves white space between its matches.
const fn only(pattern: &'static str) -> Step {
    Step::Match(Pattern { alphabet: Alphabet::Categories, pattern, blanks: Blanks::Between })
}

/// A step over the categories that takes runs of white space, less one where something follows.
const fn words(pattern: &'static str) -> Step {
    Step::Match(Pattern { alphabet: Alphabet::Categories, pattern, blanks: Blanks::LeaveOne })
}

const fn over(sets: &'static [&'static [Span]], pattern: &'static str) -> Step {
    Step::Match(Pattern { alphabet: Alphabet::Sets(sets), pattern, blanks: Blanks::Between })
}

const NUMBER: Step = only(r"\p{N}");
const UP_TO_THREE: Step = only(r"\p{N}{1,3}");
const LINES: Step = only(r"[^\n]+|\n+");
const HAN_AND_KANA: Step = over(&[sets::HAN_AND_KANA], r"\x80+");
const EASTERN: Step = over(&[sets::EASTERN], r"\x80+");
const SENTENCE_PARTS: Step = over(&[sets::STOPS], r" ?[^\s(|.,!?)\x80]+");

const GPT2: Step = words(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+");
const LLAMA3: Step = words(
    r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
);
const QWEN2: Step = words(
    r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
);
/// Words with marks, and punctuation in front of plain letters.
const DEEPSEEK3: &str = r##"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+"##;
/// Letters that may be large, then letters that may be small; beyond ASCII all may be both.
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[A-Z\xd2]*[a-z\xd2]+|[^\r\n\p{L}\p{N}]?[A-Z\xd2]+[a-z\xd2]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[A-Z\xd2]*[a-z\xd2]+(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?|[^\r\n\p{L}\p{N}]?[A-Z\xd2]+[a-z\xd2]*(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+";
/// Words with their marks, of whatever case.
const MARKED_WORDS: &str = r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+";

pub(super) static RULES: &[Rule] = &[
    Rule {
        names: &["default"],
        steps: &[only(r"[\p{P}$+<=>^~|]+"), GPT2, only(r"\p{N}+"), only("[0-9][0-9][0-9]")],
        ..PLAIN
    },
    Rule {
        names: &[
            "gpt-2",
            "phi-2",
            "jina-es",
            "jina-de",
            "gigachat",
            "jina-v2-es",
            "jina-v2-de",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "jina-v1-en",
            "jina-v2-code",
            "roberta-bpe",
            "exaone4",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
        ],
        steps: &[GPT2],
        ..PLAIN
    },
    Rule {
        names: &[
            "starcoder",
            "refact",
            "command-r",
            "smollm",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ],
        steps: &[NUMBER, GPT2],
        ..PLAIN
    },
    Rule {
        names: &[
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        steps: &[LLAMA3],
        whole_pieces_first: true,
        begins_with_bos: Begins::UnlessTold,
        ..PLAIN
    },
    Rule { names: &["dbrx", "smaug-bpe", "chatglm-bpe"], steps: &[LLAMA3], ..PLAIN },
    Rule { names: &["glm4", "glm5"], steps: &[LLAMA3], whole_pieces_first: true, ..PLAIN },
    Rule {
        names: &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "f2llmv2",
            "megrez",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "grok-2",
        ],
        steps: &[QWEN2],
        ..PLAIN
    },
    Rule { names: &["laguna"], steps: &[LINES, QWEN2], ..PLAIN },
    Rule {
        names: &["qwen35"],
        steps: &[words(
            r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+",
        )],
        ..PLAIN
    },
    Rule {
        names: &["minicpm5"],
        steps: &[
            UP_TO_THREE,
            words(
                r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
            ),
        ],
        whole_pieces_first: true,
        ..PLAIN
    },
    Rule {
        names: &["bailingmoe", "bailingmoe2", "llada-moe"],
        steps: &[words(
            r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]",
        )],
        ..PLAIN
    },
    Rule {
        names: &["seed-coder"],
        steps: &[words(
            r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s*[\r\n]+",
        )],
        ..PLAIN
    },
    Rule {
        names: &["ufakzeka"],
        steps: &[words(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+")],
        ..PLAIN
    },
    Rule {
        names: &["exaone-moe"],
        steps: &[words(
            r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]",
        )],
        ..PLAIN
    },
    Rule {
        names: &["jais-2"],
        steps: &[Step::Match(Pattern {
            alphabet: Alphabet::Categories,
            pattern: r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
            blanks: Blanks::Powers,
        })],
        ..PLAIN
    },
    Rule {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        steps: &[UP_TO_THREE, HAN_AND_KANA, words(DEEPSEEK3)],
        ..PLAIN
    },
    Rule {
        names: &["spark2_5"],
        steps: &[
            UP_TO_THREE,
            HAN_AND_KANA,
            words(
                r##"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]"##,
            ),
            NUMBER,
        ],
        ..PLAIN
    },
    Rule {
        names: &["deepseek-llm"],
        steps: &[
            only(r"[\r\n]"),
            over(&[sets::CASED], r"\s?[A-Za-z\x80]+"),
            over(&[sets::WIDE_PUNCTUATION], r"\s?[!-/:-~\x80]+"),
            only(r"\s+$"),
            EASTERN,
            only(r"\p{N}+"),
        ],
        ..PLAIN
    },
    Rule {
        names: &["deepseek-coder"],
        steps: &[only(r"[\r\n]"), only(r"\s?\p{L}+"), only(r"\s?\p{P}+"), EASTERN, NUMBER],
        ..PLAIN
    },
    Rule {
        names: &["youtu"],
        steps: &[
            over(
                &[sets::HANGUL, sets::CHINESE_PUNCTUATION, sets::BOPOMOFO, sets::HAN_AND_KANA],
                r"\x80+|\x81+|\x82+|\x83+",
            ),
            words(
                r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+",
            ),
        ],
        whole_pieces_first: true,
        ..PLAIN
    },
    Rule {
        names: &["falcon"],
        steps: &[only(r"[\p{P}$+<=>^~|`]+"), GPT2, only("[0-9][0-9][0-9]")],
        ..PLAIN
    },
    Rule { names: &["poro-chat", "bloom", "gpt3-finnish"], steps: &[SENTENCE_PARTS], ..PLAIN },
    Rule { names: &["viking"], steps: &[SENTENCE_PARTS, NUMBER], ..PLAIN },
    Rule {
        names: &["tekken"],
        steps: &[words(TEKKEN)],
        whole_pieces_first: true,
        begins_with_bos: Begins::UnlessTold,
        ..PLAIN
    },
    Rule {
        names: &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        steps: &[words(GPT4O)],
        ..PLAIN
    },
    Rule {
        names: &["granite-embed-multi-97m"],
        steps: &[words(
            r"[^\r\n\p{L}\p{N}]?[A-Z\xd2\xd4]*[a-z\xd2\xd4]+(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?|[^\r\n\p{L}\p{N}]?[A-Z\xd2\xd4]+[a-z\xd2\xd4]*(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+",
        )],
        whole_pieces_first: true,
        ..PLAIN
    },
    Rule {
        names: &["tiny_aya", "cohere2moe"],
        steps: &[Step::Thousands(Digits::Numbers), words(MARKED_WORDS)],
        ..PLAIN
    },
    Rule {
        names: &["kimi-k2"],
        steps: &[Step::Match(Pattern {
            alphabet: Alphabet::Han,
            pattern: r"[\xd6\xd7]+|[^\r\n\p{L}\p{N}\xd6]?\p{L}+(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?|\p{N}{1,3}| ?[^\s\p{L}\p{N}\xd6]+[\r\n]*|\s*[\r\n]+",
            blanks: Blanks::LeaveOne,
        })],
        ..PLAIN
    },
    Rule {
        names: &["superbpe"],
        steps: &[only(r"\p{N}+"), Step::Thousands(Digits::Ascii)],
        ..PLAIN
    },
    Rule {
        names: &["afmoe"],
        steps: &[
            Step::Thousands(Digits::Numbers),
            over(&[sets::UNSPACED], r"\x80+"),
            words(DEEPSEEK3),
        ],
        ..PLAIN
    },
    Rule {
        names: &["chameleon"],
        steps: &[
            only("<sentinel:[0-9]+>"),
            only("IMGIMG[A-I]{1,4}Z"),
            only(r"[\t\n]|    |  "),
            NUMBER,
            only(r"[\p{P}!-/:-@\[-`{-~]"),
            GPT2,
        ],
        begins_with_bos: Begins::UnlessTold,
        ..PLAIN
    },
    Rule {
        names: &["gemma4", "granite-embed-multi-311m"],
        steps: &[LINES],
        symbols: Symbols::Spaced,
        whole_newlines_first: true,
        begins_with_bos: Begins::Always,
        ..PLAIN
    },
    Rule { names: &["sarvam-moe"], steps: &[LINES], symbols: Symbols::Spaced, ..PLAIN },
    Rule { names: &["whitespace"], steps: &[only(r"\S+")], symbols: Symbols::Characters, ..PLAIN },
];

pub(super) fn find(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.names.contains(&name))
}
