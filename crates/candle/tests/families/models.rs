//! Small models in full precision, one for every family and variant, the same on every machine.
//!
//! Their weights are random but scaled so that attention is peaked: a wrong rotation, window or
//! cap moves the logits far (`a_wrong_number_moves_the_logits_far` sees to it).

use correx_gguf::testing::Writer;
use correx_gguf::{Numbers, TensorType, Value};
use half::{bf16, f16};

// Said, because the example `peer` takes this file from another folder.
#[path = "mixed.rs"]
mod mixed;

/// Tokens of every vocabulary.
pub(crate) const VOCABULARY: usize = 128;

/// A value of the metadata.
#[derive(Clone)]
pub(crate) enum Meta {
    /// A whole number.
    U32(u32),
    /// A number.
    F32(f32),
    /// A text.
    Text(&'static str),
    /// A truth value.
    Flag(bool),
    /// A list of truth values.
    Flags(Vec<bool>),
    /// A list of whole numbers.
    Counts(Vec<u32>),
}

/// A small model, and what it is asked.
#[derive(Clone)]
pub(crate) struct Model {
    /// What it is called, here and in the reference.
    pub(crate) name: &'static str,
    /// The name of the family.
    pub(crate) family: &'static str,
    /// The window that it is given.
    pub(crate) window: u32,
    /// Tokens of the text.
    pub(crate) length: usize,
    /// The largest difference of a logit, as a share of the largest logit.
    pub(crate) tolerance: f32,
    /// How many of its positions are compared.
    compared: usize,
    layers: usize,
    width: usize,
    inner: usize,
    heads: usize,
    kv_heads: usize,
    head: usize,
    context: u32,
    /// How matrices are stored.
    kind: TensorType,
    parts: Parts,
    experts: Option<Experts>,
    /// The layers that convolve instead of attending.
    convolutions: Vec<usize>,
    /// How far apart attention scores lie.
    peak: f32,
    /// How far apart logits lie.
    spread: f32,
    /// Further metadata, without the family's name in front.
    more: Vec<(&'static str, Meta)>,
    /// Factors of rotation by the tensors' names.
    factors: Vec<(&'static str, [f32; 2])>,
    /// Numbers that matter: each, changed like this, moves the logits far.
    pub(crate) matter: Vec<(&'static str, Meta)>,
}

/// Which weights a model has beside those that all have.
#[derive(Clone, Copy, Default)]
struct Parts {
    output: bool,
    output_bias: bool,
    query_key_biases: bool,
    other_biases: bool,
    query_key_norms: bool,
    post_norms: bool,
    fused: bool,
    /// Only the gate is fused.
    fused_gate: bool,
    norms_behind_only: bool,
    /// Norms of query and key over all heads.
    norms_of_rows: bool,
}

/// The experts of a model.
#[derive(Clone, Copy)]
struct Experts {
    count: usize,
    inner: usize,
    /// Width of the shared one.
    shared: Option<usize>,
    shared_gate: bool,
    bias: bool,
    /// Layers at the beginning without.
    dense: usize,
}

const PLAIN: Parts = Parts {
    output: false,
    output_bias: false,
    query_key_biases: false,
    other_biases: false,
    query_key_norms: false,
    post_norms: false,
    fused: false,
    fused_gate: false,
    norms_behind_only: false,
    norms_of_rows: false,
};
const UNTIED: Parts = Parts { output: true, ..PLAIN };
const GEMMA: Parts = Parts { post_norms: true, ..PLAIN };
const GEMMA3: Parts = Parts { query_key_norms: true, ..GEMMA };

use Meta::{Counts, F32, Flag, Flags, Text, U32};

fn model(name: &'static str, family: &'static str, parts: Parts) -> Model {
    Model {
        name,
        family,
        window: 512,
        length: 160,
        tolerance: 1e-3,
        compared: 6,
        layers: 3,
        width: 64,
        inner: 96,
        heads: 4,
        kv_heads: 2,
        head: 16,
        context: 512,
        kind: TensorType::F32,
        parts,
        experts: None,
        convolutions: Vec::new(),
        peak: 3.0,
        spread: 4.0,
        more: Vec::new(),
        factors: Vec::new(),
        matter: vec![("rope.freq_base", F32(9000.0))],
    }
}

fn yarn(factor: f32, original: u32) -> Vec<(&'static str, Meta)> {
    vec![
        ("rope.scaling.type", Text("yarn")),
        ("rope.scaling.factor", F32(factor)),
        ("rope.scaling.original_context_length", U32(original)),
    ]
}

/// All models.
pub(crate) fn all() -> Vec<Model> {
    let mut models = llamas();
    models.extend(qwens());
    models.extend(gemmas());
    models.extend(others());
    models.extend(mixed::all());
    models
}

fn llamas() -> Vec<Model> {
    let mistral = Model {
        more: vec![("attention.sliding_window", U32(24)), ("rope.freq_base", F32(1_000_000.0))],
        ..model("llama-window", "llama", UNTIED)
    };
    let biases = Parts { query_key_biases: true, other_biases: true, ..PLAIN };
    let mut yarned = yarn(4.0, 48);
    yarned.push(("rope.scaling.attn_factor", F32(0.9)));
    let mut tuned = yarn(8.0, 64);
    tuned.extend([
        ("rope.scaling.yarn_beta_fast", F32(2.0)),
        ("rope.scaling.yarn_beta_slow", F32(0.5)),
        ("rope.scaling.yarn_log_multiplier", F32(0.5)),
        ("attention.temperature_scale", F32(0.3)),
    ]);
    vec![
        model("llama", "llama", PLAIN),
        Model { kind: TensorType::F16, ..model("llama-f16", "llama", UNTIED) },
        // Activations are rounded to as few digits as the weights have.
        Model { kind: TensorType::BF16, tolerance: 1e-2, ..model("llama-bf16", "llama", UNTIED) },
        model("llama-biases", "llama", biases),
        mistral,
        Model { head: 24, ..model("llama-wide-heads", "llama", UNTIED) },
        Model {
            more: vec![("rope.scaling.type", Text("linear")), ("rope.scaling.factor", F32(4.0))],
            matter: vec![("rope.scaling.factor", F32(3.0))],
            ..model("llama-linear", "llama", PLAIN)
        },
        Model {
            more: vec![("rope.scale_linear", F32(2.0))],
            matter: vec![("rope.scale_linear", F32(2.2))],
            ..model("llama-linear-of-old", "llama", PLAIN)
        },
        Model {
            more: vec![("rope.freq_base", F32(500_000.0))],
            factors: vec![("rope_freqs.weight", [1.0, 8.0])],
            ..model("llama-factors", "llama", UNTIED)
        },
        Model {
            more: yarned,
            matter: vec![
                ("rope.scaling.factor", F32(5.0)),
                ("rope.scaling.attn_factor", F32(1.0)),
                ("rope.scaling.original_context_length", U32(96)),
            ],
            ..model("llama-yarn", "llama", PLAIN)
        },
        Model {
            more: tuned,
            matter: vec![
                ("rope.scaling.yarn_beta_fast", F32(32.0)),
                ("rope.scaling.yarn_beta_slow", F32(4.0)),
                ("rope.scaling.yarn_log_multiplier", F32(0.2)),
                ("attention.temperature_scale", F32(0.2)),
            ],
            ..model("mistral3", "mistral3", PLAIN)
        },
        Model {
            window: 768,
            length: 520,
            context: 1024,
            more: vec![
                ("rope.scaling.type", Text("longrope")),
                ("rope.scaling.original_context_length", U32(256)),
            ],
            factors: vec![
                ("rope_factors_short.weight", [1.0, 1.5]),
                ("rope_factors_long.weight", [1.0, 6.0]),
            ],
            ..model("llama-longrope", "llama", PLAIN)
        },
    ]
}

fn qwens() -> Vec<Model> {
    let biases = Parts { query_key_biases: true, ..PLAIN };
    let norms = Parts { query_key_norms: true, ..PLAIN };
    vec![
        Model {
            more: vec![("rope.freq_base", F32(1_000_000.0))],
            ..model("qwen2", "qwen2", biases)
        },
        Model {
            more: yarn(4.0, 64),
            matter: vec![("rope.scaling.factor", F32(3.0))],
            ..model("qwen2-yarn", "qwen2", Parts { output: true, output_bias: true, ..biases })
        },
        Model {
            head: 32,
            more: vec![("rope.freq_base", F32(1_000_000.0))],
            ..model("qwen3", "qwen3", norms)
        },
        Model {
            more: yarn(4.0, 64),
            matter: vec![("rope.scaling.factor", F32(3.0))],
            ..model("qwen3-yarn", "qwen3", Parts { output: true, ..norms })
        },
    ]
}

fn gemmas() -> Vec<Model> {
    let window = ("attention.sliding_window", U32(24));
    let (narrower, wider) =
        (("attention.sliding_window", U32(23)), ("attention.sliding_window", U32(25)));
    let bases = [("rope.freq_base", F32(1_000_000.0)), ("rope.freq_base_swa", F32(10_000.0))];
    let other_bases = [("rope.freq_base", F32(100_000.0)), ("rope.freq_base_swa", F32(15_000.0))];
    let caps = vec![
        window.clone(),
        ("attn_logit_softcapping", F32(6.0)),
        ("final_logit_softcapping", F32(12.0)),
    ];
    let narrow = |model: Model| Model {
        width: 32,
        inner: 32,
        heads: 2,
        kv_heads: 1,
        head: 24,
        length: 72,
        compared: 4,
        // So many layers would make much of the smallest difference.
        peak: 1.5,
        ..model
    };
    let gemma3 = Model {
        layers: 7,
        head: 32,
        kv_heads: 1,
        more: [&[window.clone()][..], &bases].concat(),
        matter: [&[narrower.clone(), wider.clone()][..], &other_bases].concat(),
        ..model("gemma3", "gemma3", GEMMA3)
    };
    let mut stretched = gemma3.more.clone();
    stretched.extend([
        ("rope.scaling.type", Text("linear")),
        ("rope.scaling.factor", F32(8.0)),
        ("final_logit_softcapping", F32(10.0)),
    ]);
    let mut listed = gemma3.more.clone();
    listed.push(("attention.sliding_window_pattern", Flags(vec![true, false, true])));
    vec![
        Model {
            layers: 4,
            head: 24,
            spread: 6.0,
            more: caps.clone(),
            matter: vec![
                narrower.clone(),
                wider.clone(),
                ("attn_logit_softcapping", F32(7.0)),
                ("final_logit_softcapping", F32(13.0)),
                ("rope.freq_base", F32(9000.0)),
            ],
            ..model("gemma2", "gemma2", GEMMA)
        },
        // As large as the default caps and window allow.
        Model { layers: 2, spread: 15.0, peak: 12.0, ..model("gemma2-defaults", "gemma2", GEMMA) },
        // The number of layers says which size it is, and how queries are scaled.
        narrow(Model { layers: 46, more: caps, ..model("gemma2-27b", "gemma2", GEMMA) }),
        narrow(Model {
            layers: 62,
            more: [&[window.clone()][..], &bases].concat(),
            matter: other_bases.to_vec(),
            ..model("gemma3-27b", "gemma3", GEMMA3)
        }),
        Model {
            matter: vec![("rope.scaling.factor", F32(7.0)), ("final_logit_softcapping", F32(9.0))],
            name: "gemma3-linear",
            more: stretched,
            ..gemma3.clone()
        },
        Model {
            name: "gemma3-pattern",
            layers: 3,
            more: listed,
            matter: vec![("attention.sliding_window_pattern", Flags(vec![true, true, false]))],
            ..gemma3.clone()
        },
        Model {
            name: "gemma3-no-window",
            layers: 3,
            more: bases.to_vec(),
            matter: vec![other_bases[0].clone()],
            ..gemma3.clone()
        },
        gemma3,
    ]
}

fn others() -> Vec<Model> {
    let fused = Parts { fused: true, output: true, ..PLAIN };
    let phi3 = Model {
        heads: 4,
        kv_heads: 4,
        context: 1024,
        more: vec![
            ("rope.dimension_count", U32(12)),
            ("rope.scaling.original_context_length", U32(256)),
            ("rope.scaling.attn_factor", F32(1.19)),
            ("attention.sliding_window", U32(24)),
        ],
        factors: vec![
            ("rope_factors_short.weight", [1.0, 1.5]),
            ("rope_factors_long.weight", [1.0, 6.0]),
        ],
        matter: vec![("rope.freq_base", F32(9000.0)), ("rope.scaling.attn_factor", F32(1.0))],
        ..model("phi3", "phi3", fused)
    };
    vec![
        Model { name: "phi3-short", window: 256, ..phi3.clone() },
        Model {
            window: 768,
            length: 520,
            name: "phi3-long",
            matter: vec![("rope.scaling.original_context_length", U32(768))],
            ..phi3
        },
        model("phi3-plain", "phi3", Parts { output: false, ..fused }),
        Model {
            layers: 5,
            more: vec![("rope.freq_base", F32(5_000_000.0))],
            ..model("smollm3", "smollm3", PLAIN)
        },
    ]
}

/// Numbers from -1 to 1 that look random.
struct Draws(u64);

impl Draws {
    /// A sequence of its own for every name.
    fn of(name: &str) -> Self {
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
    }

    /// The next 24 bits, by SplitMix64.
    fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as u32
    }

    fn next(&mut self) -> f32 {
        self.bits() as f32 / (1u32 << 23) as f32 - 1.0
    }
}

/// A tensor: its shape (rows first), and its numbers.
struct Tensor {
    name: String,
    shape: Vec<usize>,
    numbers: Vec<f32>,
}

/// What a tensor is called, and whether it is more than a row.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    is_matrix: bool,
}

impl Model {
    /// The ids of the text.
    pub(crate) fn ids(&self) -> Vec<u32> {
        let mut draws = Draws::of(&format!("{} ids", self.name));
        (0..self.length).map(|_| draws.bits() % VOCABULARY as u32).collect()
    }

    /// The positions whose logits are compared.
    pub(crate) fn positions(&self) -> Vec<usize> {
        let last = self.compared - 1;
        (0..=last).map(|number| (self.length - 1) * number / last).collect()
    }

    /// The model's file.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.writer().to_bytes()
    }

    /// What writes the model's file.
    pub(crate) fn writer(&self) -> Writer {
        self.writer_as(|tensor, numbers| {
            let kind = if tensor.is_matrix { self.kind } else { TensorType::F32 };
            let numbers = numbers.iter();
            let bytes: Vec<u8> = match kind {
                TensorType::F16 => numbers.flat_map(|n| f16::from_f32(*n).to_le_bytes()).collect(),
                TensorType::BF16 => {
                    numbers.flat_map(|n| bf16::from_f32(*n).to_le_bytes()).collect()
                }
                _ => numbers.flat_map(|n| n.to_le_bytes()).collect(),
            };
            (kind, bytes)
        })
    }

    /// What writes the model's file, its tensors stored as `store` says.
    pub(crate) fn writer_as(
        &self,
        store: impl Fn(Named<'_>, &[f32]) -> (TensorType, Vec<u8>),
    ) -> Writer {
        let mut file = Writer::new();
        for (key, value) in self.metadata() {
            file = match value {
                // Lists have no form of their own in memory.
                Flags(flags) => {
                    file.raw_entry(&key, LIST, &list(BOOL, &flags, |flag| [flag.into()]))
                }
                Counts(counts) => {
                    file.raw_entry(&key, LIST, &list(UINT32, &counts, u32::to_le_bytes))
                }
                value => file.entry(&key, value.value()),
            };
        }
        for tensor in self.tensors() {
            let named = Named { name: &tensor.name, is_matrix: tensor.shape.len() > 1 };
            let (kind, bytes) = store(named, &tensor.numbers);
            file = file.tensor(&tensor.name, kind, &tensor.shape, bytes);
        }
        file
    }

    fn metadata(&self) -> Vec<(String, Meta)> {
        let number = |number: usize| U32(number as u32);
        let mut of_family = vec![
            ("context_length", U32(self.context)),
            ("vocab_size", number(VOCABULARY)),
            ("block_count", number(self.layers)),
            ("embedding_length", number(self.width)),
            ("feed_forward_length", number(self.inner)),
            ("attention.head_count", number(self.heads)),
            ("attention.head_count_kv", self.head_count_kv()),
            ("attention.key_length", number(self.head)),
            ("attention.value_length", number(self.head)),
            ("attention.layer_norm_rms_epsilon", F32(1e-6)),
        ];
        of_family.extend(self.more.iter().cloned());
        let mut metadata = vec![
            ("general.architecture".to_owned(), Text(self.family)),
            // No tokens: the models are fed ids.
            ("tokenizer.ggml.model".to_owned(), Text("none")),
        ];
        let named = |(key, value): (&str, Meta)| (format!("{}.{key}", self.family), value);
        metadata.extend(of_family.into_iter().map(named));
        metadata
    }

    fn tensors(&self) -> Vec<Tensor> {
        let parts = self.parts;
        let width = self.width;
        let mut tensors = vec![
            self.matrix("token_embd.weight", VOCABULARY, width, self.spread),
            self.around_one(self.output_norm(), width, 1.0),
        ];
        if parts.output {
            tensors.push(self.matrix("output.weight", VOCABULARY, width, self.spread));
        }
        if parts.output_bias {
            tensors.push(self.bias("output.bias", VOCABULARY));
        }
        for (name, [least, most]) in &self.factors {
            let rotated = self.more.iter().find_map(|(key, value)| match (*key, value) {
                ("rope.dimension_count", U32(count)) => Some(*count as usize),
                _ => None,
            });
            let pairs = rotated.unwrap_or(self.head) / 2;
            let step = (most - least) / (pairs - 1) as f32;
            let numbers = (0..pairs).map(|pair| least + step * pair as f32).collect();
            tensors.push(Tensor { name: (*name).to_owned(), shape: vec![pairs], numbers });
        }
        for layer in 0..self.layers {
            if self.convolutions.contains(&layer) {
                tensors.extend(self.convolution(layer));
            } else {
                tensors.extend(self.attention(layer));
            }
            match self.experts {
                Some(experts) if layer >= experts.dense => {
                    tensors.extend(self.mixture(layer, experts));
                }
                _ => tensors.extend(self.feed_forward(layer)),
            }
            tensors.extend(self.norms(layer));
        }
        tensors
    }

    /// Layers that convolve have no heads of keys.
    fn head_count_kv(&self) -> Meta {
        let of_layer = |layer| match self.convolutions.contains(&layer) {
            true => 0,
            false => self.kv_heads as u32,
        };
        match self.convolutions[..] {
            [] => U32(self.kv_heads as u32),
            _ => Counts((0..self.layers).map(of_layer).collect()),
        }
    }

    fn output_norm(&self) -> &'static str {
        match self.family {
            "lfm2" | "lfm2moe" => "token_embd_norm.weight",
            _ => "output_norm.weight",
        }
    }

    fn attention(&self, layer: usize) -> Vec<Tensor> {
        let parts = self.parts;
        let (query, kv) = (self.heads * self.head, self.kv_heads * self.head);
        let name = |part: &str| format!("blk.{layer}.{part}");
        let matrix =
            |part: &str, rows, columns, gain| self.matrix(&name(part), rows, columns, gain);
        let (gain, norm) =
            if parts.query_key_norms { (1.0, self.sharp()) } else { (self.sharp(), 1.0) };
        let mut tensors = Vec::new();
        if parts.fused {
            tensors.push(matrix("attn_qkv.weight", query + 2 * kv, self.width, gain));
        } else {
            tensors.push(matrix("attn_q.weight", query, self.width, gain));
            tensors.push(matrix("attn_k.weight", kv, self.width, gain));
            tensors.push(matrix("attn_v.weight", kv, self.width, 1.0));
        }
        tensors.push(matrix("attn_output.weight", self.width, query, 1.0));
        if parts.query_key_norms {
            let (query, key) =
                if parts.norms_of_rows { (query, kv) } else { (self.head, self.head) };
            tensors.push(self.around_one(&name("attn_q_norm.weight"), query, norm));
            tensors.push(self.around_one(&name("attn_k_norm.weight"), key, norm));
        }
        if parts.query_key_biases {
            tensors.push(self.bias(&name("attn_q.bias"), query));
            tensors.push(self.bias(&name("attn_k.bias"), kv));
            tensors.push(self.bias(&name("attn_v.bias"), kv));
        }
        if parts.other_biases {
            tensors.push(self.bias(&name("attn_output.bias"), self.width));
        }
        tensors
    }

    /// Scores are products of queries and keys, so each is larger by the root.
    fn sharp(&self) -> f32 {
        self.peak.sqrt()
    }

    fn convolution(&self, layer: usize) -> Vec<Tensor> {
        let name = |part: &str| format!("blk.{layer}.shortconv.{part}.weight");
        vec![
            self.matrix(&name("conv"), self.width, 3, 1.7),
            self.matrix(&name("in_proj"), 3 * self.width, self.width, 1.0),
            self.matrix(&name("out_proj"), self.width, self.width, 1.0),
        ]
    }

    fn feed_forward(&self, layer: usize) -> Vec<Tensor> {
        let (parts, width, inner) = (self.parts, self.width, self.inner);
        let name = |part: &str| format!("blk.{layer}.{part}");
        let mut tensors = Vec::new();
        if parts.fused || parts.fused_gate {
            tensors.push(self.matrix(&name("ffn_up.weight"), 2 * inner, width, 1.0));
        } else {
            tensors.push(self.matrix(&name("ffn_gate.weight"), inner, width, 1.0));
            tensors.push(self.matrix(&name("ffn_up.weight"), inner, width, 1.0));
        }
        tensors.push(self.matrix(&name("ffn_down.weight"), width, inner, 1.0));
        if parts.other_biases {
            tensors.push(self.bias(&name("ffn_gate.bias"), inner));
            tensors.push(self.bias(&name("ffn_up.bias"), inner));
            tensors.push(self.bias(&name("ffn_down.bias"), width));
        }
        tensors
    }

    fn mixture(&self, layer: usize, experts: Experts) -> Vec<Tensor> {
        let Experts { count, inner, .. } = experts;
        let width = self.width;
        let name = |part: &str| format!("blk.{layer}.{part}");
        let stacked = |part: &str, rows, columns| {
            let matrix = self.matrix(&name(part), count * rows, columns, 1.0);
            Tensor { shape: vec![count, rows, columns], ..matrix }
        };
        let mut tensors = vec![
            self.matrix(&name("ffn_gate_inp.weight"), count, width, 1.5),
            stacked("ffn_gate_exps.weight", inner, width),
            stacked("ffn_up_exps.weight", inner, width),
            stacked("ffn_down_exps.weight", width, inner),
        ];
        if experts.bias {
            tensors.push(self.bias(&name("exp_probs_b.bias"), count));
        }
        if let Some(inner) = experts.shared {
            tensors.push(self.matrix(&name("ffn_gate_shexp.weight"), inner, width, 1.0));
            tensors.push(self.matrix(&name("ffn_up_shexp.weight"), inner, width, 1.0));
            tensors.push(self.matrix(&name("ffn_down_shexp.weight"), width, inner, 1.0));
        }
        if experts.shared_gate {
            let gate = self.matrix(&name("ffn_gate_inp_shexp.weight"), 1, width, 1.0);
            tensors.push(Tensor { shape: vec![width], ..gate });
        }
        tensors
    }

    fn norms(&self, layer: usize) -> Vec<Tensor> {
        let mut parts = Vec::new();
        if !self.parts.norms_behind_only {
            parts.extend(["attn_norm", "ffn_norm"]);
        }
        if self.parts.post_norms || self.parts.norms_behind_only {
            parts.extend(["post_attention_norm", "post_ffw_norm"]);
        }
        let norm = |part| self.around_one(&format!("blk.{layer}.{part}.weight"), self.width, 1.0);
        parts.into_iter().map(norm).collect()
    }

    /// Its products with a row of ones and minus ones are about as large as `gain`.
    fn matrix(&self, name: &str, rows: usize, columns: usize, gain: f32) -> Tensor {
        let scale = gain * (3.0 / columns as f32).sqrt();
        self.tensor(name, vec![rows, columns], |number| number * scale)
    }

    fn around_one(&self, name: &str, length: usize, about: f32) -> Tensor {
        self.tensor(name, vec![length], |number| about * (1.0 + 0.3 * number))
    }

    fn bias(&self, name: &str, length: usize) -> Tensor {
        self.tensor(name, vec![length], |number| number)
    }

    fn tensor(&self, name: &str, shape: Vec<usize>, make: impl Fn(f32) -> f32) -> Tensor {
        let mut draws = Draws::of(&format!("{} {name}", self.name));
        let count: usize = shape.iter().product();
        let numbers = (0..count).map(|_| make(draws.next())).collect();
        Tensor { name: name.to_owned(), shape, numbers }
    }
}

/// GGUF's types of a list, of a truth value and of a whole number.
const LIST: u32 = 9;
const BOOL: u32 = 7;
const UINT32: u32 = 4;

fn list<T: Copy, const N: usize>(kind: u32, values: &[T], bytes: fn(T) -> [u8; N]) -> Vec<u8> {
    let mut list = kind.to_le_bytes().to_vec();
    list.extend((values.len() as u64).to_le_bytes());
    list.extend(values.iter().flat_map(|value| bytes(*value)));
    list
}

impl Meta {
    /// As it is read from a file.
    pub(crate) fn value(&self) -> Value {
        match self {
            U32(number) => Value::Unsigned(u64::from(*number)),
            F32(number) => Value::Float(f64::from(*number)),
            Text(text) => Value::Text((*text).into()),
            Flag(flag) => Value::Bool(*flag),
            Flags(flags) => {
                Value::Numbers(flags.iter().map(|flag| i64::from(*flag)).collect::<Numbers>())
            }
            Counts(counts) => {
                Value::Numbers(counts.iter().map(|count| i64::from(*count)).collect::<Numbers>())
            }
        }
    }
}
