//! The estimate against what a process really holds. `CORREX_MODEL` names another model.

use std::sync::Arc;

use correx_events::SystemClock;
use correx_gguf::inspect;
use correx_inference::{GenerationConfig, InferenceCancellationToken, ResponseFormat};
use serde_json::json;

use super::{forget_peak, in_units, peak_bytes, resident_bytes};
use crate::constraint::{Forms, Progress};
use crate::decoder::{Logits, Segment};
use crate::prompt::ChatEncoder;
use crate::provider::{Loaded, memory_plan};
use crate::sampler::Sampler;
use crate::template::{ChatTemplate, ModelFacts};
use crate::testing::default_model;
use crate::threads::compute_threads;

/// Loads the model and fills a window of `context` tokens, all but the last chunk without
/// computing; the caches grow as they do in earnest.
fn check(context: usize, form: &ResponseFormat) {
    let path = default_model();
    let threads = compute_threads();
    let before = resident_bytes().expect("the system tells");
    forget_peak();
    let gguf = inspect(&path).expect("the model is there");
    let mut need = memory_plan(&gguf, threads).expect("it can be run").need(context);
    if form.is_free() {
        need.forms = 0;
    }
    let cancel = InferenceCancellationToken::new();
    let loaded = Loaded::new(&gguf, Some(threads), None, &cancel, |_| {}).expect("it loads");
    let template = ChatTemplate::new(
        gguf.text("tokenizer.chat_template"),
        &ModelFacts::default(),
        Arc::new(SystemClock),
    );
    let _encoder = ChatEncoder::new(loaded.vocabulary.clone(), template).expect("it encodes");
    drop(gguf);
    let after_loading = peak_bytes().expect("the system tells") - before;
    let (mut cache, chunk) = (loaded.decoder.new_cache(context), 64);
    let ids = vec![1; chunk];
    let logits = loaded
        .decoder
        .step(&mut [Segment { cache: &mut cache, ids: &ids, logits: Logits::Last }], &|| false)
        .expect("it computes");
    drop(logits);
    cache.pretend(context - chunk).expect("there is room");
    let step = loaded
        .decoder
        .step(&mut [Segment { cache: &mut cache, ids: &ids, logits: Logits::Last }], &|| false)
        .expect("it computes");
    let crate::decoder::Step::Done(mut logits) = step else { panic!("nobody stopped it") };
    let mut logits = logits.pop().flatten().expect("they were asked for");
    let mut sampler = Sampler::new(&GenerationConfig { top_k: 0, ..GenerationConfig::default() });
    let forms = Forms::new(loaded.vocabulary.clone());
    match forms.compile(form).expect("it can be followed") {
        None => {
            sampler.choose(&mut logits, &[]).expect("there is one");
        }
        Some(mut constraint) => {
            for _ in 0..100 {
                let ids = constraint.permitted().expect("it goes on");
                let id = sampler.choose_among(&ids, &mut logits, &[]).expect("there is one");
                if loaded.vocabulary.is_stop(id)
                    || constraint.take(id).expect("it was permitted") == Progress::Complete
                {
                    break;
                }
            }
        }
    }
    let held = peak_bytes().expect("the system tells") - before;
    let (found, expected) = (held as f64, need.total() as f64);
    let off = (expected / found - 1.0) * 100.0;
    println!(
        "{context} tokens: {} estimated, {} held ({off:+.1} %); {} after loading; {need:?}",
        in_units(need.total()),
        in_units(held),
        in_units(after_loading),
    );
    assert!(off.abs() <= 10.0, "{off:+.1} % off");
}

/// Every test is a process of its own, so that none sees what another one freed.
#[test]
fn the_estimate_is_within_a_tenth_of_what_is_held_in_a_small_window() {
    check(512, &ResponseFormat::Text);
}

#[test]
fn the_estimate_is_within_a_tenth_of_what_is_held_in_a_middling_window() {
    check(2048, &ResponseFormat::Text);
}

#[test]
fn the_estimate_is_within_a_tenth_of_what_is_held_in_a_large_window() {
    check(8192, &ResponseFormat::Text);
}

#[test]
fn the_estimate_is_within_a_tenth_of_what_is_held_with_a_reply_in_a_form() {
    let schema = json!({
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "points": {"type": "array", "items": {"type": "string"}},
            "count": {"type": "integer"}
        },
        "required": ["title", "points", "count"]
    });
    check(2048, &ResponseFormat::JsonSchema(schema));
}
