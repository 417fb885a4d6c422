//! Models that other programs already hold on this machine. They are only read.
//!
//! - [`places`]: where those programs keep their models.
//! - [`walk`]: a bounded walk that follows no folder twice.
//! - [`ollama`]: models without file names.

mod ollama;
mod places;
mod walk;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use correx_gguf::Gguf;

pub use places::{Place, Places};

use crate::hub::parts_of;

/// Who holds a model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// Ollama.
    Ollama,
    /// LM Studio.
    LmStudio,
    /// Jan.
    Jan,
    /// GPT4All.
    Gpt4All,
    /// The cache that the hub's tools share.
    HubCache,
    /// llama.cpp's own cache.
    LlamaCpp,
}

impl Holder {
    /// The program's name.
    pub fn name(&self) -> &'static str {
        match self {
            Holder::Ollama => "Ollama",
            Holder::LmStudio => "LM Studio",
            Holder::Jan => "Jan",
            Holder::Gpt4All => "GPT4All",
            Holder::HubCache => "hub cache",
            Holder::LlamaCpp => "llama.cpp",
        }
    }
}

/// A model that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Who holds it.
    pub holder: Holder,
    /// Its name there.
    pub name: String,
    /// The file; of several, the first.
    pub path: PathBuf,
    /// Bytes of all its files.
    pub size_bytes: u64,
    /// What its header says of it, or why that cannot be read.
    pub about: Result<About, String>,
}

/// What a header says of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The architecture.
    pub architecture: Option<String>,
    /// The type of most weights.
    pub quantization: Option<String>,
    /// Number of weights.
    pub parameters: u64,
    /// Tokens that it was trained to hold.
    pub context_length: Option<u64>,
}

impl About {
    /// What the header in `gguf` says.
    pub fn of(gguf: &Gguf) -> Self {
        let architecture = gguf.architecture().map(str::to_owned);
        let context_length = architecture
            .as_ref()
            .and_then(|architecture| gguf.number(&format!("{architecture}.context_length")));
        Self {
            quantization: gguf.quantization().map(|kind| kind.to_string()),
            parameters: gguf.parameters(),
            architecture,
            context_length,
        }
    }
}

/// A file that may be a model.
struct Candidate {
    holder: Holder,
    name: String,
    path: PathBuf,
}

/// Looks into `places`. What is no model, a projector for pictures, or there twice is left out; what
/// is damaged is shown with the reason.
pub fn find(places: &Places) -> Vec<Found> {
    let mut candidates = Vec::new();
    for place in &places.places {
        match place.holder {
            Holder::Ollama => candidates.extend(ollama::models(&place.folder)),
            _ => candidates.extend(files(place)),
        }
    }
    let mut seen = BTreeSet::new();
    let mut found: Vec<Found> = candidates
        .into_iter()
        .filter(|candidate| match candidate.path.canonicalize() {
            Ok(path) => seen.insert(path),
            Err(_) => false,
        })
        .filter_map(|candidate| {
            let Candidate { holder, name, path } = candidate;
            let about = match correx_gguf::inspect(&path) {
                Ok(gguf) if gguf.architecture() == Some("clip") => return None,
                Ok(gguf) => Ok(About::of(&gguf)),
                Err(error) => Err(error.problem.to_string()),
            };
            let size_bytes = size(&path);
            Some(Found { holder, name, path, size_bytes, about })
        })
        .collect();
    found.sort_by(|a, b| (&a.holder, &a.name, &a.path).cmp(&(&b.holder, &b.name, &b.path)));
    found
}

/// The GGUF files below a folder. Of a split model only the first; of a download that is not whole,
/// nothing.
fn files(place: &Place) -> Vec<Candidate> {
    walk::files(&place.folder)
        .into_iter()
        .filter_map(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            let lower = name.to_lowercase();
            let later_part = parts_of(&name).is_some_and(|parts| parts.first() != Some(&name));
            if !lower.ends_with(".gguf") || lower.starts_with("mmproj") || later_part {
                return None;
            }
            let name = match place.holder {
                Holder::HubCache => in_repository(&path).unwrap_or(name),
                // Jan calls every file model.gguf; the folder has the name.
                Holder::Jan if lower == "model.gguf" => {
                    path.parent()?.file_name()?.to_string_lossy().into_owned()
                }
                _ => name,
            };
            Some(Candidate { holder: place.holder.clone(), name, path })
        })
        .collect()
}

/// `OWNER/NAME/FILE` for a file in the hub's cache.
fn in_repository(path: &Path) -> Option<String> {
    let parts: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    let at = parts.iter().rposition(|part| part == "snapshots")?;
    let repo = parts.get(at.checked_sub(1)?)?.strip_prefix("models--")?.replace("--", "/");
    Some(format!("{repo}/{}", parts.get(at + 2..)?.join("/")))
}

/// Bytes of a file and of those that belong with it.
fn size(path: &Path) -> u64 {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let parts = name.as_deref().and_then(parts_of);
    let paths = match parts {
        Some(parts) => parts.iter().map(|part| path.with_file_name(part)).collect(),
        None => vec![path.to_owned()],
    };
    paths.iter().filter_map(|path| path.metadata().ok()).map(|about| about.len()).sum()
}

#[cfg(test)]
mod tests;
