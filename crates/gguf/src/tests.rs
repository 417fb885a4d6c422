use std::io::Cursor;

use proptest::prelude::*;

use super::*;

/// Writes headers for the tests.
#[derive(Default)]
struct Header {
    entries: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: usize,
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

impl Header {
    fn entry(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.entries.push([&text(key)[..], &kind.to_le_bytes(), value].concat());
        self
    }

    fn tensor(mut self, name: &str, dims: &[u64], kind: u32, offset: u64) -> Self {
        let mut bytes = text(name);
        bytes.extend((dims.len() as u32).to_le_bytes());
        for dim in dims {
            bytes.extend(dim.to_le_bytes());
        }
        bytes.extend(kind.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        self.tensors.push(bytes);
        self
    }

    fn data(mut self, bytes: usize) -> Self {
        self.data = bytes;
        self
    }

    fn bytes(self) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3u32.to_le_bytes());
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend((self.entries.len() as u64).to_le_bytes());
        bytes.extend(self.entries.concat());
        bytes.extend(self.tensors.concat());
        if self.data > 0 {
            bytes.resize(bytes.len().next_multiple_of(32) + self.data, 0);
        }
        bytes
    }
}

fn small() -> Vec<u8> {
    Header::default()
        .entry("general.architecture", 8, &text("llama"))
        .entry("list", 9, &[&8u32.to_le_bytes()[..], &1u64.to_le_bytes(), &text("x")].concat())
        .tensor("w", &[32, 2], 3, 0)
        .data(40)
        .bytes()
}

fn check(bytes: &[u8]) -> Result<super::Header, Problem> {
    read_header(Cursor::new(bytes), bytes.len() as u64)
}

#[test]
fn a_sound_header_yields_metadata_and_tensor_places() {
    let bytes = small();
    let (metadata, tensors) = check(&bytes).unwrap();
    assert_eq!(metadata["general.architecture"].as_str(), Some("llama"));
    assert_eq!(metadata["list"].as_texts(), Some(&["x".to_owned()][..]));
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
        (b"PK\x03\x04 something", "not a GGUF"),
        (b"GGUF\0\0\0\x03\0\0\0\0\0\0\0\0", "big-endian"),
        (b"GGUF\x01\0\0\0\0\0\0\0\0\0\0\0", "version 1"),
        (b"GGUF\x09\0\0\0\0\0\0\0\0\0\0\0", "version 9"),
    ] {
        let message = check(bytes).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn an_alignment_that_no_division_survives_is_refused() {
    for alignment in [0u32, 1, 3, 24, 1 << 31] {
        let bytes =
            Header::default().entry("general.alignment", 4, &alignment.to_le_bytes()).bytes();
        assert!(matches!(check(&bytes), Err(Problem::Alignment(_))), "{alignment}");
    }
    let negative = Header::default().entry("general.alignment", 5, &(-8i32).to_le_bytes()).bytes();
    assert!(matches!(check(&negative), Err(Problem::Alignment(_))));
}

#[test]
fn impossible_counts_shapes_and_types_are_refused_before_anything_is_allocated() {
    let mut counts = small();
    counts[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(check(&counts), Err(Problem::Malformed(_))));
    let list = |count: u64| {
        Header::default()
            .entry("l", 9, &[&0u32.to_le_bytes()[..], &count.to_le_bytes()].concat())
            .bytes()
    };
    assert!(matches!(check(&list(u64::MAX)), Err(Problem::Malformed(_))));
    assert!(matches!(check(&list(1 << 24)), Err(Problem::Truncated { .. })));
    let long = Header::default().entry("t", 8, &(1u64 << 62).to_le_bytes()).bytes();
    assert!(matches!(check(&long), Err(Problem::Malformed(_))));
    let shape = |dims: &[u64]| Header::default().tensor("w", dims, 0, 0).data(64).bytes();
    for dims in [&[0u64][..], &[u64::MAX, 2], &[1 << 40, 1 << 40], &[], &[1, 1, 1, 1, 1]] {
        assert!(matches!(check(&shape(dims)), Err(Problem::Malformed(_))), "{dims:?}");
    }
    let odd = Header::default().tensor("w", &[33], 3, 0).data(64).bytes();
    assert!(matches!(check(&odd), Err(Problem::Malformed(_))));
    let unaligned = Header::default().tensor("w", &[4], 0, 4).data(64).bytes();
    assert!(matches!(check(&unaligned), Err(Problem::Malformed(_))));
    let exotic = Header::default().tensor("w", &[32], 20, 0).data(64).bytes();
    assert!(check(&exotic).unwrap_err().to_string().contains("IQ4_NL"));
    let far = Header::default().tensor("w", &[32], 0, u64::MAX - 31).data(64).bytes();
    assert!(matches!(check(&far), Err(Problem::Malformed(_))));
    let twice = Header::default().tensor("w", &[8], 0, 0).tensor("w", &[8], 0, 0).data(64).bytes();
    assert!(matches!(check(&twice), Err(Problem::Malformed(_))));
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
