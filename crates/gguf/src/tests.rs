use std::io::Cursor;

use proptest::prelude::*;

use super::testing::Writer;
use super::*;

fn small() -> Vec<u8> {
    Writer::new()
        .entry("general.architecture", "llama")
        .entry("list", Texts::from_iter(["x"]))
        .zeros("w", TensorType::Q4_1, &[2, 32])
        .to_bytes()
}

fn check(bytes: &[u8]) -> Result<super::Header, Problem> {
    read_header(Cursor::new(bytes), bytes.len() as u64)
}

#[test]
fn a_sound_header_yields_metadata_and_tensor_places() {
    let bytes = small();
    let Header { metadata, tensors, .. } = check(&bytes).unwrap();
    assert_eq!(metadata["general.architecture"].as_str(), Some("llama"));
    assert_eq!(metadata["list"].as_texts(), Some(&Texts::from_iter(["x"])));
    let tensor = &tensors["w"];
    assert_eq!(
        (tensor.kind, &tensor.shape[..], tensor.bytes),
        (TensorType::Q4_1, &[2, 32][..], 40)
    );
    assert_eq!(tensor.offset as usize + 40, bytes.len());
}

#[test]
fn every_truncation_of_a_file_is_called_incomplete() {
    let bytes = small();
    assert!(matches!(check(&[]), Err(Problem::Empty)));
    for length in 1..bytes.len() {
        let found = check(&bytes[..length]);
        assert!(matches!(found, Err(Problem::Truncated { .. })), "{length}: {found:?}");
    }
}

#[test]
fn what_is_no_model_is_named_for_what_it_is() {
    for (bytes, expected) in [
        (&b"\xef\xbb\xbf \n<!DOCTYPE html><html>"[..], "web page"),
        (b"<html>not found</html>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "LFS"),
        (b"lmgg\x01\0\0\0", "old format"),
        (b"PK\x03\x04 something", "archive"),
        (b"GGUF\0\0\0\x03\0\0\0\0\0\0\0\0", "big-endian"),
        (b"GGUF\0\0\0\x01\0\0\0\0\0\0\0\0", "big-endian"),
        (b"GGUF\0\0\0\0\0\0\0\0\0\0\0\0", "version 0"),
        (
            b"\n{\"error\": \"Repository not found\"}",
            "a text, not a model (it begins with `{\"error",
        ),
        (b"Invalid username or password.", "a text, not a model"),
        (b"\x10\x02\0\0\0\0\0\0{\"__metadata__\":{}}", "safetensors"),
        (b"\x1f\x8b\x08\0\0\0", "compressed"),
        (b"\x7fELF\x02\x01", "not a GGUF"),
        (b"GGUF\x09\0\0\0\0\0\0\0\0\0\0\0", "version 9"),
    ] {
        let message = check(bytes).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn an_alignment_that_no_division_survives_is_refused() {
    for alignment in [0u32, 1, 3, 24, 1 << 31] {
        let bytes = Writer::new().entry("general.alignment", alignment).to_bytes();
        assert!(matches!(check(&bytes), Err(Problem::Alignment(_))), "{alignment}");
    }
    let negative = Writer::new().entry("general.alignment", -8).to_bytes();
    assert!(matches!(check(&negative), Err(Problem::Alignment(_))));
    // 57 bytes that end a process that divides by what they say.
    let zero = Writer::new().entry("general.alignment", 0u32).to_bytes();
    assert_eq!(zero.len(), 57);
}

#[test]
fn impossible_counts_shapes_and_types_are_refused_before_anything_is_allocated() {
    let mut counts = small();
    counts[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(check(&counts), Err(Problem::Malformed(_))));
    let list = |kind: u32, count: u64| {
        let value = [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat();
        Writer::new().raw_entry("l", 9, &value).to_bytes()
    };
    for kind in [0, 6, 8, 10] {
        assert!(matches!(check(&list(kind, u64::MAX)), Err(Problem::Malformed(_))), "{kind}");
        assert!(matches!(check(&list(kind, 1 << 24)), Err(Problem::Truncated { .. })), "{kind}");
    }
    assert!(matches!(check(&list(9, 1)), Err(Problem::Malformed(_))));
    assert!(matches!(check(&list(13, 1)), Err(Problem::Malformed(_))));
    let long = Writer::new().raw_entry("t", 8, &(1u64 << 62).to_le_bytes()).to_bytes();
    assert!(matches!(check(&long), Err(Problem::Malformed(_))));
    let tensor = |dims: &[u64], kind: u32, offset: u64| {
        check(&Writer::new().raw_tensor("w", kind, dims, offset).spare(64).to_bytes())
    };
    for dims in [&[0u64][..], &[u64::MAX, 2], &[1 << 40, 1 << 40], &[], &[1, 1, 1, 1, 1]] {
        assert!(matches!(tensor(dims, 0, 0), Err(Problem::Malformed(_))), "{dims:?}");
    }
    assert!(matches!(tensor(&[33], 3, 0), Err(Problem::Malformed(_))), "half a block");
    assert!(matches!(tensor(&[4], 0, 4), Err(Problem::Malformed(_))), "not aligned");
    assert!(matches!(tensor(&[32], 0, u64::MAX - 31), Err(Problem::Malformed(_))), "too far");
    assert!(matches!(tensor(&[32], 0, 1 << 60), Err(Problem::Truncated { .. })));
    let pair = |one: &str, other: &str, offset: u64| {
        let file = Writer::new().raw_tensor(one, 0, &[9], 0).raw_tensor(other, 0, &[8], offset);
        check(&file.spare(128).to_bytes())
    };
    assert!(pair("a", "b", 64).is_ok());
    for (one, other, offset) in [("a", "a", 64), ("a", "b", 0), ("a", "b", 32)] {
        assert!(matches!(pair(one, other, offset), Err(Problem::Malformed(_))), "{offset}");
    }
}

#[test]
fn a_type_that_is_not_known_is_named_also_when_the_file_ends_early() {
    let message = |kind: u32, dims: &[u64]| {
        check(&Writer::new().raw_tensor("w", kind, dims, 0).to_bytes()).unwrap_err().to_string()
    };
    assert!(message(99, &[1 << 30]).contains("number 99"), "{}", message(99, &[1 << 30]));
    assert!(message(20, &[1 << 30]).contains("incomplete"));
}

#[test]
fn missing_files_and_folders_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let missing = inspect(&folder.path().join("gone.gguf")).unwrap_err();
    assert!(matches!(missing.problem, Problem::Missing));
    assert!(missing.to_string().contains("gone.gguf"));
    assert!(matches!(inspect(folder.path()).unwrap_err().problem, Problem::NotAFile));
}

proptest! {
    #[test]
    fn no_damage_to_a_header_panics(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = small();
        for (place, byte) in edits {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = check(&bytes);
        let _ = check(&bytes[..cut.index(bytes.len())]);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = check(&bytes);
        let _ = check(&[b"GGUF\x03\0\0\0", &bytes[..]].concat());
    }
}
