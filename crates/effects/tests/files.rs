//! Writing and reading files: what is decided, what is done, and that nothing outside is touched.

#![allow(clippy::unwrap_used)] // A test ends at the first surprise.

use std::fs;
use std::path::{Path, PathBuf};

use correx_effects::{
    Approval, Before, Decided, Existing, Kind, Policy, ReadError, SessionFolders, Verdict,
    WriteError, WriteTarget, digest, remove_leftovers, write_file,
};
use tempfile::TempDir;

/// A folder with `out` (the session's), `desk` (may be written by [`Place::policy`]) and `outside`.
struct Place {
    _dir: TempDir,
    root: PathBuf,
    folders: SessionFolders,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for name in ["out", "desk", "outside"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let folders = SessionFolders::new(root.join("out"));
        Self { _dir: dir, root, folders }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// What `text` says, with `{root}` in place of this folder.
    fn policy(&self, text: &str) -> Policy {
        let root = self.root.to_str().unwrap();
        Policy::parse(&format!("version = 1\n{}", text.replace("{root}", root))).unwrap()
    }

    fn decide(&self, policy: &Policy, path: impl AsRef<Path>) -> Decided<WriteTarget> {
        policy.decide_write(path.as_ref(), &self.folders)
    }

    fn target(&self, path: impl AsRef<Path>) -> WriteTarget {
        self.decide(&Policy::default(), path).permitted(Approval::Given).unwrap()
    }

    #[track_caller]
    fn denied(&self, policy: &Policy, path: impl AsRef<Path>, words: &str) {
        let decided = self.decide(policy, path.as_ref());
        let text = decided.decision.to_string();
        assert_eq!(decided.decision.verdict, Verdict::Denied, "{text}");
        assert!(text.contains(words), "{text}");
        assert!(decided.permitted(Approval::Given).is_err(), "approval lifts no denial");
    }
}

#[test]
fn without_a_policy_new_files_go_into_the_output_folder_and_nowhere_else() {
    let place = Place::new();
    let policy = Policy::default();
    for path in ["a.md", "new/folder/a.md", "x/../b.md"] {
        if path.starts_with("x/") {
            fs::create_dir(place.path("out/x")).unwrap();
        }
        let target = place.decide(&policy, path).permitted(Approval::None).unwrap();
        let written = write_file(&target, path.as_bytes()).unwrap();
        assert!(written.path.starts_with(place.path("out")), "{written:?}");
        assert_eq!(written.sha256, digest(path.as_bytes()));
        assert_eq!(fs::read(place.path("out").join(path)).unwrap(), path.as_bytes());
    }
    let outside = place.path("outside/a.md");
    place.denied(&policy, &outside, "the default policy");
    place.denied(&policy, "../outside/a.md", "the default policy");
    place.denied(&policy, "x/../../outside/a.md", "the default policy");
    place.denied(&policy, "missing/../../outside/a.md", "goes up (..)");
    place.denied(&policy, place.path("out"), "a folder of this name");
    place.denied(&policy, place.path("outside-of-all"), "outside the session's output folder");
    // A folder whose name only begins like the allowed one.
    place.denied(&policy, place.path("out-of-bounds/a.md"), "outside");
}

#[test]
fn an_output_folder_that_is_missing_is_made() {
    let mut place = Place::new();
    place.folders.output = place.path("sessions/one/out");
    let written = write_file(&place.target("deep/a.md"), b"x").unwrap();
    assert_eq!(written.path, place.path("sessions/one/out/deep/a.md"));
}

#[test]
fn forms_of_paths_that_mean_something_else_are_refused_by_name() {
    let place = Place::new();
    let policy = Policy::default();
    for (path, words) in [
        ("a\0b", "control character"),
        ("a\nb", "control character"),
        ("~/a.md", "begins with ~"),
        ("C:a.md", "drive"),
        ("\\\\?\\C:\\a.md", "device path"),
        ("//./pipe/x", "device path"),
        ("a.md:stream", "\":\""),
        ("..\\..\\a.md", "\"\\\""),
        ("NUL", "belongs to a device"),
        ("com1.txt", "belongs to a device"),
        ("sub/aux .md", "belongs to a device"),
        ("a.md.", "ends with a dot or a space"),
        ("a /b.md", "ends with a dot or a space"),
        (".correx-1-2.part", "half-written"),
        (".CORREX-1-2.PART", "half-written"),
        ("", "the path is empty"),
        (".", "folder"),
    ] {
        place.denied(&policy, path, words);
    }
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 0);
}

#[test]
fn an_existing_file_needs_approval_and_keeps_its_permissions() {
    let place = Place::new();
    let path = place.path("out/a.md");
    fs::write(&path, "old").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    }
    let decided = place.decide(&Policy::default(), "a.md");
    assert_eq!(decided.decision.verdict, Verdict::NeedsApproval);
    assert!(decided.decision.action.contains("over the file that is there"));
    assert!(decided.clone().permitted(Approval::None).is_err());
    let target = decided.permitted(Approval::Given).unwrap();
    assert_eq!(target.existing(), Existing::Replace);
    assert_eq!(target.before(), &Before::File { sha256: digest(b"old"), bytes: 3 });
    let written = write_file(&target, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(&written.before, target.before());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }
    let policy = place.policy("[write]\nexisting = \"deny\"\n");
    place.denied(&policy, "a.md", "existing = \"deny\"");
}

#[test]
fn what_changed_between_the_decision_and_the_write_is_left_as_it_is() {
    let place = Place::new();
    let target = place.target("a.md");
    fs::write(place.path("out/a.md"), "somebody's").unwrap();
    assert!(matches!(write_file(&target, b"x"), Err(WriteError::Appeared(_))));
    let target = place.target("a.md");
    fs::write(place.path("out/a.md"), "somebody's new one").unwrap();
    assert!(matches!(write_file(&target, b"x"), Err(WriteError::Changed(_))));
    assert_eq!(fs::read(place.path("out/a.md")).unwrap(), b"somebody's new one");
    let mut readonly = place.path("out/a.md").metadata().unwrap().permissions();
    readonly.set_readonly(true);
    fs::set_permissions(place.path("out/a.md"), readonly).unwrap();
    let error = write_file(&place.target("a.md"), b"x").unwrap_err();
    assert!(matches!(error, WriteError::Protected(_)), "{error}");
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 1, "no half-written file stays");
}

#[test]
fn after_a_crash_it_can_be_told_whether_a_write_happened() {
    let place = Place::new();
    let target = place.target("new/a.md");
    assert_eq!(target.now().unwrap(), Before::Absent);
    write_file(&target, b"x").unwrap();
    assert!(target.now().unwrap().holds(b"x"));
    assert!(!target.now().unwrap().holds(b"y"));
}

#[test]
fn leftovers_of_a_crash_are_removed_and_files_being_written_stay() {
    let place = Place::new();
    let leftover = place.path("out/.correx-1-2.part");
    fs::write(&leftover, "half").unwrap();
    let held = fs::File::create(place.path("out/.correx-3-4.part")).unwrap();
    held.lock().unwrap();
    fs::write(place.path("out/.correx-notes"), "a person's").unwrap();
    assert_eq!(remove_leftovers(&place.path("out")).unwrap(), 1);
    assert!(!leftover.exists());
    fs::write(&leftover, "half").unwrap();
    write_file(&place.target("a.md"), b"x").unwrap();
    let mut names: Vec<_> = fs::read_dir(place.path("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [".correx-3-4.part", ".correx-notes", "a.md"]);
}

#[test]
fn of_many_that_create_one_file_exactly_one_does() {
    let place = Place::new();
    let target = place.target("a.md");
    let target = &target;
    let won: usize = std::thread::scope(|scope| {
        let writers: Vec<_> =
            (0..8u8).map(|n| scope.spawn(move || write_file(target, &[n; 1000]).is_ok())).collect();
        writers.into_iter().map(|writer| usize::from(writer.join().unwrap())).sum()
    });
    assert_eq!(won, 1);
    let content = fs::read(place.path("out/a.md")).unwrap();
    assert!(content.len() == 1000 && content.iter().all(|byte| *byte == content[0]));
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 1);
}

#[test]
fn denial_wins_over_every_folder_and_over_every_approval() {
    let place = Place::new();
    fs::create_dir_all(place.path("desk/secret/deep")).unwrap();
    let policy = place.policy(
        "[write]\nfolders = [\"{root}/desk\"]\n[read]\nfolders = [\"{root}/desk\"]\n\
         [approval]\nfolders = [\"{root}/desk/final\"]\nfiles = [\"*.sh\"]\n\
         [deny]\nfolders = [\"{root}/desk/secret\", \"{root}/desk/Later\"]\nfiles = [\"*.key\", \".git\"]\n",
    );
    assert_eq!(place.decide(&policy, place.path("desk/a.md")).decision.verdict, Verdict::Allowed);
    place.denied(&policy, place.path("desk/secret/a.md"), "[deny] folders");
    place.denied(&policy, place.path("desk/secret/deep/../a.md"), "[deny] folders");
    place.denied(&policy, place.path("desk/SECRET/a.md"), "[deny] folders");
    place.denied(&policy, place.path("desk/later/a.md"), "[deny] folders");
    place.denied(&policy, place.path("desk/my.KEY"), "[deny] files \"*.key\"");
    place.denied(&policy, place.path("desk/.git/config"), "[deny] files \".git\"");
    place.denied(&policy, "my.key", "[deny] files \"*.key\"");
    for path in ["desk/final/a.md", "desk/run.sh"] {
        let decided = place.decide(&policy, place.path(path));
        assert_eq!(decided.decision.verdict, Verdict::NeedsApproval, "{}", decided.decision);
        assert!(decided.decision.rule.contains("[approval]"), "{}", decided.decision);
    }
    // What the person gave is no exception.
    fs::write(place.path("desk/secret/a.md"), "x").unwrap();
    let mut folders = place.folders.clone();
    folders.given.push(place.path("desk/secret/a.md"));
    let decided = policy.decide_read(&place.path("desk/secret/a.md"), &folders);
    assert_eq!(decided.decision.verdict, Verdict::Denied, "{}", decided.decision);
}

#[test]
fn correxs_own_files_are_never_written() {
    let place = Place::new();
    fs::create_dir_all(place.path("desk/data/outputs/one")).unwrap();
    fs::write(place.path("desk/data/policy.toml"), "version = 1").unwrap();
    let policy = place
        .policy("[write]\nfolders = [\"{root}/desk\"]\n[read]\nfolders = [\"{root}/desk\"]\n")
        .protecting(place.path("desk/data"));
    place.denied(&policy, place.path("desk/data/policy.toml"), "Correx's own files");
    place.denied(&policy, place.path("desk/data/new"), "Correx's own files");
    let folders = SessionFolders::new(place.path("desk/data/outputs/one"));
    let decided = policy.decide_write(Path::new("a.md"), &folders);
    assert_eq!(decided.decision.verdict, Verdict::Allowed, "{}", decided.decision);
    let decided = policy.decide_write(Path::new("../../policy.toml"), &folders);
    assert_eq!(decided.decision.verdict, Verdict::Denied, "{}", decided.decision);
    let decided = policy.decide_read(&place.path("desk/data/policy.toml"), &folders);
    assert_eq!(decided.decision.verdict, Verdict::Denied, "{}", decided.decision);
}

#[test]
fn of_files_only_what_was_given_or_allowed_is_read() {
    let place = Place::new();
    for name in ["outside/given.md", "outside/other.md", "desk/a.md", "out/own.md"] {
        fs::write(place.path(name), name).unwrap();
    }
    let mut folders = place.folders.clone();
    folders.given.push(place.path("outside/given.md"));
    let read = |policy: &Policy, name: &str| {
        let target =
            policy.decide_read(&place.path(name), &folders).permitted(Approval::None).ok()?;
        Some(target.read(100).unwrap())
    };
    let default = Policy::default();
    assert_eq!(read(&default, "outside/given.md").unwrap(), b"outside/given.md");
    assert_eq!(read(&default, "out/own.md").unwrap(), b"out/own.md");
    assert!(read(&default, "outside/other.md").is_none());
    assert!(read(&default, "desk/a.md").is_none());
    let policy = place.policy("[read]\nfolders = [\"{root}/desk\"]\n");
    assert_eq!(read(&policy, "desk/a.md").unwrap(), b"desk/a.md");
    let target = policy.decide_read(&place.path("desk/a.md"), &folders).permitted(Approval::None);
    assert!(matches!(target.unwrap().read(3), Err(ReadError::TooLarge { limit: 3, .. })));
    let folder = policy.decide_read(&place.path("desk"), &folders).permitted(Approval::None);
    assert_eq!(folder.unwrap().kind(), Kind::Folder);
    let decided = policy.decide_read(&place.path("desk/none.md"), &folders);
    assert!(decided.decision.reason.contains("no such file"), "{}", decided.decision);
}

#[test]
fn a_broken_policy_allows_new_files_in_the_output_folder_and_nothing_more() {
    let place = Place::new();
    let data = place.path("outside");
    let text = "version = 1\n[write]\nfolders = [\"/\"]\nexistign = \"ask\"\n";
    fs::write(data.join("policy.toml"), text).unwrap();
    let policy = Policy::load(&data);
    assert!(policy.problem().is_some());
    write_file(&place.decide(&policy, "a.md").permitted(Approval::None).unwrap(), b"x").unwrap();
    place.denied(&policy, "a.md", "policy.toml:4:1");
    place.denied(&policy, place.path("desk/a.md"), "did you mean \"existing\"?");
    // No file is the default; one that cannot be read is not.
    assert!(Policy::load(&place.path("desk")).problem().is_none());
    fs::create_dir(place.path("desk/policy.toml")).unwrap();
    assert!(Policy::load(&place.path("desk")).problem().is_some());
}

#[cfg(unix)]
mod links {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_before_it_is_decided() {
        let place = Place::new();
        let policy = place.policy(
            "[write]\nfolders = [\"{root}/desk\"]\n[deny]\nfolders = [\"{root}/desk/secret\"]\n",
        );
        fs::create_dir(place.path("desk/secret")).unwrap();
        fs::write(place.path("outside/target.md"), "outside").unwrap();
        symlink(place.path("outside"), place.path("out/folder")).unwrap();
        symlink(place.path("outside/target.md"), place.path("out/file.md")).unwrap();
        symlink("../outside", place.path("out/up")).unwrap();
        symlink(place.path("outside/none.md"), place.path("out/nowhere.md")).unwrap();
        symlink("loop", place.path("out/loop")).unwrap();
        symlink(place.path("desk/secret"), place.path("desk/open")).unwrap();
        symlink(place.path("desk"), place.path("out/allowed")).unwrap();
        for path in ["folder/a.md", "file.md", "up/a.md", "folder/new/a.md"] {
            place.denied(&policy, path, "outside the session's output folder");
        }
        // `..` behind a link goes up from where the link leads.
        place.denied(&policy, "folder/../outside/a.md", "outside the session's");
        place.denied(&policy, "nowhere.md", "leads nowhere");
        place.denied(&policy, "nowhere.md/a.md", "leads nowhere");
        place.denied(&policy, "loop/a.md", "cannot be looked at");
        place.denied(&policy, place.path("desk/open/a.md"), "[deny] folders");
        let target = place.decide(&policy, "allowed/a.md").permitted(Approval::None).unwrap();
        assert_eq!(write_file(&target, b"x").unwrap().path, place.path("desk/a.md"));
        assert_eq!(fs::read(place.path("outside/target.md")).unwrap(), b"outside");
        assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_becomes_a_link_after_the_decision_leads_nothing_out() {
        let place = Place::new();
        for (decided, swapped) in [("sub/a.md", "out/sub"), ("a.md", "out"), ("x/y/a.md", "out/x")]
        {
            fs::create_dir_all(place.path("out").join(decided).parent().unwrap()).unwrap();
            let target = place.target(decided);
            let swapped = place.path(swapped);
            fs::remove_dir_all(&swapped).unwrap();
            symlink(place.path("outside"), &swapped).unwrap();
            let error = write_file(&target, b"x").unwrap_err();
            assert!(error.to_string().contains("not the folder any more"), "{error}");
            assert!(target.now().is_err());
            assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 0);
            fs::remove_file(&swapped).unwrap();
        }
    }

    #[test]
    fn a_link_to_a_folder_beside_it_is_no_way_into_a_denied_one() {
        let place = Place::new();
        fs::create_dir_all(place.path("out/denied")).unwrap();
        fs::create_dir(place.path("out/sub")).unwrap();
        let policy = place.policy("[deny]\nfolders = [\"{root}/out/denied\"]\n");
        let target = place.decide(&policy, "sub/a.md").permitted(Approval::None).unwrap();
        fs::remove_dir(place.path("out/sub")).unwrap();
        symlink("denied", place.path("out/sub")).unwrap();
        let error = write_file(&target, b"x").unwrap_err();
        assert!(error.to_string().contains("not the folder any more"), "{error}");
        assert_eq!(fs::read_dir(place.path("out/denied")).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_becomes_a_link_after_the_decision_is_not_written_through() {
        let place = Place::new();
        fs::write(place.path("outside/a.md"), "outside").unwrap();
        let new = place.target("a.md");
        symlink(place.path("outside/a.md"), place.path("out/a.md")).unwrap();
        assert!(matches!(write_file(&new, b"x"), Err(WriteError::NotAFile(_))));
        fs::remove_file(place.path("out/a.md")).unwrap();
        fs::write(place.path("out/a.md"), "outside").unwrap();
        let over = place.target("a.md");
        fs::remove_file(place.path("out/a.md")).unwrap();
        symlink(place.path("outside/a.md"), place.path("out/a.md")).unwrap();
        assert!(matches!(write_file(&over, b"x"), Err(WriteError::NotAFile(_))));
        assert_eq!(fs::read(place.path("outside/a.md")).unwrap(), b"outside");
    }

    #[test]
    fn pipes_and_devices_are_neither_written_nor_read() {
        let place = Place::new();
        let made = std::process::Command::new("mkfifo").arg(place.path("out/pipe")).status();
        assert!(made.unwrap().success());
        place.denied(&Policy::default(), "pipe", "a device, a pipe or a socket");
        let policy = place.policy("[write]\nfolders = [\"/dev\"]\n[read]\nfolders = [\"/dev\"]\n");
        place.denied(&policy, "/dev/null", "a device");
        for path in [place.path("out/pipe"), PathBuf::from("/dev/zero")] {
            let decided = policy.decide_read(&path, &place.folders);
            assert_eq!(decided.decision.verdict, Verdict::Denied, "{}", decided.decision);
        }
    }

    #[test]
    fn another_name_of_the_same_file_keeps_its_content() {
        let place = Place::new();
        fs::write(place.path("outside/a.md"), "outside").unwrap();
        fs::hard_link(place.path("outside/a.md"), place.path("out/a.md")).unwrap();
        write_file(&place.target("a.md"), b"new").unwrap();
        assert_eq!(fs::read(place.path("outside/a.md")).unwrap(), b"outside");
    }
}

#[cfg(unix)]
mod trees {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;

    /// One thing in a tree: a folder, a file, or a link to a place named by its number.
    #[derive(Debug, Clone)]
    enum Node {
        Folder,
        File,
        Link(usize),
        LinkUp(usize),
    }

    fn names() -> impl Strategy<Value = String> {
        prop_oneof!["[a-c]", Just("..".to_owned()), Just(".".to_owned()), Just("A".to_owned())]
    }

    fn paths() -> impl Strategy<Value = String> {
        (0..5usize, prop::collection::vec(names(), 1..6)).prop_map(|(start, names)| {
            let start = ["", "{root}/out/", "{root}/outside/", "{root}/", "/"][start];
            format!("{start}{}", names.join("/"))
        })
    }

    fn nodes() -> impl Strategy<Value = Vec<(String, Node)>> {
        let node = prop_oneof![
            Just(Node::Folder),
            Just(Node::File),
            (0..8usize).prop_map(Node::Link),
            (0..4usize).prop_map(Node::LinkUp),
        ];
        let place = ("out|outside", prop::collection::vec("[a-c]", 1..4))
            .prop_map(|(start, names)| format!("{start}/{}", names.join("/")));
        prop::collection::vec((place, node), 1..12)
    }

    fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap();
            if kind.is_dir() {
                found.insert(path.clone(), b"folder".to_vec());
                found.extend(content(&path));
            } else if kind.is_symlink() {
                found.insert(
                    path.clone(),
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                );
            } else {
                found.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
        found
    }

    /// A tree is built, every path is tried with every approval, and what lies outside is compared.
    fn try_paths(nodes: Vec<(String, Node)>, paths: Vec<String>) -> Result<(), TestCaseError> {
        let place = Place::new();
        let mut made: Vec<PathBuf> = vec![place.path("outside"), place.path("out")];
        for (name, node) in nodes {
            let path = place.path(&name);
            if fs::create_dir_all(path.parent().unwrap()).is_err() {
                continue;
            }
            let ok = match node {
                Node::Folder => fs::create_dir(&path).is_ok(),
                Node::File => !path.exists() && fs::write(&path, "old").is_ok(),
                Node::Link(to) => symlink(&made[to % made.len()], &path).is_ok(),
                Node::LinkUp(up) => symlink("../".repeat(up) + "outside", &path).is_ok(),
            };
            if ok {
                made.push(path);
            }
        }
        let before = content(&place.path("outside"));
        let top = fs::read_dir(&place.root).unwrap().count();
        for path in paths {
            let path = path.replace("{root}", place.root.to_str().unwrap());
            let decided = place.decide(&Policy::default(), &path);
            if let Ok(target) = decided.permitted(Approval::Given) {
                prop_assert!(target.path().starts_with(place.path("out")), "{path}");
                let written = write_file(&target, b"new");
                prop_assert!(written.is_ok(), "{path}: {written:?}");
                let real = fs::canonicalize(written.unwrap().path).unwrap();
                prop_assert_eq!(&real, target.path());
                prop_assert_eq!(fs::read(real).unwrap(), b"new");
            }
        }
        prop_assert_eq!(content(&place.path("outside")), before);
        prop_assert_eq!(fs::read_dir(&place.root).unwrap().count(), top);
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn whatever_links_lead_where_nothing_outside_is_written(
            nodes in nodes(),
            paths in prop::collection::vec(paths(), 1..8),
        ) {
            try_paths(nodes, paths)?;
        }
    }

    mod long {
        use super::*;

        proptest! {
            #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

            #[test]
            fn of_many_trees_none_lets_anything_out(
                nodes in nodes(),
                paths in prop::collection::vec(paths(), 1..8),
            ) {
                try_paths(nodes, paths)?;
            }
        }
    }
}
