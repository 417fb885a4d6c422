//! How weights are stored in blocks.

use half::f16;

/// Weights that share a scale.
pub(crate) const BLOCK: usize = 32;
/// Rows that are packed together.
pub(crate) const LANES: usize = 8;
/// Bytes of a value per lane in half precision.
const HALVES: usize = 2 * LANES;

/// How a block of 32 weights is stored in a GGUF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Four bits, a scale and a minimum.
    Q4_1,
    /// Five bits around zero and a scale.
    Q5_0,
    /// Eight bits around zero and a scale.
    Q8_0,
}

/// A block as it is in a file: `weight = scale * code + minimum`.
pub(crate) struct Block {
    pub(crate) scale: [u8; 2],
    /// Only where the kind has one.
    pub(crate) minimum: [u8; 2],
    /// Unsigned, but for `Q8_0`: there two's complement.
    pub(crate) codes: [u8; BLOCK],
}

impl BlockKind {
    /// Bytes of a block of 32 weights in a file.
    pub fn block_bytes(self) -> usize {
        match self {
            BlockKind::Q4_1 => 20,
            BlockKind::Q5_0 => 22,
            BlockKind::Q8_0 => 34,
        }
    }

    /// Bytes of a block of eight rows: eight times those of one, codes first.
    pub(crate) const fn strip_bytes(self) -> usize {
        match self {
            BlockKind::Q4_1 => 128 + 2 * HALVES,
            BlockKind::Q5_0 => 128 + 32 + HALVES,
            BlockKind::Q8_0 => 256 + HALVES,
        }
    }

    /// Where the eight scales lie in a packed block.
    pub(crate) const fn scales_at(self) -> usize {
        match self {
            BlockKind::Q4_1 => 128,
            BlockKind::Q5_0 => 160,
            BlockKind::Q8_0 => 256,
        }
    }

    /// What is subtracted from a code to get the signed number that the scale belongs to.
    pub(crate) const fn offset(self) -> i32 {
        match self {
            BlockKind::Q4_1 | BlockKind::Q8_0 => 0,
            BlockKind::Q5_0 => 16,
        }
    }

    /// Takes a file's block apart. `bytes` are exactly [`block_bytes`](Self::block_bytes) long.
    pub(crate) fn read(self, bytes: &[u8]) -> Block {
        let scale = [bytes[0], bytes[1]];
        let mut codes = [0; BLOCK];
        let mut minimum = [0; 2];
        let nibbles = |codes: &mut [u8; BLOCK], bytes: &[u8]| {
            for (place, byte) in bytes.iter().enumerate() {
                codes[place] = byte & 15;
                codes[place + BLOCK / 2] = byte >> 4;
            }
        };
        match self {
            BlockKind::Q4_1 => {
                minimum = [bytes[2], bytes[3]];
                nibbles(&mut codes, &bytes[4..]);
            }
            BlockKind::Q5_0 => {
                nibbles(&mut codes, &bytes[6..]);
                let high = u32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]);
                for (place, code) in codes.iter_mut().enumerate() {
                    *code |= ((high >> place & 1) as u8) << 4;
                }
            }
            BlockKind::Q8_0 => codes.copy_from_slice(&bytes[2..]),
        }
        Block { scale, minimum, codes }
    }

    /// Writes a block as row `lane` of a packed one, whose bytes were zero there.
    pub(crate) fn pack(self, block: &Block, lane: usize, packed: &mut [u8]) {
        match self {
            BlockKind::Q4_1 | BlockKind::Q5_0 => {
                // A byte holds the weights k and k + 4 of a group of eight.
                for (group, codes) in block.codes.chunks_exact(8).enumerate() {
                    for place in 0..4 {
                        let (low, high) = (codes[place], codes[place + 4]);
                        packed[group * 32 + lane * 4 + place] = low & 15 | high << 4;
                        if self == BlockKind::Q5_0 {
                            packed[128 + lane * 4 + place] |=
                                (low >> 4) << (2 * group) | (high >> 4) << (2 * group + 1);
                        }
                    }
                }
            }
            BlockKind::Q8_0 => {
                for (group, codes) in block.codes.chunks_exact(4).enumerate() {
                    packed[group * 32 + lane * 4..][..4].copy_from_slice(codes);
                }
            }
        }
        let scale = self.scales_at() + 2 * lane;
        packed[scale..scale + 2].copy_from_slice(&block.scale);
        if self == BlockKind::Q4_1 {
            packed[scale + HALVES..][..2].copy_from_slice(&block.minimum);
        }
    }

    /// The signed number of weight `place` in row `lane` of a packed block.
    pub(crate) fn code(self, packed: &[u8], lane: usize, place: usize) -> i32 {
        let (group, within) = (place / 8, place % 8);
        let (byte, half) = (lane * 4 + within % 4, within / 4);
        match self {
            BlockKind::Q8_0 => {
                i32::from(packed[place / 4 * 32 + lane * 4 + place % 4].cast_signed())
            }
            BlockKind::Q4_1 => i32::from(packed[group * 32 + byte] >> (4 * half) & 15),
            BlockKind::Q5_0 => {
                let low = packed[group * 32 + byte] >> (4 * half) & 15;
                let high = packed[128 + byte] >> (2 * group + half) & 1;
                i32::from(low | high << 4) - self.offset()
            }
        }
    }

    /// The scale and the minimum (zero where there is none) of row `lane` of a packed block.
    pub(crate) fn scale_and_minimum(self, packed: &[u8], lane: usize) -> (f32, f32) {
        let half = |at: usize| f16::from_le_bytes([packed[at], packed[at + 1]]).to_f32();
        let scale = self.scales_at() + 2 * lane;
        match self {
            BlockKind::Q4_1 => (half(scale), half(scale + HALVES)),
            BlockKind::Q5_0 | BlockKind::Q8_0 => (half(scale), 0.0),
        }
    }
}
