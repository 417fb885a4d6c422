//! `correx model`: what is loaded, and measuring a model without anything around it.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use correx_candle::memory::{MachineMemory, MemoryFit, Overcommit, Room, choose_context, in_units};
use correx_candle::{
    BenchPlan, RawModel, RawOptions, Vocabulary, bench as measure, compute_threads, memory_plan,
    support,
};
use correx_gguf::inspect;
use correx_inference::{GenerationConfig, ResponseFormat};
use correx_infrastructure::engine::{Chosen, DEFAULT, not_here, unknown};
use correx_infrastructure::models::{ABOUT_CONTEXT, Catalogue, Library, Locations};
use correx_infrastructure::{Loading, Settings};
use correx_protocol::{
    ClientMessage, ErrorCode, ModelState, ModelView, ProtocolError, ServerMessage, SwitchTime,
};
use serde::Serialize;

use crate::args::{Common, ModelCommand, When};
use crate::choice;
use crate::connection::{Connection, options};
use crate::inspect as inspection;
use crate::outcome::{Ending, Outcome, input, unexpected};
use crate::output::{Format, Output, on_one_line};

/// A command on the model of a data directory.
pub async fn of_data_dir(
    connection: &Connection,
    command: ModelCommand,
    common: &Common,
) -> Outcome {
    let message = match command {
        ModelCommand::Use { model, when } => {
            tell_override(connection, common);
            ClientMessage::UseModel {
                model: id_or_path(&model)?,
                when: when.map(|when| match when {
                    When::AfterRun => SwitchTime::AfterRun,
                    When::Now => SwitchTime::Now,
                }),
            }
        }
        ModelCommand::Load => ClientMessage::LoadModel,
        ModelCommand::Unload => ClientMessage::UnloadModel,
        _ => {
            tell_override(connection, common);
            let model = connection.overview().await?.model;
            return Ok(told(connection, &model));
        }
    };
    let loads = message == ClientMessage::LoadModel;
    match connection.ask(message).await? {
        ServerMessage::Model(model) => {
            if loads && connection.is_owner().await {
                connection.output.say(
                    "Nothing else has this data directory open, so the model is freed again when \
                     this command ends. It stays loaded in an open window, or during `correx chat`.",
                );
            }
            Ok(told(connection, &model))
        }
        _ => Err(unexpected()),
    }
}

/// Says that a file named for this process wins over what is chosen.
fn tell_override(connection: &Connection, common: &Common) {
    if let Some(file) = options(common, Loading::WhenNeeded).model {
        connection.output.say(&format!(
            "note: CORREX_MODEL (or --model) names {}; as long as it does, programs start with that \
             file, whatever model was chosen.",
            on_one_line(&file.display().to_string())
        ));
    }
}

/// A path as the process that owns the data directory can use it; an id as it is.
fn id_or_path(typed: &str) -> Result<String, ProtocolError> {
    // An id is no file here; a file may be named like an id with `./` in front.
    if Path::new(typed).is_file() || is_path(typed) {
        choice::whole(typed)
    } else {
        Ok(typed.to_owned())
    }
}

/// Whether somebody who writes this means a file, also one that is not there.
fn is_path(typed: &str) -> bool {
    typed.contains(std::path::is_separator) || typed.to_ascii_lowercase().ends_with(".gguf")
}

/// Prints the state of a model.
fn told(connection: &Connection, model: &ModelView) -> Ending {
    let output = &connection.output;
    if output.format() == Format::Json {
        output.object(model);
    } else {
        output.result(&described(model));
    }
    match model.state {
        ModelState::Failed { .. } => Ending::Failed,
        _ => Ending::Done,
    }
}

fn described(model: &ModelView) -> String {
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let rows = [
        ("name", Some(model.name.clone())),
        ("state", Some(state(&model.state))),
        ("file", Some(model.location.clone()).filter(|file| !file.is_empty())),
        ("architecture", model.architecture.clone()),
        ("quantization", model.quantization.clone()),
        ("device", model.device.clone()),
        ("context", model.context_window.map(|tokens| format!("{tokens} tokens"))),
        ("weights", number(model.parameters)),
        ("bytes", number(model.file_bytes)),
        ("sha256", model.sha256.clone()),
        (
            "memory",
            model.memory.as_ref().map(|memory| {
                let held =
                    memory.held.map(|held| format!("; this program holds {} now", in_units(held)));
                format!("at most {}{}", in_units(memory.need), held.unwrap_or_default())
            }),
        ),
        ("next", model.next.clone()),
        ("notice", model.notice.clone()),
    ];
    let rows = rows.into_iter().filter_map(|(key, value)| Some(format!("{key:<14}{}", value?)));
    rows.collect::<Vec<String>>().join("\n")
}

fn state(state: &ModelState) -> String {
    match state {
        ModelState::Loading { .. } => "not loaded yet".to_owned(),
        ModelState::Ready => "in memory".to_owned(),
        ModelState::Unloaded => "not in memory; the next use loads it".to_owned(),
        ModelState::Failed { error } => format!("not usable: {}", error.message),
    }
}

/// A command on a model file itself: no session, no data directory is opened.
pub fn on_file(command: ModelCommand, common: &Common, output: &Output) -> Outcome {
    match command {
        ModelCommand::Inspect { model } => inspection::inspect(&file_named(model, common)?, output),
        ModelCommand::Fit { model, context } => fit(model, context, common, output),
        ModelCommand::Bench { file, prompt, reply, pre_tokenizer } => {
            let plan = BenchPlan { prompt, reply, threads: threads(common), pre_tokenizer };
            let report = measure(&file_named(file, common)?, plan).map_err(failed)?;
            output.object(&report);
            Ok(Ending::Done)
        }
        ModelCommand::Tokenize { file, pre_tokenizer } => {
            let path = file_named(file, common)?;
            let pre_tokenizer = chosen(pre_tokenizer, common);
            let pre_tokenizer = pre_tokenizer.as_deref();
            let vocabulary = Vocabulary::open_with(&path, pre_tokenizer).map_err(failed)?;
            let ids = vocabulary.encode(&standard_input()?).map_err(failed)?;
            print_ids(&ids, output);
            Ok(Ending::Done)
        }
        ModelCommand::Generate {
            file,
            greedy,
            tokens,
            seed,
            ids,
            json_schema,
            choice,
            regex,
            pre_tokenizer,
        } => {
            let path = file_named(file, common)?;
            let config = if greedy {
                GenerationConfig::greedy(tokens)
            } else {
                GenerationConfig { seed, max_tokens: tokens, ..GenerationConfig::default() }
            };
            let format = match (json_schema, choice, regex) {
                (Some(file), ..) => ResponseFormat::JsonSchema(schema(&file)?),
                (_, Some(texts), _) => ResponseFormat::Choice(texts),
                (.., Some(regex)) => ResponseFormat::Regex(regex),
                (None, None, None) => ResponseFormat::Text,
            };
            let config = GenerationConfig { format, ..config };
            let pre_tokenizer = chosen(pre_tokenizer, common);
            let options =
                RawOptions { threads: threads(common), pre_tokenizer: pre_tokenizer.as_deref() };
            let model = load(&path, options, output)?;
            generate(&model, &config, if ids { Form::Ids } else { Form::Text }, output)
        }
        _ => Err(input("this is not a command on a file")),
    }
}

/// The JSON Schema in `file`.
fn schema(file: &Path) -> Result<serde_json::Value, ProtocolError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| input(format!("{} could not be read: {error}", file.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| input(format!("{} is not JSON: {error}", file.display())))
}

/// What a model needs against what this machine has.
#[derive(Serialize)]
struct Fit {
    file: PathBuf,
    context: usize,
    model_context: usize,
    weights: u64,
    vocabulary: u64,
    forms: u64,
    cache: u64,
    scratch: u64,
    need: u64,
    available: Option<u64>,
    total: Option<u64>,
    /// `fits`, `tight`, `does_not_fit`; `unknown` where the system does not tell.
    verdict: &'static str,
    largest_context: Option<usize>,
}

fn fit(
    model: Option<PathBuf>,
    context: Option<usize>,
    common: &Common,
    output: &Output,
) -> Outcome {
    let file = file_named(model, common)?;
    let gguf = inspect(&file).map_err(failed)?;
    if let Err(reasons) = support(&gguf) {
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        return Err(failed(format!("{}: {}", file.display(), reasons.join("; "))));
    }
    let threads = threads(common).unwrap_or_else(compute_threads);
    let plan = memory_plan(&gguf, threads).map_err(failed)?;
    let machine = MachineMemory::now();
    // What would be used; of what would be refused, the least.
    let usual = || match choose_context(&plan, None, machine, Overcommit::Allow) {
        Ok(chosen) => chosen.tokens,
        Err(refused) => refused.context,
    };
    let context = context.unwrap_or_else(usual);
    let need = plan.need(context);
    let fit = machine.map(|machine| MemoryFit::new(&plan, context, machine));
    let fit = Fit {
        file,
        context,
        model_context: plan.model_context,
        weights: need.weights,
        vocabulary: need.vocabulary,
        forms: need.forms,
        cache: need.cache,
        scratch: need.scratch,
        need: need.total(),
        available: machine.map(|machine| machine.available),
        total: machine.map(|machine| machine.total),
        verdict: match fit.map(|fit| fit.room) {
            Some(Room::Ample) => "fits",
            Some(Room::Tight) => "tight",
            Some(Room::TooSmall) => "does_not_fit",
            None => "unknown",
        },
        largest_context: fit.map_or(Some(plan.model_context), |fit| fit.largest_context),
    };
    if output.format() == Format::Json {
        output.object(&fit);
    } else {
        output.result(&fit.in_words());
    }
    Ok(if fit.verdict == "does_not_fit" { Ending::Failed } else { Ending::Done })
}

impl Fit {
    fn in_words(&self) -> String {
        let of = |available: Option<u64>, total: Option<u64>| {
            let (available, total) = available.zip(total)?;
            Some(format!("{} available of {}", in_units(available), in_units(total)))
        };
        let verdict = match self.verdict {
            "fits" => "it fits",
            "tight" => "it fits, but leaves little to other programs",
            "does_not_fit" => "it does not fit",
            _ => "unknown: this system does not tell how much memory it has",
        };
        let largest = match self.largest_context {
            Some(tokens) => format!("{tokens} tokens of the model's {}", self.model_context),
            None => "none".to_owned(),
        };
        let beyond = match self.context > self.model_context {
            true => format!(", more than the {} that the model was made for", self.model_context),
            false => String::new(),
        };
        let rows = [
            ("file", self.file.display().to_string()),
            ("context", format!("{} tokens{beyond}", self.context)),
            ("weights", in_units(self.weights)),
            ("vocabulary", in_units(self.vocabulary)),
            ("forms", format!("{} (replies in JSON and other forms)", in_units(self.forms))),
            ("cache", in_units(self.cache)),
            ("scratch", in_units(self.scratch)),
            ("need", in_units(self.need)),
            ("memory", of(self.available, self.total).unwrap_or_else(|| "unknown".to_owned())),
            ("largest", largest),
            ("verdict", verdict.to_owned()),
        ];
        let rows = rows.into_iter().map(|(key, value)| format!("{key:<14}{value}"));
        rows.collect::<Vec<String>>().join("\n")
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Ids,
}

/// How many threads were asked for, here or in the environment.
fn threads(common: &Common) -> Option<usize> {
    options(common, Loading::WhenNeeded).threads
}

fn load(path: &Path, options: RawOptions<'_>, output: &Output) -> Result<RawModel, ProtocolError> {
    let bar = output.bar(1, "loading");
    let model = RawModel::load_with(path, options, |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    });
    bar.finish_and_clear();
    model.map_err(failed)
}

fn generate(model: &RawModel, config: &GenerationConfig, form: Form, output: &Output) -> Outcome {
    #[derive(Serialize)]
    struct Generated<'a> {
        ids: &'a [u32],
        text: String,
    }
    let prompt = standard_input()?;
    let prompt = model.vocabulary().encode(&prompt).map_err(failed)?;
    let ids = model.generate_ids(&prompt, config, |_| {}).map_err(failed)?;
    let text = text_of(model.vocabulary(), &ids);
    match (output.format(), form) {
        (Format::Json, Form::Text) => output.object(&Generated { ids: &ids, text }),
        (Format::Text, Form::Text) => output.result(&text),
        (_, Form::Ids) => print_ids(&ids, output),
    }
    Ok(Ending::Done)
}

/// The text of ids; what is no text (control tokens) is left out.
pub fn text_of(vocabulary: &Vocabulary, ids: &[u32]) -> String {
    let bytes: Vec<u8> = ids.iter().flat_map(|id| vocabulary.reply_bytes(*id)).copied().collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn print_ids(ids: &[u32], output: &Output) {
    if output.format() == Format::Json {
        output.object(&ids);
    } else {
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        output.verbatim(&ids.join(" "));
    }
}

/// The rule that was chosen, here or in the settings.
fn chosen(pre_tokenizer: Option<&'static str>, common: &Common) -> Option<String> {
    pre_tokenizer.map(str::to_owned).or_else(|| {
        let data_dir = options(common, Loading::WhenNeeded).resolve_data_dir().ok()?;
        Settings::load(&data_dir).ok()?.model.pre_tokenizer
    })
}

/// The file of the model that was named by id or path; of the one that is used, when none was.
fn file_named(model: Option<PathBuf>, common: &Common) -> Result<PathBuf, ProtocolError> {
    let Some(file) = model else { return file_or_default(None, common) };
    if file.exists() {
        return Ok(file);
    }
    let Some(typed) = file.to_str().map(str::to_owned) else {
        return file_or_default(Some(file), common);
    };
    let data_dir = options(common, Loading::WhenNeeded).resolve_data_dir()?;
    let library = Library::in_data_dir(&data_dir);
    if let Ok(record) = library.get(&typed)
        && let Some(path) = record.path()
    {
        return Ok(path.to_owned());
    }
    let catalogue = Catalogue::embedded().map_err(failed)?;
    let entry = match typed.as_str() {
        DEFAULT => Some(catalogue.default_model()),
        id => catalogue.by_id(id),
    };
    let Some(entry) = entry else {
        return match is_path(&typed) {
            true => file_or_default(Some(file), common),
            false => Err(unknown(&typed, &library)),
        };
    };
    let program = std::env::current_exe().ok();
    Locations::usual(None, &data_dir, program.as_deref()).find(entry).map_err(|error| {
        if entry.hub_file().is_none() {
            return failed(&error).hint(error.hint());
        }
        let missing = not_here(entry);
        match entry.about_memory() {
            Some(memory) => ProtocolError {
                message: format!(
                    "{}; it takes about {} of memory for {ABOUT_CONTEXT} tokens",
                    missing.message,
                    in_units(memory)
                ),
                ..missing
            },
            None => missing,
        }
    })
}

/// The file that was named, or the default model's.
fn file_or_default(file: Option<PathBuf>, common: &Common) -> Result<PathBuf, ProtocolError> {
    let options = options(common, Loading::WhenNeeded);
    let data_dir = options.resolve_data_dir()?;
    let catalogue = Catalogue::embedded().map_err(failed)?;
    let named = file.or(options.model);
    let chosen = match &named {
        Some(file) => Chosen::File(file.clone()),
        None => Settings::load(&data_dir)
            .map_or(Chosen::Default, |settings| settings.model.chosen(&data_dir)),
    };
    let (named, wanted) = match &chosen {
        Chosen::File(file) => (Some(file.clone()), None),
        Chosen::Id(id) => (None, catalogue.models().iter().find(|model| model.id == *id)),
        Chosen::Default => (None, None),
    };
    let program = std::env::current_exe().ok();
    Locations::usual(named, &data_dir, program.as_deref())
        .find(wanted.unwrap_or(catalogue.default_model()))
        .map_err(|error| failed(&error).hint(error.hint()))
}

pub(crate) fn failed(error: impl std::fmt::Display) -> ProtocolError {
    ProtocolError::new(ErrorCode::Model, error.to_string())
}

/// All of the standard input, as text.
fn standard_input() -> Result<String, ProtocolError> {
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(input("the text is read from the input, and nothing is there")
            .hint("For example: echo Hello | correx model tokenize"));
    }
    stdin
        .read_to_end(&mut bytes)
        .map_err(|error| input(format!("the input could not be read: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        input(format!("the input is not UTF-8 text (at byte {offset})"))
    })
}
