//! Which models Correx knows, and where their files lie on this machine.
//!
//! # Layout
//! - [`catalogue`]: [`Catalogue`], the facts of `models/catalog.toml`, compiled in.
//! - [`locate`]: [`Locations`], the places where a model's file may lie, in order.
//!
//! Nothing here opens a network connection.

pub mod catalogue;
pub mod locate;

pub use catalogue::{Catalogue, CatalogueError, ModelEntry, ModelSource};
pub use locate::{LocateError, Locations};
