//! Bytes that begin at a cache line.

const LINE: usize = 64;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// Zeroed bytes of a fixed number, aligned to 64.
pub(crate) struct AlignedBytes {
    lines: Vec<Line>,
    length: usize,
}

impl AlignedBytes {
    pub(crate) fn zeroed(length: usize) -> Self {
        Self { lines: vec![Line([0; LINE]); length.div_ceil(LINE)], length }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the lines are plain bytes in one piece, and at least `length` of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the lines are plain bytes in one piece, at least `length` of them, and borrowed
        // here alone.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.length) }
    }
}
