//! What a model needs, from its file's header.

use correx_gguf::{Gguf, TensorInfo, Value};

use crate::decoder::{DecoderConfig, KvCache, packed_kind};

/// Rows that a step computes at most at once: a chunk of a prompt.
const ROWS: u64 = 64;
/// What allocating in pages adds to a large piece, on average.
const PIECE: u64 = 2048;
/// What every model needs beside its numbers: the template, the rules of the tokenizer, the
/// engine.
const BASE: u64 = 3 << 20;
/// A thread's stack and what it allocates for itself.
const THREAD: u64 = 256 << 10;

/// The memory that a model needs, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryNeed {
    /// The weights, as they lie in memory.
    pub weights: u64,
    /// The tokenizer and what belongs to it.
    pub vocabulary: u64,
    /// What holding replies to a form (JSON, a choice) takes, from the first such reply on.
    pub forms: u64,
    /// Keys and values of one sequence that fills the context.
    pub cache: u64,
    /// What a step computes with.
    pub scratch: u64,
    /// What loading needs beside the weights, and gives back before the first prompt.
    pub loading: u64,
}

impl MemoryNeed {
    /// The most that is held at one time.
    pub fn total(&self) -> u64 {
        let held = self.weights.saturating_add(self.vocabulary);
        let working = self.forms.saturating_add(self.cache).saturating_add(self.scratch);
        held.saturating_add(working.max(self.loading))
    }
}

/// What a file's header says about the memory that its model needs, for any context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlan {
    /// The most tokens that the model was made for.
    pub model_context: usize,
    /// Without the cache.
    fixed: MemoryNeed,
    /// Numbers that a cache holds of every token.
    cached: usize,
}

impl MemoryPlan {
    /// Plans for the model of `gguf`, which has the numbers `config`, computed by `threads`
    /// threads. Reads no weights.
    pub fn new(gguf: &Gguf, config: &DecoderConfig, threads: usize) -> Self {
        let weights = gguf.tensors.values().map(|tensor| in_memory(tensor) + PIECE).sum();
        // The embedding is read first, when nothing else is there yet.
        let later = gguf.tensors.iter().filter(|(name, _)| *name != "token_embd.weight");
        let largest = later.map(|(_, tensor)| read_at_once(tensor)).max().unwrap_or(0);
        let fixed = MemoryNeed {
            weights,
            vocabulary: BASE + vocabulary(gguf),
            forms: forms(gguf),
            cache: 0,
            scratch: scratch(config) + threads as u64 * THREAD,
            loading: largest,
        };
        Self { model_context: config.context, fixed, cached: config.cached() }
    }

    /// A plan by numbers: a cache of `layers` layers of rows of `kv_width` keys.
    #[cfg(test)]
    pub(super) fn for_tests(
        weights: u64,
        layers: usize,
        kv_width: usize,
        model_context: usize,
    ) -> Self {
        let fixed = MemoryNeed { weights, ..MemoryNeed::default() };
        Self { model_context, fixed, cached: 2 * layers * kv_width }
    }

    /// The need when prompt and reply have at most `context` tokens together.
    pub fn need(&self, context: usize) -> MemoryNeed {
        let cache = KvCache::bytes_for(self.cached, context);
        MemoryNeed { cache, ..self.fixed }
    }

    /// The largest context, at most `most` tokens, whose need is at most `bytes`, in whole blocks
    /// of 256 tokens where it is less than `most`; `None`: not even one block.
    pub fn largest_context(&self, bytes: u64, most: usize) -> Option<usize> {
        const BLOCK: usize = 256;
        let fits = |context: usize| self.need(context).total() <= bytes;
        if fits(most) {
            return Some(most);
        }
        // The need grows with the context, so those that fit come first.
        let (mut fitting, mut beyond) = (0, most.div_ceil(BLOCK));
        while beyond - fitting > 1 {
            let middle = fitting + (beyond - fitting) / 2;
            if fits(middle * BLOCK) {
                fitting = middle;
            } else {
                beyond = middle;
            }
        }
        (fitting > 0).then_some(fitting * BLOCK)
    }
}

/// Bytes of a tensor once it is loaded.
fn in_memory(tensor: &TensorInfo) -> u64 {
    match *tensor.shape.as_slice() {
        // As numbers of four bytes.
        [_] => 4 * tensor.elements(),
        // As in the file, in groups of eight rows.
        [.., rows, _] if packed_kind(tensor.kind).is_some() => {
            let rows = rows as u64;
            tensor.bytes / rows.max(1) * rows.next_multiple_of(8)
        }
        _ => tensor.bytes,
    }
}

/// Bytes of what is read in one go: a tensor, or one expert of it.
fn read_at_once(tensor: &TensorInfo) -> u64 {
    match *tensor.shape.as_slice() {
        [experts, _, _] => tensor.bytes / experts.max(1) as u64,
        _ => tensor.bytes,
    }
}

/// The largest pieces that a step holds at one time.
fn scratch(config: &DecoderConfig) -> u64 {
    let (width, inner) = (config.width as u64, config.inner as u64);
    let heads = (config.heads * config.head) as u64;
    // Numbers of four bytes: the state and its copies, gate and up and their product or queries
    // and what is mixed of them, and the input of a product as integers.
    let row = 4 * (4 * width + 3 * inner.max(heads) + inner / 2);
    // Logits as a tensor and as a list, and the candidates (8 bytes each) that are ranked.
    ROWS * row + config.vocabulary as u64 * 16
}

/// What tokenizing needs: texts in both directions, merges, and the header's own copy of them,
/// which is freed but leaves its place to small things only.
fn vocabulary(gguf: &Gguf) -> u64 {
    let texts = |key: &str| {
        gguf.metadata.get(key).and_then(Value::as_texts).map_or((0, 0), |texts| {
            let bytes: usize = texts.iter().map(str::len).sum();
            (texts.len() as u64, bytes as u64)
        })
    };
    let (tokens, token_bytes) = texts("tokenizer.ggml.tokens");
    let (merges, merge_bytes) = texts("tokenizer.ggml.merges");
    tokens * TOKEN + merges * MERGE + 2 * token_bytes + merge_bytes
}

/// What is built of the vocabulary for replies in a form: every token once in a tree of bytes, and
/// again for each set of tokens that are judged together.
fn forms(gguf: &Gguf) -> u64 {
    let tokens = gguf.metadata.get("tokenizer.ggml.tokens").and_then(Value::as_texts);
    tokens.map_or(0, |tokens| tokens.len() as u64 * FORM_TOKEN)
}

/// Measured: 18 MB for 49,152 tokens, 52 MB for 151,936.
const FORM_TOKEN: u64 = 360;
/// Measured on real vocabularies of 49,152 to 151,936 tokens.
const TOKEN: u64 = 40;
const MERGE: u64 = 24;

#[cfg(test)]
mod tests {
    use correx_gguf::TensorType;

    use super::*;

    fn matrix(kind: TensorType, rows: usize, columns: usize) -> TensorInfo {
        let blocks = rows * columns / kind.block_size();
        let bytes = (blocks * kind.block_bytes()) as u64;
        TensorInfo { kind, shape: vec![rows, columns], part: 0, offset: 0, bytes }
    }

    #[test]
    fn our_own_matrices_are_filled_up_to_eight_rows_and_vectors_become_numbers() {
        let packed = matrix(TensorType::Q8_0, 17, 64);
        assert_eq!(in_memory(&packed), packed.bytes / 17 * 24);
        let vector = TensorInfo { shape: vec![100], ..matrix(TensorType::F16, 1, 100) };
        assert_eq!(in_memory(&vector), 400);
        let other = matrix(TensorType::Q4K, 17, 256);
        assert_eq!(in_memory(&other), other.bytes);
    }

    #[test]
    fn experts_count_each_by_itself() {
        let stacked = |kind, rows, columns| TensorInfo {
            shape: vec![4, rows, columns],
            ..matrix(kind, 4 * rows, columns)
        };
        let packed = stacked(TensorType::Q8_0, 17, 64);
        assert_eq!(in_memory(&packed), 4 * in_memory(&matrix(TensorType::Q8_0, 17, 64)));
        assert_eq!(read_at_once(&packed), packed.bytes / 4);
    }
}
