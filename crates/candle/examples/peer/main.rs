//! What `tests/peer` compares with llama.cpp: small models, logits and greedy replies.
//!
//! - `peer models FOLDER`: writes the small models of `tests/families`, and `models.json` about them;
//! - `peer logits MODEL IDS`: the logits behind every id, as numbers of 32 bits on standard output;
//! - `peer replies MODEL PROMPTS TOKENS`: greedy replies as JSON on standard output;
//! - `peer chat MODEL QUESTIONS TOKENS`: prompts by the chat template and greedy answers, as JSON;
//! - `peer vocabulary MODEL`: answers about its vocabulary, a question a line on standard input;
//! - `peer rules`: the rules of splitting text, one a line.
//!
//! IDS holds a JSON list of ids, PROMPTS a list of such lists, QUESTIONS a list of texts.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use correx_candle::decoder::{Decoder, DecoderConfig, KvCache, Logits, Segment, Step};
use correx_candle::template::{ChatTemplate, ModelFacts, source_in};
use correx_candle::{ChatEncoder, RawModel, Vocabulary, compute_threads};
use correx_context::{ChatMessage, PromptEncoder, Role};
use correx_cpu_kernels::Threads;
use correx_events::SystemClock;
use correx_gguf::inspect;
use correx_inference::GenerationConfig;
use serde_json::json;
use sha2::{Digest, Sha256};

#[path = "../../tests/families/models.rs"]
#[allow(dead_code)]
mod models;
mod vocabulary;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["models", folder] => write_models(Path::new(folder)),
        ["logits", model, ids] => write_logits(Path::new(model), Path::new(ids)),
        ["replies", model, prompts, tokens] => {
            write_replies(Path::new(model), Path::new(prompts), tokens.parse()?)
        }
        ["chat", model, questions, tokens] => {
            write_answers(Path::new(model), Path::new(questions), tokens.parse()?)
        }
        ["vocabulary", model] => vocabulary::answer(
            Path::new(model),
            std::io::stdin().lock(),
            BufWriter::new(std::io::stdout().lock()),
        ),
        ["rules"] => {
            let names: Vec<&str> = correx_candle::tokenizer::pre_tokenizer_names().collect();
            Ok(writeln!(std::io::stdout(), "{}", names.join("\n"))?)
        }
        _ => Err(
            "usage: peer models|logits|replies|chat|vocabulary|rules …, see the file's first lines"
                .into(),
        ),
    }
}

fn write_models(folder: &Path) -> Outcome<()> {
    fs::create_dir_all(folder)?;
    let mut about = Vec::new();
    for model in models::all() {
        let path = folder.join(format!("{}.gguf", model.name));
        let file = model.to_bytes();
        fs::write(&path, &file)?;
        about.push(json!({
            "name": model.name,
            "sha256": hex::encode(Sha256::digest(&file)),
            "window": model.window,
            "ids": model.ids(),
            "positions": model.positions(),
        }));
    }
    fs::write(folder.join("models.json"), serde_json::to_vec(&about)?)?;
    Ok(())
}

fn write_logits(model: &Path, ids: &Path) -> Outcome<()> {
    let decoder = load(model)?;
    let ids: Vec<u32> = serde_json::from_slice(&fs::read(ids)?)?;
    let mut cache = decoder.new_cache(decoder.config().context);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for id in ids {
        for logit in behind(&decoder, &mut cache, &[id])? {
            out.write_all(&logit.to_le_bytes())?;
        }
    }
    Ok(out.flush()?)
}

fn write_replies(model: &Path, prompts: &Path, tokens: usize) -> Outcome<()> {
    let decoder = load(model)?;
    let prompts: Vec<Vec<u32>> = serde_json::from_reader(File::open(prompts)?)?;
    let mut replies = Vec::new();
    for prompt in prompts {
        let mut cache = decoder.new_cache(decoder.config().context);
        let mut logits = behind(&decoder, &mut cache, &prompt)?;
        let (mut reply, mut leads) = (Vec::new(), Vec::new());
        loop {
            let (id, lead) = first_and_lead(&logits);
            reply.push(id);
            leads.push(lead);
            if reply.len() == tokens {
                break;
            }
            logits = behind(&decoder, &mut cache, &[id])?;
        }
        replies.push(json!({ "ids": reply, "leads": leads }));
    }
    serde_json::to_writer(std::io::stdout().lock(), &replies)?;
    Ok(())
}

fn write_answers(path: &Path, questions: &Path, tokens: usize) -> Outcome<()> {
    let gguf = inspect(path)?;
    let vocabulary = Arc::new(Vocabulary::from_gguf(&gguf)?);
    let facts = ModelFacts::from_gguf(&gguf, vocabulary.bos_text(), vocabulary.eos_text());
    let template = ChatTemplate::new(source_in(&gguf), &facts, Arc::new(SystemClock));
    let encoder = ChatEncoder::new(vocabulary.clone(), template)?;
    let model = RawModel::load(path, |_| {})?;
    let questions: Vec<String> = serde_json::from_reader(File::open(questions)?)?;
    let mut answers = Vec::new();
    for question in questions {
        let prompt = encoder.encode(&[ChatMessage::new(Role::User, 0, question)], 1)?.ids;
        let reply = model.generate_ids(&prompt, &GenerationConfig::greedy(tokens), |_| {})?;
        let bytes: Vec<u8> =
            reply.iter().flat_map(|id| vocabulary.reply_bytes(*id)).copied().collect();
        answers.push(json!({ "prompt": prompt, "text": String::from_utf8_lossy(&bytes) }));
    }
    serde_json::to_writer(std::io::stdout().lock(), &answers)?;
    Ok(())
}

fn load(path: &Path) -> Outcome<Decoder> {
    let gguf = inspect(path)?;
    let config = DecoderConfig::from_gguf(&gguf)?;
    let threads = Threads::new(compute_threads())?;
    Ok(Decoder::load(&gguf, config, threads, &mut |_, _| ControlFlow::Continue(()))?)
}

/// Adds `ids` to what is remembered; the logits behind them.
fn behind(decoder: &Decoder, cache: &mut KvCache, ids: &[u32]) -> Outcome<Vec<f32>> {
    let mut segments = [Segment { cache, ids, logits: Logits::Last }];
    match decoder.step(&mut segments, &|| false)? {
        Step::Done(mut logits) => Ok(logits.pop().flatten().ok_or("there are no logits")?),
        Step::Stopped => Err("nobody stopped it".into()),
    }
}

/// The id of the largest logit, and by how much it leads.
fn first_and_lead(logits: &[f32]) -> (u32, f32) {
    let (mut id, mut first, mut second) = (0, f32::NEG_INFINITY, f32::NEG_INFINITY);
    for (number, logit) in (0..).zip(logits) {
        if *logit > first {
            (id, first, second) = (number, *logit, first);
        } else {
            second = second.max(*logit);
        }
    }
    (id, first - second)
}
