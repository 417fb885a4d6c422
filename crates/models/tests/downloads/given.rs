//! A hub, an empty machine, and what is asked of them.

#![allow(clippy::unwrap_used)] // A test ends at the first surprise.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use correx_gguf::TensorType;
use correx_models::download::{
    Check, Disk, Download, DownloadError, DownloadParts, Downloads, Patience, Phase, RealDisk,
};
use correx_models::hub::{HubFile, HubSettings, Network, Token};
use correx_models::testing::{TestHub, small_model};
use correx_models::{Catalogue, Library};

/// Every test's model.
pub(crate) const REPO: &str = "ada/Modell-GGUF";
/// Its file; names may hold anything.
pub(crate) const FILE: &str = "q4/mein Modell ü.gguf";
/// Its size: several times the size of every buffer on the way.
pub(crate) const BYTES: usize = 600_000;

pub(crate) struct Given {
    pub(crate) hub: TestHub,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) content: Vec<u8>,
    pub(crate) settings: HubSettings,
    pub(crate) patience: Patience,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) check: Arc<Check>,
    /// The architectures that the check has seen.
    pub(crate) checked: Arc<Mutex<Vec<String>>>,
}

pub(crate) fn given() -> Given {
    let hub = TestHub::start();
    let dir = tempfile::Builder::new().prefix("ein Ordner ü ").tempdir().unwrap();
    let content = small_model(BYTES);
    hub.put(REPO, FILE, content.clone());
    let settings = HubSettings {
        endpoint: hub.endpoint(),
        token: None,
        cache: dir.path().join("hub"),
        network: Network::Direct,
    };
    let patience = Patience {
        connect: Duration::from_secs(5),
        stall: Duration::from_millis(300),
        tries: 4,
        progress: 50_000,
        first_wait: Duration::from_millis(5),
        longest_wait: Duration::from_millis(20),
        longest_asked_wait: Duration::from_secs(3),
        held: Duration::from_secs(5),
        sync_every: 20_000,
        spare_disk: 0,
    };
    let checked = Arc::new(Mutex::new(Vec::new()));
    let seen = checked.clone();
    let check: Arc<Check> = Arc::new(move |gguf| {
        let architecture = gguf.architecture().unwrap_or_default().to_owned();
        seen.lock().unwrap().push(architecture.clone());
        match gguf.quantization() {
            _ if architecture != "llama" => Err(format!("{architecture} is not supported")),
            Some(TensorType::F32) => Ok(()),
            other => Err(format!("{other:?} is not supported")),
        }
    });
    Given { hub, dir, content, settings, patience, disk: Arc::new(RealDisk), check, checked }
}

pub(crate) fn file() -> HubFile {
    HubFile::new(REPO, FILE, None).unwrap()
}

impl Given {
    pub(crate) fn token(mut self, token: &str) -> Self {
        self.settings.token = Token::new(token);
        self
    }

    pub(crate) fn library(&self) -> Library {
        Library::in_data_dir(&self.dir.path().join("data"))
    }

    /// As a program that has just started.
    pub(crate) fn downloads(&self) -> Downloads {
        let catalogue = Catalogue::embedded().unwrap();
        let parts = DownloadParts {
            patience: self.patience.clone(),
            disk: self.disk.clone(),
            ..DownloadParts::new(
                self.settings.clone(),
                self.library(),
                catalogue,
                self.check.clone(),
            )
        };
        Downloads::new(parts)
    }

    /// Downloads the file to whatever end it comes to.
    pub(crate) async fn ended(&self) -> Download {
        ended(&self.downloads(), &file()).await
    }

    /// Downloads the file, byte for byte.
    pub(crate) async fn whole(&self) -> Download {
        let download = self.ended().await;
        self.assert_whole(&download);
        download
    }

    pub(crate) fn assert_whole(&self, download: &Download) {
        let Phase::Done { path, .. } = &download.phase else { panic!("{download:?}") };
        assert!(fs::read(path).unwrap() == self.content, "the bytes are others");
        assert_eq!(self.left(), Vec::<PathBuf>::new(), "nothing lies about");
        assert_eq!(download.done, self.content.len() as u64);
    }

    /// Why it failed.
    pub(crate) async fn failed(&self) -> (DownloadError, Download) {
        let download = self.ended().await;
        match &download.phase {
            Phase::Failed { error } => (error.clone(), download.clone()),
            _ => panic!("{download:?}"),
        }
    }

    /// Files of ours that are not whole.
    pub(crate) fn left(&self) -> Vec<PathBuf> {
        let mut left = Vec::new();
        let mut open = vec![self.settings.cache.clone()];
        while let Some(folder) = open.pop() {
            let Ok(entries) = fs::read_dir(folder) else { continue };
            for path in entries.map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    open.push(path);
                } else if path.to_string_lossy().contains("correx") {
                    left.push(path);
                }
            }
        }
        left
    }

    /// From which bytes on the server for content was asked.
    pub(crate) fn ranges(&self) -> Vec<Option<u64>> {
        let from =
            |range: &String| range.trim_start_matches("bytes=").trim_end_matches('-').parse();
        self.hub
            .content_asked()
            .iter()
            .map(|asked| asked.headers.get("range").map(|range| from(range).unwrap()))
            .collect()
    }
}

/// Starts `file` and waits for its end.
pub(crate) async fn ended(downloads: &Downloads, file: &HubFile) -> Download {
    let mut watch = downloads.watch();
    let id = downloads.start(file).unwrap();
    until(&mut watch, &id, |download| !download.is_active()).await
}

/// Waits until `id` is as wanted.
pub(crate) async fn until(
    watch: &mut tokio::sync::watch::Receiver<Vec<Download>>,
    id: &str,
    wanted: impl Fn(&Download) -> bool,
) -> Download {
    let find = |list: &Vec<Download>| {
        list.iter().find(|download| download.id == id && wanted(download)).cloned()
    };
    let waiting = watch.wait_for(|list| find(list).is_some());
    let list = tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap();
    find(&list).unwrap()
}

/// A disk that holds so many bytes.
pub(crate) struct SmallDisk {
    pub(crate) left: AtomicU64,
    /// What it says it has, if that is more.
    pub(crate) says: AtomicU64,
}

impl SmallDisk {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { left: bytes.into(), says: bytes.into() }
    }
}

impl Disk for SmallDisk {
    fn free(&self, _: &Path) -> io::Result<u64> {
        Ok(self.says.load(Ordering::SeqCst).max(self.left.load(Ordering::SeqCst)))
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let left = self.left.load(Ordering::SeqCst);
        let fits = usize::try_from(left).unwrap().min(bytes.len());
        io::Write::write_all(file, &bytes[..fits])?;
        self.left.store(left - fits as u64, Ordering::SeqCst);
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}
