//! How a download stands.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::DownloadError;
use super::pace::Meter;
use crate::hub::HubFile;

/// The name of a download: what a person would write to start it.
pub type DownloadId = String;

/// One download, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// Its name.
    pub id: DownloadId,
    /// The model in the catalogue, if it is one of those.
    pub model: Option<String>,
    /// The model's name for people.
    pub name: String,
    /// What is downloaded.
    pub file: HubFile,
    /// What it is doing.
    pub phase: Phase,
    /// Bytes that are here.
    pub done: u64,
    /// Bytes in all, once the hub has said it.
    pub total: Option<u64>,
    /// Bytes per second over the last seconds.
    pub speed: Option<u64>,
    /// How long the rest takes at this speed.
    pub remaining: Option<Duration>,
    /// Something that a person should know, and that is no error.
    pub notice: Option<String>,
}

/// What a download is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It asks the hub about the file.
    Asking,
    /// Another program downloads the same file; its end is waited for.
    Waiting,
    /// What is here already is read again.
    Rereading,
    /// Bytes come.
    Receiving,
    /// A try failed; the next one comes after a pause.
    Retrying {
        /// Why.
        error: DownloadError,
        /// How many tries have failed.
        failed: u32,
        /// How many may.
        of: u32,
        /// The pause.
        wait: Duration,
    },
    /// The whole file is compared with what the hub announced.
    Verifying,
    /// A person stopped it; what is here is kept.
    Paused,
    /// It is here.
    Done {
        /// The record's id in the library.
        installed: String,
        /// The file to open.
        path: PathBuf,
    },
    /// It stopped by itself; what is here is kept, unless it is of no use.
    Failed {
        /// Why.
        error: DownloadError,
    },
}

impl Download {
    /// One that begins.
    pub(super) fn new(id: DownloadId, model: Option<String>, name: String, file: HubFile) -> Self {
        Self {
            id,
            model,
            name,
            file,
            phase: Phase::Asking,
            done: 0,
            total: None,
            speed: None,
            remaining: None,
            notice: None,
        }
    }

    /// Whether somebody is at work on it.
    pub fn is_active(&self) -> bool {
        !matches!(self.phase, Phase::Paused | Phase::Done { .. } | Phase::Failed { .. })
    }

    /// What is kept of it, for people; `None` when there is nothing to say.
    pub fn kept(&self) -> Option<String> {
        let of = self.total.map(|total| format!(" of {}", super::megabytes(total)));
        let kept = super::megabytes(self.done);
        (self.done > 0).then(|| format!("{kept}{} are here", of.unwrap_or_default()))
    }
}

/// Everything that is told of one download, to everybody who watches.
pub(super) struct Report {
    id: DownloadId,
    list: watch::Sender<Vec<Download>>,
    meter: Meter,
    /// Bytes of the files before the one that is being fetched.
    before: u64,
    told: Option<Instant>,
}

/// How often bytes are told.
const TELLING: Duration = Duration::from_millis(100);

impl Report {
    pub(super) fn new(id: DownloadId, list: watch::Sender<Vec<Download>>) -> Self {
        Self { id, list, meter: Meter::default(), before: 0, told: None }
    }

    pub(super) fn change(&mut self, change: impl FnOnce(&mut Download)) {
        let id = &self.id;
        self.list.send_if_modified(|list| {
            let Some(download) = list.iter_mut().find(|download| download.id == *id) else {
                return false;
            };
            let before = download.clone();
            change(download);
            *download != before
        });
    }

    /// It does something else now.
    pub(super) fn phase(&mut self, phase: Phase) {
        if phase != Phase::Receiving {
            self.meter.restart();
        }
        self.change(|download| {
            download.phase = phase;
            (download.speed, download.remaining) = (None, None);
        });
    }

    /// The files are so large together.
    pub(super) fn total(&mut self, total: u64) {
        self.change(|download| download.total = Some(total));
    }

    /// Something that a person should know.
    pub(super) fn notice(&mut self, notice: impl Into<String>) {
        let notice = notice.into();
        self.change(|download| download.notice = Some(notice));
    }

    /// A further file begins; those before it have `before` bytes.
    pub(super) fn file_begins(&mut self, before: u64) {
        self.before = before;
        self.meter.restart();
    }

    /// `bytes` of the current file are here.
    pub(super) fn bytes(&mut self, bytes: u64) {
        let (now, done) = (Instant::now(), self.before + bytes);
        self.meter.add(now, done);
        if self.told.is_some_and(|told| now.duration_since(told) < TELLING) {
            return;
        }
        self.told = Some(now);
        self.bytes_now(bytes);
    }

    /// The same, told at once.
    pub(super) fn bytes_now(&mut self, bytes: u64) {
        let done = self.before + bytes;
        let speed = self.meter.speed();
        let meter = self.meter.clone();
        self.change(|download| {
            download.done = done;
            download.speed = speed;
            download.remaining = download.total.and_then(|total| meter.remaining(total));
        });
    }
}
