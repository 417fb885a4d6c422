//! What an answer of the hub means. Nothing here opens a connection.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, RETRY_AFTER,
};

use super::DownloadError;

/// What the hub says of a file before it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Announced {
    /// The commit that the revision stands for.
    pub(super) commit: String,
    /// The content's name: its SHA-256 for large files, its git blob hash for small ones.
    pub(super) etag: String,
    /// Its size in bytes.
    pub(super) size: u64,
}

/// Whom and what was asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// The host that answered.
    pub(super) host: &'a str,
    pub(super) endpoint: &'a str,
    pub(super) repo: &'a str,
    pub(super) file: &'a str,
    pub(super) revision: &'a str,
    /// Whether a token was sent.
    pub(super) token: bool,
}

fn text<'h>(headers: &'h HeaderMap, key: &str) -> Option<&'h str> {
    headers.get(key).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// An entity tag without its decoration.
pub(super) fn bare_etag(text: &str) -> &str {
    text.strip_prefix("W/").unwrap_or(text).trim_matches('"')
}

/// The strong entity tag of an answer, with its quotation marks, as `If-Range` wants it.
pub(super) fn strong_etag(headers: &HeaderMap) -> Option<String> {
    let etag = text(headers, ETAG.as_str())?;
    (etag.starts_with('"') && etag.len() > 2).then(|| etag.to_owned())
}

/// What the answer announces. `None` when it announces nothing: one more redirect has to be
/// followed.
pub(super) fn announced(status: StatusCode, headers: &HeaderMap) -> Option<Announced> {
    let commit = text(headers, "x-repo-commit")?.to_owned();
    let number = |key: &str| text(headers, key).and_then(|value| value.parse().ok());
    let (etag, size) = match text(headers, "x-linked-etag") {
        Some(etag) => (etag, number("x-linked-size")),
        None if status.is_success() => {
            (text(headers, ETAG.as_str())?, number(CONTENT_LENGTH.as_str()))
        }
        None => return None,
    };
    let size =
        size.or_else(|| status.is_success().then(|| number(CONTENT_LENGTH.as_str())).flatten())?;
    Some(Announced { commit, etag: bare_etag(etag).to_owned(), size })
}

/// Whether the answer refuses, and how. Redirects are no refusals.
pub(super) fn refusal(
    status: StatusCode,
    headers: &HeaderMap,
    asked: Asked<'_>,
    now: Timestamp,
) -> Option<DownloadError> {
    if status.is_success() || status.is_redirection() {
        return None;
    }
    let Asked { host, endpoint, repo, file, revision, token } = asked;
    let wait = retry_after(headers, now);
    let code = text(headers, "x-error-code").unwrap_or_default();
    let refused = || match code {
        "GatedRepo" => {
            DownloadError::Gated { repo: repo.into(), page: format!("{endpoint}/{repo}") }
        }
        _ => DownloadError::Refused { repo: repo.into(), token },
    };
    Some(match status.as_u16() {
        401 if code == "RepoNotFound" && !token => {
            DownloadError::NotFound(format!("repository {repo} that is open to everybody"))
        }
        401 | 403 => refused(),
        404 => DownloadError::NotFound(match code {
            "EntryNotFound" => format!("file {file} in {repo}"),
            "RevisionNotFound" => format!("revision {revision} of {repo}"),
            _ => format!("repository {repo}, or no file {file} in it"),
        }),
        429 => DownloadError::TooMany { wait: wait.unwrap_or(Duration::from_secs(10)) },
        408 | 500..=599 => {
            DownloadError::Server { host: host.into(), status: status.as_u16(), wait }
        }
        other => DownloadError::Answer { host: host.into(), what: format!("status {other}") },
    })
}

/// How long the server asks to wait: a number of seconds, or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = text(headers, RETRY_AFTER.as_str())?;
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// Where the body of an answer belongs in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// It goes on where the part ends.
    GoesOn,
    /// It is the whole file from its beginning, whatever was asked.
    FromTheBeginning,
}

/// Judges the head of an answer that carries content, when the bytes from `from` on of `size` were
/// asked for.
pub(super) fn body(
    status: StatusCode,
    headers: &HeaderMap,
    from: u64,
    size: u64,
    host: &str,
) -> Result<Body, DownloadError> {
    let odd = |what: String| DownloadError::Answer { host: host.into(), what };
    if text(headers, CONTENT_ENCODING.as_str()).is_some_and(|encoding| encoding != "identity") {
        return Err(odd("it compresses what should come as it is".into()));
    }
    let length: Option<u64> =
        text(headers, CONTENT_LENGTH.as_str()).and_then(|length| length.parse().ok());
    let (body, expected) = match status {
        StatusCode::PARTIAL_CONTENT => {
            let range = text(headers, CONTENT_RANGE.as_str()).unwrap_or_default();
            let wanted = format!("bytes {from}-{}/{size}", size.saturating_sub(1));
            if range != wanted {
                return Err(odd(format!("it sends {range:?} in place of {wanted:?}")));
            }
            (Body::GoesOn, size - from)
        }
        StatusCode::OK if from == 0 => (Body::GoesOn, size),
        StatusCode::OK => (Body::FromTheBeginning, size),
        other => return Err(odd(format!("status {}", other.as_u16()))),
    };
    // A page in place of the model has another length too, and is to be named for what it is.
    if length.is_some_and(|length| length != expected) && page(headers).is_none() {
        return Err(odd(format!(
            "it sends {} bytes where the hub announced {expected}",
            length.unwrap_or_default()
        )));
    }
    Ok(body)
}

/// A name for content that is written for people or programs, not a model.
pub(super) fn page(headers: &HeaderMap) -> Option<&'static str> {
    let kind = text(headers, CONTENT_TYPE.as_str())?.split(';').next()?.trim().to_lowercase();
    match kind.as_str() {
        "text/html" | "application/xhtml+xml" => Some("a web page"),
        "application/json" | "application/problem+json" => Some("an error message (JSON)"),
        "text/xml" | "application/xml" => Some("an error message (XML)"),
        _ if kind.starts_with("text/") => Some("a text"),
        _ => None,
    }
}

/// What `start`, the first bytes of a file, is if it is no model: the bytes decide, the declared
/// kind only names it.
pub(super) fn no_model(start: &[u8], headers: &HeaderMap) -> Option<String> {
    if start.starts_with(b"GGUF") {
        return None;
    }
    if let Some(page) = page(headers) {
        return Some(page.into());
    }
    let text = String::from_utf8_lossy(start).trim_start().to_lowercase();
    let what = match text.as_bytes() {
        [b'<', ..] => "a web page",
        [b'{' | b'[', ..] => "an error message (JSON)",
        _ if text.starts_with("version https://git-lfs") => "a Git LFS pointer",
        _ => "something that is no GGUF file",
    };
    Some(what.into())
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(key, value): &(&str, &str)| {
            (key.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    fn asked() -> Asked<'static> {
        Asked {
            host: "h",
            endpoint: "https://h",
            repo: "a/b",
            file: "m.gguf",
            revision: "main",
            token: false,
        }
    }

    fn refused(status: u16, pairs: &[(&str, &str)]) -> DownloadError {
        let status = StatusCode::from_u16(status).unwrap();
        refusal(status, &headers(pairs), asked(), Timestamp::UNIX_EPOCH).unwrap()
    }

    #[test]
    fn a_large_file_is_announced_by_its_redirect_and_a_small_one_by_its_answer() {
        let large = [
            ("x-repo-commit", "c"),
            ("x-linked-etag", "\"abc\""),
            ("x-linked-size", "7"),
            ("content-length", "1350"),
            ("etag", "\"other\""),
        ];
        let expected = Announced { commit: "c".into(), etag: "abc".into(), size: 7 };
        assert_eq!(announced(StatusCode::FOUND, &headers(&large)), Some(expected.clone()));
        let small = [("x-repo-commit", "c"), ("etag", "W/\"abc\""), ("content-length", "7")];
        assert_eq!(announced(StatusCode::OK, &headers(&small)), Some(expected));
        assert_eq!(announced(StatusCode::TEMPORARY_REDIRECT, &headers(&small)), None);
        assert_eq!(announced(StatusCode::OK, &headers(&small[1..])), None, "no hub");
    }

    #[test]
    fn refusals_say_what_is_missing() {
        let gated = refused(403, &[("x-error-code", "GatedRepo")]);
        assert!(gated.hint().contains("https://h/a/b") && gated.hint().contains("HF_TOKEN"));
        assert!(matches!(refused(401, &[]), DownloadError::Refused { token: false, .. }));
        let missing = refused(404, &[("x-error-code", "EntryNotFound")]);
        assert_eq!(missing.to_string(), "the hub has no file m.gguf in a/b");
        let missing = refused(401, &[("x-error-code", "RepoNotFound")]);
        assert!(matches!(missing, DownloadError::NotFound(_)));
        assert!(matches!(refused(418, &[]), DownloadError::Answer { .. }));
    }

    #[test]
    fn a_wait_is_a_number_of_seconds_or_a_date() {
        assert_eq!(
            refused(429, &[("retry-after", "7")]).asked_wait(),
            Some(Duration::from_secs(7))
        );
        let date = refused(503, &[("retry-after", "Thu, 01 Jan 1970 00:01:30 GMT")]);
        assert_eq!(date.asked_wait(), Some(Duration::from_secs(90)));
        let past = refused(503, &[("retry-after", "Wed, 31 Dec 1969 00:00:00 GMT")]);
        assert_eq!(past.asked_wait(), Some(Duration::ZERO));
        assert_eq!(refused(500, &[("retry-after", "soon")]).asked_wait(), None);
    }

    #[test]
    fn a_body_goes_on_only_where_the_part_ends() {
        let judge = |status, pairs: &[(&str, &str)], from| {
            body(StatusCode::from_u16(status).unwrap(), &headers(pairs), from, 10, "h")
        };
        assert_eq!(judge(206, &[("content-range", "bytes 4-9/10")], 4), Ok(Body::GoesOn));
        assert_eq!(judge(200, &[("content-length", "10")], 4), Ok(Body::FromTheBeginning));
        assert_eq!(judge(200, &[], 0), Ok(Body::GoesOn));
        for (status, pairs) in [
            (206, [("content-range", "bytes 3-9/10")]),
            (206, [("content-range", "bytes 4-9/11")]),
            (206, [("x", "y")]),
            (200, [("content-length", "9")]),
            (200, [("content-encoding", "gzip")]),
            (204, [("x", "y")]),
        ] {
            assert!(judge(status, &pairs, 4).is_err(), "{status} {pairs:?}");
        }
    }

    #[test]
    fn what_is_no_model_is_named_by_its_kind_or_its_bytes() {
        let named = |start: &[u8], kind: &str| no_model(start, &headers(&[("content-type", kind)]));
        assert_eq!(named(b"GGUF\x03", "text/html"), None, "the bytes decide");
        assert_eq!(named(b"x", "text/html; charset=utf-8").unwrap(), "a web page");
        assert_eq!(named(b"\n<!doctype", "application/octet-stream").unwrap(), "a web page");
        assert_eq!(named(b"{}", "binary/octet-stream").unwrap(), "an error message (JSON)");
        assert_eq!(named(b"version https://git-lfs", "x/y").unwrap(), "a Git LFS pointer");
        assert!(named(b"\x00\x01", "x/y").unwrap().contains("no GGUF"));
    }
}
