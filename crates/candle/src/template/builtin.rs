//! Templates for files that bring none, or one that does not work.
//!
//! Written from what the models' publishers say about their formats. Which one fits is told by the
//! vocabulary: a model knows the control tokens that it was taught to chat with. Where a format
//! has none, the model's name decides; a name that says nothing gets plain text.

use super::ModelFacts;

/// A template of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// What people call the format.
    pub name: &'static str,
    /// The template.
    pub source: &'static str,
    /// The tokens that tell the format.
    marks: &'static [&'static str],
    /// Text that ends a reply, where no token does.
    pub stop_text: Option<&'static str>,
}

const fn format(
    name: &'static str,
    marks: &'static [&'static str],
    source: &'static str,
) -> Builtin {
    Builtin { name, source, marks, stop_text: None }
}

macro_rules! source {
    ($name:literal) => {
        include_str!(concat!("builtin/", $name, ".jinja"))
    };
}

/// Formats that control tokens tell, those first whose tokens contain another one's.
const BY_TOKENS: &[Builtin] = &[
    format("Phi 4", &["<|im_start|>", "<|im_sep|>", "<|im_end|>"], source!("phi-4")),
    format("ChatML", &["<|im_start|>", "<|im_end|>"], source!("chatml")),
    format(
        "Llama 3",
        &["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
        source!("llama-3"),
    ),
    format("Llama 4", &["<|header_start|>", "<|header_end|>", "<|eot|>"], source!("llama-4")),
    format("Gemma", &["<start_of_turn>", "<end_of_turn>"], source!("gemma")),
    format("DeepSeek", &["<｜User｜>", "<｜Assistant｜>"], source!("deepseek")),
    format(
        "Command R",
        &["<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|USER_TOKEN|>"],
        source!("command-r"),
    ),
    format("Granite", &["<|start_of_role|>", "<|end_of_role|>"], source!("granite")),
    format("GLM 4", &["[gMASK]", "<sop>", "<|user|>", "<|assistant|>"], source!("glm-4")),
    format("Phi 3", &["<|user|>", "<|assistant|>", "<|end|>"], source!("phi-3")),
    format("Zephyr", &["<|user|>", "<|assistant|>"], source!("zephyr")),
    format(
        "Mistral v7",
        &["[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[INST]", "[/INST]"],
        source!("mistral-v7"),
    ),
    format("Mistral v3", &["[INST]", "[/INST]"], source!("mistral-v3")),
];

/// Mistral's second vocabulary has no blanks around its marks.
const TEKKEN: Builtin =
    format("Mistral v3 (Tekken)", &["[INST]", "[/INST]"], source!("mistral-tekken"));

/// Formats without control tokens, by words that a model's name must hold.
const BY_NAME: &[(&[&str], Builtin)] = &[
    (&["zephyr"], format("Zephyr", &[], source!("zephyr"))),
    (&["tinyllama", "chat"], format("Zephyr", &[], source!("zephyr"))),
    (&["mistral", "instruct"], format("Mistral v1", &[], source!("mistral-v1"))),
    (&["mixtral", "instruct"], format("Mistral v1", &[], source!("mistral-v1"))),
    (&["llama", "chat"], format("Llama 2", &[], source!("llama-2"))),
];

/// What is left: a conversation written down.
const PLAIN: Builtin = Builtin {
    name: "plain text (User: … Assistant: …)",
    source: source!("plain"),
    marks: &[],
    stop_text: Some("\nUser:"),
};

/// The template that fits a model best, and why.
pub fn choose(facts: &ModelFacts<'_>) -> (Builtin, String) {
    let known = |mark: &&str| facts.marks.contains(mark);
    if let Some(found) = BY_TOKENS.iter().find(|format| format.marks.iter().all(known)) {
        let tekken = found.name == "Mistral v3" && facts.pre == "tekken";
        let reason = format!("the model's vocabulary has {}", found.marks.join(" and "));
        return (if tekken { TEKKEN } else { *found }, reason);
    }
    let names = facts.names.join(" ").to_lowercase();
    let named = BY_NAME.iter().find(|(words, _)| words.iter().all(|word| names.contains(word)));
    match named {
        Some((words, format)) => {
            (*format, format!("the model's name says {}", words.join(" and ")))
        }
        None => (PLAIN, "its vocabulary has no tokens of a known chat format".to_owned()),
    }
}

/// Whether a token of this text tells a format.
pub fn is_mark(token: &str) -> bool {
    BY_TOKENS.iter().any(|format| format.marks.contains(&token))
}
