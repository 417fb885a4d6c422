//! A hub on the loopback interface. It speaks HTTP by hand, because it has to speak it wrongly.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};

/// A hub, and the server that it sends people to for content. Ends when it is dropped.
pub struct TestHub {
    hub: SocketAddr,
    content: SocketAddr,
    state: Arc<State>,
}

/// What goes wrong once.
#[derive(Debug, Clone)]
pub enum Trouble {
    /// A status, with further headers.
    Status(u16, Vec<(&'static str, String)>),
    /// A web page with status 200.
    Page,
    /// An error message in JSON with status 200.
    Json,
    /// The connection ends after so many bytes of the body.
    Truncated(usize),
    /// The same, and the answer had not said how long it would be.
    TruncatedWithoutLength(usize),
    /// Nothing more comes after so many bytes of the body.
    Stalled(usize),
    /// A byte is another.
    Damaged,
    /// The whole file comes, whatever part was asked for.
    RangeIgnored,
    /// Another part comes than was asked for.
    WrongRange,
    /// The whole file comes under another entity tag, as when it had been replaced.
    Replaced,
    /// The answer says another length.
    WrongLength,
    /// More comes than was announced.
    TooMuch,
    /// It says that it is compressed.
    Compressed,
    /// So many bytes come, then a pause, and so on.
    Slow(usize, Duration),
}

/// A request, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Whether the server for content was asked, not the hub.
    pub content: bool,
    /// `GET` or `HEAD`.
    pub method: String,
    /// The path.
    pub path: String,
    /// The headers, by lower-case name.
    pub headers: HashMap<String, String>,
}

#[derive(Default)]
struct State {
    ending: AtomicBool,
    inner: Mutex<Inner>,
}

/// A commit, and what the file holds from it on.
type Version = (String, Arc<Vec<u8>>);

#[derive(Default)]
struct Inner {
    /// By repository and path: commits and contents, from the oldest.
    files: HashMap<String, Vec<Version>>,
    commits: u32,
    questions: VecDeque<Trouble>,
    answers: VecDeque<Trouble>,
    /// Goes wrong every time.
    always: Option<Trouble>,
    asked: Vec<Asked>,
    token: Option<String>,
    /// A repository that has moved.
    moved: HashMap<String, String>,
    content_at: String,
}

impl TestHub {
    /// Starts one that holds nothing.
    ///
    /// # Panics
    /// When the loopback interface cannot be used.
    pub fn start() -> Self {
        let listen = || TcpListener::bind("127.0.0.1:0").expect("the loopback interface works");
        let (hub, content) = (listen(), listen());
        let address = |listener: &TcpListener| listener.local_addr().expect("it is bound");
        let state = Arc::new(State::default());
        let this = Self { hub: address(&hub), content: address(&content), state: state.clone() };
        state.inner().content_at = format!("http://{}", this.content);
        serve(hub, state.clone(), false);
        serve(content, state, true);
        this
    }

    /// Its address, as `HF_ENDPOINT` wants it.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.hub)
    }

    /// Puts a file into a repository, as a new commit. Returns the commit.
    pub fn put(&self, repo: &str, path: &str, content: Vec<u8>) -> String {
        let mut inner = self.state.inner();
        inner.commits += 1;
        let commit = format!("{:040x}", inner.commits);
        let versions = inner.files.entry(format!("{repo}/{path}")).or_default();
        versions.push((commit.clone(), Arc::new(content)));
        commit
    }

    /// The next answers of the server for content go wrong so, one after the other.
    pub fn trouble(&self, troubles: impl IntoIterator<Item = Trouble>) {
        self.state.inner().answers.extend(troubles);
    }

    /// Every answer of the server for content goes wrong so; `None`: no more.
    pub fn always(&self, trouble: Option<Trouble>) {
        self.state.inner().always = trouble;
    }

    /// The next answers of the hub itself go wrong so, one after the other.
    pub fn hub_trouble(&self, troubles: impl IntoIterator<Item = Trouble>) {
        self.state.inner().questions.extend(troubles);
    }

    /// From now on only who sends this token gets anything.
    pub fn require_token(&self, token: &str) {
        self.state.inner().token = Some(token.to_owned());
    }

    /// A repository has a new name.
    pub fn rename(&self, old: &str, new: &str) {
        self.state.inner().moved.insert(old.to_owned(), new.to_owned());
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.inner().asked.clone()
    }

    /// The requests for content so far.
    pub fn content_asked(&self) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.content).collect()
    }
}

impl Drop for TestHub {
    fn drop(&mut self) {
        self.state.ending.store(true, Ordering::SeqCst);
        // So that both listeners notice.
        for address in [self.hub, self.content] {
            let _ = TcpStream::connect(address);
        }
    }
}

impl State {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }
}

fn serve(listener: TcpListener, state: Arc<State>, content: bool) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            if state.ending() {
                return;
            }
            let (Ok(stream), state) = (stream, state.clone()) else { continue };
            // A client that went away is no trouble of ours.
            thread::spawn(move || {
                let _ = answer(stream, &state, content);
            });
        }
    });
}

fn answer(stream: TcpStream, state: &State, content: bool) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let Some(first) = lines.next().transpose()? else { return Ok(()) };
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = HashMap::new();
    for line in lines.by_ref() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
    }
    let asked = Asked { content, method: method.into(), path: path.into(), headers };
    state.inner().asked.push(asked.clone());
    let reply = Reply { stream, head: asked.method == "HEAD" };
    if content { reply.content(&asked, state) } else { reply.hub(&asked, state) }
}

struct Reply {
    stream: TcpStream,
    head: bool,
}

const PAGE: &str = "<!DOCTYPE html><html><body>Please log in</body></html>";
const JSON: &str =
    "{\"error\":\"Internal Error - We're working hard to fix this as soon as possible!\"}";

impl Reply {
    fn send(&mut self, status: u16, headers: &[(&str, String)], body: &[u8]) -> io::Result<()> {
        let mut text = format!("HTTP/1.1 {status} As asked\r\nConnection: close\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        self.stream.write_all(text.as_bytes())?;
        if !self.head {
            self.stream.write_all(body)?;
        }
        self.stream.flush()
    }

    fn text(&mut self, status: u16, kind: &str, body: &str) -> io::Result<()> {
        let headers =
            [("Content-Type", kind.to_owned()), ("Content-Length", body.len().to_string())];
        self.send(status, &headers, body.as_bytes())
    }

    /// What the hub itself answers: where the content is, and what it is.
    fn hub(mut self, asked: &Asked, state: &State) -> io::Result<()> {
        let trouble = state.inner().questions.pop_front();
        match trouble {
            Some(Trouble::Page) => return self.text(200, "text/html", PAGE),
            Some(Trouble::Json) => return self.text(200, "application/json", JSON),
            Some(Trouble::Status(status, headers)) => {
                return self.send(status, &headers, &[]);
            }
            Some(Trouble::Stalled(_)) => return self.stall(state),
            _ => {}
        }
        let parts: Vec<String> =
            asked.path.trim_start_matches('/').split('/').map(decoded).collect();
        let [owner, name, _, revision, path @ ..] = &parts[..] else {
            return self.text(404, "text/plain", "no");
        };
        let (repo, path) = (format!("{owner}/{name}"), path.join("/"));
        let inner = state.inner();
        if let Some(new) = inner.moved.get(&repo) {
            let location = asked.path.replacen(&repo, new, 1);
            drop(inner);
            return self.send(307, &[("Location", location), ("Content-Length", "0".into())], &[]);
        }
        let wanted = inner.token.as_ref().map(|token| format!("Bearer {token}"));
        if wanted.is_some() && asked.headers.get("authorization") != wanted.as_ref() {
            drop(inner);
            return self.send(403, &[("X-Error-Code", "GatedRepo".into())], &[]);
        }
        let versions = inner.files.get(&format!("{repo}/{path}"));
        let version = versions.and_then(|versions| match revision.as_str() {
            "main" => versions.last(),
            commit => versions.iter().rev().find(|(known, _)| known.as_str() <= commit),
        });
        let Some((commit, content)) = version.cloned() else {
            drop(inner);
            return self.send(404, &[("X-Error-Code", "EntryNotFound".into())], &[]);
        };
        let commit = if revision == "main" { commit } else { revision.clone() };
        let sha256 = hex::encode(Sha256::digest(&*content));
        let location = format!("{}/{repo}/{path}/{sha256}?signature=x", inner.content_at);
        drop(inner);
        let headers = [
            ("X-Repo-Commit", commit),
            ("X-Linked-ETag", format!("\"{sha256}\"")),
            ("X-Linked-Size", content.len().to_string()),
            ("Location", location),
            ("Content-Length", "0".into()),
        ];
        self.send(302, &headers, &[])
    }

    /// What the server for content answers.
    fn content(mut self, asked: &Asked, state: &State) -> io::Result<()> {
        let mut inner = state.inner();
        let sha256 = asked.path.split('?').next().unwrap_or_default().rsplit('/').next();
        let sha256 = sha256.unwrap_or_default().to_owned();
        let found = inner
            .files
            .values()
            .flatten()
            .find(|(_, content)| hex::encode(Sha256::digest(&***content)) == sha256);
        let content = found.map(|(_, content)| content.clone());
        let trouble = inner.answers.pop_front().or_else(|| inner.always.clone());
        drop(inner);
        let Some(content) = content else { return self.text(404, "text/plain", "no") };
        self.content_of(asked, state, &content, &sha256, trouble)
    }

    fn content_of(
        &mut self,
        asked: &Asked,
        state: &State,
        content: &[u8],
        sha256: &str,
        trouble: Option<Trouble>,
    ) -> io::Result<()> {
        let mut etag = format!("\"{}\"", &sha256[..32]);
        match &trouble {
            Some(Trouble::Page) => return self.text(200, "text/html; charset=utf-8", PAGE),
            Some(Trouble::Json) => return self.text(200, "application/json", JSON),
            Some(Trouble::Status(status, headers)) => return self.send(*status, headers, &[]),
            Some(Trouble::Replaced) => etag = "\"another\"".into(),
            _ => {}
        }
        let range = asked.headers.get("range").and_then(|range| {
            range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok()
        });
        let same = asked.headers.get("if-range").is_none_or(|wanted| *wanted == etag);
        let ignored = matches!(trouble, Some(Trouble::RangeIgnored));
        let range = range.filter(|_| same && !ignored);
        let from = range.unwrap_or(0);
        if from >= content.len() {
            return self.send(416, &[("Content-Range", format!("bytes */{}", content.len()))], &[]);
        }
        let mut body = content[from..].to_vec();
        let mut headers: Vec<(&str, String)> = vec![
            ("ETag", etag),
            ("Accept-Ranges", "bytes".into()),
            ("Content-Type", "application/octet-stream".into()),
        ];
        let last = content.len() - 1;
        if range.is_some() {
            let begin = if matches!(trouble, Some(Trouble::WrongRange)) { from - 1 } else { from };
            headers.push(("Content-Range", format!("bytes {begin}-{last}/{}", content.len())));
        }
        let length = match &trouble {
            Some(Trouble::WrongLength) => Some(body.len() - 1),
            Some(Trouble::TooMuch | Trouble::TruncatedWithoutLength(_)) => None,
            _ => Some(body.len()),
        };
        headers.extend(length.map(|length| ("Content-Length", length.to_string())));
        if matches!(trouble, Some(Trouble::Compressed)) {
            headers.push(("Content-Encoding", "gzip".into()));
        }
        let status = if range.is_some() { 206 } else { 200 };
        match trouble {
            Some(Trouble::Truncated(bytes) | Trouble::TruncatedWithoutLength(bytes)) => {
                self.send(status, &headers, &body[..bytes.min(body.len())])
            }
            Some(Trouble::Stalled(bytes)) => {
                self.send(status, &headers, &body[..bytes.min(body.len())])?;
                self.stall(state)
            }
            Some(Trouble::Damaged) => {
                let last = body.len() - 1;
                body[last] ^= 1;
                self.send(status, &headers, &body)
            }
            Some(Trouble::TooMuch) => {
                body.extend_from_slice(b"more");
                self.send(status, &headers, &body)
            }
            Some(Trouble::Slow(bytes, pause)) => {
                self.send(status, &headers, &[])?;
                for piece in body.chunks(bytes.max(1)) {
                    if state.ending() {
                        return Ok(());
                    }
                    self.stream.write_all(piece)?;
                    thread::sleep(pause);
                }
                Ok(())
            }
            _ => self.send(status, &headers, &body),
        }
    }

    /// Holds the connection, silently.
    fn stall(&self, state: &State) -> io::Result<()> {
        while !state.ending() {
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// A part of an address, as it was before it became one.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = part.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = match (first, tail) {
            (b'%', [a, b, ..]) => hex::decode([*a, *b]).ok(),
            _ => None,
        };
        match code {
            Some(code) => {
                bytes.extend(code);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
