//! The models of this person: downloads, the library, what other programs hold.
//!
//! - this file: [`Holdings`], the pieces wired.
//! - [`view`]: as front ends see them.
//! - [`failure`]: why something about them was not done.

mod failure;
mod view;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use correx_models::download::{Check, DownloadParts};
use correx_models::found::Places;
use correx_models::{Catalogue, Downloads, HubSettings, Library, Locations};
use correx_protocol::{ErrorCode, ProtocolError};
use directories::BaseDirs;

pub(crate) use failure::{
    download as download_failure, import as import_failure, library as library_failure,
};
pub(crate) use view::{deletion, download, found, installed, known, leftover};

/// Everything that is known of models. Cheap to clone. Making it opens no connection and reads no
/// model.
#[derive(Clone)]
pub struct Holdings {
    /// The known models.
    pub catalogue: Catalogue,
    /// What was downloaded or imported.
    pub library: Library,
    /// Getting more.
    pub downloads: Downloads,
    /// Where other programs keep theirs.
    pub places: Places,
    /// Where models lie that came with the program.
    pub locations: Locations,
    /// Decides by a header whether a model can be used here.
    pub check: Arc<Check>,
}

impl Holdings {
    /// The holdings of a data directory, with the hub and the other programs where the environment
    /// says.
    pub fn of_data_dir(data_dir: &Path) -> Result<Self, ProtocolError> {
        Self::with_environment(data_dir, &|key| env::var_os(key))
    }

    /// The same with other variables.
    pub fn with_environment(
        data_dir: &Path,
        get: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, ProtocolError> {
        // A user without a home keeps everything in the data directory.
        let home = get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let home = home
            .or_else(|| BaseDirs::new().map(|dirs| dirs.home_dir().to_owned()))
            .unwrap_or_else(|| data_dir.to_owned());
        let hub = HubSettings::from_environment(get, &home);
        let places = Places::usual(get, &home, &hub);
        let catalogue = Catalogue::embedded()
            .map_err(|error| ProtocolError::new(ErrorCode::Internal, error.to_string()))?;
        let library = Library::in_data_dir(data_dir);
        let check: Arc<Check> = Arc::new(can_be_run);
        let parts = DownloadParts::new(hub, library.clone(), catalogue.clone(), check.clone());
        let program = env::current_exe().ok();
        let locations = Locations::usual(None, data_dir, program.as_deref());
        Ok(Self { catalogue, library, downloads: Downloads::new(parts), places, locations, check })
    }

    /// Where a model lies on this machine, by its id: downloaded or imported, or beside the program.
    pub fn path_of(&self, id: &str) -> Option<PathBuf> {
        if let Ok(installed) = self.library.get(id) {
            return installed.path().map(Path::to_owned);
        }
        self.locations.find(self.catalogue.by_id(id)?).ok()
    }
}

/// Whether a model can be run, by its header: every reason why not.
fn can_be_run(gguf: &correx_gguf::Gguf) -> Result<(), String> {
    correx_candle::support(gguf).map_err(|reasons| {
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        reasons.join("; ")
    })
}
