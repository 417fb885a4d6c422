//! Which file of the hub is meant.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The branch that is meant when none is named.
pub const MAIN: &str = "main";

/// A model file in a repository of the hub, at a revision. Where the model is split into several
/// files, its first stands for all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct HubFile {
    repo: String,
    file: String,
    revision: String,
}

/// Its form in files.
#[derive(Serialize, Deserialize)]
struct Written {
    repo: String,
    file: String,
    revision: String,
}

/// Why a text names no file of the hub.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HubFileError {
    /// Not of the form.
    #[error(
        "{0:?} names no model file. Write hf:OWNER/REPOSITORY/FILE.gguf, or an id of the catalogue"
    )]
    Form(String),
    /// The repository's name cannot be one.
    #[error("{0:?} cannot be a repository; it is OWNER/NAME, of letters, digits, `-`, `_` and `.`")]
    Repo(String),
    /// The file's name cannot be one.
    #[error(
        "{0:?} cannot be a model file in a repository; it ends in .gguf and leads nowhere else"
    )]
    File(String),
    /// The revision cannot be one.
    #[error("{0:?} cannot be a revision; it is a branch, a tag or a commit")]
    Revision(String),
}

impl HubFile {
    /// A file in a repository; at `main` when no revision is named.
    pub fn new(repo: &str, file: &str, revision: Option<&str>) -> Result<Self, HubFileError> {
        let revision = revision.unwrap_or(MAIN);
        if repo.matches('/').count() != 1 || !repo.split('/').all(plain_name) {
            return Err(HubFileError::Repo(repo.into()));
        }
        if !inside(file) || !file.to_lowercase().ends_with(".gguf") {
            return Err(HubFileError::File(file.into()));
        }
        if !inside(revision) {
            return Err(HubFileError::Revision(revision.into()));
        }
        let file = first_part(file);
        Ok(Self { repo: repo.into(), file, revision: revision.into() })
    }

    /// Reads `hf:OWNER/NAME/FILE.gguf`, or the address of the file's page or of the file.
    pub fn parse(text: &str, revision: Option<&str>) -> Result<Self, HubFileError> {
        let form = || HubFileError::Form(text.into());
        if let Some(path) = text.strip_prefix("hf:") {
            let mut path = path.splitn(3, '/');
            let (Some(owner), Some(name), Some(file)) = (path.next(), path.next(), path.next())
            else {
                return Err(form());
            };
            return Self::new(&format!("{owner}/{name}"), file, revision);
        }
        let path = text.strip_prefix("https://").and_then(|rest| rest.split_once('/')).map(|p| p.1);
        let path = path.ok_or_else(form)?.split(['?', '#']).next().unwrap_or_default();
        let parts: Vec<&str> = path.splitn(5, '/').collect();
        match parts[..] {
            [owner, name, "blob" | "resolve", at, file] => {
                Self::new(&format!("{owner}/{name}"), file, Some(revision.unwrap_or(at)))
            }
            _ => Err(form()),
        }
    }

    /// Owner and name.
    pub fn repo(&self) -> &str {
        &self.repo
    }

    /// The path inside the repository; of a split model, the first file's.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The branch, tag or commit.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The file's name without its folders.
    pub fn name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }

    /// The paths of all files that make up the model, in order.
    pub fn parts(&self) -> Vec<String> {
        parts_of(&self.file).unwrap_or_else(|| vec![self.file.clone()])
    }
}

impl fmt::Display for HubFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hf:{}/{}", self.repo, self.file)?;
        if self.revision != MAIN {
            write!(f, "@{}", self.revision)?;
        }
        Ok(())
    }
}

impl From<HubFile> for Written {
    fn from(HubFile { repo, file, revision }: HubFile) -> Self {
        Self { repo, file, revision }
    }
}

impl TryFrom<Written> for HubFile {
    type Error = HubFileError;

    fn try_from(Written { repo, file, revision }: Written) -> Result<Self, HubFileError> {
        Self::new(&repo, &file, Some(&revision))
    }
}

/// A name that is also safe as a folder.
fn plain_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty()
        && name.len() <= 96
        && name.chars().all(letter)
        && !name.starts_with('.')
        && !name.contains("--")
        && !name.contains("..")
}

/// A path that stays where it begins.
fn inside(path: &str) -> bool {
    path.len() <= 1024
        && path.split('/').all(|part| {
            !part.is_empty()
                && part != "."
                && part != ".."
                && part.len() <= 200
                && !part.chars().any(|c| c.is_control() || "\\:*?\"<>|".contains(c))
        })
}

/// The number, the count and where they stand in `name-00001-of-00003.gguf`.
fn numbering(path: &str) -> Option<(usize, u32, u32)> {
    let stem = path.get(..path.len().checked_sub(5)?)?;
    let at = stem.len().checked_sub(15)?;
    let tail = stem.get(at..)?;
    let number = |text: Option<&str>| -> Option<u32> {
        let text = text?;
        (text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
    };
    if tail.get(..1)? != "-" || tail.get(6..10)? != "-of-" {
        return None;
    }
    let (number, count) = (number(tail.get(1..6))?, number(tail.get(10..15))?);
    (number >= 1 && number <= count && count <= 999).then_some((at, number, count))
}

/// The names of all files of a split model, from the name of any of them; `None` for a name that
/// is not numbered.
pub fn parts_of(path: &str) -> Option<Vec<String>> {
    let (at, _, count) = numbering(path)?;
    let (stem, ending) = (&path[..at], &path[at + 15..]);
    Some((1..=count).map(|number| format!("{stem}-{number:05}-of-{count:05}{ending}")).collect())
}

fn first_part(path: &str) -> String {
    parts_of(path).and_then(|parts| parts.into_iter().next()).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_file_is_named_as_people_write_it() {
        let file = HubFile::parse("hf:Qwen/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf", None).unwrap();
        assert_eq!((file.repo(), file.file()), ("Qwen/Qwen3-4B-GGUF", "Qwen3-4B-Q4_K_M.gguf"));
        assert_eq!(file.revision(), "main");
        assert_eq!(file.to_string(), "hf:Qwen/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf");
        for address in [
            "https://huggingface.co/Qwen/Qwen3-4B-GGUF/blob/main/Qwen3-4B-Q4_K_M.gguf",
            "https://huggingface.co/Qwen/Qwen3-4B-GGUF/resolve/main/Qwen3-4B-Q4_K_M.gguf?download=true",
        ] {
            assert_eq!(HubFile::parse(address, None).unwrap(), file);
        }
        let old = HubFile::parse("hf:a/b/Q4/größe 4.gguf", Some("v1.0")).unwrap();
        assert_eq!(old.to_string(), "hf:a/b/Q4/größe 4.gguf@v1.0");
        assert_eq!(old.name(), "größe 4.gguf");
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for text in [
            "hf:a/b",
            "hf:a//c.gguf",
            "hf:../b/c.gguf",
            "hf:a/b/../c.gguf",
            "hf:a/b/c.bin",
            "hf:a/b/c\\d.gguf",
            "hf:a/b/c\u{7}.gguf",
            "hf:.a/b/c.gguf",
            "hf:a/b--c/d.gguf",
            "a/b/c.gguf",
            "https://x/a/b/raw/main/c.gguf",
            "",
        ] {
            assert!(HubFile::parse(text, None).is_err(), "{text}");
        }
        for revision in ["", "..", "a/../b", "a b\n", "/main"] {
            assert!(HubFile::new("a/b", "c.gguf", Some(revision)).is_err(), "{revision:?}");
        }
    }

    #[test]
    fn any_part_of_a_split_model_stands_for_all_of_them() {
        let third = HubFile::parse("hf:a/b/q8/m-00003-of-00003.gguf", None).unwrap();
        assert_eq!(third.file(), "q8/m-00001-of-00003.gguf");
        assert_eq!(
            third.parts(),
            ["q8/m-00001-of-00003.gguf", "q8/m-00002-of-00003.gguf", "q8/m-00003-of-00003.gguf"]
        );
        let whole = HubFile::parse("hf:a/b/m.gguf", None).unwrap();
        assert_eq!(whole.parts(), ["m.gguf"]);
        for odd in ["m-00000-of-00003.gguf", "m-00004-of-00003.gguf", "m-1-of-3.gguf"] {
            assert_eq!(parts_of(odd), None, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_accepted_comes_back(text in "\\PC{0,60}") {
            if let Ok(file) = HubFile::parse(&format!("hf:a/b/{text}"), None) {
                prop_assert_eq!(&HubFile::parse(&file.to_string(), None).unwrap(), &file);
                let written = serde_json::to_string(&file).unwrap();
                prop_assert_eq!(serde_json::from_str::<HubFile>(&written).unwrap(), file);
            }
            let _ = HubFile::parse(&text, Some(&text));
        }
    }
}
