//! Output that several threads fill, each its own columns.

use std::marker::PhantomData;

/// Rows of `width` numbers, of which disjoint parts are written from several threads.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    first: *mut f32,
    length: usize,
    width: usize,
    output: PhantomData<&'a mut [f32]>,
}

// SAFETY: the memory is borrowed exclusively for `'a`, and `write` is only called for disjoint
// parts at the same time.
unsafe impl Send for Columns<'_> {}
// SAFETY: as above.
unsafe impl Sync for Columns<'_> {}

impl<'a> Columns<'a> {
    /// Over `output`, in rows of `width`.
    pub(crate) fn new(output: &'a mut [f32], width: usize) -> Self {
        Self { first: output.as_mut_ptr(), length: output.len(), width, output: PhantomData }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Writes `values` to `row` from `column` on.
    ///
    /// # Safety
    /// No other thread writes to the same place at the same time.
    pub(crate) unsafe fn write(&self, row: usize, column: usize, values: &[f32]) {
        let at = row * self.width + column;
        assert!(column + values.len() <= self.width && at + values.len() <= self.length);
        // SAFETY: the place is inside of the borrowed memory, and the caller's alone.
        unsafe {
            std::ptr::copy_nonoverlapping(values.as_ptr(), self.first.add(at), values.len());
        }
    }
}
