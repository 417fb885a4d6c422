//! `correx model list|find|download|import|delete`: which models there are, and getting more.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use correx_candle::memory::{MachineMemory, Overcommit, choose_context};
use correx_candle::{compute_threads, memory_plan};
use correx_infrastructure::models::ABOUT_CONTEXT;
use correx_infrastructure::models::download::megabytes;
use correx_protocol::{
    ClientMessage, DeletionView, DownloadPhase, DownloadView, FoundModel, InstalledModel,
    KnownModel, LibraryView, ModelAbout, ModelChoice, ModelFileState, ModelOrigin, ProtocolError,
    ServerMessage,
};
use indicatif::ProgressBar;
use tokio::sync::broadcast::error::RecvError;

use crate::args::{DeleteArgs, DownloadArgs, ImportArgs};
use crate::connection::Connection;
use crate::outcome::{Ending, Outcome, input, unexpected};
use crate::output::{Format, Look, on_one_line, safe};
use crate::terminal::Lines;

async fn library(connection: &Connection) -> Result<LibraryView, ProtocolError> {
    match connection.ask(ClientMessage::ReadLibrary).await? {
        ServerMessage::Library(library) => Ok(library),
        _ => Err(unexpected()),
    }
}

/// The models that `use` takes, and which of them is used.
async fn choices(connection: &Connection) -> Result<Vec<ModelChoice>, ProtocolError> {
    match connection.ask(ClientMessage::ListModels).await? {
        ServerMessage::Models { models } => Ok(models),
        _ => Err(unexpected()),
    }
}

async fn found(connection: &Connection) -> Result<Vec<FoundModel>, ProtocolError> {
    match connection.ask(ClientMessage::FindModels).await? {
        ServerMessage::FoundModels { models } => Ok(models),
        _ => Err(unexpected()),
    }
}

/// Shows the catalogue, what is here, what is being downloaded, and what others hold.
pub async fn list(connection: &Connection) -> Outcome {
    let (library, found) = (library(connection).await?, found(connection).await?);
    let choices = choices(connection).await?;
    let output = &connection.output;
    if output.format() == Format::Json {
        #[derive(serde::Serialize)]
        struct All {
            #[serde(flatten)]
            library: LibraryView,
            found: Vec<FoundModel>,
            choices: Vec<ModelChoice>,
        }
        output.object(&All { library, found, choices });
        return Ok(Ending::Done);
    }
    let LibraryView { catalogue, installed, downloads, leftovers } = library;
    let heading = |text: &str| output.result(&output.paint(text, Look::Bold));
    let here: Vec<&ModelChoice> = choices.iter().filter(|choice| choice.path.is_some()).collect();
    if !here.is_empty() {
        heading("Here (`correx model use ID|FILE`; `*` is used now)");
    }
    for choice in here {
        let record = installed.iter().find(|model| model.id == choice.id);
        // The one that comes with the program.
        let is_default = |model: &KnownModel| model.id == choice.id && !model.downloadable;
        let is_default = catalogue.iter().any(is_default);
        output.result(&safe(&choice_row(choice, record, is_default)));
    }
    // What is recorded and not there any more is no choice.
    let gone = |model: &&InstalledModel| !choices.iter().any(|choice| choice.id == model.id);
    for model in installed.iter().filter(gone) {
        output.result(&safe(&installed_row(model)));
    }
    if !downloads.is_empty() {
        heading("Downloads");
        downloads.iter().for_each(|download| output.result(&safe(&download_row(download))));
    }
    let elsewhere: Vec<&FoundModel> =
        found.iter().filter(|model| model.installed.is_none() && model.problem.is_none()).collect();
    if !elsewhere.is_empty() {
        heading("Held by other programs (`correx model import FILE` uses one where it lies)");
        elsewhere.iter().for_each(|model| output.result(&safe(&found_row(model))));
    }
    if !leftovers.is_empty() {
        heading("Rests of downloads that nobody can go on with (`correx model delete FILE`)");
        for left in &leftovers {
            output.result(&safe(&format!("  {}  {}", left.path, megabytes(left.bytes))));
        }
    }
    heading("Catalogue (`correx model download ID`)");
    // What came with the program stands above.
    let offered = catalogue.iter().filter(|model| model.downloadable || model.path.is_none());
    offered.for_each(|model| output.result(&safe(&known_row(model))));
    Ok(Ending::Done)
}

fn choice_row(choice: &ModelChoice, record: Option<&InstalledModel>, is_default: bool) -> String {
    let mark = if choice.in_use { "*" } else { " " };
    match record {
        Some(record) => format!("{mark}{}", &installed_row(record)[1..]),
        None => format!(
            "{mark} {}  {}{}\n      {}",
            on_one_line(&choice.id),
            megabytes(choice.bytes),
            if is_default { ", the default" } else { "" },
            on_one_line(choice.path.as_deref().unwrap_or_default())
        ),
    }
}

fn installed_row(model: &InstalledModel) -> String {
    let state = match model.state {
        ModelFileState::AsRecorded => "",
        ModelFileState::Gone => "  (its file is gone)",
        ModelFileState::Touched => "  (its file was changed since)",
    };
    let origin = match &model.origin {
        ModelOrigin::Hub { source, .. } => source,
        ModelOrigin::Imported => "imported",
    };
    format!(
        "  {}  {}{}{state}\n      {origin}, {}",
        model.id,
        megabytes(model.bytes),
        described(model.about.as_ref()),
        on_one_line(&model.path)
    )
}

fn known_row(model: &KnownModel) -> String {
    let about = |bytes: Option<u64>| bytes.map_or_else(|| "?".into(), megabytes);
    let here = match (&model.path, model.downloadable) {
        (Some(_), _) => ", here",
        (None, true) => "",
        (None, false) => ", comes with `cargo xtask setup`",
    };
    format!(
        "  {}  {}, memory about {} for {ABOUT_CONTEXT} tokens, made for {} tokens, {}{here}\n      {}: {}",
        model.id,
        about(model.bytes),
        about(model.memory),
        model.context_length,
        model.licence,
        model.class,
        model.good_for
    )
}

fn found_row(model: &FoundModel) -> String {
    let problem = model.problem.as_ref().map(|problem| format!("  ({problem})"));
    format!(
        "  {}: {}  {}{}{}\n      {}",
        model.holder,
        on_one_line(&model.name),
        megabytes(model.bytes),
        described(model.about.as_ref()),
        on_one_line(&problem.unwrap_or_default()),
        on_one_line(&model.path)
    )
}

fn described(about: Option<&ModelAbout>) -> String {
    let Some(about) = about else { return String::new() };
    let parts = [
        about.architecture.clone(),
        about.quantization.clone(),
        about.context_length.map(|tokens| format!("{tokens} tokens")),
    ];
    parts.into_iter().flatten().map(|part| format!(", {part}")).collect()
}

fn download_row(download: &DownloadView) -> String {
    let of = download.total.map(|total| format!(" of {}", megabytes(total)));
    let state = match &download.phase {
        DownloadPhase::Paused => "paused; goes on with `correx model download`",
        DownloadPhase::Failed { error } => &error.message,
        DownloadPhase::Done { .. } => "here",
        _ => "going on",
    };
    let done = megabytes(download.done);
    format!("  {}  {done}{}: {state}", download.id, of.unwrap_or_default())
}

/// Shows what other programs hold.
pub async fn find(connection: &Connection) -> Outcome {
    let models = found(connection).await?;
    let output = &connection.output;
    if output.format() == Format::Json {
        models.iter().for_each(|model| output.object(model));
        return Ok(Ending::Done);
    }
    if models.is_empty() {
        output.say("No other program holds models in the places that Correx knows.");
    }
    for model in &models {
        output.result(&safe(&found_row(model)));
    }
    if models.iter().any(|model| model.installed.is_none() && model.problem.is_none()) {
        output.say("`correx model import FILE` uses one where it lies; nothing is copied.");
    }
    Ok(Ending::Done)
}

/// Imports a file where it lies.
pub async fn import(connection: &Connection, args: ImportArgs) -> Outcome {
    let path = std::path::absolute(&args.file)
        .ok()
        .and_then(|path| path.into_os_string().into_string().ok())
        .ok_or_else(|| input(format!("{} is no path that can be sent", args.file.display())))?;
    foretell(connection, Path::new(&path));
    let message = ClientMessage::ImportModel { path, name: args.name };
    let ServerMessage::Installed(model) = connection.ask(message).await? else {
        return Err(unexpected());
    };
    let output = &connection.output;
    match output.format() {
        Format::Json => output.object(&model),
        Format::Text => output.result(&safe(&model.id)),
    }
    output.say(&format!("It stays where it is: {}", on_one_line(&model.path)));
    Ok(Ending::Done)
}

/// Says how much is read, and when the model will not fit, before the time is spent. What is wrong
/// with the file is said by whoever imports it.
fn foretell(connection: &Connection, path: &Path) {
    let Ok(gguf) = correx_gguf::inspect(path) else { return };
    if gguf.file_bytes > LONG_TO_READ {
        let bytes = megabytes(gguf.file_bytes);
        connection
            .output
            .say(&format!("reading {bytes} to be able to tell later whether they changed"));
    }
    let refused = memory_plan(&gguf, compute_threads()).ok().and_then(|plan| {
        choose_context(&plan, None, MachineMemory::now(), Overcommit::Refuse).err()
    });
    if let Some(refused) = refused {
        connection.output.say(&format!("note: the model does not fit here: {refused}"));
    }
}

/// Files that take more than a moment to read, in bytes.
const LONG_TO_READ: u64 = 500_000_000;

/// Deletes a model, after showing what that means.
pub async fn delete(connection: &Connection, args: DeleteArgs) -> Outcome {
    // A rest of a download is named by its path.
    let path = std::path::absolute(&args.model).ok().filter(|path| path.is_file());
    let id = path.map_or(args.model, |path| path.to_string_lossy().into_owned());
    let message = ClientMessage::PlanDeletion { id: id.clone() };
    let ServerMessage::Deletion(plan) = connection.ask(message).await? else {
        return Err(unexpected());
    };
    let output = &connection.output;
    if !args.yes {
        if output.format() == Format::Json || !std::io::stdin().is_terminal() {
            output.object(&plan);
            return Err(input("nothing was deleted, because nobody can be asked")
                .hint("`--yes` deletes without asking."));
        }
        tell_plan(connection, &plan);
        output.prompt("Delete it? [y/N] ");
        let answer = Lines::standard_input().next().await.unwrap_or_default();
        if !matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            output.say("Nothing was deleted.");
            return Ok(Ending::Failed);
        }
    }
    connection.act(ClientMessage::DeleteModel { id }).await?;
    match output.format() {
        Format::Json => output.object(&plan),
        Format::Text if plan.deletes.is_empty() => output.say("Forgotten; its file stays."),
        Format::Text => output.say(&format!("Deleted; {} are free now.", megabytes(plan.frees))),
    }
    Ok(Ending::Done)
}

fn tell_plan(connection: &Connection, plan: &DeletionView) {
    let say = |text: String| connection.output.say(&safe(&text));
    say(format!("{}:", plan.name));
    plan.deletes.iter().for_each(|path| say(format!("  is deleted: {path}")));
    if plan.deletes.is_empty() {
        say("  is only forgotten: no file is deleted".into());
    }
    plan.stays.iter().for_each(|stays| say(format!("  {stays}")));
    plan.used_by.iter().for_each(|user| say(format!("  note: {user}")));
    if plan.frees > 0 {
        say(format!("  {} become free", megabytes(plan.frees)));
    }
}

/// How long nothing may be heard before it is asked again how the download stands.
const SILENCE: Duration = Duration::from_secs(2);

/// Downloads a model, or goes on with it; Ctrl-C pauses.
pub async fn download(connection: &Connection, args: DownloadArgs) -> Outcome {
    let mut told = connection.pushes();
    let start =
        ClientMessage::StartDownload { model: args.model.clone(), revision: args.revision.clone() };
    let ServerMessage::Download(mut view) = connection.ask(start.clone()).await? else {
        return Err(unexpected());
    };
    let id = view.id.clone();
    let mut display = Display::new(connection);
    // How often it was started; another process may have ended in between.
    let mut starts = 1;
    loop {
        display.show(&view);
        match &view.phase {
            DownloadPhase::Done { .. } => {
                display.end();
                return Ok(done(connection, &view));
            }
            DownloadPhase::Failed { error } => {
                display.end();
                return Err(error.clone());
            }
            // Not by us: whoever had it ended. It goes on here.
            DownloadPhase::Paused if starts < 5 => {
                starts += 1;
                tokio::time::sleep(Duration::from_millis(300)).await;
                if let ServerMessage::Download(now) = connection.ask(start.clone()).await? {
                    view = now;
                    continue;
                }
                return Err(unexpected());
            }
            DownloadPhase::Paused => {
                display.end();
                return Ok(paused(connection, &view, &args));
            }
            _ => {}
        }
        tokio::select! {
            message = told.recv() => match message {
                Ok(ServerMessage::Download(now)) if now.id == id => view = now,
                Ok(_) => {}
                Err(RecvError::Lagged(_) | RecvError::Closed) => {
                    view = stands(connection, &id, view).await?;
                }
            },
            () = tokio::time::sleep(SILENCE) => view = stands(connection, &id, view).await?,
            _ = tokio::signal::ctrl_c() => {
                connection.act(ClientMessage::PauseDownload { id: id.clone() }).await?;
                // What is here is forced to the disk before it is said to be kept.
                while view.is_active() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    view = stands(connection, &id, view).await?;
                }
                display.end();
                return Ok(match view.phase {
                    DownloadPhase::Done { .. } => done(connection, &view),
                    _ => paused(connection, &view, &args),
                });
            }
        }
    }
}

/// How the download stands now.
async fn stands(
    connection: &Connection,
    id: &str,
    before: DownloadView,
) -> Result<DownloadView, ProtocolError> {
    Ok(standing(library(connection).await?, id, before))
}

/// How the download stands in `library`. Whoever had it may have ended, and nobody knows of it any
/// more: then its file is here, or it is to be gone on with.
fn standing(library: LibraryView, id: &str, before: DownloadView) -> DownloadView {
    if let Some(now) = library.downloads.into_iter().find(|download| download.id == id) {
        return now;
    }
    let is_it = |model: &&InstalledModel| {
        matches!(&model.origin, ModelOrigin::Hub { source, .. } if source == id)
            && model.state == ModelFileState::AsRecorded
    };
    let phase = match library.installed.iter().find(is_it) {
        Some(model) => {
            DownloadPhase::Done { installed: model.id.clone(), path: model.path.clone() }
        }
        None => DownloadPhase::Paused,
    };
    DownloadView { phase, speed: None, remaining_seconds: None, ..before }
}

fn done(connection: &Connection, view: &DownloadView) -> Ending {
    let output = &connection.output;
    let DownloadPhase::Done { installed, path } = &view.phase else { return Ending::Failed };
    match output.format() {
        Format::Json => output.object(view),
        Format::Text => output.result(&safe(path)),
    }
    if let Some(notice) = &view.notice {
        output.say(&safe(notice));
    }
    output.say(&format!("{} is here as {}.", safe(&view.name), safe(installed)));
    Ending::Done
}

fn paused(connection: &Connection, view: &DownloadView, args: &DownloadArgs) -> Ending {
    let output = &connection.output;
    if output.format() == Format::Json {
        output.object(view);
    }
    let of = view.total.map(|total| format!(" of {}", megabytes(total))).unwrap_or_default();
    let revision = args.revision.as_ref().map(|revision| format!(" --revision {revision}"));
    output.say(&format!("Paused: {}{of} are kept. Go on with:", megabytes(view.done)));
    output.say(&format!("  correx model download {}{}", args.model, revision.unwrap_or_default()));
    Ending::Failed
}

/// A bar for people; a line whenever the phase changes for everybody else.
struct Display<'a> {
    connection: &'a Connection,
    bar: Option<ProgressBar>,
    said: Option<String>,
}

impl<'a> Display<'a> {
    fn new(connection: &'a Connection) -> Self {
        Self { connection, bar: None, said: None }
    }

    fn show(&mut self, view: &DownloadView) {
        let output = &self.connection.output;
        let doing = match &view.phase {
            DownloadPhase::Asking => "asking the hub".to_owned(),
            DownloadPhase::Waiting => "another program is downloading it".to_owned(),
            DownloadPhase::Rereading => "reading what is here".to_owned(),
            DownloadPhase::Receiving => "downloading".to_owned(),
            DownloadPhase::Verifying => "checking".to_owned(),
            DownloadPhase::Retrying { error, failed, of, wait_seconds } => {
                format!("{} (try {failed} of {of}; next in {wait_seconds} s)", error.message)
            }
            _ => return,
        };
        if output.has_bars() {
            let bar = self.bar.get_or_insert_with(|| output.byte_bar(&safe(&view.name)));
            bar.set_length(view.total.unwrap_or(0));
            bar.set_position(view.done);
            let rate = match (view.speed, view.remaining_seconds) {
                (Some(speed), Some(seconds)) => {
                    format!("{}/s, {} left", megabytes(speed), clock(seconds))
                }
                (Some(speed), None) => format!("{}/s", megabytes(speed)),
                _ => safe(&doing),
            };
            bar.set_message(rate);
        } else if self.said.as_ref() != Some(&doing) {
            output.say(&format!("{}: {}", safe(&view.name), safe(&doing)));
            self.said = Some(doing);
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// A time for people.
fn clock(seconds: u64) -> String {
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match hours {
        0 => format!("{minutes}:{:02}", seconds % 60),
        _ => format!("{hours}:{minutes:02}:{:02}", seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_that_nobody_knows_of_any_more_is_here_or_is_gone_on_with() {
        let before = DownloadView {
            id: "hf:a/b/c.gguf".into(),
            model: None,
            name: "c".into(),
            phase: DownloadPhase::Verifying,
            done: 4,
            total: Some(4),
            speed: Some(1),
            remaining_seconds: Some(1),
            notice: None,
        };
        let library = |installed: Vec<InstalledModel>, downloads: Vec<DownloadView>| LibraryView {
            catalogue: Vec::new(),
            installed,
            downloads,
            leftovers: Vec::new(),
        };
        let record = |source: &str, state| InstalledModel {
            id: "c".into(),
            name: "c".into(),
            path: "/c.gguf".into(),
            bytes: 4,
            origin: ModelOrigin::Hub {
                source: source.into(),
                commit: String::new(),
                sha256: String::new(),
            },
            state,
            about: None,
        };
        let phase = |library| standing(library, "hf:a/b/c.gguf", before.clone()).phase;
        let here = DownloadPhase::Done { installed: "c".into(), path: "/c.gguf".into() };
        let found = record("hf:a/b/c.gguf", ModelFileState::AsRecorded);
        assert_eq!(phase(library(vec![found.clone()], Vec::new())), here);
        for other in [
            record("hf:a/b/d.gguf", ModelFileState::AsRecorded),
            record("hf:a/b/c.gguf", ModelFileState::Gone),
        ] {
            assert_eq!(phase(library(vec![other], Vec::new())), DownloadPhase::Paused);
        }
        assert_eq!(phase(library(vec![found], vec![before.clone()])), DownloadPhase::Verifying);
    }

    #[test]
    fn times_are_read_as_on_a_clock() {
        assert_eq!([clock(7), clock(61), clock(3_600 + 62)], ["0:07", "1:01", "1:01:02"]);
    }
}
