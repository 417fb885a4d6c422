//! Whatever a file holds: its header is read or refused, without a panic, without waiting, and
//! without more memory than the file's own size allows.

#![no_main]

use std::io::Cursor;

use allocation_counter::measure;
use correx_gguf::{Gguf, ModelInfo};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let size = file.len() as u64;
    let mut sound = None;
    let reading = measure(|| sound = Gguf::read(Cursor::new(file), size).ok());
    // What the crate promises is the size and a constant of 48 MiB. Files of this size would not
    // reach that constant; this is what their entries and tensors can cost at most.
    assert!(reading.bytes_max <= 16 * size + (32 << 10), "{} for {size}", reading.bytes_max);
    let Some(gguf) = sound else { return };
    let mut told = 0;
    let telling = measure(|| told = ModelInfo::of(&gguf).to_string().len());
    assert!(told > 0 && telling.bytes_max <= 1 << 20, "{} to tell", telling.bytes_max);
    for tensor in gguf.tensors.values() {
        assert!(tensor.offset.checked_add(tensor.bytes).is_some_and(|end| end <= size));
    }
});
