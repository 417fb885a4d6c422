//! Models whose layers differ, or do more than attention and one gated projection: experts,
//! convolutions, scales, norms at other places.

use super::*;

/// All of them.
pub(super) fn all() -> Vec<Model> {
    let mut models = mixtures();
    models.extend(others());
    models.extend(convolutions());
    models
}

const EXPERTS: Experts =
    Experts { count: 8, inner: 48, shared: None, shared_gate: false, bias: false, dense: 0 };

/// Every token asks `used` of the experts; one more or less moves the logits far.
fn mixture(used: u32, experts: Experts, model: Model) -> Model {
    let mut more = vec![
        ("expert_count", U32(experts.count as u32)),
        ("expert_used_count", U32(used)),
        ("expert_feed_forward_length", U32(experts.inner as u32)),
    ];
    more.extend(
        experts.shared.map(|width| ("expert_shared_feed_forward_length", U32(width as u32))),
    );
    more.extend(model.more);
    let mut matter = model.matter;
    matter.extend([("expert_used_count", U32(used - 1)), ("expert_used_count", U32(used + 1))]);
    Model { more, matter, experts: Some(experts), ..model }
}

fn mixtures() -> Vec<Model> {
    let biases = Parts { query_key_biases: true, ..UNTIED };
    let norms = Parts { query_key_norms: true, ..PLAIN };
    let rows = Parts { norms_of_rows: true, output: true, ..norms };
    vec![
        mixture(3, EXPERTS, Model { head: 32, ..model("qwen3moe", "qwen3moe", norms) }),
        mixture(
            3,
            Experts { shared: Some(80), shared_gate: true, ..EXPERTS },
            model("qwen2moe", "qwen2moe", biases),
        ),
        // As wide as the feed-forward part is said to be.
        mixture(2, Experts { inner: 96, ..EXPERTS }, model("llama-experts", "llama", UNTIED)),
        mixture(
            3,
            Experts { inner: 96, ..EXPERTS },
            Model { kv_heads: 4, ..model("olmoe", "olmoe", rows) },
        ),
        mixture(
            2,
            Experts { inner: 96, shared: Some(56), ..EXPERTS },
            scaled(model("granitemoe", "granitemoe", PLAIN)),
        ),
    ]
}

/// The scales of Granite.
fn scaled(model: Model) -> Model {
    let mut more = vec![
        ("embedding_scale", F32(2.5)),
        ("residual_scale", F32(0.6)),
        ("attention.scale", F32(0.3)),
        ("logit_scale", F32(4.0)),
    ];
    more.extend(model.more);
    let mut matter = model.matter;
    matter.extend([
        ("embedding_scale", F32(2.0)),
        ("residual_scale", F32(0.7)),
        ("attention.scale", F32(0.25)),
        ("logit_scale", F32(3.9)),
    ]);
    Model { more, matter, ..model }
}

fn others() -> Vec<Model> {
    let glm = Parts { post_norms: true, fused_gate: true, query_key_biases: true, ..PLAIN };
    let olmo = Parts {
        output: true,
        norms_behind_only: true,
        query_key_norms: true,
        norms_of_rows: true,
        ..PLAIN
    };
    let mut windowed = yarn(4.0, 48);
    windowed.extend([
        ("attention.sliding_window", U32(24)),
        ("rope.scaling.attn_factor", F32(1.2)),
        ("rope.freq_base", F32(500_000.0)),
    ]);
    let granite = scaled(model("granite", "granite", PLAIN));
    let mut unrotated = granite.more.clone();
    unrotated.push(("rope.scaling.finetuned", Flag(false)));
    vec![
        Model {
            more: vec![("rope.dimension_count", U32(8))],
            matter: vec![("rope.freq_base", F32(9000.0)), ("rope.dimension_count", U32(16))],
            ..model("glm4", "glm4", glm)
        },
        Model { kv_heads: 4, ..model("olmo2", "olmo2", olmo) },
        Model {
            layers: 5,
            more: windowed,
            matter: vec![
                ("attention.sliding_window", U32(23)),
                ("attention.sliding_window", U32(25)),
                ("rope.scaling.attn_factor", F32(1.0)),
                ("rope.scaling.factor", F32(3.0)),
            ],
            ..model("olmo2-window", "olmo2", olmo)
        },
        Model {
            name: "granite-unrotated",
            more: unrotated,
            matter: vec![("rope.scaling.finetuned", Flag(true))],
            ..granite.clone()
        },
        granite,
        Model { spread: 6.0, peak: 12.0, ..model("gemma", "gemma", PLAIN) },
        Model {
            factors: vec![("rope_freqs.weight", [1.0, 8.0])],
            ..model("exaone", "exaone", PLAIN)
        },
        model("internlm2", "internlm2", UNTIED),
    ]
}

fn convolutions() -> Vec<Model> {
    let norms = Parts { query_key_norms: true, ..PLAIN };
    let more = vec![("shortconv.l_cache", U32(3))];
    let lfm2 = Model {
        layers: 5,
        convolutions: vec![0, 1, 3],
        more: more.clone(),
        ..model("lfm2", "lfm2", norms)
    };
    let mut windowed = more.clone();
    windowed.push(("attention.sliding_window", U32(24)));
    let mut scored = more;
    scored.extend([("leading_dense_block_count", U32(2)), ("expert_gating_func", U32(2))]);
    let experts = Experts { dense: 2, bias: true, ..EXPERTS };
    let mut mixed = mixture(
        3,
        experts,
        Model { name: "lfm2moe", family: "lfm2moe", more: scored, ..lfm2.clone() },
    );
    mixed.matter.push(("expert_gating_func", U32(1)));
    vec![
        Model {
            name: "lfm2-window",
            more: windowed,
            matter: vec![
                ("attention.sliding_window", U32(23)),
                ("attention.sliding_window", U32(25)),
            ],
            ..lfm2.clone()
        },
        lfm2,
        mixed,
    ]
}
