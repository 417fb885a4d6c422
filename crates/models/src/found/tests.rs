use std::fs;

use super::*;
use crate::hub::{HubSettings, Network};
use crate::testing::{model_of, small_model};

struct Given {
    home: tempfile::TempDir,
    places: Places,
}

fn given() -> Given {
    let home = tempfile::tempdir().unwrap();
    let hub = HubSettings {
        endpoint: String::new(),
        token: None,
        cache: home.path().join(".cache/huggingface/hub"),
        network: Network::Never,
    };
    let places = Places::usual(&|_| None, home.path(), &hub);
    // What really lies on this machine is not for the test.
    let own = |place: &Place| place.folder.starts_with(home.path());
    let places = Places { places: places.places.into_iter().filter(own).collect() };
    Given { home, places }
}

impl Given {
    fn put(&self, path: &str, content: &[u8]) -> PathBuf {
        let path = self.home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn names(&self) -> Vec<(Holder, String)> {
        find(&self.places).into_iter().map(|found| (found.holder, found.name)).collect()
    }
}

#[test]
fn every_program_s_models_are_found_under_their_names_there() {
    let given = given();
    // Contents differ only where names are told apart by them: nothing is found twice by its path.
    let model = small_model(400);
    let digest = "ab".repeat(32);
    given.put(&format!(".ollama/models/blobs/sha256-{digest}"), &model);
    let manifest = format!(
        r#"{{"schemaVersion":2,"layers":[{{"mediaType":"application/vnd.ollama.image.template","digest":"sha256:00","size":1}},{{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:{digest}","size":{}}}]}}"#,
        model.len()
    );
    given.put(
        ".ollama/models/manifests/registry.ollama.ai/library/llama3/latest",
        manifest.as_bytes(),
    );
    given.put(".lmstudio/models/owner/repo/größe 1.gguf", &model);
    given.put(".local/share/Jan/data/llamacpp/models/qwen3-4b/model.gguf", &model);
    given.put("jan/models/old/old.gguf", &model);
    given.put(".local/share/nomic.ai/GPT4All/all.gguf", &model);
    given.put(".cache/huggingface/hub/models--a--b/snapshots/c0/q/m.gguf", &model);
    assert_eq!(
        given.names(),
        [
            (Holder::Ollama, "llama3:latest".into()),
            (Holder::LmStudio, "größe 1.gguf".into()),
            (Holder::Jan, "old.gguf".into()),
            (Holder::Jan, "qwen3-4b".into()),
            (Holder::Gpt4All, "all.gguf".into()),
            (Holder::HubCache, "a/b/q/m.gguf".into()),
        ]
    );
    let found = find(&given.places);
    assert_eq!(found[0].size_bytes, model.len() as u64);
    assert_eq!(found[0].about.as_ref().unwrap().architecture.as_deref(), Some("llama"));
}

#[test]
fn what_is_damaged_is_shown_and_what_is_no_language_model_is_not() {
    let given = given();
    given.put(".lmstudio/models/a/b/page.gguf", b"<!doctype html>");
    given.put(".lmstudio/models/a/b/mmproj-model-f16.gguf", &small_model(400));
    given.put(".lmstudio/models/a/b/eyes.gguf", &model_of("clip", 400));
    given.put(".lmstudio/models/a/b/notes.txt", b"GGUF");
    given.put(".lmstudio/models/a/b/m-00001-of-00002.gguf", &small_model(400));
    given.put(".lmstudio/models/a/b/m-00002-of-00002.gguf", &small_model(800));
    given.put(".ollama/models/manifests/x/y/z/bad", b"{");
    given.put(
        ".ollama/models/manifests/x/y/z/outside",
        br#"{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../../x"}]}"#,
    );
    let found = find(&given.places);
    let names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["m-00001-of-00002.gguf", "page.gguf"]);
    let both = small_model(400).len() + small_model(800).len();
    assert_eq!(found[0].size_bytes, both as u64, "both files count");
    assert!(found[1].about.as_ref().unwrap_err().contains("web page"));
}

#[cfg(unix)]
#[test]
fn links_lead_to_files_but_into_no_loop_and_nothing_is_found_twice() {
    use std::os::unix::fs::symlink;
    let given = given();
    let blob = given.put(".cache/huggingface/hub/models--a--b/blobs/abc", &small_model(400));
    let snapshots = given.home.path().join(".cache/huggingface/hub/models--a--b/snapshots");
    for commit in ["c0", "c1"] {
        fs::create_dir_all(snapshots.join(commit)).unwrap();
        symlink(&blob, snapshots.join(commit).join("m.gguf")).unwrap();
    }
    symlink(&snapshots, snapshots.join("c0").join("loop")).unwrap();
    symlink("nowhere", snapshots.join("c0").join("dead.gguf")).unwrap();
    // The folder itself may be elsewhere.
    given.put("disk/lm/a/b/l.gguf", &small_model(500));
    fs::create_dir_all(given.home.path().join(".cache/lm-studio")).unwrap();
    symlink(given.home.path().join("disk/lm"), given.home.path().join(".cache/lm-studio/models"))
        .unwrap();
    assert_eq!(
        given.names(),
        [(Holder::LmStudio, "l.gguf".into()), (Holder::HubCache, "a/b/m.gguf".into())]
    );
}

#[test]
fn the_environment_moves_the_folders() {
    let home = Path::new("/h");
    let hub = HubSettings::from_environment(&|_| None, home);
    let get = |key: &str| (key == "OLLAMA_MODELS").then(|| "/o m".into());
    let places = Places::usual(&get, home, &hub);
    assert_eq!(places.places[0], Place { holder: Holder::Ollama, folder: "/o m".into() });
}
