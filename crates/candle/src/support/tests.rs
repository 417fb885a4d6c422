use std::io::Cursor;

use correx_gguf::testing::Writer;
use correx_gguf::{Gguf, TensorType, Texts};

use super::*;
use crate::testing::default_gguf;

/// A file as small as a model can be, all of which is known.
fn llama() -> Writer {
    let mut tokens: Vec<String> = (0..256u32).map(|byte| printable(byte as u8)).collect();
    tokens.push("<end>".into());
    let rows = tokens.len();
    let mut file = Writer::new()
        .entry("general.architecture", "llama")
        .entry("llama.context_length", 64u32)
        .entry("llama.embedding_length", 32u32)
        .entry("llama.block_count", 1u32)
        .entry("llama.feed_forward_length", 64u32)
        .entry("llama.attention.head_count", 2u32)
        .entry("llama.attention.layer_norm_rms_epsilon", 1e-5f32)
        .entry("tokenizer.ggml.model", "gpt2")
        .entry("tokenizer.ggml.pre", "smollm")
        .entry("tokenizer.ggml.tokens", tokens.iter().collect::<Texts>())
        .entry("tokenizer.ggml.merges", Texts::default())
        .entry("tokenizer.ggml.eos_token_id", 256u32)
        .zeros("token_embd.weight", TensorType::F32, &[rows, 32])
        .zeros("output_norm.weight", TensorType::F32, &[32]);
    for (part, shape) in [
        ("attn_norm", &[32][..]),
        ("ffn_norm", &[32]),
        ("attn_q", &[32, 32]),
        ("attn_k", &[32, 32]),
        ("attn_v", &[32, 32]),
        ("attn_output", &[32, 32]),
        ("ffn_gate", &[64, 32]),
        ("ffn_up", &[64, 32]),
        ("ffn_down", &[32, 64]),
    ] {
        let kind = if shape.len() == 1 { TensorType::F32 } else { TensorType::Q8_0 };
        file = file.zeros(&format!("blk.0.{part}.weight"), kind, shape);
    }
    file
}

/// A byte in the alphabet of byte-level vocabularies.
fn printable(byte: u8) -> String {
    let shown = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let others = (0..byte).filter(|b| !matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff));
    let code = if shown { u32::from(byte) } else { 256 + others.count() as u32 };
    char::from_u32(code).map(String::from).unwrap_or_default()
}

fn read(file: &Writer) -> Gguf {
    let bytes = file.to_bytes();
    Gguf::read(Cursor::new(&bytes), bytes.len() as u64).expect("it is sound")
}

fn reasons(file: &Writer) -> Vec<String> {
    match support(&read(file)) {
        Ok(()) => Vec::new(),
        Err(reasons) => reasons.iter().map(Reason::to_string).collect(),
    }
}

#[test]
fn a_model_that_is_known_has_no_reason() {
    assert_eq!(reasons(&llama()), Vec::<String>::new());
}

#[test]
fn every_reason_is_given_at_once() {
    let file = Writer::new()
        .entry("general.architecture", "mamba")
        .entry("tokenizer.ggml.model", "gpt2")
        .entry("tokenizer.ggml.pre", "not-invented-yet")
        .zeros("a", TensorType::IQ4_NL, &[2, 32])
        .zeros("b", TensorType::IQ4_NL, &[2, 32])
        .zeros("c", TensorType::MXFP4, &[2, 32])
        .zeros("d", TensorType::Q8_0, &[2, 32]);
    let reasons = reasons(&file);
    for expected in [
        "`mamba`",
        "`a` are stored as IQ4_NL",
        "one other is like it",
        "`c` are stored as MXFP4",
        "`not-invented-yet`",
    ] {
        assert!(reasons.iter().any(|reason| reason.contains(expected)), "{expected}: {reasons:?}");
    }
    assert_eq!(reasons.len(), 4, "{reasons:?}");
}

#[test]
fn weights_that_are_missing_or_of_another_shape_are_named_and_counted() {
    let changed = |change: &dyn Fn(&mut Gguf)| {
        let mut gguf = read(&llama());
        change(&mut gguf);
        match support(&gguf) {
            Ok(()) => Vec::new(),
            Err(reasons) => reasons.iter().map(Reason::to_string).collect(),
        }
    };
    let missing = changed(&|gguf| {
        gguf.tensors.remove("blk.0.attn_q.weight");
        gguf.tensors.remove("output_norm.weight");
    });
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].contains("`blk.0.attn_q.weight`"), "{missing:?}");
    assert!(missing[0].contains("one other is like it"), "{missing:?}");
    let deeper = changed(&|gguf| {
        gguf.metadata.insert("llama.block_count".into(), 1024u64.into());
    });
    assert!(deeper[0].contains("`blk.1.attn_norm.weight`"), "{deeper:?}");
    let wider = changed(&|gguf| {
        gguf.metadata.insert("llama.feed_forward_length".into(), 96u64.into());
    });
    assert!(wider[0].contains("`blk.0.ffn_gate.weight` has the shape [64, 32], not [96, 32]"));
    assert!(wider[0].contains("2 others are like it"), "{wider:?}");
    let typed = changed(&|gguf| {
        for tensor in gguf.tensors.values_mut().filter(|tensor| tensor.shape == [32, 32]) {
            tensor.kind = TensorType::IQ4_NL;
        }
    });
    assert!(typed[0].contains("`blk.0.attn_q.weight` are stored as IQ4_NL"), "{typed:?}");
    assert!(typed[0].contains("3 others are like it"), "{typed:?}");
}

#[test]
fn weights_that_the_family_does_not_know_are_a_reason() {
    // Leaving them out would give other words than the model's, with no sign of it.
    let file = llama().zeros("not.known", TensorType::F32, &[1, 256]);
    let reasons = reasons(&file);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].contains("`not.known`"), "{reasons:?}");
}

#[test]
fn more_tokens_than_rows_are_a_reason() {
    let more: Texts = (0..300u32).map(|number| format!("t{number}")).collect();
    let tokens = read(&llama()).texts("tokenizer.ggml.tokens").expect("they are there").clone();
    let all: Texts =
        tokens.iter().map(str::to_owned).chain(more.iter().map(str::to_owned)).collect();
    let mut gguf = read(&llama());
    gguf.metadata.insert("tokenizer.ggml.tokens".into(), all.into());
    let reasons = support(&gguf).expect_err("there are too many tokens");
    assert!(matches!(reasons[..], [Reason::Mismatch { tokens: 557, rows: 257 }]), "{reasons:?}");
}

#[test]
fn a_kind_of_tokenizer_that_is_not_known_is_named() {
    let mut gguf = read(&llama());
    gguf.metadata.insert("tokenizer.ggml.model".into(), "rwkv".into());
    let reasons = support(&gguf).expect_err("it is not known");
    assert!(matches!(&reasons[..], [one] if one.to_string().contains("`rwkv`")), "{reasons:?}");
}

#[test]
fn what_a_file_calls_things_can_neither_flood_nor_command_the_terminal() {
    let odd = format!("a\u{1b}[2J\n{}", "x".repeat(5000));
    for key in [
        "general.architecture",
        "tokenizer.ggml.model",
        "tokenizer.ggml.pre",
        "llama.rope.scaling.type",
    ] {
        let mut gguf = read(&llama());
        gguf.metadata.insert(key.into(), odd.as_str().into());
        let reasons = support(&gguf).expect_err("it is not known");
        let said = reasons.iter().map(ToString::to_string).collect::<String>();
        assert!(said.contains("`a [2J xxx") && said.contains('…'), "{key}: {said}");
        assert!(
            !said.contains(char::is_control) && !said.contains(&odd[100..300]),
            "{key}: {said}"
        );
    }
    let name = format!("b\n{}", "y".repeat(500));
    let reasons = reasons(&llama().zeros(&name, TensorType::F32, &[1, 256]));
    assert!(reasons[0].contains("`b yyy") && reasons[0].len() < 300, "{reasons:?}");
}

mod real_model {
    use super::*;

    #[test]
    fn the_default_model_can_be_run() {
        assert!(support(&default_gguf()).is_ok());
    }
}
