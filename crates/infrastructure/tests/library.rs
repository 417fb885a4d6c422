//! Which models there are, and getting more, over the protocol.
#![allow(clippy::unwrap_used, reason = "what goes wrong here fails the test")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use correx_infrastructure::models::download::{Check, DownloadParts, Downloads};
use correx_infrastructure::models::testing::{TestHub, Trouble, small_model};
use correx_infrastructure::{Client, ConnectOptions, Engine, Holdings};
use correx_protocol::{
    ClientMessage, DownloadPhase, DownloadView, ErrorCode, LibraryView, ModelFileState, PartFate,
    ServerMessage,
};
use tokio::sync::broadcast;

use support::Scripted;

const MODEL: &str = "hf:ada/Modell-GGUF/m ü.gguf";

struct Given {
    hub: TestHub,
    dir: tempfile::TempDir,
    content: Vec<u8>,
}

fn given() -> Given {
    let (hub, dir) = (TestHub::start(), tempfile::tempdir().unwrap());
    let content = small_model(400_000);
    hub.put("ada/Modell-GGUF", "m ü.gguf", content.clone());
    Given { hub, dir, content }
}

impl Given {
    /// A front end of a program that starts now, or joins the one that runs.
    async fn client(&self) -> Client {
        let data_dir = self.dir.path().join("data");
        let (home, endpoint) = (self.dir.path().join("home"), self.hub.endpoint());
        let get = |key: &str| match key {
            "HOME" => Some(home.clone().into_os_string()),
            "HF_ENDPOINT" => Some(endpoint.clone().into()),
            _ => None,
        };
        let mut holdings = Holdings::with_environment(&data_dir, &get).unwrap();
        // The small files here have no vocabulary.
        let check: Arc<Check> = Arc::new(|gguf| match gguf.architecture() {
            Some("llama") => Ok(()),
            other => Err(format!("{other:?} is not supported")),
        });
        holdings.check = check.clone();
        holdings.downloads = Downloads::new(DownloadParts::new(
            holdings.downloads.hub().clone(),
            holdings.library.clone(),
            holdings.catalogue.clone(),
            check,
        ));
        let model = Scripted::new("Yes.", Duration::ZERO);
        let options = ConnectOptions {
            data_dir: Some(data_dir),
            engine: Some(Engine::ready(model)),
            holdings: Some(holdings),
            ..ConnectOptions::default()
        };
        Client::connect(options).await.unwrap()
    }

    fn put(&self, path: &str, content: &[u8]) -> PathBuf {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

async fn library(client: &Client) -> LibraryView {
    match client.request(ClientMessage::ReadLibrary).await {
        ServerMessage::Library(library) => library,
        other => panic!("{other:?}"),
    }
}

async fn start(client: &Client) -> DownloadView {
    let message = ClientMessage::StartDownload { model: MODEL.into(), revision: None };
    match client.request(message).await {
        ServerMessage::Download(download) => download,
        other => panic!("{other:?}"),
    }
}

/// What is told of the download until it is as wanted.
async fn until(
    pushes: &mut broadcast::Receiver<ServerMessage>,
    wanted: impl Fn(&DownloadView) -> bool,
) -> DownloadView {
    loop {
        let message = tokio::time::timeout(Duration::from_secs(20), pushes.recv()).await;
        if let ServerMessage::Download(download) = message.unwrap().unwrap()
            && wanted(&download)
        {
            return download;
        }
    }
}

fn path_of(download: &DownloadView) -> &Path {
    match &download.phase {
        DownloadPhase::Done { path, .. } => Path::new(path),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_model_is_downloaded_listed_and_deleted() {
    let given = given();
    let client = given.client().await;
    let mut pushes = client.subscribe();
    assert!(start(&client).await.is_active());
    let done = until(&mut pushes, |download| !download.is_active()).await;
    assert!(fs::read(path_of(&done)).unwrap() == given.content);

    let [installed] = &library(&client).await.installed[..] else { panic!() };
    assert_eq!(installed.id, "m-ü");
    assert_eq!(installed.state, ModelFileState::AsRecorded);
    assert_eq!(installed.about.as_ref().unwrap().architecture.as_deref(), Some("llama"));

    let plan = ClientMessage::PlanDeletion { id: "m-ü".into() };
    let ServerMessage::Deletion(plan) = client.request(plan).await else { panic!() };
    assert_eq!((plan.frees, plan.deletes.len()), (given.content.len() as u64, 2));
    assert!(path_of(&done).exists(), "only asked so far");
    support::done(&client, ClientMessage::DeleteModel { id: "m-ü".into() }).await;
    assert!(!path_of(&done).exists() && library(&client).await.installed.is_empty());
    let again = client.request(ClientMessage::DeleteModel { id: "m-ü".into() }).await;
    assert!(matches!(again, ServerMessage::Error(error) if error.code == ErrorCode::NotFound));
    client.shutdown().await;
}

#[tokio::test]
async fn a_guest_sees_and_steers_the_owners_download_and_the_next_program_goes_on() {
    let given = given();
    given.hub.trouble([Trouble::Slow(20_000, Duration::from_millis(20))]);
    let (owner, guest) = (given.client().await, given.client().await);
    let mut pushes = guest.subscribe();
    let id = start(&owner).await.id;
    until(&mut pushes, |download| download.done > 50_000).await;
    support::done(&guest, ClientMessage::PauseDownload { id: id.clone() }).await;
    let paused = until(&mut pushes, |download| !download.is_active()).await;
    assert_eq!(paused.phase, DownloadPhase::Paused);
    guest.shutdown().await;
    owner.shutdown().await;

    let later = given.client().await;
    let asked = given.hub.asked().len();
    let [left] = &library(&later).await.downloads[..] else { panic!() };
    assert_eq!((&left.id, &left.phase, left.done), (&id, &DownloadPhase::Paused, paused.done));
    assert_eq!(given.hub.asked().len(), asked, "starting asks nobody");
    let mut pushes = later.subscribe();
    let resumed = later.request(ClientMessage::ResumeDownload { id }).await;
    assert!(matches!(resumed, ServerMessage::Download(_)), "{resumed:?}");
    let done = until(&mut pushes, |download| !download.is_active()).await;
    assert!(fs::read(path_of(&done)).unwrap() == given.content);
    let range = given.hub.content_asked().last().unwrap().headers["range"].clone();
    assert_eq!(range, format!("bytes={}-", paused.done));
    later.shutdown().await;
}

#[tokio::test]
async fn a_download_that_ends_with_its_program_keeps_what_is_here() {
    let given = given();
    given.hub.trouble([Trouble::Slow(20_000, Duration::from_millis(20))]);
    let client = given.client().await;
    let mut pushes = client.subscribe();
    let id = start(&client).await.id;
    until(&mut pushes, |download| download.done > 50_000).await;
    client.shutdown().await;
    let later = given.client().await;
    assert!(library(&later).await.downloads[0].done > 50_000);
    let cancel = ClientMessage::CancelDownload { id, part: PartFate::Delete };
    support::done(&later, cancel).await;
    assert!(library(&later).await.downloads.is_empty());
    later.shutdown().await;
}

#[tokio::test]
async fn a_failed_download_says_what_was_kept_and_what_to_do() {
    let given = given();
    given.hub.trouble([Trouble::Page]);
    let client = given.client().await;
    let mut pushes = client.subscribe();
    start(&client).await;
    let failed = until(&mut pushes, |download| !download.is_active()).await;
    let DownloadPhase::Failed { error } = failed.phase else { panic!("{failed:?}") };
    assert_eq!(error.code, ErrorCode::Model);
    assert!(error.message.contains("a web page"), "{error}");
    assert!(error.kept.is_some() && error.hint.is_some());
    let message = ClientMessage::StartDownload { model: "nonsense".into(), revision: None };
    let ServerMessage::Error(error) = client.request(message).await else { panic!() };
    assert_eq!(error.code, ErrorCode::NotFound);
    client.shutdown().await;
}

#[tokio::test]
async fn what_others_hold_is_found_imported_and_only_forgotten() {
    let given = given();
    let path = given.put("home/.lmstudio/models/a/b/fremd ü.gguf", &small_model(1000));
    let client = given.client().await;
    let find = || client.request(ClientMessage::FindModels);
    let ServerMessage::FoundModels { models } = find().await else { panic!() };
    let own: Vec<_> = models
        .iter()
        .filter(|model| Path::new(&model.path).starts_with(given.dir.path()))
        .collect();
    let [found] = own[..] else { panic!("{own:?}") };
    assert_eq!((found.holder.as_str(), &found.installed), ("LM Studio", &None));

    let import = ClientMessage::ImportModel { path: found.path.clone(), name: None };
    let ServerMessage::Installed(imported) = client.request(import).await else { panic!() };
    assert_eq!(Path::new(&imported.path), path);
    let ServerMessage::FoundModels { models } = find().await else { panic!() };
    assert!(models.iter().any(|model| model.installed.as_ref() == Some(&imported.id)));

    support::done(&client, ClientMessage::DeleteModel { id: imported.id }).await;
    assert!(path.exists(), "what others hold is never deleted");
    assert!(given.hub.asked().is_empty(), "nothing of this asks anybody");

    fs::remove_file(&path).unwrap();
    let import = ClientMessage::ImportModel { path: found.path.clone(), name: None };
    let ServerMessage::Error(error) = client.request(import).await else { panic!() };
    assert_eq!(error.code, ErrorCode::NotFound);
    client.shutdown().await;
}
