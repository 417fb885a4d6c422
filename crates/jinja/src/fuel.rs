//! What a rendering may use up.

use std::cell::Cell;

use crate::error::Error;

/// Bytes that one unit pays for.
const BYTES: usize = 8;
/// What a value in a list or a dictionary costs.
const ITEM: u64 = 6;
/// What making any value on the heap costs.
const MADE: u64 = 16;
/// How deeply evaluation may nest. The stack of a thread has room for more.
const DEPTH: u32 = 128;

/// A tank that only empties. One unit pays for one step or for eight bytes that are made or looked
/// at; because what is made is never paid back, it bounds the memory as well as the time: `n` units
/// are at most `8 n` bytes.
#[derive(Debug)]
pub struct Fuel {
    left: Cell<u64>,
    depth: Cell<u32>,
}

impl Fuel {
    /// A tank of `units`.
    pub fn new(units: u64) -> Self {
        Self { left: Cell::new(units), depth: Cell::new(0) }
    }

    /// What is left.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    pub(crate) fn burn(&self, units: u64) -> Result<(), Error> {
        match self.left.get().checked_sub(units) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.left.set(0);
                Err(Error::limit("it computes or writes too much"))
            }
        }
    }

    /// Pays for looking at `bytes`.
    pub(crate) fn look(&self, bytes: usize) -> Result<(), Error> {
        self.burn(1 + (bytes / BYTES) as u64)
    }

    /// Pays for a text of `bytes`.
    pub(crate) fn text(&self, bytes: usize) -> Result<(), Error> {
        self.burn(MADE + (bytes / BYTES) as u64)
    }

    /// Pays for a list or dictionary of `items`.
    pub(crate) fn items(&self, items: usize) -> Result<(), Error> {
        self.burn((items as u64).saturating_mul(ITEM).saturating_add(MADE))
    }

    /// Runs `work` one level deeper.
    pub(crate) fn deeper<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        if self.depth.get() >= DEPTH {
            return Err(Error::limit("it nests too deeply"));
        }
        self.depth.set(self.depth.get() + 1);
        let result = work();
        self.depth.set(self.depth.get() - 1);
        result
    }
}
