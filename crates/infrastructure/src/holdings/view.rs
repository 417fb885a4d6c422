//! Models as front ends see them.

use std::path::Path;

use correx_models::download::{Download, Leftover, Phase};
use correx_models::found::{About, Found};
use correx_models::library::{FileState, Installed, Origin, Removal};
use correx_models::{ModelEntry, ModelSource};
use correx_protocol::{
    DeletionView, DownloadPhase, DownloadView, FoundModel, InstalledModel, KnownModel,
    LeftoverView, ModelAbout, ModelFileState, ModelOrigin,
};

use super::failure;

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A model of the catalogue, and where it lies here.
pub(crate) fn known(model: &ModelEntry, path: Option<&Path>) -> KnownModel {
    let (source, downloadable) = match &model.source {
        ModelSource::Hub { repo } => (format!("hf:{repo}/{}", model.file), true),
        ModelSource::Pypi { package, .. } => (package.clone(), false),
    };
    KnownModel {
        id: model.id.clone(),
        name: model.name.clone(),
        class: model.class.name().into(),
        architecture: model.architecture.clone(),
        licence: model.licence.clone(),
        licence_url: model.licence_url.clone(),
        context_length: model.context_length,
        good_for: model.good_for.clone(),
        bytes: model.about_bytes(),
        memory: model.about_memory(),
        source,
        downloadable,
        path: path.map(shown),
    }
}

/// What a header says.
fn about(about: &About) -> ModelAbout {
    let About { architecture, quantization, parameters, context_length } = about.clone();
    ModelAbout { architecture, quantization, parameters, context_length }
}

/// A model that was downloaded or imported.
pub(crate) fn installed(installed: &Installed) -> InstalledModel {
    let first = installed.files.first();
    InstalledModel {
        id: installed.id.clone(),
        name: installed.name.clone(),
        path: installed.path().map(shown).unwrap_or_default(),
        bytes: installed.size_bytes(),
        origin: match &installed.origin {
            Origin::Hub { file, commit } => ModelOrigin::Hub {
                source: file.to_string(),
                commit: commit.clone(),
                sha256: first.map(|file| file.sha256.clone()).unwrap_or_default(),
            },
            Origin::Imported => ModelOrigin::Imported,
        },
        state: match installed.glance() {
            FileState::AsRecorded => ModelFileState::AsRecorded,
            FileState::Gone(_) => ModelFileState::Gone,
            FileState::Touched(_) | FileState::Changed(_) => ModelFileState::Touched,
        },
        about: installed
            .path()
            .and_then(|path| correx_gguf::inspect(path).ok())
            .map(|gguf| about(&About::of(&gguf))),
    }
}

/// A model that another program holds; `installed` is the id that it has here.
pub(crate) fn found(found: &Found, installed: Option<String>) -> FoundModel {
    FoundModel {
        holder: found.holder.name().into(),
        name: found.name.clone(),
        path: shown(&found.path),
        bytes: found.size_bytes,
        about: found.about.as_ref().ok().map(about),
        problem: found.about.as_ref().err().cloned(),
        installed,
    }
}

/// A download, as it stands.
pub(crate) fn download(download: &Download) -> DownloadView {
    let kept = || download.kept();
    DownloadView {
        id: download.id.clone(),
        model: download.model.clone(),
        name: download.name.clone(),
        phase: match &download.phase {
            Phase::Asking => DownloadPhase::Asking,
            Phase::Waiting => DownloadPhase::Waiting,
            Phase::Rereading => DownloadPhase::Rereading,
            Phase::Receiving => DownloadPhase::Receiving,
            Phase::Retrying { error, failed, of, wait } => DownloadPhase::Retrying {
                error: failure::download(error, kept()),
                failed: *failed,
                of: *of,
                wait_seconds: u32::try_from(wait.as_secs()).unwrap_or(u32::MAX),
            },
            Phase::Verifying => DownloadPhase::Verifying,
            Phase::Paused => DownloadPhase::Paused,
            Phase::Done { installed, path } => {
                DownloadPhase::Done { installed: installed.clone(), path: shown(path) }
            }
            Phase::Failed { error } => {
                DownloadPhase::Failed { error: failure::download(error, kept()) }
            }
        },
        done: download.done,
        total: download.total,
        speed: download.speed,
        remaining_seconds: download.remaining.map(|remaining| remaining.as_secs()),
        notice: download.notice.clone(),
    }
}

/// A part that nobody can go on with.
pub(crate) fn leftover(leftover: &Leftover) -> LeftoverView {
    LeftoverView { path: shown(&leftover.part), bytes: leftover.bytes }
}

/// What deleting a model would do.
pub(crate) fn deletion(removal: &Removal, used_by: Vec<String>) -> DeletionView {
    DeletionView {
        id: removal.installed.id.clone(),
        name: removal.installed.name.clone(),
        deletes: removal.deletes.iter().map(|path| shown(path)).collect(),
        frees: removal.frees,
        stays: removal.stays.clone(),
        used_by,
    }
}
