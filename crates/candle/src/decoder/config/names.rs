//! The names of the weights that the decoder looks at.

use correx_gguf::Gguf;

use super::family::QueryKeyNorms;
use super::{DecoderConfig, Family};

/// The first tensor that the decoder would not look at, although the model needs it.
pub(super) fn unknown_weights<'a>(gguf: &'a Gguf, config: &DecoderConfig) -> Option<&'a str> {
    gguf.tensors.keys().map(String::as_str).filter(|name| !is_known(name, config)).min()
}

fn is_known(name: &str, config: &DecoderConfig) -> bool {
    const WHOLE: [&str; 3] = ["token_embd.weight", "output.weight", "output.bias"];
    // Some files repeat what follows from the metadata.
    if WHOLE.contains(&name) || name == config.family().output_norm || name.starts_with("rope_") {
        return true;
    }
    let Some((number, part)) = name.strip_prefix("blk.").and_then(|name| name.split_once('.'))
    else {
        return false;
    };
    let in_range = number.parse::<usize>().is_ok_and(|number| number < config.layers);
    let (part, kind) = part.rsplit_once('.').unwrap_or((part, ""));
    in_range
        && match kind {
            "weight" => has_weight(part, config.family(), config),
            "bias" => LINEAR.contains(&part) || has_bias(part, config),
            _ => false,
        }
}

const LINEAR: [&str; 8] =
    ["attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_gate", "ffn_up", "ffn_down"];

fn has_weight(part: &str, family: &Family, config: &DecoderConfig) -> bool {
    let experts = config.experts.as_ref();
    match part {
        "attn_norm" | "ffn_norm" => family.norms.before(),
        "attn_rot_embd" => true,
        "attn_q_norm" | "attn_k_norm" => family.query_key_norms != QueryKeyNorms::None,
        "post_attention_norm" | "post_ffw_norm" => family.norms.after(),
        "ffn_gate_inp" | "ffn_gate_exps" | "ffn_up_exps" | "ffn_down_exps" => experts.is_some(),
        "ffn_gate_shexp" | "ffn_up_shexp" | "ffn_down_shexp" => {
            experts.is_some_and(|experts| experts.shared.is_some())
        }
        "ffn_gate_inp_shexp" => experts.is_some_and(|experts| experts.shared_is_gated),
        "shortconv.conv" | "shortconv.in_proj" | "shortconv.out_proj" => family.convolutions,
        other => LINEAR.contains(&other),
    }
}

fn has_bias(part: &str, config: &DecoderConfig) -> bool {
    part == "exp_probs_b" && config.experts.as_ref().is_some_and(|experts| experts.biased)
}
