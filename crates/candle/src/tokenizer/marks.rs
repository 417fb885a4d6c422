//! Tokens that are known by their texts, because files often say too little about them.

use correx_gguf::Texts;

use super::tokens::TokenKind;

/// Texts that end what the model says.
const ENDS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
];

/// Texts that fill up, and separate files, when code is completed; the first that a file has counts.
/// A reply that comes to one of them is at its end.
const PADS: &[&str] = &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"];
const REPOSITORIES: &[&str] =
    &["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"];
const FILES: &[&str] = &["<|file_sep|>"];

/// Texts between which code is completed; the first of each that a file has steers the model.
const PREFIXES: &[&str] = &[
    "<|fim_prefix|>",
    "<fim-prefix>",
    "<fim_prefix>",
    "<｜fim▁begin｜>",
    "<PRE>",
    "▁<PRE>",
    "<|code_prefix|>",
    "<|prefix|>",
];
const SUFFIXES: &[&str] = &[
    "<|fim_suffix|>",
    "<fim-suffix>",
    "<fim_suffix>",
    "<｜fim▁hole｜>",
    "<SUF>",
    "▁<SUF>",
    "<|code_suffix|>",
    "<|suffix|>",
];
const MIDDLES: &[&str] = &[
    "<|fim_middle|>",
    "<fim-middle>",
    "<fim_middle>",
    "<｜fim▁end｜>",
    "<MID>",
    "▁<MID>",
    "<|code_middle|>",
    "<|middle|>",
];

/// Makes control tokens of those that are by their texts, whatever the file calls them.
pub(super) fn correct(texts: &Texts, kinds: &mut [TokenKind]) {
    let keeps_s = is_ordinary_s(texts);
    for (text, kind) in texts.iter().zip(kinds.iter_mut()) {
        if text == "</s>" && keeps_s {
            *kind = TokenKind::Normal;
        } else if ENDS.contains(&text) {
            *kind = TokenKind::Control;
        }
    }
    for names in [PADS, REPOSITORIES, FILES, PREFIXES, SUFFIXES, MIDDLES] {
        if let Some(found) = first(texts, names) {
            kinds[found as usize] = TokenKind::Control;
        }
    }
}

/// The tokens that end a reply by their texts; `named` gives those that the file names.
pub(super) fn ends(texts: &Texts, named: impl Fn(&str) -> Option<u32>) -> Vec<u32> {
    let has = |wanted: &str| texts.iter().any(|text| text == wanted);
    // Where a turn goes on behind it, `<|end|>` only ends a part of it.
    let parts = (has("<|return|>") && (has("<|call|>") || has("<|calls|>")))
        || ((has("<|call|>") || has("<|calls|>")) && has("<|flush|>"));
    let keeps_s = is_ordinary_s(texts);
    let mut ends: Vec<u32> = (0u32..)
        .zip(texts.iter())
        .filter(|(_, text)| ENDS.contains(text))
        .map(|(id, _)| id)
        .chain(["eos", "eot", "eom"].into_iter().filter_map(&named))
        .filter(|id| match &texts[*id as usize] {
            "<|end|>" => !parts,
            "</s>" => !keeps_s,
            _ => true,
        })
        .collect();
    for (name, texts_of_it) in [("fim_pad", PADS), ("fim_rep", REPOSITORIES), ("fim_sep", FILES)] {
        ends.extend(named(name).or_else(|| first(texts, texts_of_it)));
    }
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// Whether `</s>` is a piece of text like others, as it is where turns end otherwise.
fn is_ordinary_s(texts: &Texts) -> bool {
    texts.iter().any(|text| text == "<|tool_response>" || text == "<|plamo:eos|>")
}

fn first(texts: &Texts, names: &[&str]) -> Option<u32> {
    names.iter().find_map(|name| {
        (0u32..).zip(texts.iter()).find(|(_, text)| text == name).map(|(id, _)| id)
    })
}
