//! What a person may set, in `settings.toml` in the data directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use correx_candle::memory::{LEAST_CONTEXT, Overcommit};
use correx_inference::ThinkingMode;
use correx_models::whole::write_whole;
use correx_orchestration::{OrchestratorConfig, StageThinking};
use correx_router::RouterConfig;
use serde::Deserialize;
use thiserror::Error;
use toml_edit::{Document, DocumentMut};

use crate::engine::{Chosen, DEFAULT, LoadingSettings};

/// The file's name in the data directory.
pub const SETTINGS_FILE: &str = "settings.toml";

/// What a person may set. What is absent has its default.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The conversation with the router.
    pub router: RouterSettings,
    /// Whether conversations are on disk.
    pub conversations: ConversationSettings,
    /// Which model, and how it runs.
    pub model: ModelSettings,
}

/// The conversation with the router.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouterSettings {
    /// How many of the newest turns a prompt may show.
    pub keep_last: usize,
    /// The most tokens that a prompt may have.
    pub token_budget: usize,
    /// Tokens kept free for the reply; a reply is never longer.
    pub reply_reserve: usize,
    /// Tokens that the steering notes in force may have together.
    pub note_allowance: usize,
}

impl Default for RouterSettings {
    fn default() -> Self {
        let config = RouterConfig::default();
        Self {
            keep_last: config.conversation_keep_last,
            token_budget: config.token_budget,
            reply_reserve: config.reply_reserve,
            note_allowance: config.note_allowance,
        }
    }
}

/// Whether conversations are on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConversationSettings {
    /// Where they are kept.
    pub keep: KeepConversations,
}

/// Where conversations are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepConversations {
    /// In the data directory.
    #[default]
    OnDisk,
    /// In memory, until the program ends.
    InMemory,
}

/// Which model, and how it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// The model's id, or the path of a GGUF file; what `correx model use` remembers. A relative
    /// path starts at the data directory.
    #[serde(rename = "use")]
    pub used: Option<String>,
    /// A GGUF file in place of the default model, where `use` names none. A relative path starts at
    /// the data directory.
    pub file: Option<PathBuf>,
    /// The most tokens of prompt and reply together; absent: what the model was made for and the
    /// memory allows.
    pub context: Option<usize>,
    /// Free the model's memory when it was not used for so long; absent: never.
    pub unload_after_minutes: Option<u32>,
    /// Load a model also when it does not fit into memory.
    pub allow_overcommit: bool,
    /// How many threads compute; absent: as many as there are processor cores.
    pub threads: Option<usize>,
    /// Whether models that can be told so think before they answer. `auto`: not in the
    /// conversation, whose replies are short; in stages as their workflow says.
    pub thinking: ThinkingMode,
    /// The rule by which the model splits text, where its file names one that is not known.
    pub pre_tokenizer: Option<String>,
}

impl ModelSettings {
    /// The model to use.
    pub fn chosen(&self, data_dir: &Path) -> Chosen {
        match (&self.used, &self.file) {
            (Some(used), _) if used == DEFAULT => Chosen::Default,
            (Some(used), _) if is_id(used) => Chosen::Id(used.clone()),
            (Some(used), _) => Chosen::File(data_dir.join(used)),
            (None, Some(file)) => Chosen::File(file.clone()),
            (None, None) => Chosen::Default,
        }
    }

    /// Whether they name the model with this id, or its file.
    pub fn names(&self, data_dir: &Path, id: &str, path: Option<&Path>) -> bool {
        match self.chosen(data_dir) {
            Chosen::Default => false,
            Chosen::Id(used) => used == id,
            Chosen::File(file) => path == Some(file.as_path()),
        }
    }

    /// How it is loaded.
    pub fn loading(&self) -> LoadingSettings {
        let overcommit = if self.allow_overcommit { Overcommit::Allow } else { Overcommit::Refuse };
        LoadingSettings {
            threads: self.threads,
            context: self.context,
            overcommit,
            pre_tokenizer: self.pre_tokenizer.clone(),
        }
    }

    /// After how long without use its memory is freed.
    pub fn unload_after(&self) -> Option<Duration> {
        let minutes = self.unload_after_minutes.filter(|minutes| *minutes > 0)?;
        Some(Duration::from_secs(60 * u64::from(minutes)))
    }
}

/// Whether a name is a model's id rather than a file: ids have no folders and no ending.
fn is_id(name: &str) -> bool {
    !name.contains(['/', '\\']) && !name.to_ascii_lowercase().ends_with(".gguf")
}

/// Why settings could not be used. The file is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// It could not be read.
    #[error("{} could not be read: {reason}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It could not be written.
    #[error("{} could not be written: {reason}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It has a mistake.
    #[error("{}:{line}:{column}: {message}", .path.display())]
    Mistake {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong.
        message: String,
    },
}

impl Settings {
    /// Reads the data directory's settings; the defaults when it has none.
    pub fn load(data_dir: &Path) -> Result<Self, SettingsError> {
        let path = data_dir.join(SETTINGS_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => {
                return Err(SettingsError::Unreadable { path, reason: error.to_string() });
            }
        };
        let mut settings = Self::parse(&text, &path)?;
        if let Some(file) = &mut settings.model.file {
            *file = data_dir.join(&*file);
        }
        Ok(settings)
    }

    /// Has the data directory's settings name `model` from now on, or none. Everything else in the
    /// file stays as it is: order, comments, and what this version does not know.
    pub fn remember_model(data_dir: &Path, model: Option<&str>) -> Result<(), SettingsError> {
        let path = data_dir.join(SETTINGS_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(SettingsError::Unreadable { path, reason: error.to_string() });
            }
        };
        let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
            let (line, column) = position(&text, error.span().map_or(0, |span| span.start));
            let message = error.message().trim_end().to_owned();
            SettingsError::Mistake { path: path.clone(), line, column, message }
        })?;
        let table = document.entry("model").or_insert_with(toml_edit::table);
        let Some(table) = table.as_table_like_mut() else {
            let message = "model must be a table".to_owned();
            return Err(SettingsError::Mistake { path, line: 1, column: 1, message });
        };
        match model {
            Some(model) => table.insert("use", toml_edit::value(model)),
            None => table.remove("use"),
        };
        write_whole(&path, document.to_string().as_bytes())
            .map_err(|error| SettingsError::Unwritable { path, reason: error.to_string() })
    }

    /// Reads settings from `text`; `path` is for the message.
    pub fn parse(text: &str, path: &Path) -> Result<Self, SettingsError> {
        let mistake = |at: usize, message: String| {
            let (line, column) = position(text, at);
            SettingsError::Mistake { path: path.to_owned(), line, column, message }
        };
        let settings: Self = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            mistake(at, in_peoples_words(error.message().trim_end()))
        })?;
        if let Some(context) = settings.model.context.filter(|context| *context < LEAST_CONTEXT) {
            let at = place_of(text, "model", "context");
            let why = "there would be no room for a question and its answer";
            return Err(mistake(
                at,
                format!("context must be at least {LEAST_CONTEXT} tokens, not {context}: {why}"),
            ));
        }
        let least_one = [
            ("router", "keep_last", settings.router.keep_last),
            ("router", "token_budget", settings.router.token_budget),
            ("router", "reply_reserve", settings.router.reply_reserve),
            ("model", "threads", settings.model.threads.unwrap_or(1)),
        ];
        for (table, key, value) in least_one {
            if value == 0 {
                let at = place_of(text, table, key);
                return Err(mistake(at, format!("{key} must be at least 1")));
            }
        }
        Ok(settings)
    }

    /// The router's part.
    pub fn router_config(&self) -> RouterConfig {
        RouterConfig {
            conversation_keep_last: self.router.keep_last,
            token_budget: self.router.token_budget,
            reply_reserve: self.router.reply_reserve,
            note_allowance: self.router.note_allowance,
            thinking: match self.model.thinking {
                ThinkingMode::Auto | ThinkingMode::Off => ThinkingMode::Off,
                ThinkingMode::On => ThinkingMode::On,
            },
            ..RouterConfig::default()
        }
    }
}

impl Settings {
    /// The stages' part.
    pub fn orchestrator_config(&self) -> OrchestratorConfig {
        OrchestratorConfig {
            thinking: match self.model.thinking {
                ThinkingMode::Auto => StageThinking::AsTheWorkflowSays,
                always => StageThinking::Always(always),
            },
            ..OrchestratorConfig::default()
        }
    }
}

/// The words of the library that reads TOML, without the names of types.
fn in_peoples_words(message: &str) -> String {
    let mut words = message.to_owned();
    for (of_the_program, of_people) in [
        ("expected usize", "expected a whole number from 0 on"),
        ("expected u32", "expected a whole number from 0 on"),
        ("expected u64", "expected a whole number from 0 on"),
        ("expected a boolean", "expected true or false"),
        ("expected struct ", "expected a table, "),
        ("expected path string", "expected a path in quotes"),
        ("expected a string", "expected a text in quotes"),
        ("invalid type: ", "this cannot be here: "),
        ("invalid value: ", "this cannot be here: "),
    ] {
        words = words.replace(of_the_program, of_people);
    }
    words
}

/// Where `key` of `table` stands in `text`, in bytes, however it is written.
fn place_of(text: &str, table: &str, key: &str) -> usize {
    let span = || {
        let document = Document::parse(text).ok()?;
        let (key, _) = document.get(table)?.as_table_like()?.get_key_value(key)?;
        key.span()
    };
    span().map_or(0, |span| span.start)
}

/// Line and column, from 1, of a byte in `text`.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_file_everything_has_its_default() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::load(dir.path()).unwrap();
        assert_eq!(settings, Settings::default());
        assert_eq!(settings.router_config(), RouterConfig::default());
    }

    #[test]
    fn what_is_set_is_used_and_a_relative_model_starts_at_the_data_directory() {
        let dir = tempfile::tempdir().unwrap();
        let text = "[router]\ntoken_budget = 900\n[conversations]\nkeep = \"in_memory\"\n\
                    [model]\nfile = \"mine.gguf\"\nthreads = 3\npre_tokenizer = \"qwen2\"\n";
        fs::write(dir.path().join(SETTINGS_FILE), text).unwrap();
        let settings = Settings::load(dir.path()).unwrap();
        assert_eq!(settings.router_config().token_budget, 900);
        assert_eq!(settings.router_config().conversation_keep_last, 6);
        assert_eq!(settings.conversations.keep, KeepConversations::InMemory);
        assert_eq!(settings.model.file, Some(dir.path().join("mine.gguf")));
        assert_eq!(settings.model.threads, Some(3));
        assert_eq!(settings.model.pre_tokenizer.as_deref(), Some("qwen2"));
    }

    #[test]
    fn thinking_is_off_in_the_conversation_and_as_the_workflow_says_in_stages_unless_set() {
        for (text, router, stages) in [
            ("", ThinkingMode::Off, StageThinking::AsTheWorkflowSays),
            ("[model]\nthinking = \"auto\"", ThinkingMode::Off, StageThinking::AsTheWorkflowSays),
            (
                "[model]\nthinking = \"off\"",
                ThinkingMode::Off,
                StageThinking::Always(ThinkingMode::Off),
            ),
            (
                "[model]\nthinking = \"on\"",
                ThinkingMode::On,
                StageThinking::Always(ThinkingMode::On),
            ),
        ] {
            let settings = Settings::parse(text, Path::new("settings.toml")).unwrap();
            assert_eq!(settings.router_config().thinking, router, "{text}");
            assert_eq!(settings.orchestrator_config().thinking, stages, "{text}");
        }
    }

    #[test]
    fn remembering_a_model_leaves_everything_else_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SETTINGS_FILE);
        Settings::remember_model(dir.path(), Some("a-model")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "[model]\nuse = \"a-model\"\n");
        let text = "# mine\n[router]\nkeep_last = 3 # few\nfrom_a_later_version = [1, 2]\n\n\
                    [model]\nthreads = 2 # cores\nuse = \"a\"\n\n[later]\nx = 1\n";
        fs::write(&path, text).unwrap();
        Settings::remember_model(dir.path(), Some("/m/b ü.gguf")).unwrap();
        let expected = text.replace("use = \"a\"", "use = \"/m/b ü.gguf\"");
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        Settings::remember_model(dir.path(), None).unwrap();
        assert!(!fs::read_to_string(&path).unwrap().contains("ü.gguf"));
        assert!(fs::read_to_string(&path).unwrap().contains("threads = 2 # cores"));
        fs::write(&path, "[model\n").unwrap();
        assert!(Settings::remember_model(dir.path(), Some("c")).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "[model\n");
    }

    #[test]
    fn what_is_used_wins_over_a_file_and_may_be_an_id_or_a_path() {
        let chosen = |text: &str| {
            let settings = Settings::parse(text, Path::new("s")).unwrap();
            settings.model.chosen(Path::new("/data"))
        };
        assert_eq!(chosen(""), Chosen::Default);
        assert_eq!(chosen("[model]\nfile = \"/a.gguf\"\n"), Chosen::File("/a.gguf".into()));
        let both = "[model]\nfile = \"/a.gguf\"\nuse = \"smollm2-135m\"\n";
        assert_eq!(chosen(both), Chosen::Id("smollm2-135m".into()));
        let file = Path::new("/data").join("b.GGUF");
        assert_eq!(chosen("[model]\nuse = \"b.GGUF\"\n"), Chosen::File(file));
        let default = "[model]\nfile = \"/a.gguf\"\nuse = \"default\"\n";
        assert_eq!(chosen(default), Chosen::Default);
        let model = Settings::parse(both, Path::new("s")).unwrap().model;
        assert!(model.names(Path::new("/data"), "smollm2-135m", None));
        assert!(!model.names(Path::new("/data"), "other", Some(Path::new("/a.gguf"))));
        let settings = "[model]\ncontext = 4096\nallow_overcommit = true\nthreads = 2\n\
                        unload_after_minutes = 5\npre_tokenizer = \"qwen2\"\n";
        let model = Settings::parse(settings, Path::new("s")).unwrap().model;
        assert_eq!(
            model.loading(),
            LoadingSettings {
                threads: Some(2),
                context: Some(4096),
                overcommit: Overcommit::Allow,
                pre_tokenizer: Some("qwen2".into()),
            }
        );
        assert_eq!(model.unload_after(), Some(Duration::from_secs(300)));
    }

    #[test]
    fn a_mistake_is_reported_with_its_place_and_the_file_is_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SETTINGS_FILE);
        for (text, line, column, word) in [
            ("[router]\nkeep_lats = 3\n", 2, 1, "keep_lats"),
            ("[router]\nkeep_last = \"six\"\n", 2, 13, "a whole number"),
            ("[model]\nthreads = -1\n", 2, 11, "a whole number"),
            ("[model]\ncontext = 1\n", 2, 1, "context must be at least 1024 tokens, not 1"),
            ("[router\n", 1, 8, ""),
            ("\n[model]\nthreads = 0\n", 3, 1, "at least 1"),
            // Comments, texts and other tables may hold the same word.
            ("# context\n[model]\nuse = \"context\"\n  context = 1\n", 4, 3, "context must be"),
            ("# threads\nmodel.threads = 0\n", 2, 7, "threads must be"),
            ("model = { use = \"threads\", \"threads\" = 0 }\n", 1, 28, "threads must be"),
            (
                "[model]\nfile = \"keep_last.gguf\" # keep_last\n[router]\nkeep_last = 0\n",
                4,
                1,
                "keep_last must be",
            ),
            ("# ä token_budget\n[router]\ntoken_budget = 0\n", 3, 1, "token_budget must be"),
            ("# reply_reserve\nrouter = {reply_reserve=0}\n", 2, 11, "reply_reserve must be"),
        ] {
            fs::write(&path, text).unwrap();
            let error = Settings::load(dir.path()).unwrap_err();
            let SettingsError::Mistake { line: at_line, column: at_column, message, .. } = &error
            else {
                panic!("{error}");
            };
            assert_eq!((*at_line, *at_column), (line, column), "{text:?}: {error}");
            assert!(message.contains(word), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
