//! Small files that have the header of a model.

use correx_gguf::TensorType;
use correx_gguf::testing::Writer;

/// A file of about `bytes` bytes with the header of a llama model and one matrix of no use.
pub fn small_model(bytes: usize) -> Vec<u8> {
    model_of("llama", bytes)
}

/// The same for another architecture.
pub fn model_of(architecture: &str, bytes: usize) -> Vec<u8> {
    model_with_type(architecture, TensorType::F32, bytes)
}

/// The same with weights of another type.
pub fn model_with_type(architecture: &str, kind: TensorType, bytes: usize) -> Vec<u8> {
    let block = kind.block_bytes();
    let blocks = (bytes / 2 / block).max(8);
    let columns = blocks * kind.block_size();
    // Bytes that are told apart wherever a transfer may have mixed them up.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    let data: Vec<u8> = (0..2 * blocks * block).map(|_| byte()).collect();
    Writer::new()
        .entry("general.architecture", architecture)
        .entry(&format!("{architecture}.context_length"), 2048_u32)
        .tensor("token_embd.weight", kind, &[2, columns], data)
        .to_bytes()
}
