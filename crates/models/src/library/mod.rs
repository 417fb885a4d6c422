//! The models of this person: what was downloaded, and what was imported from where it lies.
//!
//! # Layout
//! - [`record`]: [`Installed`], what is known of one.
//! - [`records`]: [`Library`], the records in the data directory.
//! - [`import`]: a file becomes a model without being copied.
//! - [`removal`]: what deleting one means, and doing it.

mod import;
mod record;
mod records;
mod removal;

pub use import::ImportError;
pub use record::{FileState, Installed, InstalledFile, Origin};
pub use records::{Library, LibraryError};
pub use removal::Removal;
