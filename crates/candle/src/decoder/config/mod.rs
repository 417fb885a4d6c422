//! The numbers of a model.
//!
//! - [`family`]: what distinguishes the families, as data.
//! - [`rope`]: how positions are turned into rotations.
//! - [`experts`]: how many experts, and how tokens come to them.
//! - [`names`]: the weights that there may be.
//! - [`keys`]: numbers of the metadata, checked.

mod experts;
mod family;
mod keys;
mod names;
mod rope;

use correx_cpu_kernels::Heads;
use correx_gguf::{Gguf, Value, shown};
use thiserror::Error;

pub(super) use experts::{ExpertsConfig, Routing};
pub use family::Architecture;
pub(super) use family::{Family, Gate, Pairs, QueryKeyNorms, Scores};
pub(super) use rope::{FactorNames, RopeConfig, Turns};

use super::cache::LayerKind;
use family::{Cap, Windows};
use keys::Keys;

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

/// The numbers of a model, checked for sense.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// The family.
    pub architecture: Architecture,
    /// Layers.
    pub layers: usize,
    /// Width of the state.
    pub width: usize,
    /// Width inside the feed-forward part, of a single expert where there are some.
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
    /// What the embedding is multiplied by.
    pub(super) embedding_scale: f32,
    /// What the products of queries and keys are multiplied by.
    pub(super) score_scale: f32,
    /// Attention scores are kept below it.
    pub(super) score_cap: Option<f32>,
    /// Logits are kept below it.
    pub(super) logit_cap: Option<f32>,
    pub(super) position_scale: Option<PositionScale>,
    /// What a part adds to the state is multiplied by it.
    pub(super) residual_scale: f32,
    /// What the logits are multiplied by.
    pub(super) logit_scale: f32,
    pub(super) experts: Option<ExpertsConfig>,
    /// Tokens that a convolution sees, where layers have some.
    pub(super) convolved: usize,
    /// Per layer, whether it convolves instead of attending.
    convolves: Vec<bool>,
    /// Whether layers rotate at all.
    rotates: bool,
    /// Tokens that layers with a window see, themselves included.
    window: Option<usize>,
    /// Per layer, whether it has the window.
    windowed: Vec<bool>,
}

/// Queries are multiplied by a number that grows with the logarithm of their position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PositionScale {
    /// Positions up to which the number is one.
    pub(super) every: usize,
    pub(super) by: f64,
}

impl PositionScale {
    pub(super) fn at(self, position: usize) -> f32 {
        let steps = (position / self.every) as f64;
        ((steps + 1.0).ln() * self.by + 1.0) as f32
    }
}

/// How a layer's queries and keys are rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rotation {
    None,
    Global,
    Local,
}

impl DecoderConfig {
    /// The numbers in the metadata of `gguf`; an unknown family is refused by name.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, ConfigError> {
        let found = gguf.architecture().unwrap_or("(unnamed)");
        let architecture = Architecture::ALL
            .into_iter()
            .find(|each| each.name() == found)
            .ok_or_else(|| ConfigError::Architecture {
                found: shown(found).into_owned(),
                known: Architecture::ALL.map(Architecture::name).join(", "),
            })?;
        let family = architecture.family();
        let keys = Keys { gguf, family: family.name };
        let width = keys.required("embedding_length", 1 << 20)?;
        let layers = keys.required("block_count", 1 << 10)?;
        let of_layers = |name, most| keys.of_layers(name, most, layers);
        let heads = of_layers("attention.head_count", 1 << 12)?
            .ok_or_else(|| keys.missing("attention.head_count"))?;
        let (kv_heads, convolves) = match family.convolutions {
            true => keys.of_some_layers("attention.head_count_kv", 1 << 12, layers)?,
            false => (of_layers("attention.head_count_kv", 1 << 12)?, vec![false; layers]),
        };
        let kv_heads = kv_heads.unwrap_or(heads);
        let head = keys.optional("attention.key_length", 1 << 14)?.unwrap_or(width / heads);
        let value_head = keys.optional("attention.value_length", 1 << 14)?.unwrap_or(head);
        for name in ["key_length_swa", "value_length_swa"] {
            let other = keys.optional(&format!("attention.{name}"), 1 << 14)?;
            if other.is_some_and(|other| other != head) {
                return Err(ConfigError::Unsupported("heads of several widths".into()));
            }
        }
        if value_head != head {
            return Err(ConfigError::Unsupported("values of another width than keys".into()));
        }
        if !heads.is_multiple_of(kv_heads) || head == 0 || head % 2 == 1 {
            return Err(ConfigError::Damaged(format!(
                "it has {heads} heads over {kv_heads}, {head} wide"
            )));
        }
        let epsilon = gguf
            .float(&keys.key("attention.layer_norm_rms_epsilon"))
            .filter(|epsilon| (0.0..1.0).contains(epsilon))
            .ok_or_else(|| ConfigError::Damaged("its norm has no epsilon".into()))?;
        let experts = ExpertsConfig::read(&keys, family.mixture, layers)?;
        let inner = match &experts {
            Some(experts) if experts.dense == 0 => experts.inner,
            _ => of_layers("feed_forward_length", 1 << 22)?
                .ok_or_else(|| keys.missing("feed_forward_length"))?,
        };
        let vocabulary = gguf
            .tensors
            .get("token_embd.weight")
            .and_then(|tensor| tensor.shape.first().copied())
            .ok_or_else(|| ConfigError::Damaged("it has no token embeddings".into()))?;
        let context = keys.required("context_length", 1 << 24)?;
        let rope = RopeConfig::read(&keys, family, head, context)?;
        let (window, windowed) = windows(&keys, family.windows, layers)?;
        let by_width = family.scaled_by_width_at == Some(layers);
        let scaled_by = if by_width { width / heads } else { head };
        let cap = |cap: Cap, name: &str| match cap {
            Cap::Ignored => Ok(None),
            Cap::Read { default } => match keys.float(name)? {
                None => Ok(default),
                Some(cap) => Ok(Some(cap).filter(|cap| *cap > 0.0)),
            },
        };
        let position_scale = match family.tuned_yarn {
            true => keys
                .positive("attention.temperature_scale")?
                .map(|by| PositionScale { every: rope.original, by }),
            false => None,
        };
        let scale = |name: &str| match family.scales {
            true => keys.positive(name),
            false => Ok(None),
        };
        let embedding_scale = match family.scaled_embedding {
            true => (width as f32).sqrt(),
            false => scale("embedding_scale")?.map_or(1.0, |scale| scale as f32),
        };
        let logit_scale = match family.scales {
            true => 1.0 / scale("logit_scale")?.ok_or_else(|| keys.missing("logit_scale"))?,
            false => 1.0,
        };
        let rotates = match keys.value("rope.scaling.finetuned") {
            Some(told) if family.rotation_is_told => told.as_bool().unwrap_or(true),
            _ => true,
        };
        let convolved = match family.convolutions {
            true => keys.required("shortconv.l_cache", 1 << 10)?,
            false => 0,
        };
        let config = Self {
            architecture,
            layers,
            width,
            inner,
            heads,
            kv_heads,
            head,
            vocabulary,
            context,
            epsilon: epsilon as f32,
            rope,
            embedding_scale,
            score_scale: scale("attention.scale")?
                .map_or(1.0 / (scaled_by as f32).sqrt(), |scale| scale as f32),
            score_cap: cap(family.attention_cap, "attn_logit_softcapping")?.map(|cap| cap as f32),
            logit_cap: cap(family.logit_cap, "final_logit_softcapping")?.map(|cap| cap as f32),
            position_scale,
            residual_scale: scale("residual_scale")?.map_or(1.0, |scale| scale as f32),
            logit_scale: logit_scale as f32,
            experts,
            convolved,
            convolves,
            rotates,
            window,
            windowed,
        };
        match names::unknown_weights(gguf, &config) {
            Some(name) => Err(ConfigError::Unsupported(format!("the weights `{}`", shown(name)))),
            None => Ok(config),
        }
    }

    /// What the family has in common.
    pub(super) fn family(&self) -> &'static Family {
        self.architecture.family()
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

    /// How many tokens a layer sees at most, the last one included.
    pub(super) fn window(&self, layer: usize) -> Option<usize> {
        self.window.filter(|_| self.windowed[layer])
    }

    /// What every layer remembers.
    pub(super) fn layer_kinds(&self) -> impl Iterator<Item = LayerKind> + '_ {
        self.convolves.iter().map(|convolves| match convolves {
            true => LayerKind::Convolution(self.width),
            false => LayerKind::Attention(self.kv_width()),
        })
    }

    /// Numbers that a sequence's cache holds of every token.
    pub(crate) fn cached(&self) -> usize {
        self.layer_kinds().map(LayerKind::numbers).sum()
    }

    /// Whether a layer convolves instead of attending.
    pub(super) fn convolves(&self, layer: usize) -> bool {
        self.convolves[layer]
    }

    /// The experts of a layer; `None`: it does without.
    pub(super) fn experts(&self, layer: usize) -> Option<&ExpertsConfig> {
        self.experts.as_ref().filter(|experts| layer >= experts.dense)
    }

    /// How a layer rotates.
    pub(super) fn rotation(&self, layer: usize) -> Rotation {
        match self.family().unrotated_every {
            _ if !self.rotates => Rotation::None,
            Some(every) if (layer + 1).is_multiple_of(every) => Rotation::None,
            _ if self.window(layer).is_some() => Rotation::Local,
            _ => Rotation::Global,
        }
    }
}

/// The window, and which layers have it.
fn windows(
    keys: &Keys<'_>,
    windows: Windows,
    layers: usize,
) -> Result<(Option<usize>, Vec<bool>), ConfigError> {
    let none = (None, vec![false; layers]);
    let Windows::Pattern { pattern, default, .. } = windows else { return Ok(none) };
    let name = "attention.sliding_window";
    let window = match keys.value(name) {
        None => default,
        Some(value) if value.as_u64() == Some(0) => None,
        Some(_) => keys.optional(name, 1 << 24)?,
    };
    let Some(window) = window else { return Ok(none) };
    let name = "attention.sliding_window_pattern";
    let every = |pattern: usize| {
        // Of a pattern of zero layers none sees everything.
        (0..layers).map(|layer| pattern == 0 || layer % pattern + 1 < pattern).collect()
    };
    let windowed = match keys.value(name) {
        None => every(pattern),
        Some(Value::Numbers(list)) if list.len() >= layers => {
            list.iter().take(layers).map(|flag| flag != 0).collect()
        }
        Some(value) => match value.as_u64().and_then(|pattern| usize::try_from(pattern).ok()) {
            Some(pattern) => every(pattern),
            None => return Err(keys.senseless(name, value)),
        },
    };
    Ok((Some(window), windowed))
}
