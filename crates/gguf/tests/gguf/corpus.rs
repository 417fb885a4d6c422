//! The corpus of the fuzz target (`fuzz/`), replayed without the fuzzer.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use correx_gguf::{Gguf, ModelInfo};

#[test]
fn the_corpus_of_the_fuzz_target_is_read_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/inspect");
    let (mut sound, mut refused, mut bytes) = (0, 0, 0);
    for file in fs::read_dir(folder).unwrap() {
        let file = fs::read(file.unwrap().path()).unwrap();
        bytes += file.len();
        match Gguf::read(Cursor::new(&file), file.len() as u64) {
            Ok(gguf) => {
                sound += 1;
                assert!(!ModelInfo::of(&gguf).rows().is_empty());
            }
            Err(problem) => {
                refused += 1;
                assert!(!problem.to_string().is_empty());
            }
        }
    }
    assert!(sound > 5 && refused > 5, "{sound} files were read and {refused} refused");
    assert!(bytes < 200 << 10, "the corpus has {bytes} bytes");
}
