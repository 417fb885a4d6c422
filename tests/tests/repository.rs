//! What may lie in the repository: nothing of one developer's machine, nothing that belongs elsewhere.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The most that a tracked file may weigh. Weights and builds don't belong here.
const LARGEST: u64 = 3 * 1024 * 1024;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this package lies in the repository")
        .to_path_buf()
}

/// Every file that git tracks and that is there (one deleted just now is not), by its path in the repository.
fn tracked() -> Vec<String> {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    let names: Vec<_> = names
        .split('\0')
        .filter(|name| !name.is_empty() && root().join(name).is_file())
        .map(str::to_owned)
        .collect();
    assert!(names.iter().any(|name| name == "Cargo.toml"), "git tracks no Cargo.toml");
    names
}

/// Texts that betray a machine or a package registry. They are put together here, so that this file
/// does not hold what it looks for.
fn forbidden() -> Vec<String> {
    let folder = |parts: &[&str]| format!("/{}/", parts.join("/"));
    let host = |parts: &[&str]| parts.join(".");
    vec![
        folder(&["work", "main"]),
        folder(&["work", "shared"]),
        folder(&["root", ".cargo"]),
        folder(&["root", ".pyenv"]),
        folder(&["root", "work"]),
        host(&["registry", "npmjs", "org"]),
        host(&["registry", "yarnpkg", "com"]),
        host(&["pypi", "org"]),
        host(&["files", "pythonhosted", "org"]),
        host(&["index", "crates", "io"]),
        host(&["static", "crates", "io"]),
        host(&["deb", "debian", "org"]),
        host(&["proxy", "golang", "org"]),
    ]
}

/// People who do not exist: samples may live in their homes.
const MADE_UP: &[&str] = &["ada", "ä"];

/// Whether the text names somebody's home folder: `home`, `Users` followed by a name.
fn names_a_home(text: &str) -> Option<&str> {
    ["home", "Users"].into_iter().find_map(|parent| {
        [format!("/{parent}/"), format!("\\{parent}\\")].iter().find_map(|start| {
            text.match_indices(start.as_str()).find_map(|(at, _)| {
                let name = &text[at + start.len()..];
                let end = name
                    .find(|c: char| !(c.is_alphanumeric() || "-_.".contains(c)))
                    .unwrap_or(name.len());
                let absolute = text[..at]
                    .chars()
                    .next_back()
                    .is_none_or(|before| before.is_whitespace() || "\"'`=(:".contains(before));
                (end > 0 && absolute).then(|| &text[at..at + start.len() + end])
            })
        })
    })
}

#[test]
fn no_tracked_file_names_a_developers_machine_or_a_registry_host() {
    let forbidden = forbidden();
    let mut found = Vec::new();
    for name in tracked() {
        // Pictures and the like are no text.
        let Ok(text) = std::fs::read_to_string(root().join(&name)) else { continue };
        for word in &forbidden {
            if text.contains(word.as_str()) {
                found.push(format!("{name}: {word}"));
            }
        }
        let home =
            names_a_home(&text).filter(|home| !MADE_UP.iter().any(|name| home.ends_with(name)));
        if let Some(home) = home {
            found.push(format!("{name}: {home}"));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn no_tracked_file_is_larger_than_three_mebibytes() {
    let large: Vec<_> = tracked()
        .into_iter()
        .filter(|name| root().join(name).metadata().unwrap().len() > LARGEST)
        .collect();
    assert!(large.is_empty(), "{large:?}");
}

#[test]
fn every_crate_comes_from_the_public_index_or_from_here() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let index =
        format!("registry+https://github.com/rust-lang/{}", ["crates.io", "index"].join("-"));
    let sources: Vec<_> =
        lock.lines().filter_map(|line| line.trim().strip_prefix("source = ")).collect();
    assert!(!sources.is_empty());
    let others: Vec<_> =
        sources.into_iter().filter(|source| source.trim_matches('"') != index).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn the_npm_lock_file_has_checksums_but_no_addresses() {
    let lock = std::fs::read_to_string(root().join("ui/package-lock.json")).unwrap();
    let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
    let packages = lock["packages"].as_object().unwrap();
    // The package itself has the empty name.
    let modules: Vec<_> = packages.iter().filter(|(name, _)| !name.is_empty()).collect();
    assert!(!modules.is_empty());
    for (name, module) in modules {
        assert!(module.get("resolved").is_none(), "{name} has the address {}", module["resolved"]);
        assert!(module["integrity"].is_string(), "{name} has no checksum");
    }
}

#[test]
fn a_home_folder_is_recognised_and_an_address_or_a_bare_word_is_not() {
    let home = ["", "home", "ada", "x"].join("/");
    assert_eq!(names_a_home(&format!("see {home}")), Some(&home[..9]));
    let windows = format!("C:{}", ["", "Users", "ada", "x"].join("\\"));
    assert_eq!(names_a_home(&windows), Some(&windows[2..12]));
    assert_eq!(names_a_home(&["https://example.org", "home", "ada"].join("/")), None);
    assert_eq!(names_a_home("at home/work"), None);
}
