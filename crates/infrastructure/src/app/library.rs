//! Which models there are: known, installed, found, downloaded, imported, deleted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use correx_models::download::{Download, KeepPart, Leftover, leftovers};
use correx_models::library::LibraryError;
use correx_models::{DownloadError, found, nearest};
use correx_protocol::{
    DeletionView, DownloadView, ErrorCode, LibraryView, PartFate, ProtocolError, ServerMessage,
};

use super::App;
use crate::engine::{DEFAULT, unknown};
use crate::failure::Failure;
use crate::holdings::{self, Holdings};
use crate::pushes::Pushes;
use crate::settings::Settings;

impl App {
    /// Known, installed, being downloaded. Opens no connection.
    pub async fn read_library(&self) -> Result<ServerMessage, Failure> {
        let holdings = self.inner.holdings.clone();
        let library = reading(move || {
            let known = |model| {
                let model: &correx_models::ModelEntry = model;
                holdings::known(model, holdings.path_of(&model.id).as_deref())
            };
            LibraryView {
                catalogue: holdings.catalogue.models().iter().map(known).collect(),
                installed: holdings.library.list().iter().map(holdings::installed).collect(),
                downloads: holdings.downloads.list().iter().map(holdings::download).collect(),
                leftovers: orphans(&holdings).iter().map(holdings::leftover).collect(),
            }
        })
        .await?;
        Ok(ServerMessage::Library(library))
    }

    /// What other programs hold on this machine.
    pub async fn find_models(&self) -> Result<ServerMessage, Failure> {
        let holdings = self.inner.holdings.clone();
        let models = reading(move || {
            let installed = |path: &Path| holdings.library.by_path(path).map(|model| model.id);
            found::find(&holdings.places)
                .iter()
                .map(|found| holdings::found(found, installed(&found.path)))
                .collect()
        })
        .await?;
        Ok(ServerMessage::FoundModels { models })
    }

    /// Downloads a model, or goes on with it.
    pub async fn start_download(
        &self,
        model: &str,
        revision: Option<&str>,
    ) -> Result<ServerMessage, Failure> {
        let downloads = &self.inner.holdings.downloads;
        let known = self.inner.holdings.catalogue.models().iter();
        let offered = known.filter(|entry| entry.hub_file().is_some()).map(|entry| &*entry.id);
        // Whoever writes a repository does not mean an id.
        let meant = if model.contains(['/', ':']) { None } else { nearest(model, offered) };
        let file = downloads.resolve(model, revision).map_err(|error| match meant {
            Some(id) if matches!(error, DownloadError::Name(_)) => not_started(error)
                .hint(format!("Did you mean `{id}`? `correx model list` names the models.")),
            _ => not_started(error),
        })?;
        let id = downloads.start(&file).map_err(not_started)?;
        self.download_now(&id)
    }

    /// Goes on with a download.
    pub async fn resume_download(&self, id: &str) -> Result<ServerMessage, Failure> {
        let id = self.inner.holdings.downloads.resume(id).map_err(not_started)?;
        self.download_now(&id)
    }

    /// Stops a download for now.
    pub async fn pause_download(&self, id: &str) -> Result<ServerMessage, Failure> {
        self.inner.holdings.downloads.pause(id).map_err(not_started)?;
        Ok(ServerMessage::Done)
    }

    /// Gives a download up.
    pub async fn cancel_download(
        &self,
        id: &str,
        part: PartFate,
    ) -> Result<ServerMessage, Failure> {
        let keep = match part {
            PartFate::Keep => KeepPart::Yes,
            PartFate::Delete => KeepPart::No,
        };
        self.inner.holdings.downloads.cancel(id, keep).map_err(not_started)?;
        Ok(ServerMessage::Done)
    }

    /// Makes a file a model where it lies.
    pub async fn import_model(
        &self,
        path: String,
        name: Option<String>,
    ) -> Result<ServerMessage, Failure> {
        let holdings = self.inner.holdings.clone();
        let imported = reading(move || {
            let path = PathBuf::from(path);
            holdings
                .library
                .import(&path, name.as_deref(), &*holdings.check, &mut |_| true)
                .map(|installed| holdings::installed(&installed))
                .map_err(|error| holdings::import_failure(&error))
        });
        Ok(ServerMessage::Installed(imported.await??))
    }

    /// What deleting a model, or a leftover by its path, would do.
    pub async fn plan_deletion(&self, id: &str) -> Result<ServerMessage, Failure> {
        let (holdings, wanted) = (self.inner.holdings.clone(), id.to_owned());
        if let Some(left) = reading(move || orphan(&holdings, &wanted)).await? {
            let correx_protocol::LeftoverView { path, bytes } = holdings::leftover(&left);
            return Ok(ServerMessage::Deletion(DeletionView {
                id: id.to_owned(),
                name: "the rest of a download that nobody can go on with".into(),
                deletes: vec![path],
                frees: bytes,
                stays: Vec::new(),
                used_by: Vec::new(),
            }));
        }
        let (holdings, wanted) = (self.inner.holdings.clone(), id.to_owned());
        let removal = reading(move || {
            holdings
                .library
                .removal(&wanted)
                .map_err(|error| not_deleted(&holdings, &wanted, &error))
        })
        .await??;
        let used_by = self.users_of(id, removal.installed.path());
        Ok(ServerMessage::Deletion(holdings::deletion(&removal, used_by)))
    }

    /// Deletes a model, or a leftover by its path. One that is in use stays.
    pub async fn delete_model(&self, id: &str) -> Result<ServerMessage, Failure> {
        let (holdings, wanted) = (self.inner.holdings.clone(), id.to_owned());
        if let Some(left) = reading(move || orphan(&holdings, &wanted)).await? {
            let failed = |error: std::io::Error| {
                holdings::download_failure(
                    &DownloadError::File {
                        path: left.part.display().to_string(),
                        reason: error.to_string(),
                    },
                    None,
                )
            };
            left.remove().map_err(failed)?;
            return Ok(ServerMessage::Done);
        }
        let (holdings, wanted) = (self.inner.holdings.clone(), id.to_owned());
        let path = reading(move || {
            holdings.library.get(&wanted).map_err(|error| not_deleted(&holdings, &wanted, &error))
        })
        .await??
        .path()
        .map(Path::to_owned);
        if self.is_loaded(path.as_deref()) {
            let error = ProtocolError::new(
                ErrorCode::WrongState,
                "this model is in memory now, so it was not deleted",
            );
            return Err(error.kept("Nothing was changed.").hint("Use another model first.").into());
        }
        let (holdings, wanted) = (self.inner.holdings.clone(), id.to_owned());
        reading(move || {
            let removal = holdings.library.removal(&wanted)?;
            holdings.library.remove(&removal)
        })
        .await?
        .map_err(|error| holdings::library_failure(&error))?;
        Ok(ServerMessage::Done)
    }

    /// What names the model, in words.
    fn users_of(&self, id: &str, path: Option<&Path>) -> Vec<String> {
        let mut users = Vec::new();
        if self.is_loaded(path) {
            users.push("it is in memory now".to_owned());
        }
        let settings = Settings::load(&self.inner.data_dir).unwrap_or_default();
        if settings.model.names(&self.inner.data_dir, id, path) {
            users.push("the settings name it as the model to use".to_owned());
        }
        users
    }

    /// Whether the file at `path` is the model that is loaded.
    fn is_loaded(&self, path: Option<&Path>) -> bool {
        let view = self.inner.engine.model.borrow();
        let loaded = matches!(view.state, correx_protocol::ModelState::Ready);
        loaded && path.is_some_and(|path| same_file(path, Path::new(&view.location)))
    }

    fn download_now(&self, id: &str) -> Result<ServerMessage, Failure> {
        let list = self.inner.holdings.downloads.list();
        let found = list.iter().find(|download| download.id == id);
        let found = found.ok_or_else(|| not_started(DownloadError::Unknown(id.to_owned())))?;
        Ok(ServerMessage::Download(holdings::download(found)))
    }

    /// Tells front ends how downloads go on, as long as the application runs.
    pub(super) async fn follow_downloads(holdings: Holdings, pushes: Pushes) {
        let mut watch = holdings.downloads.watch();
        let mut told: BTreeMap<String, DownloadView> = BTreeMap::new();
        while watch.changed().await.is_ok() {
            let list: Vec<Download> = watch.borrow_and_update().clone();
            let gone: Vec<String> = told
                .keys()
                .filter(|id| !list.iter().any(|download| download.id == **id))
                .cloned()
                .collect();
            for id in gone {
                told.remove(&id);
                pushes.tell(ServerMessage::DownloadGone { id });
            }
            for view in list.iter().map(holdings::download) {
                if told.get(&view.id) != Some(&view) {
                    told.insert(view.id.clone(), view.clone());
                    pushes.tell(ServerMessage::Download(view));
                }
            }
        }
    }
}

/// Parts in the hub's cache of which nothing is known.
fn orphans(holdings: &Holdings) -> Vec<Leftover> {
    let mut found = leftovers(&holdings.downloads.hub().cache);
    found.retain(|left| left.mark.is_none());
    found
}

fn orphan(holdings: &Holdings, path: &str) -> Option<Leftover> {
    orphans(holdings).into_iter().find(|left| left.part == Path::new(path))
}

/// Why a model that the library does not know is not deleted.
fn not_deleted(holdings: &Holdings, wanted: &str, error: &LibraryError) -> ProtocolError {
    let entry = match wanted {
        DEFAULT => Some(holdings.catalogue.default_model()),
        id => holdings.catalogue.by_id(id),
    };
    let path = entry.and_then(|entry| holdings.path_of(&entry.id));
    let message = match (error, entry, path) {
        (LibraryError::Unknown(_), Some(entry), Some(_)) => {
            format!("{} came with the program, so it is not deleted", entry.name)
        }
        (LibraryError::Unknown(_), Some(entry), None) => {
            format!("{} is not here, so there is nothing to delete", entry.name)
        }
        (LibraryError::Unknown(_), None, _) if Path::new(wanted).is_file() => {
            let known = holdings.library.by_path(Path::new(wanted));
            let message = match known {
                Some(known) => format!("this file is the model {}", known.id),
                None => "this file is the person's own: Correx did not put it there, so it is not \
                         deleted"
                    .to_owned(),
            };
            return ProtocolError::new(ErrorCode::WrongState, message)
                .kept("Nothing was changed.")
                .hint("Models are deleted by their ids; `correx model list` names them.");
        }
        (LibraryError::Unknown(_), None, _) => {
            return unknown(wanted, &holdings.library).kept("Nothing was changed.");
        }
        _ => return holdings::library_failure(error),
    };
    ProtocolError::new(ErrorCode::WrongState, message).kept("Nothing was changed.")
}

fn same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

fn not_started(error: DownloadError) -> ProtocolError {
    holdings::download_failure(&error, Some("What was here before is as it was".into()))
}

/// Reads files away from the async threads.
async fn reading<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ProtocolError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| ProtocolError::new(ErrorCode::Internal, "reading files ended unexpectedly"))
}
