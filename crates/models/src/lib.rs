//! The models of this person: which Correx knows, which are here, which others hold, and getting
//! more.
//!
//! # Layout
//! - [`catalogue`]: [`Catalogue`], the facts of `models/catalog.toml`, compiled in.
//! - [`locate`]: [`Locations`], the places where a model's file may lie, in order.
//! - [`library`]: [`Library`], what was downloaded or imported; deleting it.
//! - [`found`]: what other programs hold on this machine.
//! - [`hub`]: which file of the hub is meant, where the hub is, where its files lie here.
//! - [`download`]: [`Downloads`], from the hub to this machine.
//! - [`mod@nearest`]: the name that somebody may have meant.
//! - [`whole`]: a file's content replaced as a whole or not at all.
//!
//! This is the only crate that opens connections to other machines, and it opens one only when a
//! download is asked for.

pub mod catalogue;
pub mod download;
pub mod found;
pub mod hub;
pub mod library;
pub mod locate;
pub mod nearest;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod whole;

pub use catalogue::{ABOUT_CONTEXT, Catalogue, CatalogueError, ModelEntry, ModelSource, SizeClass};
pub use download::{Download, DownloadError, Downloads};
pub use hub::{HubFile, HubSettings};
pub use library::{Installed, Library};
pub use locate::{LocateError, Locations};
pub use nearest::nearest;
