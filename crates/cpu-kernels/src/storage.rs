//! Memory that begins at a cache line, and is the system's again when it is dropped.

use memmap2::MmapMut;
use thiserror::Error;

const LINE: usize = 64;
/// From this size on memory is mapped by itself: an allocator may keep what it gets back, and a
/// model's memory is to be free when the model is gone.
const MAPPED: usize = 128 << 10;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// There is not as much memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("there is no memory for {bytes} bytes")]
pub struct NoMemory {
    /// How many were asked for.
    pub bytes: usize,
}

/// Zeroed bytes of a fixed number, aligned to 64.
pub struct AlignedBytes {
    place: Place,
    length: usize,
}

enum Place {
    Lines(Vec<Line>),
    Mapped(MmapMut),
}

impl AlignedBytes {
    /// So many bytes, all zero.
    ///
    /// # Errors
    /// There is not as much memory.
    pub fn zeroed(length: usize) -> Result<Self, NoMemory> {
        let none = NoMemory { bytes: length };
        let place = if length >= MAPPED {
            Place::Mapped(MmapMut::map_anon(length).map_err(|_| none)?)
        } else {
            Place::Lines(vec![Line([0; LINE]); length.div_ceil(LINE)])
        };
        Ok(Self { place, length })
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.place {
            // SAFETY: the lines are plain bytes in one piece, and at least `length` of them.
            Place::Lines(lines) => unsafe {
                std::slice::from_raw_parts(lines.as_ptr().cast(), self.length)
            },
            Place::Mapped(map) => &map[..self.length],
        }
    }

    /// The bytes, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        match &mut self.place {
            // SAFETY: the lines are plain bytes in one piece, at least `length` of them, and
            // borrowed here alone.
            Place::Lines(lines) => unsafe {
                std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), self.length)
            },
            Place::Mapped(map) => &mut map[..self.length],
        }
    }
}

/// Numbers of a fixed count, zero at first, aligned to 64 bytes.
pub(crate) struct AlignedNumbers(AlignedBytes);

impl AlignedNumbers {
    pub(crate) fn zeroed(count: usize) -> Result<Self, NoMemory> {
        let bytes = count.checked_mul(size_of::<f32>()).ok_or(NoMemory { bytes: usize::MAX })?;
        AlignedBytes::zeroed(bytes).map(Self)
    }

    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[f32] {
        let bytes = self.0.as_slice();
        // SAFETY: the bytes are aligned to 64, whole numbers by their count, and any bits are one.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<f32>()) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        let bytes = self.0.as_mut_slice();
        let count = bytes.len() / size_of::<f32>();
        // SAFETY: the same, and they are borrowed here alone.
        unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_is_zero_aligned_and_can_be_written() {
        for length in [0, 1, 64, 1000, MAPPED - 1, MAPPED, MAPPED + 1] {
            let mut bytes = AlignedBytes::zeroed(length).unwrap();
            assert_eq!(bytes.as_slice().len(), length);
            assert!(bytes.as_slice().iter().all(|byte| *byte == 0));
            assert!(bytes.as_slice().as_ptr().addr().is_multiple_of(LINE));
            bytes.as_mut_slice().fill(7);
            assert!(bytes.as_slice().iter().all(|byte| *byte == 7));
        }
        let mut numbers = AlignedNumbers::zeroed(40_000).unwrap();
        numbers.as_mut_slice()[39_999] = 1.5;
        assert_eq!(numbers.as_slice().iter().sum::<f32>(), 1.5);
    }

    #[test]
    fn what_no_machine_has_is_refused() {
        assert!(AlignedNumbers::zeroed(usize::MAX / 2).is_err());
        assert!(AlignedBytes::zeroed(usize::MAX - LINE).is_err());
    }
}
