//! What a model needs, from its file's header.

use correx_gguf::{Gguf, TensorInfo, TensorType, Value};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryNeed {
    /// The weights, as they lie in memory.
    pub weights: u64,
    /// Copies of weights in another order, which candle makes when it first multiplies with them.
    pub repacked: u64,
    /// The tokenizer and what belongs to it.
    pub vocabulary: u64,
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
        held.saturating_add(
            self.repacked.saturating_add(self.cache + self.scratch).max(self.loading),
        )
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
        let has_output = gguf.tensors.contains_key("output.weight");
        let multiplied = gguf.tensors.iter().filter(|(name, tensor)| {
            let only_looked_up = *name == "token_embd.weight" && has_output;
            packed_kind(tensor.kind).is_none() && !only_looked_up
        });
        let tiles = Tiles::of_this_machine();
        // The embedding is read first, when nothing else is there yet.
        let later = gguf.tensors.iter().filter(|(name, _)| *name != "token_embd.weight");
        let largest = later.map(|(_, tensor)| read_at_once(tensor)).max().unwrap_or(0);
        let fixed = MemoryNeed {
            weights,
            repacked: multiplied.map(|(_, tensor)| tiles.bytes(tensor)).sum(),
            vocabulary: BASE + vocabulary(gguf),
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
        let fixed =
            MemoryNeed { weights, repacked: 0, vocabulary: 0, cache: 0, scratch: 0, loading: 0 };
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

/// How candle copies weights (its `quantized/repack_x86.rs` and `quantized/repack.rs`, version 0.11):
/// the copies are made at the first product, and the weights stay beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
// Each kind of processor makes some of them.
#[cfg_attr(not(test), allow(dead_code))]
enum Tiles {
    /// Sixteen rows with their scales as numbers of four bytes.
    Wide,
    /// The same, and other ones for the matrix unit (AMX).
    WideAndMatrixUnit,
    /// As large as the weights.
    Interleaved,
    /// None.
    None,
}

impl Tiles {
    #[cfg(target_arch = "x86_64")]
    fn of_this_machine() -> Self {
        let flags = || std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        if !is_x86_feature_detected!("avx2") {
            Tiles::None
        } else if is_x86_feature_detected!("avx512vnni") && flags().contains(" amx_int8") {
            Tiles::WideAndMatrixUnit
        } else {
            Tiles::Wide
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn of_this_machine() -> Self {
        if cfg!(target_arch = "aarch64") { Tiles::Interleaved } else { Tiles::None }
    }

    /// Bytes of the copies of a matrix that candle multiplies with.
    fn bytes(self, tensor: &TensorInfo) -> u64 {
        let (experts, rows, columns) = match *tensor.shape.as_slice() {
            [rows, columns] => (1, rows, columns),
            [experts, rows, columns] => (experts, rows, columns),
            _ => return 0,
        };
        // Blocks of 256 weights, sixteen rows each.
        let blocks = (experts * (rows / 16) * (columns / 256)) as u64;
        let whole = rows.is_multiple_of(16) && columns.is_multiple_of(256);
        match (self, tensor.kind) {
            (Tiles::Wide, TensorType::Q4K) if whole => blocks * 3072,
            (Tiles::WideAndMatrixUnit, TensorType::Q4K) if whole => blocks * (3072 + 5120),
            (Tiles::Wide | Tiles::WideAndMatrixUnit, TensorType::Q6K) if whole => blocks * 5120,
            (
                Tiles::Interleaved,
                TensorType::Q4_0 | TensorType::Q4K | TensorType::Q5K | TensorType::Q6K,
            ) if rows.is_multiple_of(8) => tensor.bytes,
            _ => 0,
        }
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
    tokens * TOKEN + merges * MERGE + 4 * token_bytes + 2 * merge_bytes
}

/// Measured on real vocabularies of 49,152 to 151,936 tokens.
const TOKEN: u64 = 250;
const MERGE: u64 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(kind: TensorType, rows: usize, columns: usize) -> TensorInfo {
        let blocks = rows * columns / kind.block_size();
        let bytes = (blocks * kind.block_bytes()) as u64;
        TensorInfo { kind, shape: vec![rows, columns], part: 0, offset: 0, bytes }
    }

    #[test]
    fn copies_are_counted_where_candle_makes_them() {
        let whole = matrix(TensorType::Q4K, 32, 512);
        assert_eq!(Tiles::Wide.bytes(&whole), 4 * 3072);
        assert_eq!(Tiles::WideAndMatrixUnit.bytes(&whole), 4 * 8192);
        assert_eq!(Tiles::Interleaved.bytes(&whole), whole.bytes);
        assert_eq!(Tiles::None.bytes(&whole), 0);
        assert_eq!(Tiles::Wide.bytes(&matrix(TensorType::Q6K, 32, 512)), 4 * 5120);
        assert_eq!(Tiles::Wide.bytes(&matrix(TensorType::Q4K, 24, 512)), 0);
        assert_eq!(Tiles::Wide.bytes(&matrix(TensorType::Q5K, 32, 512)), 0);
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
        let copied = stacked(TensorType::Q4K, 40, 512);
        assert_eq!(Tiles::Wide.bytes(&copied), 0);
        let copied = stacked(TensorType::Q4K, 32, 512);
        assert_eq!(Tiles::Wide.bytes(&copied), 4 * 4 * 3072);
    }
}
