//! Memory: what a model needs, what there is, and which context fits.
//!
//! - [`need`]: [`MemoryNeed`], from a file's header, before any weight is read.
//! - [`machine`]: [`MachineMemory`], what this machine, or the group that limits this process, has.
//! - [`fit`]: [`MemoryFit`] and [`choose_context`], the one against the other.
//! - [`process`]: what this process holds.

mod fit;
mod machine;
mod need;
mod process;

pub use fit::{
    ChosenContext, DoesNotFit, LEAST_CONTEXT, LimitedBy, MemoryFit, Overcommit, Room,
    choose_context, in_units,
};
pub use machine::MachineMemory;
pub use need::{MemoryNeed, MemoryPlan};
pub use process::{forget_peak, peak_bytes, resident_bytes};

#[cfg(test)]
mod real_model;
#[cfg(test)]
mod tests;
