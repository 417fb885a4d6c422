//! Ollama's models: a manifest names the blobs of a model, and one of those is the GGUF file. Blobs
//! have no names of their own.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::{Candidate, Holder, walk};

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    media_type: String,
    digest: String,
}

/// The kind of layer that holds the weights.
const MODEL: &str = "application/vnd.ollama.image.model";
/// The longest manifest that is read.
const LONGEST: u64 = 1 << 20;

/// The models in `folder`, the one that Ollama calls `models`.
pub(super) fn models(folder: &Path) -> Vec<Candidate> {
    ["manifests", "manifests-v2"]
        .iter()
        .flat_map(|manifests| {
            let root = folder.join(manifests);
            let files = walk::files(&root);
            files.into_iter().filter_map(move |path| {
                let name = name(path.strip_prefix(&root).ok()?)?;
                Some((name, path))
            })
        })
        .filter_map(|(name, path)| {
            let small = path.metadata().is_ok_and(|about| about.len() <= LONGEST);
            let text = small.then(|| fs::read(&path).ok())??;
            let manifest: Manifest = serde_json::from_slice(&text).ok()?;
            let layer = manifest.layers.into_iter().find(|layer| layer.media_type == MODEL)?;
            let hash = layer.digest.strip_prefix("sha256:")?;
            let plain = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            let blobs = folder.join("blobs");
            // Older versions wrote the digest as it is.
            let path = [format!("sha256-{hash}"), format!("sha256:{hash}")]
                .into_iter()
                .map(|file| blobs.join(file))
                .find(|path| plain && path.is_file())?;
            Some(Candidate { holder: Holder::Ollama, name, path })
        })
        .collect()
}

/// `llama3:latest` for `registry.ollama.ai/library/llama3/latest`; other owners and hosts are named.
fn name(path: &Path) -> Option<String> {
    let parts: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    let (tag, rest) = parts.split_last()?;
    let own = |host: &str| host == "registry.ollama.ai" || host == "ollama.com";
    let rest = match rest {
        [host, library, rest @ ..] if own(host) && library == "library" => rest,
        [host, rest @ ..] if own(host) => rest,
        rest => rest,
    };
    (!rest.is_empty()).then(|| format!("{}:{tag}", rest.join("/")))
}
