//! Talking to the hub. The only module of the product that opens a connection to another machine.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, IF_RANGE, LOCATION, RANGE};
use reqwest::{Client, Method, Response, StatusCode, Url};
use rustls_platform_verifier::BuilderVerifierExt;

use super::answer::{self, Announced, Asked};
use super::{DownloadError, Patience};
use crate::hub::{HubFile, HubSettings, Network};

/// The most redirects that are followed.
const REDIRECTS: usize = 10;

/// A client of one hub. Opens a connection when it is asked for something, not before.
pub(super) struct HubClient {
    client: Client,
    endpoint: Url,
    settings: HubSettings,
    stall: Duration,
}

/// An answer that carries content, and where it came from.
pub(super) struct Content {
    pub(super) response: Response,
    pub(super) host: String,
    /// What the hub announced on the way, if it did.
    pub(super) announced: Option<Announced>,
}

impl HubClient {
    pub(super) fn new(settings: &HubSettings, patience: &Patience) -> Result<Self, DownloadError> {
        if settings.network == Network::Never {
            return Err(DownloadError::Offline);
        }
        let bad = || DownloadError::Endpoint(settings.endpoint.clone());
        let endpoint = Url::parse(&settings.endpoint).map_err(|_| bad())?;
        if !matches!(endpoint.scheme(), "http" | "https") || endpoint.cannot_be_a_base() {
            return Err(bad());
        }
        let mut client = Client::builder()
            .user_agent(concat!("correx/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(patience.connect)
            // Redirects are followed here, so that the token stays with the hub.
            .redirect(reqwest::redirect::Policy::none())
            .http1_only()
            .tls_backend_preconfigured(tls(&endpoint)?);
        if settings.network == Network::Direct {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| unreachable(&endpoint, &error))?;
        Ok(Self { client, endpoint, settings: settings.clone(), stall: patience.stall })
    }

    /// What the hub says of `path`, without fetching it.
    pub(super) async fn announce(
        &self,
        file: &HubFile,
        revision: &str,
        path: &str,
    ) -> Result<Announced, DownloadError> {
        let mut url = self.address(file.repo(), revision, path);
        for _ in 0..REDIRECTS {
            let response = self.send(Method::HEAD, &url, &[]).await?;
            self.refuse(&response, &url, file, path)?;
            if let Some(announced) = answer::announced(response.status(), response.headers()) {
                return Ok(announced);
            }
            url = next(&url, &response)?;
        }
        Err(odd(&url, "it redirects without end"))
    }

    /// The content of `path` at `commit` from byte `from` on.
    pub(super) async fn content(
        &self,
        file: &HubFile,
        path: &str,
        commit: &str,
        from: u64,
        if_range: Option<&str>,
    ) -> Result<Content, DownloadError> {
        let mut url = self.address(file.repo(), commit, path);
        let range = format!("bytes={from}-");
        let mut headers = Vec::new();
        if from > 0 {
            headers.push((RANGE, range.as_str()));
            headers.extend(if_range.map(|etag| (IF_RANGE, etag)));
        }
        let mut announced = None;
        for _ in 0..REDIRECTS {
            let response = self.send(Method::GET, &url, &headers).await?;
            self.refuse(&response, &url, file, path)?;
            announced = answer::announced(response.status(), response.headers()).or(announced);
            if !response.status().is_redirection() {
                return Ok(Content { response, host: host(&url), announced });
            }
            url = next(&url, &response)?;
        }
        Err(odd(&url, "it redirects without end"))
    }

    fn address(&self, repo: &str, revision: &str, path: &str) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            // A revision is one segment, whatever is in it.
            parts.pop_if_empty().extend(repo.split('/')).push("resolve").push(revision);
            parts.extend(path.split('/'));
        }
        url
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: &[(reqwest::header::HeaderName, &str)],
    ) -> Result<Response, DownloadError> {
        let mut request =
            self.client.request(method, url.clone()).header(ACCEPT_ENCODING, "identity");
        if url.origin() == self.endpoint.origin()
            && let Some(token) = &self.settings.token
        {
            let mut secret = HeaderMap::new();
            if let Ok(mut value) = reqwest::header::HeaderValue::from_str(&token.bearer()) {
                value.set_sensitive(true);
                secret.insert(AUTHORIZATION, value);
            }
            request = request.headers(secret);
        }
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        match tokio::time::timeout(self.stall, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(unreachable(url, &error)),
            Err(_) => Err(DownloadError::Stalled { host: host(url), silence: self.stall }),
        }
    }

    fn refuse(
        &self,
        response: &Response,
        url: &Url,
        file: &HubFile,
        path: &str,
    ) -> Result<(), DownloadError> {
        let asked = Asked {
            host: &host(url),
            endpoint: &self.settings.endpoint,
            repo: file.repo(),
            file: path,
            revision: file.revision(),
            token: self.settings.token.is_some(),
        };
        // A range behind the end is the transfer's own affair.
        if response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
            return Ok(());
        }
        match answer::refusal(response.status(), response.headers(), asked, Timestamp::now()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// TLS that trusts what the system trusts. A system that trusts nobody is an error only where the
/// hub's address asks for TLS.
fn tls(endpoint: &Url) -> Result<rustls::ClientConfig, DownloadError> {
    let failed = |error: rustls::Error| odd(endpoint, &format!("no secure connection: {error}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = || {
        rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
    };
    let config = match builder().and_then(BuilderVerifierExt::with_platform_verifier) {
        Ok(config) => config,
        Err(_) if endpoint.scheme() == "http" => {
            builder().map_err(failed)?.with_root_certificates(rustls::RootCertStore::empty())
        }
        Err(error) => return Err(failed(error)),
    };
    Ok(config.with_no_client_auth())
}

/// Who is behind an address, for people.
pub(super) fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or("the server");
    match url.port() {
        Some(port) => format!("{name}:{port}"),
        None => name.to_owned(),
    }
}

fn odd(url: &Url, what: &str) -> DownloadError {
    DownloadError::Answer { host: host(url), what: what.into() }
}

fn next(url: &Url, response: &Response) -> Result<Url, DownloadError> {
    if !response.status().is_redirection() {
        return Err(odd(url, "it does not say which commit and content it has"));
    }
    let location = response.headers().get(LOCATION);
    // Some servers send letters as they are.
    let location = location.and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
    let next = location.and_then(|location| url.join(location).ok());
    let next = next.filter(|next| matches!(next.scheme(), "http" | "https"));
    let next = next.ok_or_else(|| odd(url, "it redirects to nowhere"))?;
    if url.scheme() == "https" && next.scheme() == "http" {
        return Err(odd(url, "it redirects from a secured connection to an open one"));
    }
    Ok(next)
}

/// The innermost reason: what a person can do something about.
fn unreachable(url: &Url, error: &reqwest::Error) -> DownloadError {
    let mut reason: Option<&dyn std::error::Error> = Some(error);
    while let Some(now) = reason {
        // The one thing that the layers below say of a name that cannot be resolved.
        if now.to_string().starts_with("dns error") {
            return DownloadError::NoConnection { host: host(url) };
        }
        reason = now.source();
    }
    DownloadError::Unreachable { host: host(url), reason: innermost(error) }
}

/// The innermost reason of an error.
pub(super) fn innermost(error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(endpoint: &str) -> Result<HubClient, DownloadError> {
        let settings = HubSettings {
            endpoint: endpoint.into(),
            token: None,
            cache: "c".into(),
            network: Network::Direct,
        };
        HubClient::new(&settings, &Patience::default())
    }

    #[test]
    fn names_of_any_letters_become_addresses() {
        let client = client("https://hub.example/mirror").unwrap();
        let url = client.address("a/b", "refs/pr/1", "q 4/größe.gguf");
        assert_eq!(
            url.as_str(),
            "https://hub.example/mirror/a/b/resolve/refs%2Fpr%2F1/q%204/gr%C3%B6%C3%9Fe.gguf"
        );
    }

    #[test]
    fn what_is_no_address_of_a_hub_is_refused() {
        for endpoint in ["", "hub.example", "ftp://hub.example", "data:x"] {
            assert!(matches!(client(endpoint), Err(DownloadError::Endpoint(_))), "{endpoint}");
        }
    }
}
