//! Reading a header takes no more memory than the file has bytes, plus a constant.

use std::io::Cursor;

use allocation_counter::measure;
use correx_gguf::testing::Writer;
use correx_gguf::{Gguf, ModelInfo};

/// What the crate promises beyond the file's size.
const CONSTANT: u64 = 48 << 20;

/// The most bytes that were allocated at a time while `file` was read and described.
fn peak(file: &[u8]) -> u64 {
    let read = || {
        if let Ok(gguf) = Gguf::read(Cursor::new(file), file.len() as u64) {
            drop(ModelInfo::of(&gguf).to_string());
        }
    };
    measure(read).bytes_max
}

fn list(kind: u32, count: u64, elements: &[u8]) -> Vec<u8> {
    let value = [&kind.to_le_bytes()[..], &count.to_le_bytes(), elements].concat();
    Writer::new().raw_entry("l", 9, &value).to_bytes()
}

#[test]
fn lists_cost_in_memory_what_they_cost_in_the_file() {
    const COUNT: u64 = 1 << 21;
    let many = COUNT as usize;
    let slack = 1 << 16;
    for (name, file) in [
        ("empty texts", list(8, COUNT, &vec![0; 8 * many])),
        ("bytes", list(0, COUNT, &vec![1; many])),
        ("truth values", list(7, COUNT, &vec![1; many])),
        ("wide numbers", list(11, COUNT, &vec![1; 8 * many])),
        ("floats", list(6, COUNT, &vec![1; 4 * many])),
        ("short texts", list(8, COUNT, &[1u8, 0, 0, 0, 0, 0, 0, 0, 0xff].repeat(many))),
    ] {
        let peak = peak(&file);
        assert!(peak <= file.len() as u64 + slack, "{name}: {peak} for {}", file.len());
        assert!(peak >= file.len() as u64 / 3, "{name} was not read: {peak}");
    }
}

#[test]
fn what_a_small_file_claims_is_not_allocated() {
    let claims = |count: u64| {
        (0..=12u32).flat_map(move |kind| [list(kind, count, &[0; 40]), list(kind, count, &[])])
    };
    for count in [1 << 10, 1 << 24, 1 << 30, 1 << 40, u64::MAX / 8, u64::MAX] {
        for file in claims(count) {
            assert!(peak(&file) < 1 << 16, "{count}");
        }
    }
    for length in [1u64 << 20, 1 << 24, 1 << 31, u64::MAX] {
        let file = Writer::new().raw_entry("t", 8, &length.to_le_bytes()).to_bytes();
        assert!(peak(&file) < 1 << 16, "{length}");
    }
}

#[test]
fn the_most_entries_and_tensors_stay_within_the_constant() {
    let mut file = Writer::new();
    for number in 0..1u32 << 14 {
        file = file.entry(&number.to_string(), false);
    }
    let bytes = file.to_bytes();
    let read = peak(&bytes);
    assert!(read > 1 << 20 && read < bytes.len() as u64 + CONSTANT, "{read}");
    let mut file = Writer::new();
    for number in 0..1u64 << 16 {
        file = file.raw_tensor(&number.to_string(), 24, &[1, 1, 1, 1], number * 32);
    }
    let bytes = file.spare(1 << 21).to_bytes();
    let read = peak(&bytes);
    assert!(read > 8 << 20 && read < bytes.len() as u64 + CONSTANT, "{read}");
    let more = file_with_one_more(&bytes);
    assert!(peak(&more) < 1 << 16);
}

/// The same file, which says that it has one tensor more.
fn file_with_one_more(bytes: &[u8]) -> Vec<u8> {
    let mut more = bytes.to_vec();
    more[8..16].copy_from_slice(&((1u64 << 16) + 1).to_le_bytes());
    more
}
