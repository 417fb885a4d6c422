//! What a header says about its model, in a form for people and for scripts.

use std::fmt;

use serde::Serialize;

use crate::problem::shown_within;
use crate::{Gguf, TensorType, Value, label};

/// The longest text that is taken over; more is cut off.
const LONGEST: usize = 200;
/// The most texts of one list that are taken over.
const MOST_TEXTS: usize = 32;

/// A model, as its file describes it. What the file does not say is absent. Texts are cut to 200
/// characters and lists to 32 texts, so that this stays small whatever the file holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelInfo {
    /// The model's name.
    pub name: Option<String>,
    /// The family, for example `llama`.
    pub architecture: Option<String>,
    /// The number of weights.
    pub parameters: u64,
    /// How the weights are stored.
    pub quantization: Quantization,
    /// The most tokens that the model was made for.
    pub context_length: Option<u64>,
    /// Width of the state.
    pub embedding_length: Option<u64>,
    /// Layers.
    pub layers: Option<u64>,
    /// Query heads; where layers differ, the most.
    pub heads: Option<u64>,
    /// Key and value heads; where layers differ, the most.
    pub kv_heads: Option<u64>,
    /// Tokens that a layer with a sliding window looks back.
    pub sliding_window: Option<u64>,
    /// Experts in a layer, when the model is a mixture of them.
    pub experts: Option<u64>,
    /// Text to tokens.
    pub tokenizer: TokenizerInfo,
    /// How conversations are written.
    pub chat_template: ChatTemplateInfo,
    /// What may be done with the model.
    pub licence: Option<Licence>,
    /// Who made it.
    pub author: Option<String>,
    /// What it was made from.
    pub base_models: Vec<String>,
    /// The languages it is made for.
    pub languages: Vec<String>,
    /// What its makers file it under.
    pub tags: Vec<String>,
    /// The version of the file's format.
    pub gguf_version: u32,
    /// The number of files.
    pub files: usize,
    /// Bytes of all files.
    pub file_bytes: u64,
}

/// How weights are stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quantization {
    /// The mix as people call it, for example `Q4_K - Medium`; where the file does not say, the
    /// type that most matrices have.
    pub label: Option<String>,
    /// Bits per weight over all.
    pub bits_per_weight: f64,
    /// The types that occur, the one with the most bytes first.
    pub types: Vec<TypeShare>,
}

/// How much of a model is stored in one type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TypeShare {
    /// The type's name.
    #[serde(rename = "type")]
    pub kind: String,
    /// Tensors of it.
    pub tensors: usize,
    /// Weights in them.
    pub parameters: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a file says about text and tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TokenizerInfo {
    /// The kind, for example `gpt2`.
    pub model: Option<String>,
    /// The rule by which text is split, for example `llama-bpe`.
    pub pre: Option<String>,
    /// The number of tokens.
    pub tokens: Option<u64>,
    /// The token that begins a sequence.
    pub bos: Option<TokenInfo>,
    /// The token that ends a sequence.
    pub eos: Option<TokenInfo>,
    /// Whether every prompt begins with the former.
    pub add_bos: Option<bool>,
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TokenInfo {
    /// Its number.
    pub id: u64,
    /// Its text, when there is such a token.
    pub text: Option<String>,
}

/// Which chat templates a file has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChatTemplateInfo {
    /// Whether it has one without a name, which is used when nothing else is asked for.
    pub present: bool,
    /// The names of further ones.
    pub named: Vec<String>,
}

/// What may be done with a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Licence {
    /// The short name, for example `apache-2.0`.
    pub id: Option<String>,
    /// The long name.
    pub name: Option<String>,
    /// Where to read it.
    pub link: Option<String>,
}

impl ModelInfo {
    /// What the header says.
    pub fn of(gguf: &Gguf) -> Self {
        let text = |key: &str| gguf.text(key).and_then(taken);
        let architecture = text("general.architecture");
        let own = |name: &str| {
            let architecture = gguf.architecture()?;
            (architecture.len() <= LONGEST).then(|| format!("{architecture}.{name}"))
        };
        let number = |name: &str| gguf.number(&own(name)?);
        let most = |name: &str| most(gguf.metadata.get(&own(name)?)?);
        let licence = Licence {
            id: text("general.license"),
            name: text("general.license.name"),
            link: text("general.license.link"),
        };
        let heads = most("attention.head_count");
        Self {
            name: text("general.name"),
            architecture,
            parameters: gguf.parameters(),
            quantization: quantization(gguf),
            context_length: number("context_length"),
            embedding_length: number("embedding_length"),
            layers: number("block_count"),
            heads,
            kv_heads: most("attention.head_count_kv").or(heads),
            sliding_window: number("attention.sliding_window").filter(|tokens| *tokens > 0),
            experts: number("expert_count").filter(|count| *count > 0),
            tokenizer: tokenizer(gguf),
            chat_template: chat_template(gguf),
            licence: (licence != Licence { id: None, name: None, link: None }).then_some(licence),
            author: text("general.author").or_else(|| text("general.organization")),
            base_models: base_models(gguf),
            languages: list(gguf, "general.languages"),
            tags: list(gguf, "general.tags"),
            gguf_version: gguf.version,
            files: gguf.parts.len(),
            file_bytes: gguf.file_bytes,
        }
    }
}

/// A text of the file for people: on one line, and not too long.
fn taken(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| shown_within(text, LONGEST).into_owned())
}

fn list(gguf: &Gguf, key: &str) -> Vec<String> {
    match gguf.metadata.get(key) {
        Some(Value::Texts(texts)) => texts.iter().filter_map(taken).take(MOST_TEXTS).collect(),
        Some(Value::Text(text)) => taken(text).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// A number that may be given for every layer: the largest.
fn most(value: &Value) -> Option<u64> {
    match value {
        Value::Numbers(numbers) => numbers.iter().max().and_then(|most| u64::try_from(most).ok()),
        one => one.as_u64(),
    }
}

fn quantization(gguf: &Gguf) -> Quantization {
    let mut types: Vec<TypeShare> = Vec::new();
    for kind in TensorType::ALL {
        let mut share = TypeShare { kind: kind.to_string(), tensors: 0, parameters: 0, bytes: 0 };
        for tensor in gguf.tensors.values().filter(|tensor| tensor.kind == *kind) {
            share.tensors += 1;
            share.parameters = share.parameters.saturating_add(tensor.elements());
            share.bytes = share.bytes.saturating_add(tensor.bytes);
        }
        if share.tensors > 0 {
            types.push(share);
        }
    }
    types.sort_by_key(|share| std::cmp::Reverse(share.bytes));
    let bits: f64 = types.iter().map(|share| share.bytes as f64 * 8.0).sum();
    let label = gguf.number("general.file_type").and_then(label::of_file_type);
    Quantization {
        label: label.map(str::to_owned).or_else(|| Some(gguf.quantization()?.to_string())),
        // A sum of nothing is minus zero.
        bits_per_weight: (bits + 0.0) / (gguf.parameters().max(1) as f64),
        types,
    }
}

fn tokenizer(gguf: &Gguf) -> TokenizerInfo {
    let text = |key: &str| gguf.text(key).and_then(taken);
    let texts = gguf.texts("tokenizer.ggml.tokens");
    let token = |key: &str| {
        let id = gguf.number(key)?;
        let place = usize::try_from(id).ok();
        let text = place.and_then(|place| texts?.get(place));
        Some(TokenInfo { id, text: text.map(|text| shown_within(text, LONGEST).into_owned()) })
    };
    let declared = gguf.architecture().filter(|architecture| architecture.len() <= LONGEST);
    let declared = declared.and_then(|name| gguf.number(&format!("{name}.vocab_size")));
    TokenizerInfo {
        model: text("tokenizer.ggml.model"),
        pre: text("tokenizer.ggml.pre"),
        tokens: texts.map(|texts| texts.len() as u64).or(declared),
        bos: token("tokenizer.ggml.bos_token_id"),
        eos: token("tokenizer.ggml.eos_token_id"),
        add_bos: gguf.flag("tokenizer.ggml.add_bos_token"),
    }
}

fn chat_template(gguf: &Gguf) -> ChatTemplateInfo {
    const KEY: &str = "tokenizer.chat_template";
    let mut named: Vec<String> = gguf
        .metadata
        .keys()
        .filter_map(|key| taken(key.strip_prefix(KEY)?.strip_prefix('.')?))
        .collect();
    named.sort_unstable();
    named.truncate(MOST_TEXTS);
    ChatTemplateInfo { present: gguf.text(KEY).is_some_and(|text| !text.is_empty()), named }
}

fn base_models(gguf: &Gguf) -> Vec<String> {
    let count = gguf.number("general.base_model.count").unwrap_or(0).min(MOST_TEXTS as u64);
    let name = |number: u64| {
        let text = |part: &str| gguf.text(&format!("general.base_model.{number}.{part}"));
        taken(text("name").or_else(|| text("repo_url"))?)
    };
    (0..count).filter_map(name).collect()
}

impl ModelInfo {
    /// Everything that is known, a name and a value in each row. A row without a name goes on with
    /// the one before it.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let joined = |list: &[String]| (!list.is_empty()).then(|| list.join(", "));
        let mut rows = Vec::new();
        let mut row = |name: &'static str, value: Option<String>| {
            rows.extend(value.map(|value| (name, value)));
        };
        row("name", self.name.clone());
        row("architecture", self.architecture.clone());
        let quantization = &self.quantization;
        if self.parameters == 0 {
            row("weights", Some("none: the file holds a vocabulary only".to_owned()));
        } else {
            row("weights", Some(format!("{} ({})", self.parameters, in_short(self.parameters))));
            let bits = format!("{:.2} bits per weight", quantization.bits_per_weight);
            row(
                "quantization",
                quantization.label.as_ref().map(|label| format!("{label}, {bits}")),
            );
        }
        for share in &quantization.types {
            row("", Some(share.to_string()));
        }
        row("context", self.context_length.map(|tokens| format!("{tokens} tokens")));
        let window = |tokens| format!("{tokens} tokens in some layers");
        row("window", self.sliding_window.map(window));
        row("layers", number(self.layers));
        row("width", number(self.embedding_length));
        let heads = |heads| match self.kv_heads {
            Some(kv) if kv != heads => format!("{heads}, over {kv} of keys and values"),
            _ => heads.to_string(),
        };
        row("heads", self.heads.map(heads));
        row("experts", number(self.experts));
        let tokenizer = &self.tokenizer;
        row("vocabulary", tokenizer.tokens.map(|tokens| format!("{tokens} tokens")));
        let kind = |model: &String| match &tokenizer.pre {
            Some(pre) => format!("{model}, text split as {pre}"),
            None => model.clone(),
        };
        row("tokenizer", tokenizer.model.as_ref().map(kind));
        let begin = |token: &TokenInfo| match tokenizer.add_bos {
            Some(true) => format!("{token}, in every prompt"),
            Some(false) => format!("{token}, in no prompt"),
            None => token.to_string(),
        };
        row("begins with", tokenizer.bos.as_ref().map(begin));
        row("ends with", tokenizer.eos.as_ref().map(TokenInfo::to_string));
        row("chat template", Some(self.chat_template.to_string()));
        row("licence", self.licence.as_ref().map(Licence::to_string));
        row("author", self.author.clone());
        row("made from", joined(&self.base_models));
        row("languages", joined(&self.languages));
        row("tags", joined(&self.tags));
        let files = if self.files == 1 { "file" } else { "files" };
        let size = format!("{} bytes in {} {files}", self.file_bytes, self.files);
        row("size", Some(format!("{size}, GGUF version {}", self.gguf_version)));
        rows
    }
}

impl fmt::Display for ModelInfo {
    /// [`ModelInfo::rows`], one below the other.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, value)) in self.rows().into_iter().enumerate() {
            let before = if number == 0 { "" } else { "\n" };
            write!(f, "{before}{name:<14}{value}")?;
        }
        Ok(())
    }
}

impl fmt::Display for TypeShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensors = if self.tensors == 1 { "tensor" } else { "tensors" };
        let Self { kind, tensors: count, bytes, .. } = self;
        write!(f, "{kind:<8}{count:>5} {tensors:<7}{bytes:>14} bytes")
    }
}

impl fmt::Display for TokenInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => write!(f, "{text} ({})", self.id),
            None => self.id.fmt(f),
        }
    }
}

impl fmt::Display for ChatTemplateInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.present { "yes" } else { "none" })?;
        match &self.named[..] {
            [] => Ok(()),
            [one] => write!(f, ", and one named {one}"),
            more => write!(f, ", and {} with names: {}", more.len(), more.join(", ")),
        }
    }
}

impl fmt::Display for Licence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.id, &self.name, &self.link];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        f.write_str(&parts.join(", "))
    }
}

/// A number as people say it: `135M`, `7.2B`.
fn in_short(number: u64) -> String {
    let scaled = |unit: f64, letter: char| {
        let value = number as f64 / unit;
        if value < 9.95 { format!("{value:.1}{letter}") } else { format!("{value:.0}{letter}") }
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => scaled(1e3, 'K'),
        1_000_000..1_000_000_000 => scaled(1e6, 'M'),
        1_000_000_000..1_000_000_000_000 => scaled(1e9, 'B'),
        _ => scaled(1e12, 'T'),
    }
}
