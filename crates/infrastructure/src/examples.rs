//! The workflows that Correx brings, with the files to try them on.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use correx_orchestration::{Workflow, WorkflowErrors};
use correx_protocol::WorkflowView;
use thiserror::Error;

use crate::view;

struct Example {
    name: &'static str,
    source: &'static str,
    /// The files beside the workflow file, by their paths from there, and their texts.
    samples: &'static [(&'static str, &'static str)],
}

macro_rules! example {
    ($name:literal, $($sample:literal),+) => {
        Example {
            name: $name,
            source: include_str!(concat!("../../../examples/", $name, "/workflow.toml")),
            samples: &[$((
                $sample,
                include_str!(concat!("../../../examples/", $name, "/", $sample)),
            )),+],
        }
    };
}

const EXAMPLES: &[Example] = &[
    example!("meeting-notes", "notes.txt"),
    example!("brief", "report.txt"),
    example!("csv-findings", "visitors.csv"),
    example!("email-triage", "mail.txt"),
    example!("code-review", "change.diff"),
    example!("translation", "text.txt", "glossary.csv"),
    example!(
        "notes-index",
        "notes/garden.md",
        "notes/heating.md",
        "notes/opening-hours.md",
        "notes/reading-club.md"
    ),
];

/// The file that a workflow has in the folder of its example.
const WORKFLOW: &str = "workflow.toml";

/// Why an example was not copied. Nothing that was there before is changed.
#[derive(Debug, Error)]
pub enum CopyError {
    /// No example has the name.
    #[error("there is no example \"{name}\"; there are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Something is there already.
    #[error("{0} is there already, and nothing is overwritten; give another place")]
    Exists(PathBuf),
    /// Where the copy would lie depends on where the program was started.
    #[error("{0:?} is not the whole path of a folder")]
    NotWhole(PathBuf),
    /// The copy would not lie in its folder.
    #[error("{0:?} is not a name for a file or folder")]
    NotAName(String),
    /// The system refused.
    #[error("{path} could not be written: {error}")]
    Unwritable {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// The source text of an example.
pub fn source(name: &str) -> Option<&'static str> {
    find(name).map(|example| example.source)
}

/// The names of all examples.
pub fn names() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().map(|example| example.name)
}

/// Every example, described, with its sample texts.
pub fn all() -> Result<Vec<WorkflowView>, WorkflowErrors> {
    EXAMPLES.iter().map(describe).collect()
}

/// One example, described, with its sample texts.
pub fn one(name: &str) -> Option<Result<WorkflowView, WorkflowErrors>> {
    find(name).map(describe)
}

/// The place for a copy of that name in a folder.
pub fn place(folder: &Path, name: &str) -> Result<PathBuf, CopyError> {
    if !folder.is_absolute() {
        return Err(CopyError::NotWhole(folder.to_owned()));
    }
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name => Ok(folder.join(only)),
        _ => Err(CopyError::NotAName(name.to_owned())),
    }
}

/// Copies an example to `place`: a `.toml` file for the workflow alone, else a folder for the
/// workflow and its samples. Returns the workflow file. Overwrites nothing; no half copy is left.
pub fn copy(name: &str, place: &Path) -> Result<PathBuf, CopyError> {
    let Some(example) = find(name) else {
        let known = names().collect::<Vec<_>>().join(", ");
        return Err(CopyError::Unknown { name: name.to_owned(), known });
    };
    if place.extension().is_some_and(|extension| extension == "toml") {
        create(place, example.source)?;
        return Ok(place.to_owned());
    }
    let workflow = place.join(WORKFLOW);
    let files = [(WORKFLOW, example.source)];
    let files = files.iter().chain(example.samples);
    let files: Vec<(PathBuf, &str)> = files.map(|(path, text)| (place.join(path), *text)).collect();
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        return Err(CopyError::Exists(path.clone()));
    }
    for (done, (path, text)) in files.iter().enumerate() {
        if let Err(error) = create(path, text) {
            // What was made until now would be in the way of another try.
            files.iter().take(done).for_each(|(path, _)| remove(path));
            return Err(error);
        }
    }
    Ok(workflow)
}

fn create(path: &Path, text: &str) -> Result<(), CopyError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| refused(folder, error))?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = opened.map_err(|error| refused(path, error))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| {
        remove(path);
        refused(path, error)
    })
}

fn refused(path: &Path, error: io::Error) -> CopyError {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::AlreadyExists => CopyError::Exists(path),
        _ => CopyError::Unwritable { path, error },
    }
}

/// Takes back a file that this copy made. What cannot be removed stays: the error that led here
/// is the one to tell.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

fn find(name: &str) -> Option<&'static Example> {
    EXAMPLES.iter().find(|example| example.name == name)
}

fn describe(example: &Example) -> Result<WorkflowView, WorkflowErrors> {
    let workflow = Workflow::parse(example.source)?;
    let samples: BTreeMap<String, String> = workflow
        .inputs
        .iter()
        .filter_map(|input| {
            let file = input.sample.as_deref()?;
            let (_, text) = example.samples.iter().find(|(name, _)| *name == file)?;
            Some((input.name.clone(), (*text).to_owned()))
        })
        .collect();
    Ok(view::workflow(&workflow, Some(example.name), &samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_can_be_tried_with_the_text_that_it_brings() {
        let examples = all().unwrap();
        assert_eq!(examples.len(), names().count());
        for example in examples {
            assert!(example.stages.len() >= 3, "{}", example.name);
            for input in example.inputs.iter().filter(|input| input.required) {
                // A folder is copied, and then named.
                let can_be_tried = input.sample.is_some() || input.kind == "folder";
                assert!(can_be_tried, "{}: {}", example.name, input.name);
            }
        }
    }

    #[test]
    fn every_file_of_every_example_is_copied_and_nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        for example in EXAMPLES {
            let folder = dir.path().join(example.name);
            let workflow = copy(example.name, &folder).unwrap();
            assert_eq!(fs::read_to_string(&workflow).unwrap(), example.source);
            for (path, text) in example.samples {
                assert_eq!(fs::read_to_string(folder.join(path)).unwrap(), *text);
            }
            // What is copied is all that the folder of the example holds.
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
            let count = |folder: &Path| walk(folder);
            assert_eq!(count(&folder), count(&root.join(example.name)));

            fs::write(&workflow, "mine").unwrap();
            let again = copy(example.name, &folder);
            assert!(matches!(again, Err(CopyError::Exists(_))), "{again:?}");
            assert_eq!(fs::read_to_string(&workflow).unwrap(), "mine");
        }
        // One sample that is there keeps all the others away.
        let folder = dir.path().join("half");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("notes.txt"), "mine").unwrap();
        assert!(matches!(copy("meeting-notes", &folder), Err(CopyError::Exists(_))));
        assert_eq!(walk(&folder), 1);
        // So does a file where a folder of samples would be; what was written before is taken back.
        let folder = dir.path().join("blocked");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("notes"), "mine").unwrap();
        let blocked = copy("notes-index", &folder);
        let Err(CopyError::Exists(path)) = blocked else { panic!("{blocked:?}") };
        assert_eq!(path, folder.join("notes"));
        assert_eq!(walk(&folder), 1);
        let file = dir.path().join("new/one.toml");
        assert_eq!(copy("brief", &file).unwrap(), file);
        assert!(matches!(copy("brief", &file), Err(CopyError::Exists(_))));
        assert!(matches!(copy("nothing", &file), Err(CopyError::Unknown { .. })));
    }

    #[test]
    fn a_copy_lies_in_its_folder_under_its_name() {
        let folder = std::env::temp_dir();
        assert_eq!(place(&folder, "my brief").unwrap(), folder.join("my brief"));
        for name in ["", ".", "..", "/etc", "a/b", "a/", "../a", "./a"] {
            let refused = place(&folder, name);
            assert!(matches!(refused, Err(CopyError::NotAName(_))), "{name:?}: {refused:?}");
        }
        for folder in ["", "here", "./here", "../here"] {
            let refused = place(Path::new(folder), "brief");
            assert!(matches!(refused, Err(CopyError::NotWhole(_))), "{folder:?}: {refused:?}");
        }
    }

    fn walk(folder: &Path) -> usize {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| if entry.path().is_dir() { walk(&entry.path()) } else { 1 }).sum()
    }
}
