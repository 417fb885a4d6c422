//! The hub: which file is meant, where the hub is, where its files lie on this machine.
//!
//! - [`file`]: [`HubFile`], a model file in a repository, also one in several parts.
//! - [`settings`]: [`HubSettings`], the variables that every tool of the hub knows.
//! - [`place`]: [`Place`], where a file lies in the cache that those tools share.

pub mod file;
pub mod place;
pub mod settings;

pub use file::{HubFile, HubFileError, parts_of};
pub use place::{Place, PlaceError};
pub use settings::{HubSettings, Network, Token};
