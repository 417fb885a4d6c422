//! Small models of every family give the logits that llama.cpp gives.
//!
//! The reference was written by `tests/peer/families.py`, which says how.

#![allow(clippy::unwrap_used)]

mod models;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use correx_candle::decoder::{Decoder, DecoderConfig, KvCache, Logits, Segment, Step};
use correx_cpu_kernels::Threads;
use correx_gguf::{Gguf, TensorType, inspect};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use models::{Model, VOCABULARY};

/// What a wrong number has to move at least, as a share of the largest logit: ten times what two
/// right ones may differ by.
const FAR: f32 = 1e-2;

#[derive(Deserialize)]
struct Reference {
    peer: String,
    sha256: BTreeMap<String, String>,
}

fn reference() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/families/reference")
}

fn load(gguf: &Gguf, threads: usize) -> Decoder {
    let config = DecoderConfig::from_gguf(gguf).unwrap();
    let go_on = &mut |_, _| ControlFlow::Continue(());
    Decoder::load(gguf, config, Threads::new(threads).unwrap(), go_on).unwrap()
}

/// The logits behind some positions, in ascending order, of the text.
fn logits_of(model: &Model, gguf: &Gguf, positions: &[usize]) -> Vec<f32> {
    let decoder = load(gguf, 2);
    let mut cache = decoder.new_cache(model.window as usize);
    let ids = model.ids();
    let (mut found, mut done) = (Vec::new(), 0);
    for position in positions {
        let ids = &ids[done..=*position];
        let segments = &mut [Segment { cache: &mut cache, ids, logits: Logits::Last }];
        found.extend(step(&decoder, segments));
        done = position + 1;
    }
    found
}

/// The logits of the last segment.
fn step(decoder: &Decoder, segments: &mut [Segment<'_>]) -> Vec<f32> {
    match decoder.step(segments, &|| false).unwrap() {
        Step::Done(mut logits) => logits.pop().flatten().unwrap(),
        Step::Stopped => panic!("nobody stopped it"),
    }
}

/// What llama.cpp found.
fn expected(model: &Model) -> Vec<f32> {
    let bytes = std::fs::read(reference().join(format!("{}.f32", model.name))).unwrap();
    let (numbers, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty() && numbers.len() == model.positions().len() * VOCABULARY);
    numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// The largest difference as a share of the largest number.
fn difference(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0f32, |most, number| most.max(number.abs()));
    let differences = found.iter().zip(expected).map(|(found, expected)| (found - expected).abs());
    // What is no number is as far away as can be.
    differences.fold(0f32, |most, each| if each <= most { most } else { each }) / largest
}

#[test]
fn every_family_agrees_with_llama_cpp() {
    let folder = tempfile::tempdir().unwrap();
    let about = std::fs::read(reference().join("models.json")).unwrap();
    let about: Reference = serde_json::from_slice(&about).unwrap();
    assert!(about.peer.starts_with("llama-cpp-python"));
    let models = models::all();
    assert_eq!(about.sha256.len(), models.len());
    let mut report = Vec::new();
    for model in models {
        let path = folder.path().join("model.gguf");
        let file = model.to_bytes();
        std::fs::write(&path, &file).unwrap();
        let sha256 = hex::encode(Sha256::digest(&file));
        assert_eq!(sha256, about.sha256[model.name], "{} is another than was compared", model.name);
        let expected = expected(&model);
        let found = logits_of(&model, &inspect(&path).unwrap(), &model.positions());
        report.push((model.name, difference(&found, &expected), model.tolerance));
    }
    let told: Vec<_> = report.iter().map(|(name, far, _)| format!("{name}: {far:.1e}")).collect();
    let told = told.join("\n");
    assert!(report.iter().all(|(_, far, tolerance)| far <= tolerance), "{told}");
}

#[test]
fn a_model_in_several_files_gives_what_it_gives_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let model = models::all().swap_remove(0);
    let path = folder.path().join("whole.gguf");
    std::fs::write(&path, model.to_bytes()).unwrap();
    let tensors = inspect(&path).unwrap().tensors.len();
    let parts = model.writer().write_split(folder.path(), "parts", &[1, 3, tensors - 4]).unwrap();
    let positions = [model.length - 1];
    let logits = |path| logits_of(&model, &inspect(path).unwrap(), &positions);
    assert_eq!(logits(&parts[1]), logits(&path));
}

#[test]
fn a_wrong_number_moves_the_logits_far() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = Vec::new();
    for model in models::all() {
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, model.to_bytes()).unwrap();
        let gguf = inspect(&path).unwrap();
        let expected = expected(&model);
        let right = &expected[expected.len() - VOCABULARY..];
        for (key, value) in &model.matter {
            let mut wrong = gguf.clone();
            wrong.metadata.insert(format!("{}.{key}", model.family), value.value());
            let found = logits_of(&model, &wrong, &[model.length - 1]);
            report.push((model.name, *key, difference(&found, right)));
        }
    }
    let told: Vec<_> =
        report.iter().map(|(name, key, far)| format!("{name}, {key}: {far:.1e}")).collect();
    let told = told.join("\n");
    assert!(report.iter().all(|(_, _, far)| *far >= FAR), "{told}");
}

#[test]
fn no_family_depends_on_chunks_neighbours_threads_or_what_was_cut_back() {
    let folder = tempfile::tempdir().unwrap();
    let plainest = |model: &Model| model.name == model.family || model.name == "phi3-short";
    for model in models::all().into_iter().filter(plainest) {
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, model.to_bytes()).unwrap();
        let gguf = inspect(&path).unwrap();
        let decoder = load(&gguf, 2);
        // Longer than the windows.
        let ids = &model.ids()[..40];
        let new_cache = || decoder.new_cache(model.window as usize);
        let last = |cache: &mut KvCache, ids: &[u32]| {
            step(&decoder, &mut [Segment { cache, ids, logits: Logits::Last }])
        };
        let whole = last(&mut new_cache(), ids);
        let mut chunked = new_cache();
        last(&mut chunked, &ids[..29]);
        last(&mut chunked, &ids[29..30]);
        assert_eq!(last(&mut chunked, &ids[30..]), whole, "{}: chunks", model.name);
        chunked.cut_back(5);
        last(&mut chunked, &[1, 2, 3]);
        chunked.cut_back(5);
        let mut other = new_cache();
        let segments = &mut [
            Segment { cache: &mut other, ids: &[7; 33], logits: Logits::Last },
            Segment { cache: &mut chunked, ids: &ids[5..], logits: Logits::Last },
        ];
        assert_eq!(step(&decoder, segments), whole, "{}: cutting back, neighbours", model.name);
        let one = load(&gguf, 1);
        let mut cache = one.new_cache(model.window as usize);
        let segments = &mut [Segment { cache: &mut cache, ids, logits: Logits::Last }];
        assert_eq!(step(&one, segments), whole, "{}: threads", model.name);
    }
}

#[test]
fn an_expert_of_any_type_is_the_expert_of_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let model = models::all().into_iter().find(|model| model.name == "llama-experts").unwrap();
    let positions = [model.length - 1];
    let logits = |file: Vec<u8>| {
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, file).unwrap();
        logits_of(&model, &inspect(&path).unwrap(), &positions)
    };
    // Of our own kernels and of candle's.
    for (kind, dtype) in [
        (TensorType::Q8_0, GgmlDType::Q8_0),
        (TensorType::Q5_1, GgmlDType::Q5_1),
        (TensorType::F16, GgmlDType::F16),
    ] {
        let stored = |numbers: &[f32]| {
            let tensor = Tensor::new(numbers, &Device::Cpu).unwrap();
            QTensor::quantize(&tensor, dtype).unwrap()
        };
        let plain = |numbers: &[f32]| {
            (TensorType::F32, numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
        };
        let small = model
            .writer_as(|tensor, numbers| match tensor.name.contains("_exps") {
                true => (kind, stored(numbers).data().unwrap().to_vec()),
                false => plain(numbers),
            })
            .to_bytes();
        let large = model
            .writer_as(|tensor, numbers| match tensor.name.contains("_exps") {
                true => {
                    let numbers = stored(numbers).dequantize(&Device::Cpu).unwrap();
                    plain(&numbers.to_vec1().unwrap())
                }
                false => plain(numbers),
            })
            .to_bytes();
        // What is multiplied is rounded to eight bits.
        let far = difference(&logits(small), &logits(large));
        assert!(far < 0.05, "{kind}: {far:.1e}");
    }
}

#[test]
fn a_step_can_be_stopped_between_experts_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let model = models::all().into_iter().find(|model| model.name == "lfm2moe").unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, model.to_bytes()).unwrap();
    let gguf = inspect(&path).unwrap();
    let decoder = load(&gguf, 1);
    let ids = &model.ids()[..9];
    let mut cache = decoder.new_cache(model.window as usize);
    let whole = step(&decoder, &mut [Segment { cache: &mut cache, ids, logits: Logits::Last }]);
    cache.cut_back(0);
    let mut stops = 0;
    loop {
        let left = AtomicUsize::new(stops);
        let stop = || left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err();
        let segments = &mut [Segment { cache: &mut cache, ids, logits: Logits::Last }];
        match decoder.step(segments, &stop).unwrap() {
            Step::Stopped => assert!(cache.is_empty()),
            Step::Done(logits) => break assert_eq!(logits[0].as_ref(), Some(&whole)),
        }
        stops += 1;
    }
    // Once for every layer and before the output, and in three layers for every expert asked.
    assert!((6 + 3 * 3..=6 + 3 * 8).contains(&stops), "{stops}");
}
