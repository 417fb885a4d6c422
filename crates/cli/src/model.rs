//! `correx model`: what is loaded, and measuring a model without anything around it.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use correx_candle::{BenchPlan, RawModel, Vocabulary, bench as measure};
use correx_inference::GenerationConfig;
use correx_infrastructure::models::{Catalogue, Locations};
use correx_infrastructure::{Loading, Settings};
use correx_protocol::{ErrorCode, ModelState, ModelView, ProtocolError};
use serde::Serialize;

use crate::args::{Common, ModelCommand};
use crate::connection::{Connection, options};
use crate::inspect::inspect;
use crate::outcome::{Ending, Outcome, input};
use crate::output::{Format, Output};
use crate::watch;

/// Shows the model that is loaded here.
pub async fn show(connection: &Connection) -> Outcome {
    let model = with_checksum(connection).await?;
    let output = &connection.output;
    if output.format() == Format::Json {
        output.object(&model);
    } else {
        output.result(&described(&model));
    }
    Ok(match model.state {
        ModelState::Ready => Ending::Done,
        _ => Ending::Failed,
    })
}

/// The model with its file's checksum, which is computed in the background: waited for a while,
/// and left out when the file is too large for that.
async fn with_checksum(connection: &Connection) -> Result<ModelView, ProtocolError> {
    let mut model = watch::model_ready(connection).await?;
    for _ in 0..100 {
        if model.sha256.is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        model = watch::model_ready(connection).await?;
    }
    Ok(model)
}

fn described(model: &ModelView) -> String {
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let rows = [
        ("name", Some(model.name.clone())),
        ("file", Some(model.location.clone())),
        ("architecture", model.architecture.clone()),
        ("quantization", model.quantization.clone()),
        ("device", model.device.clone()),
        ("context", model.context_window.map(|tokens| format!("{tokens} tokens"))),
        ("weights", number(model.parameters)),
        ("bytes", number(model.file_bytes)),
        ("sha256", model.sha256.clone()),
        ("notice", model.notice.clone()),
    ];
    let rows = rows.into_iter().filter_map(|(key, value)| Some(format!("{key:<14}{}", value?)));
    rows.collect::<Vec<String>>().join("\n")
}

/// A command on a model file itself: no session, no data directory is opened.
pub fn on_file(command: ModelCommand, common: &Common, output: &Output) -> Outcome {
    match command {
        ModelCommand::Show => Err(input("show is not a command on a file")),
        ModelCommand::Inspect { file } => inspect(&file_or_default(file, common)?, output),
        ModelCommand::Bench { file, prompt, reply } => {
            let plan = BenchPlan { prompt, reply, threads: threads(common) };
            let report = measure(&file_or_default(file, common)?, plan).map_err(failed)?;
            output.object(&report);
            Ok(Ending::Done)
        }
        ModelCommand::Tokenize { file } => {
            let path = file_or_default(file, common)?;
            let vocabulary = Vocabulary::open(&path).map_err(failed)?;
            let ids = vocabulary.encode(&standard_input()?).map_err(failed)?;
            print_ids(&ids, output);
            Ok(Ending::Done)
        }
        ModelCommand::Generate { file, greedy, tokens, seed, ids } => {
            let path = file_or_default(file, common)?;
            let config = if greedy {
                GenerationConfig::greedy(tokens)
            } else {
                GenerationConfig { seed, max_tokens: tokens, ..GenerationConfig::default() }
            };
            let model = load(&path, threads(common), output)?;
            generate(&model, &config, if ids { Form::Ids } else { Form::Text }, output)
        }
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

fn load(path: &Path, threads: Option<usize>, output: &Output) -> Result<RawModel, ProtocolError> {
    let bar = output.bar(1, "loading");
    let model = RawModel::load_with(path, threads, |progress| {
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

/// The file that was named, or the default model's.
fn file_or_default(file: Option<PathBuf>, common: &Common) -> Result<PathBuf, ProtocolError> {
    let options = options(common, Loading::WhenNeeded);
    let data_dir = options.resolve_data_dir()?;
    let set = || Settings::load(&data_dir).ok().and_then(|settings| settings.model.file);
    let named = file.or(options.model).or_else(set);
    let program = std::env::current_exe().ok();
    let catalogue = Catalogue::embedded().map_err(failed)?;
    Locations::usual(named, &data_dir, program.as_deref())
        .find(catalogue.default_model())
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
