//! `correx artifacts`: what a run has produced.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use correx_events::SessionId;
use correx_protocol::{ErrorCode, ProtocolError, RunView};
use serde::Serialize;

use crate::args::ArtifactsArgs;
use crate::connection::Connection;
use crate::outcome::{Ending, Outcome};
use crate::output::{Format, Look, safe};

#[derive(Serialize)]
struct Artifact<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    session_id: &'a SessionId,
    stage_id: &'a str,
    name: &'a str,
    media_type: &'a str,
    hash: &'a str,
    attempt: u32,
    text: String,
}

/// Prints every artifact of a run: text under its name, or objects.
pub async fn print(
    connection: &Connection,
    session: &SessionId,
    run: &RunView,
) -> Result<(), ProtocolError> {
    let output = &connection.output;
    for artifact in read(connection, session, run).await? {
        if output.format() == Format::Json {
            output.object(&artifact);
        } else {
            let heading = format!("── {} ──", safe(artifact.name));
            output.result(&format!("\n{}\n", output.paint(&heading, Look::Bold)));
            output.result(artifact.text.trim_end());
        }
    }
    Ok(())
}

async fn read<'a>(
    connection: &Connection,
    session: &'a SessionId,
    run: &'a RunView,
) -> Result<Vec<Artifact<'a>>, ProtocolError> {
    let mut artifacts = Vec::new();
    for stage in &run.stages {
        for artifact in &stage.artifacts {
            artifacts.push(Artifact {
                kind: "artifact",
                session_id: session,
                stage_id: stage.stage_id.as_str(),
                name: &artifact.name,
                media_type: &artifact.media_type,
                hash: artifact.hash.as_str(),
                attempt: artifact.attempt,
                text: connection.blob(session, &artifact.hash).await?,
            });
        }
    }
    Ok(artifacts)
}

/// Prints a session's artifacts, or puts them into files.
pub async fn artifacts(connection: &Connection, args: ArtifactsArgs) -> Outcome {
    let session = connection.find(&args.session.session).await?;
    let view = connection.open_session(&session).await?;
    let Some(run) = view.run else {
        connection.output.say("this session is a plain chat: it has no artifacts");
        return Ok(Ending::Done);
    };
    if run.stages.iter().all(|stage| stage.artifacts.is_empty()) {
        connection.output.say("this run has produced nothing yet");
        return Ok(Ending::Done);
    }
    let Some(folder) = args.out else {
        print(connection, &session, &run).await?;
        return Ok(Ending::Done);
    };
    let failed = |path: &Path, error: &io::Error| {
        let message = format!("{} could not be written: {error}", path.display());
        ProtocolError::new(ErrorCode::Storage, message)
            .kept("The artifacts are kept in the session.")
    };
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    let artifacts = read(connection, &session, &run).await?;
    for artifact in artifacts {
        let wanted = file_name(artifact.name, artifact.media_type);
        let path = write_new(&folder, &wanted, artifact.text.as_bytes())
            .map_err(|error| failed(&folder.join(&wanted), &error))?;
        connection.output.result(&path.display().to_string());
    }
    Ok(Ending::Done)
}

/// Writes a file that was not there: `name`, or `name` with a number.
fn write_new(folder: &Path, name: &str, content: &[u8]) -> io::Result<PathBuf> {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, "txt"));
    let mut number = 1;
    loop {
        let name =
            if number == 1 { name.to_owned() } else { format!("{stem}-{number}.{extension}") };
        let path = folder.join(name);
        match File::options().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(content)?;
                file.sync_all()?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// A bare file name made from an artifact's.
fn file_name(name: &str, media_type: &str) -> String {
    let safe: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' })
        .collect();
    let extension = match media_type {
        "text/markdown" => "md",
        "application/json" => "json",
        _ => "txt",
    };
    format!("{safe}.{extension}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifacts_name_cannot_lead_out_of_the_folder() {
        assert_eq!(file_name("../../etc/x", "text/plain"), "------etc-x.txt");
        assert_eq!(file_name("mail", "text/markdown"), "mail.md");
    }

    #[test]
    fn a_file_that_is_there_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let first = write_new(dir.path(), "a.md", b"one").unwrap();
        let second = write_new(dir.path(), "a.md", b"two").unwrap();
        assert_eq!(fs::read(first).unwrap(), b"one");
        assert_eq!(second, dir.path().join("a-2.md"));
        assert_eq!(fs::read(second).unwrap(), b"two");
    }
}
