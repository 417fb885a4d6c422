//! `correx model list|find|download|import|delete`, as a person and a script meet them.
#![allow(clippy::unwrap_used, reason = "what goes wrong here fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use correx_infrastructure::models::Library;
use correx_infrastructure::models::testing::{TestHub, Trouble, small_model};
use serde_json::Value;

struct Given {
    hub: TestHub,
    dir: tempfile::TempDir,
}

fn given() -> Given {
    Given { hub: TestHub::start(), dir: tempfile::tempdir().unwrap() }
}

impl Given {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_correx"));
        let home = self.dir.path().join("home ü");
        fs::create_dir_all(&home).unwrap();
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("CORREX_DATA_DIR", self.dir.path().join("data"))
            .env("HF_ENDPOINT", self.hub.endpoint())
            .env("NO_PROXY", "*")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn correx(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    fn put(&self, path: &str, content: &[u8]) -> PathBuf {
        let path = self.dir.path().join("home ü").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}{}", text(&output.stdout), text(&output.stderr)))
}

#[test]
fn the_list_has_every_size_and_asks_nobody() {
    let given = given();
    let output = given.correx(&["model", "list"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for word in ["qwen3-4b-q4_k_m", "Apache-2.0", "larger", "memory about"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let list = json(&given.correx(&["model", "list", "--json"]));
    assert!(list["catalogue"].as_array().unwrap().len() >= 12);
    assert_eq!(list["installed"], Value::Array(vec![]));
    assert!(given.hub.asked().is_empty());
}

#[test]
fn a_model_that_cannot_be_run_is_refused_before_it_is_here() {
    let given = given();
    given.hub.put("a/b", "m.gguf", small_model(4_000_000));
    let output = given.correx(&["model", "download", "hf:a/b/m.gguf", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["code"], "model", "{error}");
    assert!(error["message"].as_str().unwrap().contains("cannot be used here"), "{error}");
}

#[test]
fn without_a_network_nothing_is_asked_and_that_is_said() {
    let given = given();
    let mut command = given.command(&["model", "download", "qwen3-0.6b-q8_0", "--json"]);
    let output = command.env("HF_HUB_OFFLINE", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("switched off"), "{}", text(&output.stderr));
    assert!(given.hub.asked().is_empty());
    // What the catalogue does not get from the hub says where it comes from.
    let output = given.correx(&["model", "download", "smollm2-135m-instruct-q4_1"]);
    assert!(text(&output.stderr).contains("cargo xtask setup"), "{}", text(&output.stderr));
}

#[test]
fn what_is_no_model_is_not_imported_and_what_is_unknown_is_not_deleted() {
    let given = given();
    let page = given.put("page.gguf", b"<!doctype html>");
    let output = given.correx(&["model", "import", page.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("web page"), "{}", text(&output.stderr));
    let output = given.correx(&["model", "delete", "nothing"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("correx model list"));
}

/// With the default model's file, because these ask whether a model can be run.
mod real_model {
    use std::time::{Duration, Instant};

    use super::*;

    fn model() -> Vec<u8> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../models/SmolLM2-135M-Instruct.Q4_1.gguf");
        fs::read(&path)
            .unwrap_or_else(|_| panic!("{} is missing: run `cargo xtask setup`", path.display()))
    }

    /// Bytes of the part that is being written.
    fn part(given: &Given) -> u64 {
        let blobs = given.dir.path().join("home ü/.cache/huggingface/hub/models--ada--M/blobs");
        let Ok(entries) = fs::read_dir(blobs) else { return 0 };
        let parts = entries.map(|entry| entry.unwrap().path());
        let part = parts.filter(|path| path.extension().is_some_and(|ending| ending == "part"));
        part.map(|path| path.metadata().map_or(0, |about| about.len())).sum()
    }

    fn wait_for(given: &Given, bytes: u64) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while part(given) < bytes {
            assert!(Instant::now() < deadline, "only {} bytes came", part(given));
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_download_that_is_killed_again_and_again_ends_byte_for_byte() {
        let (given, model) = (given(), model());
        given.hub.put("ada/M", "ein Modell ü.gguf", model.clone());
        let args = ["model", "download", "hf:ada/M/ein Modell ü.gguf", "--json"];
        for megabytes in [5, 30, 60] {
            given.hub.trouble([Trouble::Slow(1 << 20, Duration::from_millis(10))]);
            let mut child = given.spawn(&args);
            wait_for(&given, megabytes << 20);
            // SIGKILL: nothing is said, nothing is tidied up.
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let list = json(&given.correx(&["model", "list", "--json"]));
        assert_eq!(list["downloads"][0]["phase"]["kind"], "paused");
        assert!(list["downloads"][0]["done"].as_u64().unwrap() >= 48 << 20, "{list}");

        let done = json(&given.correx(&args));
        let path = done["phase"]["path"].as_str().unwrap_or_else(|| panic!("{done}"));
        assert!(fs::read(path).unwrap() == model, "the bytes are others");
        let ranges: Vec<bool> = given
            .hub
            .content_asked()
            .iter()
            .map(|asked| asked.headers.contains_key("range"))
            .collect();
        assert_eq!(ranges, [false, false, true, true], "what was safe was not fetched again");

        let id = done["phase"]["installed"].as_str().unwrap();
        let output = given.correx(&["model", "delete", id]);
        assert!(text(&output.stderr).contains("--yes") && Path::new(path).exists());
        let output = given.correx(&["model", "delete", id, "--yes"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(!Path::new(path).exists());
    }

    #[cfg(unix)]
    #[test]
    fn ctrl_c_pauses_and_says_how_to_go_on() {
        let given = given();
        given.hub.put("ada/M", "m.gguf", model());
        given.hub.trouble([Trouble::Slow(1 << 20, Duration::from_millis(20))]);
        let child = given.spawn(&["model", "download", "hf:ada/M/m.gguf"]);
        wait_for(&given, 20 << 20);
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("Paused:") && said.contains("correx model download hf:ada/M/m.gguf"));
        let list = json(&given.correx(&["model", "list", "--json"]));
        let done = list["downloads"][0]["done"].as_u64().unwrap();
        assert_eq!(done, part(&given), "all that is here is safe");
    }

    #[test]
    fn a_file_of_another_program_is_found_and_used_where_it_lies() {
        let given = given();
        let path = given.put(".lmstudio/models/a/b/smol ü.gguf", &model());
        let found = json(&given.correx(&["model", "find", "--json"]));
        assert_eq!(found["holder"], "LM Studio");
        let imported = json(&given.correx(&["model", "import", path.to_str().unwrap(), "--json"]));
        assert_eq!(imported["id"], "smol-ü");
        let list = json(&given.correx(&["model", "list", "--json"]));
        assert_eq!(list["installed"][0]["path"], path.to_str().unwrap());
        let output = given.correx(&["model", "delete", "smol-ü", "--yes"]);
        assert!(text(&output.stderr).contains("its file stays"), "{}", text(&output.stderr));
        assert!(path.exists());
    }
}

#[test]
fn a_model_is_named_by_its_id_wherever_one_is_asked_for() {
    let given = given();
    let fails = |args: &[&str], words: &[&str]| {
        let output = given.correx(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let said = text(&output.stderr);
        for word in words {
            assert!(said.contains(word), "{args:?} {word}: {said}");
        }
    };
    let get = "correx model download qwen3-4b-q4_k_m";
    fails(&["model", "inspect", "qwen3-4b-q4_k_m"], &["not here yet", get]);
    fails(
        &["model", "fit", "qwen3-4b-q4_k_m"],
        &["not here yet", get, "of memory for 4096 tokens"],
    );
    fails(&["model", "use", "qwen3-4b-q4_k_m"], &["not here yet", get]);
    fails(&["model", "delete", "qwen3-4b-q4_k_m", "--yes"], &["not here", "nothing to delete"]);
    fails(&["model", "download", "nosuch"], &["\"nosuch\" names no model file"]);
    assert!(given.hub.asked().is_empty());

    let path = given.put("ein\nModell.gguf", &small_model(1000));
    let path = path.to_str().unwrap();
    fails(&["model", "delete", path, "--yes"], &["did not put it there"]);
    let library = Library::in_data_dir(&given.dir.path().join("data"));
    library.import(Path::new(path), Some("mine"), &|_| Ok(()), &mut |_| true).unwrap();
    assert!(!text(&given.correx(&["model", "list"]).stdout).contains("ein\nModell"));
    fails(&["model", "import", path, "--name", "other"], &["imported already, as mine"]);
    fails(&["model", "delete", path, "--yes"], &["the model mine"]);
    let inspected = json(&given.correx(&["model", "inspect", "mine", "--json"]));
    assert_eq!(inspected["paths"][0], path);
}

#[test]
fn a_name_that_is_nearly_one_gets_the_one_that_was_meant_from_every_command() {
    let given = given();
    let says = |args: &[&str], word: &str| {
        let output = given.correx(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    };
    let commands: [&[&str]; 8] = [
        &["inspect"],
        &["fit"],
        &["use"],
        &["bench"],
        &["tokenize"],
        &["generate"],
        &["delete", "--yes"],
        &["download"],
    ];
    for command in commands {
        let typed = |name| [&["model"], command, &[name]].concat();
        says(&typed("qwen3-4b"), "Did you mean `qwen3-4b-q4_k_m`?");
        says(&typed("nosuch"), "correx model list");
        let output = given.correx(&typed("nosuch"));
        assert!(!text(&output.stderr).contains("Did you mean"), "{command:?}");
    }
    // What is here by its own name is meant as well, and a path is never a name.
    let path = given.put("Mine.gguf", &small_model(1000));
    let library = Library::in_data_dir(&given.dir.path().join("data"));
    library.import(&path, Some("My own"), &|_| Ok(()), &mut |_| true).unwrap();
    says(&["model", "delete", "myown", "--yes"], "Did you mean `my-own`?");
    for command in ["use", "inspect", "generate"] {
        says(&["model", command, "qwen3-4b.gguf"], "does not exist");
    }
    assert!(given.hub.asked().is_empty());
}

#[test]
fn looking_at_the_model_loads_nothing_and_says_what_is_wrong_with_the_choice() {
    let given = given();
    let data = given.dir.path().join("data");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("settings.toml"), "[model]\nuse = \"nosuch\"\n").unwrap();
    for command in ["show", "status"] {
        let output = given.correx(&["model", command]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        assert!(said.contains("there is no model \"nosuch\""), "{said}");
        assert!(said.contains("not loaded yet") && !said.contains("file  "), "{said}");
    }
    let mut command = given.command(&["model", "status"]);
    let output = command.env("CORREX_MODEL", "/elsewhere/m.gguf").output().unwrap();
    assert!(text(&output.stderr).contains("CORREX_MODEL"), "{}", text(&output.stderr));
}
