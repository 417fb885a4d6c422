//! Which tokens end a turn.

/// The texts under which models know the end of a turn. Files often name only one of several.
const TURN_ENDS: &[&str] = &[
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<|endofturn|>",
    "<|return|>",
    "<EOT>",
    "</s>",
];

/// Whether a control token with this text ends the model's turn.
pub(super) fn ends_a_turn(text: &str) -> bool {
    TURN_ENDS.contains(&text)
}
