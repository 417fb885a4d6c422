//! The program as a script meets it: exit codes, what is printed where. No model is needed.
#![allow(clippy::unwrap_used, reason = "what goes wrong here fails the test")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use correx_gguf::TensorType;
use correx_gguf::testing::Writer;
use serde_json::Value;

fn correx(data_dir: &Path, args: &[&str]) -> Output {
    with_input(data_dir, args, "")
}

fn with_input(data_dir: &Path, args: &[&str], input: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_correx"))
        .args(args)
        .env("CORREX_DATA_DIR", data_dir)
        .env("CORREX_MODEL", data_dir.join("no-model.gguf"))
        .env_remove("CORREX_THREADS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have ended without reading.
    let _ = program.stdin.take().unwrap().write_all(input.as_bytes());
    program.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The error that was reported as JSON, and the exit code.
fn json_error(output: &Output) -> (Value, Option<i32>) {
    let error = text(&output.stderr);
    let line = error.lines().last().unwrap_or_default();
    (serde_json::from_str(line).unwrap_or_else(|_| panic!("{error}")), output.status.code())
}

const WORKFLOW: &str = "name = \"W\"\n[[input]]\nname = \"notes\"\ntype = \"file\"\n[[stage]]\n\
                        id = \"a\"\nkind = \"generate\"\nprompt = \"{{ inputs.notes }}\"\n";

#[test]
fn what_is_typed_wrongly_ends_with_two() {
    let dir = tempfile::tempdir().unwrap();
    for args in [&["dance"][..], &["run"], &["model", "bench", "--threads", "none"]] {
        assert_eq!(correx(dir.path(), args).status.code(), Some(2), "{args:?}");
    }
    assert_eq!(correx(dir.path(), &["--help"]).status.code(), Some(0));
}

#[test]
fn an_empty_data_directory_has_no_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let output = correx(dir.path(), &["sessions"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("correx run"));
    let output = correx(dir.path(), &["sessions", "--json"]);
    assert_eq!((text(&output.stdout), text(&output.stderr)), (String::new(), String::new()));
}

#[test]
fn every_mistake_of_a_workflow_file_is_named_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.toml");
    let path = path.to_str().unwrap();
    fs::write(path, WORKFLOW.replace("kind", "knd") + "[[stage]]\nid = \"a\"\n").unwrap();
    let output = correx(dir.path(), &["workflow", "check", path]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("w.toml:7:1: unknown key \"knd\""), "{said}");
    assert!(said.lines().filter(|line| line.starts_with("w.toml:")).count() > 1, "{said}");
    let (error, code) = json_error(&correx(dir.path(), &["workflow", "check", path, "--json"]));
    assert_eq!(
        (error["type"].as_str(), error["code"].as_str()),
        (Some("error"), Some("bad_workflow"))
    );
    assert_eq!(code, Some(1));
    fs::write(path, WORKFLOW).unwrap();
    let output = correx(dir.path(), &["workflow", "check", path, "--json"]);
    let view: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(view["stages"][0]["stage_id"], "a");
}

#[test]
fn an_example_can_be_checked_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let output = correx(dir.path(), &["workflow", "check", "meeting-notes"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Meeting notes"));
}

#[test]
fn the_schema_of_workflow_files_is_printed_and_makes_no_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    for args in [&["workflow", "schema"][..], &["workflow", "schema", "--json"]] {
        let output = correx(&data, args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(schema["properties"]["stage"]["items"]["oneOf"].is_array(), "{schema}");
    }
    assert!(!data.exists());
}

#[test]
fn a_workflow_of_ones_own_begins_with_an_example_and_overwrites_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let listed = correx(dir.path(), &["new", "--json"]);
    let names: Vec<Value> =
        text(&listed.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(names.len() >= 7, "{names:?}");
    for example in names {
        let name = example["name"].as_str().unwrap();
        let place = dir.path().join(name);
        let place = place.to_str().unwrap();
        let made = correx(dir.path(), &["new", name, place]);
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        let workflow = text(&made.stdout).trim().to_owned();
        let checked = correx(dir.path(), &["workflow", "check", &workflow]);
        assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
        let (error, code) = json_error(&correx(dir.path(), &["new", name, place, "--json"]));
        assert_eq!(code, Some(1), "{error}");
        assert!(error["message"].as_str().unwrap().contains("already"), "{error}");
    }
    let unknown = correx(dir.path(), &["new", "nothing"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("meeting-notes"), "{}", text(&unknown.stderr));
}

#[test]
fn a_missing_model_ends_with_one_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (error, code) = json_error(&correx(dir.path(), &["run", "meeting-notes", "--json"]));
    assert_eq!((error["code"].as_str(), code), (Some("model"), Some(1)));
    assert!(error["hint"].is_string(), "{error}");
    assert!(error["kept"].as_str().unwrap().contains("correx resume"), "{error}");
    let output = correx(dir.path(), &["sessions", "--json"]);
    let session: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(session["status"], "IDLE", "the session is kept, and can be started");
    for args in [&["model", "tokenize"][..], &["model", "generate", "--ids"], &["model", "bench"]] {
        let (error, code) = json_error(&correx(dir.path(), &[args, &["--json"]].concat()));
        assert_eq!((error["code"].as_str(), code), (Some("model"), Some(1)), "{args:?}");
    }
}

#[test]
fn a_file_that_is_no_model_is_refused_by_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("page.gguf");
    fs::write(&path, "<!DOCTYPE html><html><body>Not found</body></html>").unwrap();
    let path = path.to_str().unwrap();
    for args in [&["model", "tokenize", path][..], &["model", "load", "--model", path]] {
        let output = with_input(dir.path(), args, "Hello");
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr).to_lowercase();
        assert!(said.contains("html") || said.contains("web page"), "{said}");
    }
}

#[test]
fn a_model_file_is_inspected_and_every_reason_against_it_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let parts = Writer::new()
        .entry("general.architecture", "mamba")
        .entry("general.name", "A model")
        .zeros("a", TensorType::IQ4_NL, &[1, 32])
        .zeros("b", TensorType::F32, &[2])
        .write_split(dir.path(), "großes Modell", &[1, 1])
        .unwrap();
    let path = parts[1].to_str().unwrap();
    let output = correx(dir.path(), &["model", "inspect", path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for expected in
        ["A model", "mamba", "34 (34)", "IQ4_NL", "in 2 files", "runs here     no", "gpt2"]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let output = correx(dir.path(), &["model", "inspect", path, "--json"]);
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["paths"][0].as_str(), parts[0].to_str());
    assert_eq!((&object["name"], &object["files"]), (&"A model".into(), &2.into()));
    assert_eq!(object["quantization"]["types"][0]["type"], "IQ4_NL");
    assert_eq!(object["runs"], false);
    assert!(object["reasons"].as_array().unwrap().len() >= 3, "{object}");
    fs::remove_file(&parts[0]).unwrap();
    let (error, code) = json_error(&correx(dir.path(), &["model", "inspect", path, "--json"]));
    assert_eq!((error["code"].as_str(), code), (Some("model"), Some(1)));
    assert!(error["message"].as_str().unwrap().contains("00001-of-00002.gguf"), "{error}");
}

#[test]
fn an_unreadable_input_ends_with_one_and_makes_no_session() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let workflow = file("w.toml", WORKFLOW.as_bytes());
    for (input, words) in [
        (file("empty.txt", b""), "empty"),
        (file("binary.txt", b"a\0b"), "byte 1"),
        (file("latin.txt", b"caf\xe9"), "byte 3"),
        ("missing.txt".to_owned(), "missing.txt"),
    ] {
        let output = correx(dir.path(), &["run", &workflow, "--input", &input]);
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(said.contains("error:") && said.contains(words), "{said}");
    }
    assert_eq!(text(&correx(dir.path(), &["sessions", "--json"]).stdout), "");
}

#[test]
fn events_of_a_session_are_json_lines_and_of_none_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (error, code) = json_error(&correx(dir.path(), &["events", "last", "--json"]));
    assert_eq!((error["code"].as_str(), code), (Some("not_found"), Some(1)));
    correx(dir.path(), &["run", "meeting-notes"]);
    let output = correx(dir.path(), &["events", "last"]);
    let kinds: Vec<String> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|event| event["payload"]["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["session_created", "inputs_captured"]);
    let output = correx(dir.path(), &["artifacts", "last"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), String::new()));
    assert_eq!(correx(dir.path(), &["delete", "last"]).status.code(), Some(0));
    assert_eq!(text(&correx(dir.path(), &["sessions"]).stdout), "");
}

#[test]
fn a_data_directory_that_cannot_be_one_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "mine").unwrap();
    let (error, code) = json_error(&correx(&file.join("data"), &["sessions", "--json"]));
    assert_eq!((error["code"].as_str(), code), (Some("storage"), Some(1)));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}
