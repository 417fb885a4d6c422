use std::fs;
use std::path::Path;

use correx_gguf::testing::Writer;
use correx_gguf::{Problem, TensorType, inspect};

fn model() -> Writer {
    Writer::new()
        .entry("general.architecture", "llama")
        .f32("a", &[2], &[1.0, 2.0])
        .f32("b", &[1], &[3.0])
        .zeros("c", TensorType::Q4_0, &[1, 32])
}

fn problem(path: &Path) -> Problem {
    inspect(path).expect_err("it is refused").problem
}

#[test]
fn any_part_of_a_split_model_opens_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let paths = model().write_split(folder.path(), "größer & kleiner", &[0, 2, 1]).unwrap();
    for path in &paths {
        let gguf = inspect(path).unwrap();
        assert_eq!(gguf.path, paths[0]);
        assert_eq!(gguf.parts.iter().map(|part| part.path.clone()).collect::<Vec<_>>(), paths);
        assert_eq!(gguf.architecture(), Some("llama"));
        let part = |name: &str| gguf.tensors[name].part;
        assert_eq!((part("a"), part("b"), part("c")), (1, 1, 2));
        let sizes: u64 = paths.iter().map(|path| path.metadata().unwrap().len()).sum();
        assert_eq!(gguf.file_bytes, sizes);
        let b = &gguf.tensors["b"];
        let bytes = fs::read(&gguf.parts[b.part].path).unwrap();
        assert_eq!(bytes[b.offset as usize..][..4], 3f32.to_le_bytes());
    }
}

#[test]
fn a_part_that_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let paths = model().write_split(folder.path(), "m", &[1, 1, 1]).unwrap();
    fs::remove_file(&paths[1]).unwrap();
    let message = problem(&paths[2]).to_string();
    assert!(message.contains("one is missing: m-00002-of-00003.gguf"), "{message}");
    fs::remove_file(&paths[0]).unwrap();
    let message = problem(&paths[2]).to_string();
    assert!(message.contains("2 are missing: m-00001-of-00003.gguf, m-00002"), "{message}");
}

#[test]
fn a_part_under_another_name_is_told_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let paths = model().write_split(folder.path(), "m", &[1, 2]).unwrap();
    let renamed = folder.path().join("model.gguf");
    fs::rename(&paths[1], &renamed).unwrap();
    let message = problem(&renamed).to_string();
    assert!(message.contains("NAME-00002-of-00002.gguf"), "{message}");
    fs::copy(&renamed, &paths[0]).unwrap();
    assert!(matches!(problem(&paths[0]), Problem::PartName { number: 2, count: 2, .. }));
}

#[test]
fn parts_of_different_models_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = || model().write_split(folder.path(), "m", &[1, 2]).unwrap();
    let refused = |file: &Path, other: &Writer, expected: &str| {
        let paths = write();
        other.write(&folder.path().join(file)).unwrap();
        for path in paths {
            let error = inspect(&path).unwrap_err();
            assert!(matches!(error.problem, Problem::OtherSet(_)), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    };
    let second = Path::new("m-00002-of-00002.gguf");
    let more = model().f32("d", &[1], &[0.0]).split(&[1, 3]);
    refused(second, &more[1], "tensors");
    refused(second, &model().split(&[2, 1])[1], "they hold 2 tensors, and should hold 3");
    let doubled =
        Writer::new().f32("x", &[1], &[0.0]).f32("a", &[2], &[0.0; 2]).f32("b", &[1], &[0.0]);
    refused(second, &doubled.split(&[1, 2])[1], "two of them hold the tensor `a`");
    let other = model().split(&[1, 2])[1].clone().entry("general.architecture", "qwen2");
    refused(second, &other, "a `qwen2` model");
}

#[test]
fn a_whole_model_or_a_wrong_number_in_place_of_a_part_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let paths = model().write_split(folder.path(), "m", &[1, 2]).unwrap();
    model().write(&paths[1]).unwrap();
    let message = problem(&paths[0]).to_string();
    assert!(message.contains("whole model"), "{message}");
    fs::copy(&paths[0], &paths[1]).unwrap();
    let message = problem(&paths[0]).to_string();
    assert!(message.contains("file 1 of 2, not 2 of 2"), "{message}");
}

#[test]
fn a_damaged_part_is_named_and_not_taken_for_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let paths = model().write_split(folder.path(), "m", &[1, 2]).unwrap();
    let whole = fs::read(&paths[1]).unwrap();
    fs::write(&paths[1], &whole[..whole.len() - 1]).unwrap();
    let error = inspect(&paths[0]).unwrap_err();
    assert_eq!(error.path, paths[1]);
    assert!(matches!(error.problem, Problem::Truncated { .. }));
}

#[test]
fn senseless_numbers_of_parts_are_refused_and_one_part_is_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m-00001-of-00002.gguf");
    let write = |no: i32, count: i32| {
        let file = model().entry("split.no", no).entry("split.count", count);
        file.entry("split.tensors.count", 3).write(&path).unwrap();
        inspect(&path).map_err(|error| error.problem)
    };
    for (no, count) in [(2, 2), (-1, 2), (0, -2), (0, 65_535)] {
        assert!(matches!(write(no, count), Err(Problem::Malformed(_))), "{no} of {count}");
    }
    // Merging parts leaves the number 0.
    assert!(write(0, 0).is_ok() && write(0, 1).is_ok());
}
