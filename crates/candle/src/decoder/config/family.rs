//! What distinguishes the model families, as data.
//!
//! The facts are those that llama.cpp goes by: its converters decide what a file holds.

use std::fmt;

/// Model families that the decoder runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// Llama and what is built like it (SmolLM2, Mistral 7B to Small 3).
    Llama,
    /// Ministral 3: Llama whose queries are scaled by their position.
    Mistral3,
    /// Qwen 2 and 2.5: biases at query, key and value.
    Qwen2,
    /// Qwen 3: norms of query and key.
    Qwen3,
    /// Gemma 2: every other layer sees a window; soft caps.
    Gemma2,
    /// Gemma 3: five of six layers see a window and rotate by a base of their own.
    Gemma3,
    /// Phi 3, 3.5 and 4: fused weights, long contexts by factors.
    Phi3,
    /// SmolLM 3: every fourth layer does without rotation.
    SmolLm3,
    /// Qwen 2 with experts, one of them shared.
    Qwen2Moe,
    /// Qwen 3 with experts.
    Qwen3Moe,
    /// OLMo 2 and 3: norms behind the parts only.
    Olmo2,
    /// OLMo with experts.
    OlMoe,
    /// GLM 4: half of a head rotates.
    Glm4,
    /// Granite 3 and 4: scales between the parts.
    Granite,
    /// Granite with experts.
    GraniteMoe,
    /// Gemma 1.
    Gemma,
    /// EXAONE 3 and 3.5.
    Exaone,
    /// InternLM 2 and 2.5.
    InternLm2,
    /// LFM 2: short convolutions in most layers, attention in the others.
    Lfm2,
    /// LFM 2 with experts.
    Lfm2Moe,
}

impl Architecture {
    /// All of them.
    pub const ALL: [Architecture; 20] = [
        Architecture::Llama,
        Architecture::Mistral3,
        Architecture::Qwen2,
        Architecture::Qwen3,
        Architecture::Gemma2,
        Architecture::Gemma3,
        Architecture::Phi3,
        Architecture::SmolLm3,
        Architecture::Qwen2Moe,
        Architecture::Qwen3Moe,
        Architecture::Olmo2,
        Architecture::OlMoe,
        Architecture::Glm4,
        Architecture::Granite,
        Architecture::GraniteMoe,
        Architecture::Gemma,
        Architecture::Exaone,
        Architecture::InternLm2,
        Architecture::Lfm2,
        Architecture::Lfm2Moe,
    ];

    /// The name in a GGUF file.
    pub fn name(self) -> &'static str {
        self.family().name
    }

    pub(in crate::decoder) fn family(self) -> &'static Family {
        match self {
            Architecture::Llama => &LLAMA,
            Architecture::Mistral3 => &MISTRAL3,
            Architecture::Qwen2 => &QWEN2,
            Architecture::Qwen3 => &QWEN3,
            Architecture::Gemma2 => &GEMMA2,
            Architecture::Gemma3 => &GEMMA3,
            Architecture::Phi3 => &PHI3,
            Architecture::SmolLm3 => &SMOLLM3,
            Architecture::Qwen2Moe => &QWEN2MOE,
            Architecture::Qwen3Moe => &QWEN3MOE,
            Architecture::Olmo2 => &OLMO2,
            Architecture::OlMoe => &OLMOE,
            Architecture::Glm4 => &GLM4,
            Architecture::Granite => &GRANITE,
            Architecture::GraniteMoe => &GRANITEMOE,
            Architecture::Gemma => &GEMMA,
            Architecture::Exaone => &EXAONE,
            Architecture::InternLm2 => &INTERNLM2,
            Architecture::Lfm2 => &LFM2,
            Architecture::Lfm2Moe => &LFM2MOE,
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What all models of a family have in common.
#[derive(Debug)]
pub(in crate::decoder) struct Family {
    /// The name in a GGUF file.
    pub(in crate::decoder) name: &'static str,
    pub(in crate::decoder) pairs: Pairs,
    /// The norms of query and key.
    pub(in crate::decoder) query_key_norms: QueryKeyNorms,
    pub(in crate::decoder) norms: Norms,
    /// The name of the norm before the output.
    pub(in crate::decoder) output_norm: &'static str,
    pub(in crate::decoder) gate: Gate,
    /// `ffn_up` holds the gate's rows, then those of the projection that is gated.
    pub(in crate::decoder) fused_gate: bool,
    /// The embedding is multiplied by the root of its width.
    pub(in crate::decoder) scaled_embedding: bool,
    pub(in crate::decoder) factors: Factors,
    pub(in crate::decoder) windows: Windows,
    /// The cap of attention scores unless the file says another.
    pub(in crate::decoder) attention_cap: Cap,
    /// The cap of the logits unless the file says another.
    pub(in crate::decoder) logit_cap: Cap,
    /// Layers of the one size whose queries are scaled by width over heads, not by the head.
    pub(in crate::decoder) scaled_by_width_at: Option<usize>,
    /// The last of so many layers does without rotation, and so on.
    pub(in crate::decoder) unrotated_every: Option<usize>,
    /// YaRN's numbers and the scale of queries are read from the file.
    pub(in crate::decoder) tuned_yarn: bool,
    /// Embedding, attention, what a part adds to the state, and logits are scaled as the file says.
    pub(in crate::decoder) scales: bool,
    /// Whether to rotate at all is read from the file.
    pub(in crate::decoder) rotation_is_told: bool,
    /// What becomes of experts, where a file has some; `None`: they are refused.
    pub(in crate::decoder) mixture: Option<Mixture>,
    /// Layers without heads of keys convolve instead of attending.
    pub(in crate::decoder) convolutions: bool,
}

/// Where norms stand around attention and feed-forward part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decoder) enum Norms {
    Before,
    BeforeAndAfter,
    After,
}

impl Norms {
    pub(in crate::decoder) fn before(self) -> bool {
        self != Norms::After
    }

    pub(in crate::decoder) fn after(self) -> bool {
        self != Norms::Before
    }
}

/// How a family makes use of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decoder) struct Mixture {
    /// What makes scores of the router's numbers, unless the file says; `None`: it has to.
    pub(in crate::decoder) scores: Option<Scores>,
    /// The shares of the chosen experts are divided by their sum.
    pub(in crate::decoder) whole: bool,
    /// The experts have a width of their own.
    pub(in crate::decoder) own_width: bool,
    pub(in crate::decoder) shared: Shared,
    /// The first layers do without experts, as many as the file says; a bias has a say in which
    /// experts are chosen.
    pub(in crate::decoder) led: bool,
}

/// What makes scores of the numbers by which a router tells experts apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decoder) enum Scores {
    /// They add up to one.
    Softmax,
    /// Each by itself.
    Sigmoid,
}

/// An expert for every token, beside the chosen ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decoder) enum Shared {
    None,
    /// Where the file names a width for it.
    Added,
    /// Times a share that depends on the token.
    Gated,
}

/// Which two elements of a head are rotated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decoder) enum Pairs {
    /// 0 and 1, 2 and 3, …
    Neighbours,
    /// The first half with the second.
    Halves,
}

/// Norms of query and key before they are rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decoder) enum QueryKeyNorms {
    None,
    /// Every head by itself, by the same weights.
    Head,
    /// All heads together.
    Row,
}

/// What the feed-forward part does to its gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decoder) enum Gate {
    Silu,
    /// By the hyperbolic tangent.
    Gelu,
}

/// A soft cap: scores are kept below it by a hyperbolic tangent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::decoder) enum Cap {
    /// Never, whatever the file says.
    Ignored,
    /// As the file says; this where it says nothing.
    Read { default: Option<f64> },
}

/// Where a file has factors that divide the speeds of rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decoder) enum Factors {
    None,
    /// `rope_freqs`; with `longrope` scaling two lists instead, for short and long contexts.
    Scaling,
    /// Always two lists, for short and long contexts.
    ShortAndLong,
}

/// Which layers see only the last tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::decoder) enum Windows {
    /// None, whatever the file says.
    Ignored,
    /// All but the last of every `pattern` layers, unless the file says otherwise.
    Pattern {
        pattern: usize,
        /// The window where the file names none; `None`: then no layer has one.
        default: Option<usize>,
        /// How layers with a window rotate.
        local: Local,
    },
}

/// How layers with a window rotate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::decoder) enum Local {
    /// As all others, unless the file names a base for them.
    AsOthers,
    /// By a base of their own, unscaled.
    Unscaled { base: f64 },
    /// By the base of all others, unscaled and never magnified.
    Plain,
}

const LLAMA: Family = Family {
    name: "llama",
    pairs: Pairs::Neighbours,
    query_key_norms: QueryKeyNorms::None,
    norms: Norms::Before,
    output_norm: "output_norm.weight",
    gate: Gate::Silu,
    fused_gate: false,
    scaled_embedding: false,
    factors: Factors::Scaling,
    // Mistral's first models name a window; llama.cpp attends to everything.
    windows: Windows::Ignored,
    attention_cap: Cap::Ignored,
    logit_cap: Cap::Ignored,
    scaled_by_width_at: None,
    unrotated_every: None,
    tuned_yarn: false,
    scales: false,
    rotation_is_told: false,
    mixture: Some(MIXTURE),
    convolutions: false,
};

/// Mixtral's.
const MIXTURE: Mixture = Mixture {
    scores: Some(Scores::Softmax),
    whole: true,
    own_width: false,
    shared: Shared::None,
    led: false,
};

/// What has no experts.
const DENSE: Family = Family { mixture: None, ..LLAMA };

const MISTRAL3: Family = Family { name: "mistral3", tuned_yarn: true, ..DENSE };

const QWEN2: Family =
    Family { name: "qwen2", pairs: Pairs::Halves, factors: Factors::None, ..DENSE };

const QWEN3: Family = Family { name: "qwen3", query_key_norms: QueryKeyNorms::Head, ..QWEN2 };

const GEMMA2: Family = Family {
    name: "gemma2",
    pairs: Pairs::Halves,
    norms: Norms::BeforeAndAfter,
    gate: Gate::Gelu,
    scaled_embedding: true,
    factors: Factors::None,
    windows: Windows::Pattern { pattern: 2, default: Some(4096), local: Local::AsOthers },
    attention_cap: Cap::Read { default: Some(50.0) },
    logit_cap: Cap::Read { default: Some(30.0) },
    // The one of 27 billion weights.
    scaled_by_width_at: Some(46),
    ..DENSE
};

const GEMMA3: Family = Family {
    name: "gemma3",
    query_key_norms: QueryKeyNorms::Head,
    windows: Windows::Pattern {
        pattern: 6,
        default: None,
        local: Local::Unscaled { base: 10_000.0 },
    },
    attention_cap: Cap::Ignored,
    logit_cap: Cap::Read { default: None },
    scaled_by_width_at: Some(62),
    ..GEMMA2
};

const PHI3: Family = Family {
    name: "phi3",
    pairs: Pairs::Halves,
    fused_gate: true,
    factors: Factors::ShortAndLong,
    // Its files name windows that its models do not need; llama.cpp attends to everything.
    windows: Windows::Ignored,
    ..DENSE
};

const SMOLLM3: Family =
    Family { name: "smollm3", factors: Factors::None, unrotated_every: Some(4), ..DENSE };

const QWEN2MOE: Family = Family {
    name: "qwen2moe",
    mixture: Some(Mixture { whole: false, own_width: true, shared: Shared::Gated, ..MIXTURE }),
    ..QWEN2
};

const QWEN3MOE: Family =
    Family { name: "qwen3moe", mixture: Some(Mixture { own_width: true, ..MIXTURE }), ..QWEN3 };

const OLMO2: Family = Family {
    name: "olmo2",
    query_key_norms: QueryKeyNorms::Row,
    norms: Norms::After,
    windows: Windows::Pattern { pattern: 4, default: None, local: Local::Plain },
    ..QWEN2
};

const OLMOE: Family = Family {
    name: "olmoe",
    query_key_norms: QueryKeyNorms::Row,
    mixture: Some(Mixture { whole: false, ..MIXTURE }),
    ..QWEN2
};

const GLM4: Family = Family {
    name: "glm4",
    norms: Norms::BeforeAndAfter,
    fused_gate: true,
    factors: Factors::None,
    ..DENSE
};

const GRANITE: Family = Family {
    name: "granite",
    scales: true,
    rotation_is_told: true,
    mixture: Some(Mixture { shared: Shared::Added, ..MIXTURE }),
    ..LLAMA
};

const GRANITEMOE: Family = Family { name: "granitemoe", rotation_is_told: false, ..GRANITE };

const GEMMA: Family = Family {
    name: "gemma",
    pairs: Pairs::Halves,
    gate: Gate::Gelu,
    scaled_embedding: true,
    factors: Factors::None,
    ..DENSE
};

const EXAONE: Family = Family { name: "exaone", pairs: Pairs::Halves, ..DENSE };

const INTERNLM2: Family = Family { name: "internlm2", factors: Factors::None, ..DENSE };

const LFM2: Family = Family {
    name: "lfm2",
    query_key_norms: QueryKeyNorms::Head,
    output_norm: "token_embd_norm.weight",
    // All layers that attend.
    windows: Windows::Pattern { pattern: 0, default: None, local: Local::AsOthers },
    convolutions: true,
    ..QWEN2
};

const LFM2MOE: Family = Family {
    name: "lfm2moe",
    windows: Windows::Ignored,
    mixture: Some(Mixture { scores: None, own_width: true, led: true, ..MIXTURE }),
    ..LFM2
};
