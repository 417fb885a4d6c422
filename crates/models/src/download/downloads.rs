//! The handle to all downloads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::http::HubClient;
use super::leftover::leftovers;
use super::state::{Download, DownloadId, Phase, Report};
use super::transfer::{Check, Ended, Fetched, Transfer};
use super::{Disk, DownloadError, Patience, RealDisk};
use crate::hub::{HubFile, HubSettings};
use crate::library::{InstalledFile, Library, Origin};
use crate::{Catalogue, ModelEntry};

/// What downloads are made of.
pub struct DownloadParts {
    /// The hub.
    pub hub: HubSettings,
    /// Where finished models are entered.
    pub library: Library,
    /// The known models: a file of theirs gets their name.
    pub catalogue: Catalogue,
    /// Decides by a header whether a model can be used here.
    pub check: Arc<Check>,
    /// How patient.
    pub patience: Patience,
    /// Where bytes go.
    pub disk: Arc<dyn Disk>,
}

impl DownloadParts {
    /// Downloads from `hub` into `library`, checked by `check`, with everything else as usual.
    pub fn new(
        hub: HubSettings,
        library: Library,
        catalogue: Catalogue,
        check: Arc<Check>,
    ) -> Self {
        Self {
            hub,
            library,
            catalogue,
            check,
            patience: Patience::default(),
            disk: Arc::new(RealDisk),
        }
    }
}

/// What happens to what is here when a download is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepPart {
    /// It stays; the download can be resumed.
    Yes,
    /// It is deleted.
    No,
}

/// All downloads of this process. Each runs on a thread of its own, so that its disk work holds
/// nobody up. Clones share them.
#[derive(Clone)]
pub struct Downloads {
    inner: Arc<Inner>,
}

struct Inner {
    parts: DownloadParts,
    list: watch::Sender<Vec<Download>>,
    running: Mutex<HashMap<DownloadId, Running>>,
    /// How many run; their end can be waited for.
    count: watch::Sender<usize>,
}

struct Running {
    stop: CancellationToken,
    afterwards: KeepPart,
    /// Asked for again while it was being stopped.
    again: bool,
}

impl Downloads {
    /// No download yet. Opens no connection and touches no file.
    pub fn new(parts: DownloadParts) -> Self {
        let inner = Inner {
            parts,
            list: watch::Sender::new(Vec::new()),
            running: Mutex::default(),
            count: watch::Sender::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Where the hub is.
    pub fn hub(&self) -> &HubSettings {
        &self.inner.parts.hub
    }

    /// The file that `text` means: an id of the catalogue, `hf:OWNER/NAME/FILE.gguf`, or an
    /// address.
    pub fn resolve(&self, text: &str, revision: Option<&str>) -> Result<HubFile, DownloadError> {
        if let Some(entry) = self.inner.parts.catalogue.by_id(text) {
            let file =
                entry.hub_file().ok_or_else(|| DownloadError::NotOnHub(entry.name.clone()))?;
            return match revision {
                None => Ok(file),
                Some(revision) => HubFile::new(file.repo(), file.file(), Some(revision))
                    .map_err(|error| DownloadError::Name(error.to_string())),
            };
        }
        HubFile::parse(text, revision).map_err(|error| DownloadError::Name(error.to_string()))
    }

    /// Starts to download `file`, or goes on with it; the returned name is the same every time.
    pub fn start(&self, file: &HubFile) -> Result<DownloadId, DownloadError> {
        let id = file.to_string();
        let inner = &self.inner;
        // Also says at once that connections are switched off.
        let client = HubClient::new(&inner.parts.hub, &inner.parts.patience)?;
        let mut running = inner.running();
        if let Some(running) = running.get_mut(&id) {
            running.again = running.stop.is_cancelled();
            return Ok(id);
        }
        let stop = CancellationToken::new();
        inner.show(self.described(file, Phase::Asking));
        inner.count.send_modify(|count| *count += 1);
        let work =
            Work { inner: inner.clone(), id: id.clone(), file: file.clone(), stop: stop.clone() };
        let spawned =
            thread::Builder::new().name("correx-download".into()).spawn(move || work.run(client));
        match spawned {
            Ok(_) => {
                let afterwards = KeepPart::Yes;
                running.insert(id.clone(), Running { stop, afterwards, again: false });
                Ok(id)
            }
            Err(error) => {
                inner.count.send_modify(|count| *count -= 1);
                let error =
                    DownloadError::File { path: "a thread".into(), reason: error.to_string() };
                inner.set_phase(&id, Phase::Failed { error: error.clone() });
                Err(error)
            }
        }
    }

    /// Stops it for now; what is here is kept. What does not run stays as it is.
    pub fn pause(&self, id: &str) -> Result<(), DownloadError> {
        match self.inner.running().get_mut(id) {
            Some(running) => {
                running.again = false;
                running.stop.cancel();
                Ok(())
            }
            None => self.find(id).map(|_| ()),
        }
    }

    /// Goes on with one that was paused, failed, or left by an earlier program.
    pub fn resume(&self, id: &str) -> Result<DownloadId, DownloadError> {
        let file = self.find(id)?.file;
        self.start(&file)
    }

    /// Gives it up. It disappears from the list, unless what is here is kept.
    pub fn cancel(&self, id: &str, keep: KeepPart) -> Result<(), DownloadError> {
        if let Some(running) = self.inner.running().get_mut(id) {
            (running.afterwards, running.again) = (keep, false);
            running.stop.cancel();
            return Ok(());
        }
        let file = self.find(id)?.file;
        self.inner.give_up(id, &file, keep);
        Ok(())
    }

    /// How they stand: those of this process, then what was left by others.
    pub fn list(&self) -> Vec<Download> {
        let mut list = self.inner.list.borrow().clone();
        for left in leftovers(&self.inner.parts.hub.cache) {
            let Some(mark) = left.mark else { continue };
            let id = mark.model.to_string();
            match list.iter_mut().find(|download| download.id == id) {
                None => {
                    let mut download = self.described(&mark.model, Phase::Paused);
                    download.done = mark.trusted;
                    download.total = (mark.model.parts().len() == 1).then_some(mark.size);
                    list.push(download);
                }
                // A further file of a split model that nobody is at work on.
                Some(download) if download.total.is_none() && !download.is_active() => {
                    download.done += mark.trusted;
                }
                Some(_) => {}
            }
        }
        list
    }

    /// How those of this process stand, as it changes.
    pub fn watch(&self) -> watch::Receiver<Vec<Download>> {
        self.inner.list.subscribe()
    }

    /// Pauses everything and waits until nothing is at work.
    pub async fn shutdown(&self) {
        for running in self.inner.running().values_mut() {
            running.again = false;
            running.stop.cancel();
        }
        // Fails never: the sender is here.
        let _ = self.inner.count.subscribe().wait_for(|count| *count == 0).await;
    }

    fn find(&self, id: &str) -> Result<Download, DownloadError> {
        let found = self.list().into_iter().find(|download| download.id == id);
        found.ok_or_else(|| DownloadError::Unknown(id.into()))
    }

    fn described(&self, file: &HubFile, phase: Phase) -> Download {
        let entry = self.inner.parts.catalogue.by_hub_file(file);
        let name = entry.map_or_else(|| file.name().to_owned(), |entry| entry.name.clone());
        let mut download = Download::new(
            file.to_string(),
            entry.map(|entry| entry.id.clone()),
            name,
            file.clone(),
        );
        download.phase = phase;
        download
    }
}

impl Inner {
    fn running(&self) -> MutexGuard<'_, HashMap<DownloadId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts `download` into the list, in place of an earlier one by its name.
    fn show(&self, download: Download) {
        self.list.send_modify(|list| match list.iter_mut().find(|other| other.id == download.id) {
            Some(other) => *other = download,
            None => list.push(download),
        });
    }

    fn set_phase(&self, id: &str, phase: Phase) {
        Report::new(id.into(), self.list.clone()).phase(phase);
    }

    /// Nobody is at work on it any more.
    fn give_up(&self, id: &str, file: &HubFile, keep: KeepPart) {
        match keep {
            KeepPart::Yes => self.set_phase(id, Phase::Paused),
            KeepPart::No => {
                for left in leftovers(&self.parts.hub.cache) {
                    if left.mark.as_ref().is_some_and(|mark| mark.model == *file) {
                        let _ = left.remove();
                    }
                }
                self.list.send_modify(|list| list.retain(|download| download.id != id));
            }
        }
    }

    /// Enters a finished model into the library.
    fn enter(&self, file: &HubFile, fetched: &[Fetched]) -> Result<Phase, DownloadError> {
        let entry: Option<&ModelEntry> = self.parts.catalogue.by_hub_file(file);
        let name = entry.map_or_else(|| file.name().to_owned(), |entry| entry.name.clone());
        let commit = fetched.first().map(|file| file.commit.clone()).unwrap_or_default();
        let origin = Origin::Hub { file: file.clone(), commit };
        let files = fetched
            .iter()
            .map(|file| InstalledFile {
                path: file.pointer.clone(),
                size_bytes: file.size,
                sha256: file.sha256.clone(),
                etag: Some(file.etag.clone()),
                modified: None,
                ours: !file.was_here,
            })
            .collect();
        let wanted = entry.map(|entry| entry.id.as_str());
        let installed =
            self.parts.library.enter(wanted, &name, origin, files).map_err(|error| {
                DownloadError::File {
                    path: self.parts.library.folder().display().to_string(),
                    reason: error.to_string(),
                }
            })?;
        let path = installed.files.first().map(|file| file.path.clone()).unwrap_or_default();
        Ok(Phase::Done { installed: installed.id, path })
    }
}

struct Counted(watch::Sender<usize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// One download on its thread.
struct Work {
    inner: Arc<Inner>,
    id: DownloadId,
    file: HubFile,
    stop: CancellationToken,
}

impl Work {
    fn run(self, client: HubClient) {
        // Counted as long as it runs, however it ends.
        let _counted = Counted(self.inner.count.clone());
        let ended = self.transfer(client);
        let running = self.inner.running().remove(&self.id);
        match ended {
            Ok(fetched) => {
                let phase = self
                    .inner
                    .enter(&self.file, &fetched)
                    .unwrap_or_else(|error| Phase::Failed { error });
                self.inner.set_phase(&self.id, phase);
            }
            Err(Ended::Failed(error)) => self.inner.set_phase(&self.id, Phase::Failed { error }),
            Err(Ended::Stopped | Ended::Changed) => {
                let keep = running.as_ref().map_or(KeepPart::Yes, |running| running.afterwards);
                self.inner.give_up(&self.id, &self.file, keep);
                if running.is_some_and(|running| running.again) {
                    // What hinders it is shown in the list.
                    let _ = Downloads { inner: self.inner.clone() }.start(&self.file);
                }
            }
        }
    }

    fn transfer(&self, client: HubClient) -> Result<Vec<Fetched>, Ended> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| DownloadError::File {
            path: "the network".into(),
            reason: error.to_string(),
        })?;
        let parts = &self.inner.parts;
        let mut report = Report::new(self.id.clone(), self.inner.list.clone());
        let mut transfer = Transfer {
            client,
            settings: &parts.hub,
            patience: &parts.patience,
            disk: &*parts.disk,
            check: &*parts.check,
            stop: &self.stop,
            report: &mut report,
        };
        runtime.block_on(transfer.fetch(&self.file))
    }
}
