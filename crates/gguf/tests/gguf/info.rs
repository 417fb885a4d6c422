use std::io::Cursor;

use correx_gguf::testing::Writer;
use correx_gguf::{Gguf, ModelInfo, Numbers, TensorType, Texts};

fn info(writer: &Writer) -> ModelInfo {
    let bytes = writer.to_bytes();
    ModelInfo::of(&Gguf::read(Cursor::new(&bytes), bytes.len() as u64).expect("it is sound"))
}

fn gemma() -> Writer {
    Writer::new()
        .entry("general.architecture", "gemma3")
        .entry("general.name", "Small\nModel")
        .entry("general.file_type", 15u32)
        .entry("general.license", "gemma")
        .entry("general.license.link", "https://example.org/terms")
        .entry("general.author", "Somebody")
        .entry("general.base_model.count", 1u32)
        .entry("general.base_model.0.name", "Larger Model")
        .entry("general.languages", Texts::from_iter(["en", "de"]))
        .entry("general.tags", Texts::from_iter(["chat"]))
        .entry("gemma3.context_length", 32768u32)
        .entry("gemma3.embedding_length", 64u32)
        .entry("gemma3.block_count", 2u32)
        .entry("gemma3.attention.head_count", 4u32)
        .entry("gemma3.attention.head_count_kv", Numbers::from_iter([0i32, 2]))
        .entry("gemma3.attention.sliding_window", 512u32)
        .entry("tokenizer.ggml.model", "llama")
        .entry("tokenizer.ggml.pre", "default")
        .entry("tokenizer.ggml.tokens", Texts::from_iter(["<pad>", "<eos>", "<bos>"]))
        .entry("tokenizer.ggml.bos_token_id", 2u32)
        .entry("tokenizer.ggml.eos_token_id", 9u32)
        .entry("tokenizer.ggml.add_bos_token", true)
        .entry("tokenizer.chat_template", "{{ messages }}")
        .entry("tokenizer.chat_template.tool_use", "{{ tools }}")
        .zeros("token_embd.weight", TensorType::Q6K, &[3, 256])
        .zeros("blk.0.ffn_up.weight", TensorType::Q4K, &[8, 256])
        .f32("output_norm.weight", &[4], &[1.0; 4])
}

#[test]
fn everything_that_a_file_says_is_in_its_description() {
    let info = info(&gemma());
    let expected = "\
name          Small Model
architecture  gemma3
weights       2820 (2.8K)
quantization  Q4_K - Medium, 5.10 bits per weight
              Q4_K        1 tensor           1152 bytes
              Q6_K        1 tensor            630 bytes
              F32         1 tensor             16 bytes
context       32768 tokens
window        512 tokens in some layers
layers        2
width         64
heads         4, over 2 of keys and values
vocabulary    3 tokens
tokenizer     llama, text split as default
begins with   <bos> (2), in every prompt
ends with     9
chat template yes, and one named tool_use
licence       gemma, https://example.org/terms
author        Somebody
made from     Larger Model
languages     en, de
tags          chat";
    let text = info.to_string();
    let (rows, size) = text.rsplit_once('\n').unwrap();
    assert_eq!(rows, expected);
    assert!(size.starts_with("size          ") && size.ends_with("in 1 file, GGUF version 3"));
}

#[test]
fn the_description_is_a_stable_object() {
    let object = serde_json::to_value(info(&gemma())).unwrap();
    for (pointer, expected) in [
        ("/name", "Small Model".into()),
        ("/architecture", "gemma3".into()),
        ("/parameters", 2820.into()),
        ("/quantization/label", "Q4_K - Medium".into()),
        ("/quantization/types/0/type", "Q4_K".into()),
        ("/quantization/types/0/bytes", 1152.into()),
        ("/context_length", 32768.into()),
        ("/kv_heads", 2.into()),
        ("/sliding_window", 512.into()),
        ("/tokenizer/model", "llama".into()),
        ("/tokenizer/bos/text", "<bos>".into()),
        ("/tokenizer/eos/text", serde_json::Value::Null),
        ("/tokenizer/add_bos", true.into()),
        ("/chat_template/present", true.into()),
        ("/chat_template/named/0", "tool_use".into()),
        ("/licence/id", "gemma".into()),
        ("/files", 1.into()),
    ] {
        assert_eq!(object.pointer(pointer), Some(&expected), "{pointer}");
    }
}

#[test]
fn a_file_that_says_nothing_is_described_all_the_same() {
    let nothing = info(&Writer::new());
    assert_eq!((&nothing.name, nothing.parameters, &nothing.quantization.label), (&None, 0, &None));
    assert!(nothing.to_string().contains("chat template none"));
    let typed = Writer::new().zeros("w", TensorType::IQ4_NL, &[2, 32]);
    assert_eq!(info(&typed).quantization.label.as_deref(), Some("IQ4_NL"));
}

#[test]
fn what_a_file_says_cannot_flood_or_command_the_terminal() {
    let long = format!("\u{1b}[2J{}", "x".repeat(100_000));
    let many: Texts = (0..1000).map(|number| number.to_string()).collect();
    let info = info(&Writer::new().entry("general.name", long).entry("general.tags", many));
    let name = info.name.as_deref().unwrap();
    assert_eq!((name.chars().count(), name.chars().next_back()), (201, Some('…')));
    assert!(!info.to_string().contains('\u{1b}'));
    assert_eq!(info.tags.len(), 32);
}

#[test]
fn a_vocabulary_without_weights_says_so() {
    let info = info(
        &Writer::new()
            .entry("general.architecture", "llama")
            .entry("general.file_type", 1u32)
            .entry("tokenizer.ggml.tokens", Texts::from_iter(["a"])),
    );
    assert!(info.quantization.bits_per_weight.is_sign_positive());
    let shown = info.to_string();
    assert!(shown.contains("a vocabulary only") && !shown.contains("bits per weight"), "{shown}");
}
