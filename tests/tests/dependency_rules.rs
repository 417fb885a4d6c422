//! Which crate may know which: the rules of `ARCHITECTURE.md`, held against what the `Cargo.toml`
//! files declare (for use, for tests and for build scripts alike).

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::MetadataCommand;

/// The workspace's packages and the packages that each of them names.
struct Declared(BTreeMap<String, BTreeSet<String>>);

impl Declared {
    fn of_the_workspace() -> Self {
        // The declarations are enough, so nothing is resolved and no network is needed.
        let metadata =
            MetadataCommand::new().no_deps().exec().expect("cargo describes its workspace");
        let packages = metadata.packages.into_iter().map(|package| {
            let names = package.dependencies.into_iter().map(|dependency| dependency.name);
            (package.name.to_string(), names.collect())
        });
        Self(packages.collect())
    }

    fn from(packages: &[(&str, &[&str])]) -> Self {
        let packages = packages.iter().map(|(name, dependencies)| {
            ((*name).to_owned(), dependencies.iter().map(|name| (*name).to_owned()).collect())
        });
        Self(packages.collect())
    }

    /// What `package` names directly. A rule about a package that is gone must not pass in silence.
    fn dependencies(&self, package: &str) -> &BTreeSet<String> {
        self.0.get(package).unwrap_or_else(|| panic!("there is no package {package}"))
    }

    /// Those of `package`'s dependencies that are in this workspace. Itself does not count: a crate
    /// may turn on a feature of its own for its tests.
    fn ours(&self, package: &str) -> BTreeSet<&str> {
        self.dependencies(package)
            .iter()
            .map(String::as_str)
            .filter(|name| *name != package && self.0.contains_key(*name))
            .collect()
    }

    /// Everything that `package` names, and that what it names in this workspace names, and so on.
    fn reach(&self, package: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&str> = self.dependencies(package).iter().map(String::as_str).collect();
        while let Some(name) = open.pop() {
            if reached.insert(name)
                && let Some(further) = self.0.get(name)
            {
                open.extend(further.iter().map(String::as_str));
            }
        }
        reached
    }

    /// The packages that name `dependency` and are not among those that may.
    fn users_beside(&self, dependency: &str, allowed: &[&str]) -> Vec<&str> {
        self.0
            .iter()
            .filter(|(name, names)| names.contains(dependency) && !allowed.contains(&name.as_str()))
            .map(|(name, _)| name.as_str())
            .collect()
    }
}

/// What reads or writes files, opens connections or windows, or runs models.
const OUTSIDE_WORLD: &[&str] = &[
    "candle-core",
    "candle-nn",
    "cap-fs-ext",
    "cap-std",
    "directories",
    "fs4",
    "hf-hub",
    "hyper",
    "hyper-util",
    "interprocess",
    "memmap2",
    "process-wrap",
    "redb",
    "reqwest",
    "rustix",
    "rustls",
    "rustls-platform-verifier",
    "tauri",
    "tokenizers",
    "ts-rs",
];

fn assert_ours(package: &str, expected: &[&str]) {
    let declared = Declared::of_the_workspace();
    let allowed: BTreeSet<&str> = expected.iter().copied().collect();
    let found = declared.ours(package);
    let surplus: Vec<_> = found.difference(&allowed).collect();
    assert!(surplus.is_empty(), "{package} may not depend on {surplus:?}");
}

fn assert_no_outside_world(package: &str) {
    let declared = Declared::of_the_workspace();
    let found = declared.reach(package);
    let touched: Vec<_> = OUTSIDE_WORLD.iter().filter(|name| found.contains(*name)).collect();
    assert!(touched.is_empty(), "{package} reaches {touched:?}");
}

fn assert_only(allowed: &[&str], dependencies: &[&str]) {
    let declared = Declared::of_the_workspace();
    for dependency in dependencies {
        let users = declared.users_beside(dependency, allowed);
        assert!(users.is_empty(), "{dependency} is used by {users:?}; only {allowed:?} may");
    }
}

#[test]
fn events_depends_on_nothing_of_ours_and_touches_no_outside_world() {
    assert_ours("correx-events", &[]);
    assert_no_outside_world("correx-events");
}

#[test]
fn sessions_depends_on_events_alone_and_touches_no_outside_world() {
    assert_ours("correx-sessions", &["correx-events"]);
    assert_no_outside_world("correx-sessions");
}

#[test]
fn context_depends_on_events_alone_and_touches_no_outside_world() {
    assert_ours("correx-context", &["correx-events"]);
    assert_no_outside_world("correx-context");
}

#[test]
fn inference_depends_on_events_and_context_alone_and_touches_no_outside_world() {
    assert_ours("correx-inference", &["correx-events", "correx-context"]);
    assert_no_outside_world("correx-inference");
}

#[test]
fn gguf_depends_on_nothing_of_ours_and_on_no_engine() {
    assert_ours("correx-gguf", &[]);
    assert_no_outside_world("correx-gguf");
}

#[test]
fn jinja_depends_on_nothing_of_ours_and_touches_no_outside_world() {
    assert_ours("correx-jinja", &[]);
    assert_no_outside_world("correx-jinja");
}

#[test]
fn documents_depends_on_nothing_of_ours() {
    assert_ours("correx-documents", &[]);
}

#[test]
fn router_depends_on_events_context_inference_and_sessions_and_nothing_else_of_ours() {
    assert_ours(
        "correx-router",
        &["correx-events", "correx-context", "correx-inference", "correx-sessions"],
    );
    assert_no_outside_world("correx-router");
}

#[test]
fn router_never_reaches_orchestration() {
    assert!(!Declared::of_the_workspace().reach("correx-router").contains("correx-orchestration"));
}

#[test]
fn only_the_wiring_and_the_tests_depend_on_orchestration() {
    assert_only(&["correx-infrastructure", "correx-tests"], &["correx-orchestration"]);
}

#[test]
fn effects_depends_on_nothing_of_ours_and_is_used_by_orchestration_and_the_wiring_alone() {
    assert_ours("correx-effects", &[]);
    assert_only(
        &["correx-orchestration", "correx-infrastructure", "correx-tests"],
        &["correx-effects"],
    );
}

#[test]
fn only_effects_runs_what_a_workflow_names() {
    let declared = Declared::of_the_workspace();
    assert!(declared.dependencies("correx-effects").contains("process-wrap"));
    assert_only(&["correx-effects"], &["process-wrap", "cap-std", "cap-fs-ext"]);
}

#[test]
fn only_the_desktop_shell_knows_tauri() {
    let declared = Declared::of_the_workspace();
    let known: BTreeSet<&str> = declared
        .0
        .values()
        .flatten()
        .map(String::as_str)
        .filter(|name| *name == "tauri" || name.starts_with("tauri-"))
        .collect();
    assert!(known.contains("tauri"), "the desktop shell is a Tauri program");
    assert_only(&["correx-desktop"], &Vec::from_iter(known));
}

#[test]
fn only_protocol_generates_types_for_the_front_end() {
    assert_only(&["correx-protocol"], &["ts-rs"]);
}

#[test]
fn only_store_knows_redb() {
    assert!(Declared::of_the_workspace().dependencies("correx-store").contains("redb"));
    assert_only(&["correx-store"], &["redb"]);
}

#[test]
fn only_candle_and_its_kernels_know_candle_and_tokenizers() {
    assert!(Declared::of_the_workspace().dependencies("correx-candle").contains("candle-core"));
    assert_only(
        &["correx-candle", "correx-cpu-kernels"],
        &["candle-core", "candle-nn", "candle-transformers", "tokenizers"],
    );
}

#[test]
fn only_models_opens_connections_to_other_machines() {
    let declared = Declared::of_the_workspace();
    assert!(declared.dependencies("correx-models").contains("reqwest"));
    assert_only(
        &["correx-models"],
        &["reqwest", "hf-hub", "rustls", "rustls-platform-verifier", "ureq"],
    );
    // The window's test talks to the driver on the loopback interface.
    assert_only(&["correx-tests"], &["hyper", "hyper-util", "fantoccini"]);
}

#[test]
fn models_knows_of_ours_the_model_file_alone() {
    assert_ours("correx-models", &["correx-gguf"]);
}

#[test]
fn nothing_depends_on_a_program() {
    let declared = Declared::of_the_workspace();
    for program in ["correx-cli", "correx-desktop", "correx-tests", "xtask"] {
        declared.dependencies(program);
        assert_only(&[], &[program]);
    }
}

#[test]
fn what_is_reached_through_our_own_crates_counts_and_cycles_end() {
    let declared = Declared::from(&[
        ("router", &["sessions", "serde"]),
        ("sessions", &["events", "router"]),
        ("events", &["redb"]),
    ]);
    assert_eq!(
        declared.reach("router"),
        BTreeSet::from(["events", "redb", "router", "serde", "sessions"])
    );
    assert_eq!(declared.ours("router"), BTreeSet::from(["sessions"]));
}

#[test]
fn a_user_that_is_not_allowed_is_named() {
    let declared = Declared::from(&[("store", &["redb"]), ("router", &["redb"]), ("cli", &[])]);
    assert_eq!(declared.users_beside("redb", &["store"]), ["router"]);
}
