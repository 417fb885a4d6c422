//! Small vocabularies of both kinds.

use correx_gguf::testing::Writer;
use correx_gguf::{Gguf, Texts};

use crate::tokenizer::Vocabulary;

/// Control tokens of many formats, so that each template finds its own.
pub(crate) const CONTROL: &[&str] = &[
    "<s>",
    "</s>",
    "<|im_start|>",
    "<|im_end|>",
    "<|im_sep|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|header_start|>",
    "<|header_end|>",
    "<|eot|>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
    "<|end_of_text|>",
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜end▁of▁sentence｜>",
    "<|START_OF_TURN_TOKEN|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|USER_TOKEN|>",
    "<|CHATBOT_TOKEN|>",
    "<|SYSTEM_TOKEN|>",
    "<|start_of_role|>",
    "<|end_of_role|>",
    "[gMASK]",
    "<sop>",
    "<|start|>",
    "<|message|>",
    "<|channel|>",
    "<|return|>",
];

/// The character that stands for `byte` in byte-level vocabularies.
fn letter(byte: u8) -> char {
    let plain = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    match plain(byte) {
        true => char::from(byte),
        false => {
            let before = (0..byte).filter(|byte| !plain(*byte)).count() as u32;
            char::from_u32(256 + before).unwrap()
        }
    }
}

/// A small byte-level vocabulary with a few merges and [`CONTROL`].
pub(crate) fn small_vocabulary() -> Vocabulary {
    small_vocabulary_with(&[])
}

/// The same, with `own` tokens that are always one token.
pub(crate) fn small_vocabulary_with(own: &[&str]) -> Vocabulary {
    let mut tokens: Vec<String> = (0..=255).map(|byte| letter(byte).to_string()).collect();
    let pairs =
        ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "t h", "e r", "Ċ Ċ", "Ġ Ġ", "i n"];
    tokens.extend(pairs.iter().map(|pair| pair.replace(' ', "")));
    let mut kinds = vec![1i32; tokens.len()];
    tokens.extend(CONTROL.iter().map(|token| (*token).to_owned()));
    kinds.resize(tokens.len(), 3);
    tokens.extend(own.iter().map(|token| (*token).to_owned()));
    kinds.resize(tokens.len(), 4);
    let place = |text: &str| tokens.iter().position(|token| token == text).unwrap() as u32;
    let bytes = Writer::new()
        .entry("tokenizer.ggml.model", "gpt2")
        .entry("tokenizer.ggml.pre", "gpt-2")
        .entry("tokenizer.ggml.bos_token_id", place("<s>"))
        .entry("tokenizer.ggml.eos_token_id", place("</s>"))
        .entry("tokenizer.ggml.token_type", kinds.into_iter().collect::<correx_gguf::Numbers>())
        .entry("tokenizer.ggml.merges", pairs.iter().collect::<Texts>())
        .entry("tokenizer.ggml.tokens", tokens.iter().collect::<Texts>())
        .to_bytes();
    let gguf = Gguf::read(std::io::Cursor::new(&bytes), bytes.len() as u64).unwrap();
    Vocabulary::from_gguf(&gguf).unwrap()
}

/// A small vocabulary in SentencePiece's manner, with bytes for what it has no piece for.
pub(crate) fn small_pieces() -> Vocabulary {
    let mut tokens = vec!["<unk>".to_owned()];
    let mut kinds = vec![2i32];
    tokens.extend((0..=255u8).map(|byte| format!("<0x{byte:02X}>")));
    kinds.resize(tokens.len(), 6);
    let words =
        ["▁", "▁▁", "he", "ll", "hell", "hello", "▁hello", "▁w", "or", "▁wor", "▁world", "th"];
    tokens.extend(words.iter().map(|word| (*word).to_owned()));
    tokens.extend(('a'..='z').map(String::from));
    tokens.extend(["A", ".", ",", "<", ">", "\n", "世"].map(String::from));
    kinds.resize(tokens.len(), 1);
    tokens.extend(CONTROL.iter().map(|token| (*token).to_owned()));
    kinds.resize(tokens.len(), 3);
    let place = |text: &str| tokens.iter().position(|token| token == text).unwrap() as u32;
    let scores: Vec<f32> = (0..tokens.len()).map(|place| -(place as f32)).collect();
    let bytes = Writer::new()
        .entry("tokenizer.ggml.model", "llama")
        .entry("tokenizer.ggml.bos_token_id", place("<s>"))
        .entry("tokenizer.ggml.eos_token_id", place("</s>"))
        .entry("tokenizer.ggml.token_type", kinds.into_iter().collect::<correx_gguf::Numbers>())
        .entry("tokenizer.ggml.scores", scores.into_iter().collect::<correx_gguf::Floats>())
        .entry("tokenizer.ggml.tokens", tokens.iter().collect::<Texts>())
        .to_bytes();
    let gguf = Gguf::read(std::io::Cursor::new(&bytes), bytes.len() as u64).unwrap();
    Vocabulary::from_gguf(&gguf).unwrap()
}
