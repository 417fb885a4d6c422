//! What a person may set, in `settings.toml` in the data directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use correx_inference::ThinkingMode;
use correx_orchestration::{OrchestratorConfig, StageThinking};
use correx_router::RouterConfig;
use serde::Deserialize;
use thiserror::Error;

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
    /// A GGUF file in place of the default model. A relative path starts at the data directory.
    pub file: Option<PathBuf>,
    /// How many threads compute; absent: as many as there are processor cores.
    pub threads: Option<usize>,
    /// Whether models that can be told so think before they answer. `auto`: not in the
    /// conversation, whose replies are short; in stages as their workflow says.
    pub thinking: ThinkingMode,
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

    /// Reads settings from `text`; `path` is for the message.
    pub fn parse(text: &str, path: &Path) -> Result<Self, SettingsError> {
        let mistake = |at: usize, message: String| {
            let (line, column) = position(text, at);
            SettingsError::Mistake { path: path.to_owned(), line, column, message }
        };
        let settings: Self = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            mistake(at, error.message().trim_end().to_owned())
        })?;
        let least_one = [
            ("keep_last", settings.router.keep_last),
            ("token_budget", settings.router.token_budget),
            ("reply_reserve", settings.router.reply_reserve),
            ("threads", settings.model.threads.unwrap_or(1)),
        ];
        for (key, value) in least_one {
            if value == 0 {
                let at = text.find(key).unwrap_or(0);
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
                    [model]\nfile = \"mine.gguf\"\nthreads = 3\n";
        fs::write(dir.path().join(SETTINGS_FILE), text).unwrap();
        let settings = Settings::load(dir.path()).unwrap();
        assert_eq!(settings.router_config().token_budget, 900);
        assert_eq!(settings.router_config().conversation_keep_last, 6);
        assert_eq!(settings.conversations.keep, KeepConversations::InMemory);
        assert_eq!(settings.model.file, Some(dir.path().join("mine.gguf")));
        assert_eq!(settings.model.threads, Some(3));
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
    fn a_mistake_is_reported_with_its_place_and_the_file_is_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SETTINGS_FILE);
        for (text, line, column, word) in [
            ("[router]\nkeep_lats = 3\n", 2, 1, "keep_lats"),
            ("[router]\nkeep_last = \"six\"\n", 2, 13, "invalid type"),
            ("[router\n", 1, 8, ""),
            ("\n[model]\nthreads = 0\n", 3, 1, "at least 1"),
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
