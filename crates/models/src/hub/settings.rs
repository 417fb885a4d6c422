//! Where the hub is and how it is talked to, from the variables that every tool of the hub knows.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The hub when no other is named.
pub const ENDPOINT: &str = "https://huggingface.co";

/// Where the hub is, who asks, and where its files lie on this machine. Making one opens no
/// connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubSettings {
    /// The hub's address, without a slash at its end.
    pub endpoint: String,
    /// The person's token, for models whose licence has to be accepted first.
    pub token: Option<Token>,
    /// The folder that the hub's tools share.
    pub cache: PathBuf,
    /// Whether connections may be opened.
    pub network: Network,
}

/// Whether connections may be opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Network {
    /// When the person asks for a download, through the proxies that the environment or the system
    /// names.
    #[default]
    WhenAsked,
    /// The same, and never through a proxy.
    Direct,
    /// Never.
    Never,
}

/// A token. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A token as it is; `None` when there is nothing in it that could be sent.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(text.to_owned()))
    }

    /// The value of the `Authorization` header.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl HubSettings {
    /// What the environment says: HF_ENDPOINT, HF_TOKEN (else HF_TOKEN_PATH, else the token that
    /// `hf auth login` leaves), HF_HUB_CACHE (else HF_HOME, else the usual folder), and
    /// HF_HUB_OFFLINE, which forbids every connection. `get` looks a variable up; `home` is the
    /// person's home folder.
    pub fn from_environment(get: &dyn Fn(&str) -> Option<OsString>, home: &Path) -> Self {
        let set = |key: &str| get(key).filter(|value| !value.is_empty());
        let text = |key: &str| set(key).and_then(|value| value.into_string().ok());
        let folder = |key: &str| set(key).map(|value| expanded(Path::new(&value), home));
        let hf_home = folder("HF_HOME")
            .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("huggingface")))
            .unwrap_or_else(|| home.join(".cache").join("huggingface"));
        let cache = folder("HF_HUB_CACHE")
            .or_else(|| folder("HUGGINGFACE_HUB_CACHE"))
            .unwrap_or_else(|| hf_home.join("hub"));
        let token_file = folder("HF_TOKEN_PATH").unwrap_or_else(|| hf_home.join("token"));
        let token = text("HF_TOKEN").as_deref().and_then(Token::new);
        let implicit = !text("HF_HUB_DISABLE_IMPLICIT_TOKEN").as_deref().is_some_and(yes);
        let from_file = || fs::read_to_string(token_file).ok().as_deref().and_then(Token::new);
        let offline = text("HF_HUB_OFFLINE").as_deref().is_some_and(yes);
        Self {
            endpoint: text("HF_ENDPOINT")
                .unwrap_or_else(|| ENDPOINT.into())
                .trim_end_matches('/')
                .to_owned(),
            token: token.or_else(|| if implicit { from_file() } else { None }),
            cache,
            network: if offline { Network::Never } else { Network::WhenAsked },
        }
    }
}

fn yes(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "1" | "on" | "yes" | "true")
}

/// A path whose `~` is the home folder.
fn expanded(path: &Path, home: &Path) -> PathBuf {
    match path.strip_prefix("~") {
        Ok(rest) => home.join(rest),
        Err(_) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)], home: &Path) -> HubSettings {
        let get = |key: &str| {
            variables.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).into())
        };
        HubSettings::from_environment(&get, home)
    }

    #[test]
    fn with_nothing_set_the_usual_places_are_used() {
        let home = tempfile::tempdir().unwrap();
        let found = settings(&[], home.path());
        assert_eq!(found.endpoint, ENDPOINT);
        assert_eq!(found.cache, home.path().join(".cache/huggingface/hub"));
        assert_eq!((found.token, found.network), (None, Network::WhenAsked));
    }

    #[test]
    fn every_variable_of_the_hub_is_honoured() {
        let home = tempfile::tempdir().unwrap();
        let of = |variables: &[(&str, &str)]| settings(variables, home.path());
        assert_eq!(of(&[("HF_ENDPOINT", "http://h:1/")]).endpoint, "http://h:1");
        assert_eq!(of(&[("HF_HOME", "/ä b")]).cache, Path::new("/ä b/hub"));
        assert_eq!(of(&[("HF_HOME", "~/x")]).cache, home.path().join("x/hub"));
        assert_eq!(of(&[("HF_HOME", "/a"), ("HF_HUB_CACHE", "/c")]).cache, Path::new("/c"));
        assert_eq!(of(&[("XDG_CACHE_HOME", "/x")]).cache, Path::new("/x/huggingface/hub"));
        assert_eq!(of(&[("HF_HUB_OFFLINE", "1")]).network, Network::Never);
        assert_eq!(of(&[("HF_HUB_OFFLINE", "0")]).network, Network::WhenAsked);
    }

    #[test]
    fn the_token_comes_from_the_variable_or_the_file_and_is_never_shown() {
        let home = tempfile::tempdir().unwrap();
        let hf = home.path().join(".cache/huggingface");
        fs::create_dir_all(&hf).unwrap();
        fs::write(hf.join("token"), "hf_file\n").unwrap();
        let of = |variables: &[(&str, &str)]| settings(variables, home.path()).token;
        assert_eq!(of(&[]), Token::new("hf_file"));
        assert_eq!(of(&[("HF_TOKEN", " hf_set ")]), Token::new("hf_set"));
        assert_eq!(of(&[("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")]), None);
        assert!(!format!("{:?}", settings(&[("HF_TOKEN", "hf_set")], home.path())).contains("hf_"));
        assert_eq!(Token::new("a\nb"), None, "a line break would be another header");
    }
}
