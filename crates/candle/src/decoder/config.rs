//! The numbers of a model.

use std::fmt;

use correx_cpu_kernels::Heads;
use thiserror::Error;

use correx_gguf::Gguf;

/// Model families that the decoder runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// Llama and what is built like it (SmolLM2, Mistral).
    Llama,
    /// Qwen 2 and 2.5: biases at query, key and value.
    Qwen2,
}

impl Architecture {
    const ALL: [Architecture; 2] = [Architecture::Llama, Architecture::Qwen2];

    /// The name in a GGUF file.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::Llama => "llama",
            Architecture::Qwen2 => "qwen2",
        }
    }

    /// Which elements of a head are rotated together, as the files of this family store them.
    fn pairs(self) -> Pairs {
        match self {
            Architecture::Llama => Pairs::Neighbours,
            Architecture::Qwen2 => Pairs::Halves,
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a file's model cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The family is not known.
    #[error(
        "this is a `{found}` model, which Correx cannot run yet. Choose a model of one of these families: {known}"
    )]
    Architecture {
        /// The name in the file.
        found: String,
        /// The names that are known.
        known: String,
    },
    /// The family is known, but not this part of the model.
    #[error("the model uses {0}, which Correx cannot run yet. Choose another model")]
    Unsupported(String),
    /// A number is missing or makes no sense.
    #[error("the model file is damaged: {0}. Download it again")]
    Damaged(String),
}

/// Which two elements of a head are rotated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pairs {
    /// 0 and 1, 2 and 3, …
    Neighbours,
    /// The first half with the second.
    Halves,
}

/// How positions are turned into rotations.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RopeConfig {
    pub(super) pairs: Pairs,
    /// The angle per position of every rotated pair.
    pub(super) speeds: Vec<f64>,
}

/// The numbers of a model, checked for sense.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// The family.
    pub architecture: Architecture,
    /// Layers.
    pub layers: usize,
    /// Width of the state.
    pub width: usize,
    /// Width inside the feed-forward part.
    pub inner: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head: usize,
    /// Tokens of the vocabulary.
    pub vocabulary: usize,
    /// The most tokens that the model was made for.
    pub context: usize,
    pub(super) epsilon: f32,
    pub(super) rope: RopeConfig,
}

impl DecoderConfig {
    /// The numbers in the metadata of `gguf`; an unknown family is refused by name.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, ConfigError> {
        let found = gguf.architecture().unwrap_or("(unnamed)");
        let architecture = Architecture::ALL
            .into_iter()
            .find(|each| each.name() == found)
            .ok_or_else(|| ConfigError::Architecture {
                found: found.to_owned(),
                known: Architecture::ALL.map(Architecture::name).join(", "),
            })?;
        let key = |name: &str| format!("{architecture}.{name}");
        let optional = |name: &str, most: u64| -> Result<Option<usize>, ConfigError> {
            let key = key(name);
            let Some(value) = gguf.metadata.get(&key) else { return Ok(None) };
            match value.as_u64() {
                Some(number) if (1..=most).contains(&number) => Ok(Some(number as usize)),
                _ => Err(ConfigError::Damaged(format!("`{key}` is {value}"))),
            }
        };
        let required = |name: &str, most: u64| -> Result<usize, ConfigError> {
            optional(name, most)?
                .ok_or_else(|| ConfigError::Damaged(format!("`{}` is missing", key(name))))
        };
        let width = required("embedding_length", 1 << 20)?;
        let heads = required("attention.head_count", 1 << 12)?;
        let kv_heads = optional("attention.head_count_kv", 1 << 12)?.unwrap_or(heads);
        let head = optional("attention.key_length", 1 << 14)?.unwrap_or(width / heads);
        let value_head = optional("attention.value_length", 1 << 14)?.unwrap_or(head);
        if value_head != head {
            return Err(ConfigError::Unsupported("values of another width than keys".into()));
        }
        if !heads.is_multiple_of(kv_heads) || head == 0 || head % 2 == 1 {
            return Err(ConfigError::Damaged(format!(
                "it has {heads} heads over {kv_heads}, {head} wide"
            )));
        }
        let epsilon = gguf
            .float(&key("attention.layer_norm_rms_epsilon"))
            .filter(|epsilon| (0.0..1.0).contains(epsilon))
            .ok_or_else(|| ConfigError::Damaged("its norm has no epsilon".into()))?;
        if gguf.number(&key("expert_count")).is_some_and(|count| count > 0) {
            return Err(ConfigError::Unsupported("a mixture of experts".into()));
        }
        let vocabulary = gguf
            .tensors
            .get("token_embd.weight")
            .and_then(|tensor| tensor.shape.first().copied())
            .ok_or_else(|| ConfigError::Damaged("it has no token embeddings".into()))?;
        let rotated = optional("rope.dimension_count", head as u64)?.unwrap_or(head);
        Ok(Self {
            architecture,
            layers: required("block_count", 1 << 10)?,
            width,
            inner: required("feed_forward_length", 1 << 22)?,
            heads,
            kv_heads,
            head,
            vocabulary,
            context: required("context_length", 1 << 24)?,
            epsilon: epsilon as f32,
            rope: RopeConfig {
                pairs: architecture.pairs(),
                speeds: speeds(gguf, architecture, rotated)?,
            },
        })
    }

    /// Width of all queries.
    pub(super) fn query_width(&self) -> usize {
        self.heads * self.head
    }

    /// Width of all keys, and of all values.
    pub(super) fn kv_width(&self) -> usize {
        self.kv_heads * self.head
    }

    /// How the heads of queries, keys and values lie.
    pub(super) fn heads(&self) -> Heads {
        Heads { width: self.head, kv: self.kv_heads, group: self.heads / self.kv_heads }
    }
}

fn speeds(
    gguf: &Gguf,
    architecture: Architecture,
    rotated: usize,
) -> Result<Vec<f64>, ConfigError> {
    let key = |name: &str| format!("{architecture}.rope.{name}");
    let base = gguf.float(&key("freq_base")).unwrap_or(10_000.0);
    if !base.is_finite() || base <= 0.0 || rotated % 2 == 1 {
        return Err(ConfigError::Damaged(format!("it rotates {rotated} elements by {base}")));
    }
    let kind = gguf.text(&key("scaling.type"));
    let factor = gguf.float(&key("scaling.factor")).or_else(|| gguf.float(&key("scale_linear")));
    let stretch = match (kind, factor) {
        (Some("none"), _) | (_, None) => 1.0,
        (None | Some("linear"), Some(0.0)) => 1.0,
        (None | Some("linear"), Some(factor)) if factor.is_finite() && factor > 0.0 => factor,
        (Some("linear") | None, Some(factor)) => {
            return Err(ConfigError::Damaged(format!("it stretches positions by {factor}")));
        }
        (Some(other), _) => {
            return Err(ConfigError::Unsupported(format!("`{other}` scaling of positions")));
        }
    };
    Ok((0..rotated / 2)
        .map(|pair| base.powf(-2.0 * pair as f64 / rotated as f64) / stretch)
        .collect())
}
