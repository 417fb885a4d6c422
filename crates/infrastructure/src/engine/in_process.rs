//! Models of GGUF files, run in this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use correx_candle::memory::{MachineMemory, MemoryNeed, Overcommit, choose_context};
use correx_candle::{CandleProvider, LoadOptions, compute_threads, memory_plan};
use correx_inference::InferenceCancellationToken;
use correx_models::{Catalogue, Installed, Library, LocateError, Locations, ModelEntry, nearest};
use correx_protocol::{ErrorCode, MemoryView, ModelChoice, ProtocolError};

use super::source::{Candidate, Chosen, DEFAULT, LoadedModel, ModelSource};

/// Finds models among the known ones and on this machine's disk, and loads them with candle.
pub struct InProcess {
    /// Where models lie.
    pub locations: Locations,
    /// What was downloaded or imported.
    pub library: Library,
    /// How they are loaded.
    pub loading: LoadingSettings,
}

/// How models are loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadingSettings {
    /// Threads that compute; `None`: as many as there are processor cores.
    pub threads: Option<usize>,
    /// The person's limit of a context, in tokens; `None`: what the model and the memory allow.
    pub context: Option<usize>,
    /// Whether a model that does not fit is loaded all the same.
    pub overcommit: Overcommit,
    /// The rule that splits text, whatever a file says; `None`: the one that it names.
    pub pre_tokenizer: Option<String>,
}

impl InProcess {
    /// Where the file of `chosen` lies, and what is known of it.
    fn candidate(&self, chosen: &Chosen) -> Result<Candidate, ProtocolError> {
        let catalogue = catalogue()?;
        let path = match chosen {
            Chosen::Default => self.installed(catalogue.default_model()),
            Chosen::Id(id) => match (self.record(id), catalogue.by_id(id)) {
                (Some(record), _) => {
                    return Ok(Candidate {
                        chosen: chosen.clone(),
                        name: record.name.clone(),
                        path: first_file(&record).ok_or_else(|| unknown(id, &self.library))?,
                    });
                }
                (None, Some(entry)) => match self.installed(entry) {
                    Err(_) if entry.hub_file().is_some() => return Err(not_here(entry)),
                    found => found,
                },
                (None, None) => return Err(unknown(id, &self.library)),
            },
            Chosen::File(file) => Locations { named: Some(file.clone()), folders: Vec::new() }
                .find(catalogue.default_model()),
        }
        .map_err(|error| failed(error.to_string()).hint(error.hint()))?;
        let name = self.name_of(&catalogue, &path);
        Ok(Candidate { chosen: chosen.clone(), name, path })
    }

    /// What the file at `path` is called everywhere: its name in the catalogue, else the one that
    /// it was imported under, else its own. Files name themselves oddly inside.
    fn name_of(&self, catalogue: &Catalogue, path: &Path) -> String {
        known_name(catalogue, path)
            .or_else(|| self.library.by_path(path).map(|record| record.name))
            .unwrap_or_else(|| file_name(path))
    }

    fn record(&self, id: &str) -> Option<Installed> {
        self.library.get(id).ok()
    }

    fn installed(&self, entry: &ModelEntry) -> Result<PathBuf, LocateError> {
        Locations { named: None, folders: self.locations.folders.clone() }.find(entry)
    }

    fn options(&self, given_back: u64) -> LoadOptions {
        LoadOptions {
            context_limit: self.loading.context,
            machine: MachineMemory::now().map(|machine| machine.with_given_back(given_back)),
            overcommit: self.loading.overcommit,
            threads: self.loading.threads,
            pre_tokenizer: self.loading.pre_tokenizer.clone(),
            ..LoadOptions::default()
        }
    }
}

impl ModelSource for InProcess {
    fn name(&self, chosen: &Chosen) -> String {
        let known = || {
            let catalogue = catalogue().ok()?;
            Some(match chosen {
                Chosen::Default => catalogue.default_model().name.clone(),
                Chosen::Id(id) => match self.record(id) {
                    Some(record) => record.name,
                    None => catalogue.by_id(id)?.name.clone(),
                },
                Chosen::File(file) => self.name_of(&catalogue, file),
            })
        };
        known().unwrap_or_else(|| match chosen {
            Chosen::Default => String::new(),
            Chosen::Id(id) => id.clone(),
            Chosen::File(file) => file_name(file),
        })
    }

    fn place(&self, chosen: &Chosen) -> Result<PathBuf, ProtocolError> {
        self.candidate(chosen).map(|candidate| candidate.path)
    }

    fn list(&self, used: &Chosen) -> Vec<ModelChoice> {
        let Ok(catalogue) = catalogue() else { return Vec::new() };
        let used = self.candidate(used).ok().map(|used| used.path);
        let is_used = |path: &Path| used.as_deref() == Some(path);
        let records = self.library.list();
        let known = catalogue.models().iter().map(|entry| {
            let record = records.iter().find(|record| record.id == entry.id);
            let path = record.and_then(first_file).or_else(|| self.installed(entry).ok());
            ModelChoice {
                id: entry.id.clone(),
                name: entry.name.clone(),
                in_use: path.as_deref().is_some_and(is_used),
                path: path.map(|path| path.display().to_string()),
                bytes: entry.about_bytes().unwrap_or_default(),
                good_for: Some(entry.good_for.clone()),
            }
        });
        let mut choices: Vec<ModelChoice> = known.collect();
        for record in &records {
            let (false, Some(path)) = (catalogue.by_id(&record.id).is_some(), first_file(record))
            else {
                continue;
            };
            choices.push(ModelChoice {
                id: record.id.clone(),
                name: record.name.clone(),
                in_use: is_used(&path),
                path: Some(path.display().to_string()),
                bytes: record.files.iter().map(|file| file.size_bytes).sum(),
                good_for: None,
            });
        }
        // Files that somebody put into one of the folders, and the one that is used.
        let in_folders = self.locations.folders.iter().map(|folder| model_files(folder));
        for files in in_folders.chain([used.iter().cloned().collect()]) {
            for path in files {
                let shown = path.display().to_string();
                if choices.iter().any(|choice| choice.path.as_ref() == Some(&shown)) {
                    continue;
                }
                choices.push(ModelChoice {
                    id: shown.clone(),
                    name: self.name_of(&catalogue, &path),
                    bytes: path.metadata().map_or(0, |file| file.len()),
                    in_use: is_used(&path),
                    path: Some(shown),
                    good_for: None,
                });
            }
        }
        choices
    }

    fn find(&self, typed: &str) -> Result<Chosen, ProtocolError> {
        if typed == DEFAULT {
            return Ok(Chosen::Default);
        }
        let catalogue = catalogue()?;
        if self.record(typed).is_some() || catalogue.by_id(typed).is_some() {
            return Ok(Chosen::Id(typed.to_owned()));
        }
        let path = Path::new(typed);
        if path.is_absolute() {
            Ok(Chosen::File(path.to_owned()))
        } else {
            Err(unknown(typed, &self.library))
        }
    }

    fn is_same(&self, one: &Chosen, other: &Chosen) -> bool {
        let path = |chosen: &Chosen| self.candidate(chosen).ok().map(|found| found.path);
        one == other || path(one).is_some_and(|found| path(other) == Some(found))
    }

    fn check(&self, chosen: &Chosen, given_back: u64) -> Result<Candidate, ProtocolError> {
        let candidate = self.candidate(chosen)?;
        let options = self.options(given_back);
        let gguf = correx_gguf::inspect(&candidate.path).map_err(failed)?;
        let plan =
            memory_plan(&gguf, options.threads.unwrap_or_else(compute_threads)).map_err(failed)?;
        choose_context(&plan, options.context_limit, options.machine, options.overcommit)
            .map_err(|problem| failed(format!("{} does not fit: {problem}", candidate.name)))?;
        correx_candle::Vocabulary::from_gguf(&gguf).map_err(failed)?;
        Ok(candidate)
    }

    fn load(
        &self,
        chosen: &Chosen,
        cancel: &InferenceCancellationToken,
        report: &dyn Fn(f32),
    ) -> Result<LoadedModel, ProtocolError> {
        let candidate = self.candidate(chosen)?;
        let name = Some(candidate.name);
        let options = LoadOptions { name, cancel: cancel.clone(), ..self.options(0) };
        let provider = CandleProvider::load(&candidate.path, options, |progress| {
            report((progress.done as f64 / progress.total.max(1) as f64) as f32);
        })
        .map_err(failed)?;
        let memory = Some(memory(&provider.memory_need()));
        Ok(LoadedModel { provider: Arc::new(provider), memory })
    }
}

/// A need as it is shown.
pub(super) fn memory(need: &MemoryNeed) -> MemoryView {
    MemoryView {
        need: need.total(),
        weights: need.weights,
        vocabulary: need.vocabulary,
        forms: need.forms,
        cache: need.cache,
        scratch: need.scratch,
        held: None,
        available: None,
    }
}

/// The GGUF files of a folder, by name.
fn model_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_model = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
    };
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(is_model).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

fn catalogue() -> Result<Catalogue, ProtocolError> {
    Catalogue::embedded().map_err(failed)
}

/// The file of a record that is to be opened.
fn first_file(record: &Installed) -> Option<PathBuf> {
    record.files.first().map(|file| file.path.clone())
}

fn known_name(catalogue: &Catalogue, path: &Path) -> Option<String> {
    let size = path.metadata().map_or(0, |file| file.len());
    catalogue.by_file(&file_name(path), size).map(|model| model.name.clone())
}

/// What is said of a model of the catalogue that was not downloaded yet.
pub fn not_here(entry: &ModelEntry) -> ProtocolError {
    ProtocolError::new(ErrorCode::NotFound, format!("{} is not here yet", entry.name))
        .hint(format!("Get it with `correx model download {}`.", entry.id))
}

/// What is said of a model that is neither in the catalogue nor in `library`.
pub fn unknown(typed: &str, library: &Library) -> ProtocolError {
    let records = library.list();
    let catalogue = Catalogue::embedded().ok();
    let known = catalogue.iter().flat_map(|catalogue| catalogue.models()).map(|entry| &entry.id);
    let known = records.iter().map(|record| &record.id).chain(known).map(String::as_str);
    let meant = nearest(typed, known).map(|id| format!("Did you mean `{id}`? "));
    ProtocolError::new(ErrorCode::NotFound, format!("there is no model {typed:?}")).hint(format!(
        "{}`correx model list` names those that there are; a file is named by its whole path.",
        meant.unwrap_or_default()
    ))
}

fn failed(error: impl std::fmt::Display) -> ProtocolError {
    ProtocolError::new(ErrorCode::Model, error.to_string())
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into())
}
