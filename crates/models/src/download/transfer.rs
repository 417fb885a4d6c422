//! One model, from the first question to the finished file.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use correx_gguf::{Gguf, Problem};
use tokio::time::{Instant as Deadline, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::answer::{self, Announced, Body};
use super::http::{self, Content, HubClient};
use super::pace::Tries;
use super::part::{self, Checked, Mark, Part};
use super::state::{Phase, Report};
use super::{Disk, DownloadError, Patience, leftover};
use crate::hub::{HubFile, HubSettings, Place};

/// Decides by a model's header whether it can be used here; says why not.
pub type Check = dyn Fn(&Gguf) -> Result<(), String> + Send + Sync;

/// When the header is looked at first; each further time at twice as many bytes.
const FIRST_LOOK: u64 = 64 << 10;
/// How many bytes show that a connection is alive.
const ALIVE: u64 = 4 << 10;
/// How often it may be found that the file has changed on the hub.
const CHANGES: u32 = 3;

/// What one download needs.
pub(super) struct Transfer<'a> {
    pub(super) client: HubClient,
    pub(super) settings: &'a HubSettings,
    pub(super) patience: &'a Patience,
    pub(super) disk: &'a dyn Disk,
    pub(super) check: &'a Check,
    pub(super) stop: &'a CancellationToken,
    pub(super) report: &'a mut Report,
}

/// A finished file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fetched {
    pub(super) pointer: PathBuf,
    pub(super) commit: String,
    pub(super) etag: String,
    pub(super) size: u64,
    pub(super) sha256: String,
    /// Whether it was here before.
    pub(super) was_here: bool,
}

/// Why a transfer ended before its end.
#[derive(Debug)]
pub(super) enum Ended {
    /// A person stopped it.
    Stopped,
    /// It failed.
    Failed(DownloadError),
    /// The hub has another content now.
    Changed,
}

impl From<DownloadError> for Ended {
    fn from(error: DownloadError) -> Self {
        Ended::Failed(error)
    }
}

/// A file that the hub has announced.
struct Wanted {
    path: String,
    announced: Announced,
    place: Place,
}

impl Wanted {
    /// Bytes of it that are here.
    fn here(&self) -> u64 {
        if is_whole(&self.place.blob, self.announced.size) {
            return self.announced.size;
        }
        match Mark::read(&self.place.mark) {
            Some(mark) if mark.etag == self.announced.etag => mark.trusted,
            _ => 0,
        }
    }

    fn mark(&self, file: &HubFile) -> Mark {
        let Announced { commit, etag, size } = &self.announced;
        Mark::new(file, &self.path, commit, etag, *size)
    }
}

fn is_whole(path: &Path, size: u64) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.len() == size)
}

impl Transfer<'_> {
    /// Fetches every file of `file`, and returns them in order.
    pub(super) async fn fetch(&mut self, file: &HubFile) -> Result<Vec<Fetched>, Ended> {
        for _ in 0..CHANGES {
            match self.fetch_as_announced(file).await {
                Err(Ended::Changed) => self.report.notice(CHANGED),
                ended => return ended,
            }
        }
        let what = "the file changes all the time".into();
        Err(DownloadError::Answer { host: self.settings.endpoint.clone(), what }.into())
    }

    async fn fetch_as_announced(&mut self, file: &HubFile) -> Result<Vec<Fetched>, Ended> {
        self.report.phase(Phase::Asking);
        let mut wanted: Vec<Wanted> = Vec::new();
        for path in file.parts() {
            // All files of one model come from one commit.
            let revision = wanted.first().map(|first| first.announced.commit.clone());
            let announced = self.announce(file, revision.as_deref(), &path).await?;
            let Announced { commit, etag, size } = &announced;
            let answer =
                |what: String| DownloadError::Answer { host: self.settings.endpoint.clone(), what };
            if *size == 0 {
                return Err(answer(format!("{path} is empty")).into());
            }
            let place = Place::new(&self.settings.cache, file, &path, commit, etag)
                .map_err(|error| answer(error.to_string()))?;
            if leftover::remove_superseded(&place, file, &path, etag) {
                self.report.notice(CHANGED);
            }
            wanted.push(Wanted { path, announced, place });
        }
        self.report.total(wanted.iter().map(|wanted| wanted.announced.size).sum());
        self.require_space(&wanted)?;
        let (mut fetched, mut before) = (Vec::new(), 0);
        for (index, wanted) in wanted.iter().enumerate() {
            self.report.file_begins(before);
            self.report.bytes_now(wanted.here());
            fetched.push(self.fetch_one(file, wanted, index == 0).await?);
            before += wanted.announced.size;
        }
        Ok(fetched)
    }

    async fn announce(
        &mut self,
        file: &HubFile,
        revision: Option<&str>,
        path: &str,
    ) -> Result<Announced, Ended> {
        let mut tries = Tries::default();
        let revision = revision.unwrap_or(file.revision());
        loop {
            let asking = self.client.announce(file, revision, path);
            let answer = tokio::select! {
                () = self.stop.cancelled() => return Err(Ended::Stopped),
                answer = asking => answer,
            };
            match answer {
                Ok(announced) => return Ok(announced),
                Err(error) => self.pause_after(&mut tries, 0, error).await?,
            }
            self.report.phase(Phase::Asking);
        }
    }

    /// A try failed at byte `at`: waits before the next, or fails for good.
    async fn pause_after(
        &mut self,
        tries: &mut Tries,
        at: u64,
        error: DownloadError,
    ) -> Result<(), Ended> {
        if !error.is_passing() {
            return Err(error.into());
        }
        let most = error.most_tries(self.patience.tries);
        let wait = tries.fail(at, error.asked_wait(), self.patience);
        let Some(wait) = wait.filter(|_| tries.failed() < most) else {
            let last = Box::new(error);
            return Err(match tries.failed() {
                0 | 1 => *last,
                tries => DownloadError::GaveUp { last, tries },
            }
            .into());
        };
        let (failed, of) = (tries.failed(), most);
        self.report.phase(Phase::Retrying { error, failed, of, wait });
        tokio::select! {
            () = self.stop.cancelled() => Err(Ended::Stopped),
            () = sleep(wait) => Ok(()),
        }
    }

    /// Fails unless the rest of all files has room.
    fn require_space(&self, wanted: &[Wanted]) -> Result<(), Ended> {
        let cache = &self.settings.cache;
        fs::create_dir_all(cache).map_err(|error| DownloadError::file(cache, &error))?;
        let kept = wanted.iter().map(Wanted::here).sum();
        let missing: u64 =
            wanted.iter().map(|wanted| wanted.announced.size.saturating_sub(wanted.here())).sum();
        if missing == 0 {
            return Ok(());
        }
        let needed = missing.saturating_add(self.patience.spare_disk);
        match self.disk.free(cache) {
            Ok(free) if free < needed => Err(DownloadError::DiskFull { needed, free, kept }.into()),
            // A file system that does not say how full it is may still have room.
            _ => Ok(()),
        }
    }

    async fn fetch_one(
        &mut self,
        file: &HubFile,
        wanted: &Wanted,
        first: bool,
    ) -> Result<Fetched, Ended> {
        let Wanted { place, announced, .. } = wanted;
        let broken = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| DownloadError::file(&path, &error)
        };
        let _lock = self.hold(wanted).await?;
        let found = |sha256: String, was_here: bool| Fetched {
            pointer: place.pointer.clone(),
            commit: announced.commit.clone(),
            etag: announced.etag.clone(),
            size: announced.size,
            sha256,
            was_here,
        };
        if let Some(sha256) = self.here_already(wanted)? {
            place
                .finish(&self.settings.cache, file, &announced.commit)
                .map_err(broken(&place.pointer))?;
            self.report.bytes_now(announced.size);
            return Ok(found(sha256, true));
        }
        let mut part = Part::open(place, wanted.mark(file), self.patience.sync_every)
            .map_err(broken(&place.part))?;
        let ended = self.receive_all(file, wanted, first, &mut part).await;
        let synced = part.sync().map_err(broken(&place.part));
        match ended {
            Ok(checked) => {
                synced?;
                drop(part);
                place
                    .finish(&self.settings.cache, file, &announced.commit)
                    .map_err(broken(&place.pointer))?;
                Ok(found(checked.sha256, false))
            }
            Err(ended) => {
                let useless = match &ended {
                    Ended::Failed(
                        DownloadError::Unsuitable { .. } | DownloadError::Different { .. },
                    )
                    | Ended::Changed => true,
                    // Nothing came: nothing is left lying.
                    _ => part.written() == 0,
                };
                let written = part.written();
                drop(part);
                if useless {
                    let _ = part::remove(place);
                }
                self.report.bytes_now(if useless { 0 } else { written });
                Err(ended)
            }
        }
    }

    /// The file's checksum when it is here already and is what the hub announced.
    fn here_already(&mut self, wanted: &Wanted) -> Result<Option<String>, Ended> {
        let Wanted { place, announced, .. } = wanted;
        let here = [&place.blob, &place.pointer];
        let Some(path) = here.into_iter().find(|path| is_whole(path, announced.size)) else {
            return Ok(None);
        };
        self.report.phase(Phase::Verifying);
        let mut on = |_| !self.stop.is_cancelled();
        let checked = part::check_file(path, &announced.etag, &mut on)
            .map_err(|error| DownloadError::file(path, &error))?
            .ok_or(Ended::Stopped)?;
        match checked.announced {
            Some((expected, found)) if expected != found => {
                self.report.notice(
                    "the file was here already, but damaged; it is downloaded again in its place",
                );
                Ok(None)
            }
            _ => Ok(Some(checked.sha256)),
        }
    }

    /// Waits until nobody else writes this file. The lock is let go when it is dropped.
    async fn hold(&mut self, wanted: &Wanted) -> Result<File, Ended> {
        let path = &wanted.place.lock;
        let failed = |error: io::Error| DownloadError::file(path, &error);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let lock =
            File::options().write(true).create(true).truncate(false).open(path).map_err(failed)?;
        let (mut last, mut since) = (0, Instant::now());
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(failed(error).into()),
            }
            let here = wanted.place.part.metadata().map_or(0, |part| part.len());
            if here != last {
                (last, since) = (here, Instant::now());
            }
            if since.elapsed() > self.patience.held {
                return Err(DownloadError::Held.into());
            }
            self.report.phase(Phase::Waiting);
            self.report.bytes(here);
            tokio::select! {
                () = self.stop.cancelled() => return Err(Ended::Stopped),
                () = sleep(Duration::from_millis(200)) => {}
            }
        }
    }

    /// Receives until the part is whole and is what the hub announced.
    async fn receive_all(
        &mut self,
        file: &HubFile,
        wanted: &Wanted,
        first: bool,
        part: &mut Part,
    ) -> Result<Checked, Ended> {
        let path = &wanted.place.part;
        let broken = |error: io::Error| DownloadError::file(path, &error);
        self.report.phase(Phase::Rereading);
        let report = &mut *self.report;
        let stop = self.stop;
        let mut tell = |bytes| {
            report.bytes(bytes);
            !stop.is_cancelled()
        };
        if !part.sum_up(&mut tell).map_err(broken)? {
            return Err(Ended::Stopped);
        }
        let mut look = Look { next: FIRST_LOOK, first, seen: false };
        let (mut tries, mut wrong) = (Tries::default(), 0);
        loop {
            if part.written() < part.size() {
                self.report.phase(Phase::Receiving);
                self.report.bytes_now(part.written());
                match self.receive(file, wanted, part, &mut look).await {
                    Ok(()) => {}
                    Err(Ended::Failed(error)) if error.is_passing() => {
                        part.sync().map_err(broken)?;
                        self.pause_after(&mut tries, part.written(), error).await?;
                    }
                    Err(ended) => return Err(ended),
                }
                continue;
            }
            self.look(wanted, part, &mut look)?;
            self.report.phase(Phase::Verifying);
            self.report.bytes_now(part.written());
            part.sync().map_err(broken)?;
            let checked = part.check();
            match &checked.announced {
                Some((expected, found)) if expected != found => {
                    wrong += 1;
                    if wrong > 1 {
                        let (expected, found) = (expected.clone(), found.clone());
                        let what = "checksum";
                        return Err(DownloadError::Different { what, expected, found }.into());
                    }
                    self.report.notice("what came was damaged; it is downloaded once more");
                    part.restart().map_err(broken)?;
                    look = Look { next: FIRST_LOOK, first, seen: false };
                    tries = Tries::default();
                }
                Some(_) => return Ok(checked),
                None => {
                    self.report.notice(
                        "the server gave no checksum; the file's own was recorded, and is checked \
                         from now on",
                    );
                    return Ok(checked);
                }
            }
        }
    }

    /// One answer of the server, until it ends.
    async fn receive(
        &mut self,
        file: &HubFile,
        wanted: &Wanted,
        part: &mut Part,
        look: &mut Look,
    ) -> Result<(), Ended> {
        let Wanted { path, announced, place } = wanted;
        let broken = |error: io::Error| DownloadError::file(&place.part, &error);
        let from = part.written();
        let asking = self.client.content(file, path, &announced.commit, from, part.sent_as());
        let content = tokio::select! {
            () = self.stop.cancelled() => return Err(Ended::Stopped),
            content = asking => content?,
        };
        let Content { mut response, host, announced: again } = content;
        if again.is_some_and(|again| again.etag != announced.etag) {
            return Err(Ended::Changed);
        }
        if response.status() == reqwest::StatusCode::RANGE_NOT_SATISFIABLE {
            // The server knows nothing behind what is here, yet it should: begin again.
            part.restart().map_err(broken)?;
            let reason = "it has no further bytes".into();
            return Err(DownloadError::BrokeOff { host, reason }.into());
        }
        let headers = response.headers().clone();
        let body = answer::body(response.status(), &headers, from, announced.size, &host)?;
        // The first bytes are held back until it is seen what they are.
        let begins = from == 0 || body == Body::FromTheBeginning;
        let mut start: Option<Vec<u8>> = begins.then(Vec::new);
        let (mut deadline, mut alive) = (Deadline::now() + self.patience.stall, 0);
        loop {
            let next = tokio::select! {
                () = self.stop.cancelled() => return Err(Ended::Stopped),
                next = timeout_at(deadline, response.chunk()) => next,
            };
            let chunk = match next {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    let reason = http::innermost(&error);
                    return Err(DownloadError::BrokeOff { host, reason }.into());
                }
                Err(_) => {
                    let silence = self.patience.stall;
                    return Err(DownloadError::Stalled { host, silence }.into());
                }
            };
            alive += chunk.len() as u64;
            if alive >= ALIVE {
                (deadline, alive) = (Deadline::now() + self.patience.stall, 0);
            }
            let held;
            let bytes = match &mut start {
                None => &chunk[..],
                Some(start) => {
                    start.extend_from_slice(&chunk);
                    if start.len() < 4 {
                        continue;
                    }
                    held = std::mem::take(start);
                    &held[..]
                }
            };
            if start.take().is_some() {
                begin(part, bytes, &headers, &host).map_err(|ended| ended.or(broken))?;
            }
            if part.written() + bytes.len() as u64 > part.size() {
                let what = "it sends more than the hub announced".into();
                return Err(DownloadError::Answer { host, what }.into());
            }
            if let Err(error) = part.append(bytes, self.disk) {
                return Err(self.full_or_broken(part, place, &error).into());
            }
            self.report.bytes(part.written());
            if part.written() >= look.next {
                self.look(wanted, part, look)?;
            }
        }
        if let Some(start) = start
            && !start.is_empty()
        {
            begin(part, &start, &headers, &host).map_err(|ended| ended.or(broken))?;
        }
        if part.written() < part.size() {
            let reason = format!("it ended at byte {} of {}", part.written(), part.size());
            return Err(DownloadError::BrokeOff { host, reason }.into());
        }
        Ok(())
    }

    fn full_or_broken(&self, part: &Part, place: &Place, error: &io::Error) -> DownloadError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DownloadError::DiskFull {
                needed: part.size() - part.written(),
                free: self.disk.free(&self.settings.cache).unwrap_or(0),
                kept: part.written(),
            },
            _ => DownloadError::file(&place.part, error),
        }
    }

    /// Looks at the header, if enough of it is here.
    fn look(&self, wanted: &Wanted, part: &Part, look: &mut Look) -> Result<(), Ended> {
        if look.seen {
            return Ok(());
        }
        let path = &wanted.place.part;
        let unsuitable =
            |reason: String| DownloadError::Unsuitable { reason, seen: part.written() };
        let file = File::open(path).map_err(|error| DownloadError::file(path, &error))?;
        match beginning(io::BufReader::new(file), part.size()) {
            Ok(Some(gguf)) => {
                look.seen = true;
                // Only the first file of several says what the model is.
                if look.first {
                    (self.check)(&gguf).map_err(unsuitable)?;
                }
                Ok(())
            }
            Ok(None) if part.written() >= part.size() => {
                Err(unsuitable("its header does not end".into()).into())
            }
            Ok(None) => {
                look.next = look.next.saturating_mul(2).min(part.size());
                Ok(())
            }
            Err(problem) => Err(unsuitable(problem.to_string()).into()),
        }
    }
}

const CHANGED: &str = "the file has changed on the hub since the download began; it starts again";

/// The header of a file of which only the beginning is here; `None` when the header goes on behind it.
fn beginning(source: impl io::Read + io::Seek, size: u64) -> Result<Option<Gguf>, Problem> {
    match Gguf::read(source, size) {
        Ok(gguf) => Ok(Some(gguf)),
        Err(Problem::Unreadable(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// When the header is looked at.
struct Look {
    next: u64,
    /// Whether this is the model's first file.
    first: bool,
    seen: bool,
}

/// Why a body could not begin.
enum NoBeginning {
    NotAModel(DownloadError),
    Broken(io::Error),
}

impl NoBeginning {
    fn or(self, broken: impl Fn(io::Error) -> DownloadError) -> DownloadError {
        match self {
            NoBeginning::NotAModel(error) => error,
            NoBeginning::Broken(error) => broken(error),
        }
    }
}

/// A body comes from its beginning: only a model may take the place of what is here.
fn begin(
    part: &mut Part,
    start: &[u8],
    headers: &reqwest::header::HeaderMap,
    host: &str,
) -> Result<(), NoBeginning> {
    if let Some(what) = answer::no_model(start, headers) {
        let host = host.to_owned();
        return Err(NoBeginning::NotAModel(DownloadError::NotAModel { host, what }));
    }
    if part.written() > 0 {
        part.restart().map_err(NoBeginning::Broken)?;
    }
    part.set_sent_as(answer::strong_etag(headers));
    Ok(())
}
