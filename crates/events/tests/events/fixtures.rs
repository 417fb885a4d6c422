//! The stored form of every kind, as files: a field that is renamed, added or dropped shows here,
//! and then wants an upcaster with a fixture of the old form under `fixtures/old`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use correx_events::codec::{UPCASTERS, decode, encode};
use correx_events::testing::samples;
use correx_events::{EventId, EventPayload};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn fixture(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_kind_is_written_as_its_fixture_says() {
    for sample in samples() {
        let path = folder().join(format!("{}.json", sample.kind()));
        assert_eq!(encode(&sample).unwrap(), fixture(&path), "{}", path.display());
    }
}

#[test]
fn every_fixture_is_read_as_its_sample() {
    for sample in samples() {
        let text = fixture(&folder().join(format!("{}.json", sample.kind())));
        assert_eq!(decode(&text, &EventId::new("event-1")), sample);
    }
}

/// As it was written before models could think: a new field that may be absent needs no upcaster.
#[test]
fn a_model_call_of_before_thinking_was_recorded_has_none_and_stays_as_it_was_written() {
    let text = fixture(&folder().join("inference_completed.json"));
    let (start, rest) = text.split_once("\"thinking_tokens\"").unwrap();
    let (_, end) = rest.split_once("\"reused_tokens\"").unwrap();
    let old = format!("{start}\"reused_tokens\"{end}");
    let read = decode(&old, &EventId::new("event-1"));
    let EventPayload::InferenceCompleted(call) = &read else { panic!("{read:?}") };
    assert_eq!((call.output_tokens, call.thinking_tokens, &call.thinking), (201, None, &None));
    assert_eq!(encode(&read).unwrap(), old);
}

#[test]
fn there_is_no_fixture_without_a_kind() {
    let kinds: BTreeSet<String> = EventPayload::KINDS.iter().copied().map(str::to_owned).collect();
    assert_eq!(names(&folder()), kinds);
}

#[test]
fn every_lifted_kind_has_a_fixture_of_its_old_form_which_is_read() {
    let old = folder().join("old");
    let lifted: BTreeSet<String> =
        UPCASTERS.iter().map(|upcaster| upcaster.kind.to_owned()).collect();
    assert_eq!(names(&old), lifted);
    for kind in lifted {
        let read = decode(&fixture(&old.join(format!("{kind}.json"))), &EventId::new("event-1"));
        assert!(!matches!(read, EventPayload::Unknown(_)), "{kind}: {read:?}");
        assert_eq!(read.kind(), kind);
    }
}

/// New fields may be absent, and what lacks them is written back as it was.
#[test]
fn records_of_before_a_field_was_added_stay_as_they_were_written() {
    let earlier = folder().join("earlier");
    let names = names(&earlier);
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        let text = fixture(&earlier.join(format!("{name}.json")));
        let read = decode(&text, &EventId::new("event-1"));
        assert!(!matches!(read, EventPayload::Unknown(_)), "{name}: {read:?}");
        assert_eq!(encode(&read).unwrap(), text);
    }
}
