use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use correx_cpu_kernels::Threads;

use super::*;
use crate::testing::default_gguf;

fn decoder(threads: usize) -> Decoder {
    let gguf = default_gguf();
    let config = DecoderConfig::from_gguf(&gguf).unwrap();
    let threads = Threads::new(threads).unwrap();
    Decoder::load(&gguf, config, threads, &mut |_, _| ControlFlow::Continue(())).unwrap()
}

/// "The quick brown fox …" in ids; any ids would do.
const IDS: [u32; 11] = [504, 2365, 6354, 16438, 27003, 690, 260, 23790, 2767, 30, 198];

fn last(decoder: &Decoder, cache: &mut KvCache, ids: &[u32]) -> Vec<f32> {
    let mut segments = [Segment { cache, ids, logits: Logits::Last }];
    match decoder.step(&mut segments, &|| false).unwrap() {
        Step::Done(mut logits) => logits.pop().flatten().unwrap(),
        Step::Stopped => panic!("nobody stopped it"),
    }
}

#[test]
fn results_depend_on_neither_threads_nor_chunks_nor_neighbours_nor_what_was_cut_back() {
    let decoder = decoder(2);
    let whole = last(&decoder, &mut decoder.new_cache(64), &IDS);
    assert_eq!(whole.len(), decoder.config().vocabulary);

    let one = self::decoder(1);
    assert!(last(&one, &mut one.new_cache(64), &IDS) == whole, "threads change the logits");
    drop(one);

    let mut chunked = decoder.new_cache(64);
    last(&decoder, &mut chunked, &IDS[..1]);
    last(&decoder, &mut chunked, &IDS[1..8]);
    assert!(last(&decoder, &mut chunked, &IDS[8..]) == whole, "chunks change the logits");
    assert_eq!(chunked.len(), IDS.len());

    chunked.cut_back(4);
    let other = last(&decoder, &mut chunked, &[1, 2, 3]);
    chunked.cut_back(4);
    assert!(last(&decoder, &mut chunked, &IDS[4..]) == whole, "what was cut back is remembered");
    assert!(other != whole);

    let (mut left, mut right) = (decoder.new_cache(64), decoder.new_cache(64));
    let mut segments = [
        Segment { cache: &mut left, ids: &[9, 8, 7, 6], logits: Logits::Skip },
        Segment { cache: &mut right, ids: &IDS, logits: Logits::Last },
    ];
    let Step::Done(together) = decoder.step(&mut segments, &|| false).unwrap() else {
        panic!("nobody stopped it")
    };
    assert!(together[0].is_none() && together[1].as_ref() == Some(&whole), "neighbours matter");

    stopping_adds_nothing(&decoder, &whole);
    wrong_steps_are_errors(&decoder);
}

fn stopping_adds_nothing(decoder: &Decoder, whole: &[f32]) {
    let mut cache = decoder.new_cache(64);
    last(decoder, &mut cache, &IDS[..5]);
    let asked = AtomicUsize::new(0);
    let mut segments = [Segment { cache: &mut cache, ids: &IDS[5..], logits: Logits::Last }];
    let stopped = decoder.step(&mut segments, &|| asked.fetch_add(1, Ordering::Relaxed) >= 17);
    assert_eq!((stopped, asked.into_inner()), (Ok(Step::Stopped), 18));
    assert_eq!(cache.len(), 5);
    assert!(last(decoder, &mut cache, &IDS[5..]) == whole);
}

fn wrong_steps_are_errors(decoder: &Decoder) {
    let step = |cache: &mut KvCache, ids: &[u32]| {
        decoder.step(&mut [Segment { cache, ids, logits: Logits::Last }], &|| false)
    };
    let mut small = decoder.new_cache(3);
    assert!(step(&mut small, &[]).is_err());
    assert!(step(&mut small, &[u32::MAX]).is_err());
    assert!(step(&mut small, &[1, 2, 3, 4]).unwrap_err().to_string().contains("window of 3"));
    assert!(step(&mut small, &[1, 2, 3]).is_ok());
    assert!(step(&mut small, &[4]).is_err());
    assert_eq!(small.len(), 3);
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    use correx_gguf::{Numbers, Value};
    let gguf = default_gguf();
    for (key, value, says) in [
        ("general.architecture", Value::Text("bert".into()), "`bert`"),
        ("llama.attention.head_count", Value::Unsigned(0), "head_count"),
        ("llama.attention.head_count_kv", Value::Unsigned(2), "heads"),
        (
            "llama.attention.head_count_kv",
            Value::Numbers(Numbers::from_iter([3i64])),
            "head_count_kv",
        ),
        ("llama.attention.key_length", Value::Unsigned(63), "63 wide"),
        ("llama.attention.value_length", Value::Unsigned(32), "another width"),
        ("llama.embedding_length", Value::Unsigned(u64::MAX), "embedding_length"),
        ("llama.block_count", Value::Text("many".into()), "block_count"),
        ("llama.rope.freq_base", Value::Float(f64::NAN), "rotates"),
        ("llama.rope.dimension_count", Value::Unsigned(63), "rotates 63"),
        ("llama.rope.dimension_count", Value::Unsigned(128), "dimension_count"),
        ("llama.expert_count", Value::Unsigned(8), "expert_used_count"),
        ("llama.attention.layer_norm_rms_epsilon", Value::Bool(true), "epsilon"),
    ] {
        let mut gguf = gguf.clone();
        gguf.metadata.insert(key.to_owned(), value);
        let error = DecoderConfig::from_gguf(&gguf).unwrap_err().to_string();
        assert!(error.contains(says), "{key}: {error}");
    }
    let mut stretched = gguf.clone();
    stretched.metadata.insert("llama.rope.scaling.type".into(), Value::Text("warped".into()));
    assert!(DecoderConfig::from_gguf(&stretched).unwrap_err().to_string().contains("warped"));
    let mut other = gguf.clone();
    let extra = other.tensors["blk.0.attn_norm.weight"].clone();
    other.tensors.insert("blk.3.attn_q_norm.weight".into(), extra);
    assert!(DecoderConfig::from_gguf(&other).unwrap_err().to_string().contains("blk.3.attn_q_n"));
    let mut taller = gguf;
    taller.metadata.insert("llama.embedding_length".into(), Value::Unsigned(1152));
    let config = DecoderConfig::from_gguf(&taller).unwrap();
    let loaded = Decoder::load(&taller, config, Threads::new(2).unwrap(), &mut |_, _| {
        ControlFlow::Continue(())
    });
    assert!(matches!(loaded.err(), Some(WeightsError::Shape { .. })));
}
