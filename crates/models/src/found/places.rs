//! Where other programs keep their models.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Holder;
use crate::hub::HubSettings;

/// A folder that may hold models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Whose it is.
    pub holder: Holder,
    /// The folder. It need not exist.
    pub folder: PathBuf,
}

/// Folders that may hold models, in the order in which they are looked into.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The folders.
    pub places: Vec<Place>,
}

impl Places {
    /// The folders that those programs use by themselves on the three systems, and where the
    /// environment puts them. `get` looks a variable up; `home` is the person's home folder.
    pub fn usual(get: &dyn Fn(&str) -> Option<OsString>, home: &Path, hub: &HubSettings) -> Self {
        let variable = |key: &str| get(key).filter(|value| !value.is_empty()).map(PathBuf::from);
        let data = variable("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
        let config = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let cache = variable("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache"));
        let support = home.join("Library/Application Support");
        let roaming = variable("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"));
        let local = variable("LOCALAPPDATA").unwrap_or_else(|| home.join("AppData/Local"));
        let mut folders: Vec<(Holder, PathBuf)> = Vec::new();
        folders.extend(variable("OLLAMA_MODELS").map(|folder| (Holder::Ollama, folder)));
        folders.extend([
            (Holder::Ollama, home.join(".ollama/models")),
            // Where it runs as a service of the system.
            (Holder::Ollama, PathBuf::from("/usr/share/ollama/.ollama/models")),
            (Holder::Ollama, PathBuf::from("/var/lib/ollama/models")),
            (Holder::LmStudio, home.join(".lmstudio/models")),
            (Holder::LmStudio, home.join(".cache/lm-studio/models")),
        ]);
        for base in [&data, &config, &support, &roaming] {
            folders.push((Holder::Jan, base.join("Jan/data/llamacpp/models")));
            folders.push((Holder::Jan, base.join("Jan/data/models")));
        }
        folders.push((Holder::Jan, home.join("jan/models")));
        folders.extend([
            (Holder::Gpt4All, data.join("nomic.ai/GPT4All")),
            (Holder::Gpt4All, support.join("nomic.ai/GPT4All")),
            (Holder::Gpt4All, local.join("nomic.ai/GPT4All")),
            (Holder::Gpt4All, home.join(".cache/gpt4all")),
            (Holder::HubCache, hub.cache.clone()),
            (Holder::LlamaCpp, cache.join("llama.cpp")),
            (Holder::LlamaCpp, home.join("Library/Caches/llama.cpp")),
            (Holder::LlamaCpp, local.join("llama.cpp")),
        ]);
        let mut places: Vec<Place> = Vec::new();
        for (holder, folder) in folders {
            let place = Place { holder, folder };
            if !places.contains(&place) {
                places.push(place);
            }
        }
        Self { places }
    }
}
