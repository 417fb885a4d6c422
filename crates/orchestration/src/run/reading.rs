//! Files and folders as the text of a `read` stage.

use correx_documents::{folder, read_document, walk};
use correx_effects::{Decided, Kind, ReadTarget, Verdict};

use super::policy::Rules;
use crate::gather::Gathered;
use crate::inputs::MAX_INPUT_BYTES;

/// The text of what may be read. One file is its text; several, and folders, stand under headings,
/// with what could not be read named at the end. Blocks. Errors say what is wrong, for people.
pub(super) fn text(targets: &[ReadTarget], rules: &Rules) -> Result<String, String> {
    if let [target] = targets
        && target.kind() == Kind::File
    {
        let name = target.path().display().to_string();
        let bytes = target.read(MAX_INPUT_BYTES).map_err(|error| error.to_string())?;
        let document = read_document(&name, bytes)
            .map_err(|why| format!("{name} could not be read: {why}"))?;
        return Ok(document.text);
    }
    let mut gathered = Gathered::default();
    for target in targets {
        match target.kind() {
            Kind::Folder => folder_of(target, rules, &mut gathered)?,
            _ => {
                let name = target.path().display().to_string();
                let bytes = target.read(MAX_INPUT_BYTES).map_err(|error| error.to_string());
                gathered.add(&name, bytes);
            }
        }
        within_limit(&gathered)?;
    }
    if gathered.text.is_empty() {
        return Err(match gathered.not_read.is_empty() {
            true => "there is no file in what it reads".to_owned(),
            false => format!("nothing could be read: {}", gathered.not_read.join(", ")),
        });
    }
    Ok(gathered.finish().text)
}

fn folder_of(target: &ReadTarget, rules: &Rules, gathered: &mut Gathered) -> Result<(), String> {
    let root = target.path();
    let found = walk(root, folder::MAX_DEPTH, folder::MAX_FILES)
        .map_err(|error| format!("the folder {} could not be read: {error}", root.display()))?;
    gathered.not_read.extend(found.left_out);
    for file in found.files {
        // Policy may keep single files of an allowed folder back.
        let decided = rules.policy.decide_read(&root.join(&file), &rules.folders);
        gathered.add(&file.display().to_string(), bytes(&decided));
        within_limit(gathered)?;
    }
    Ok(())
}

fn bytes(decided: &Decided<ReadTarget>) -> Result<Vec<u8>, String> {
    match (decided.decision.verdict, decided.proposed()) {
        // What is asked about is asked about by its own path, never as a part of a folder.
        (Verdict::Allowed, Some(target)) => {
            target.read(MAX_INPUT_BYTES).map_err(|error| error.to_string())
        }
        _ => Err(format!("kept back by {}", decided.decision.rule)),
    }
}

fn within_limit(gathered: &Gathered) -> Result<(), String> {
    match gathered.text.len() as u64 > MAX_INPUT_BYTES {
        true => {
            Err(format!("what it reads is more than {MAX_INPUT_BYTES} bytes; read a part of it"))
        }
        false => Ok(()),
    }
}
