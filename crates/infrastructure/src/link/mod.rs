//! One owner, many front ends.
//!
//! The first process on a data directory owns its store and its model, and listens on a local
//! socket; every later one becomes its client. When the owner ends, the next to need something
//! takes over.
//!
//! - [`options`]: [`ConnectOptions`], which data directory, which model.
//! - [`client`]: [`Client`], the handle of a front end.
//! - `address`: where the socket lies.
//! - `host`: the owner's side of it.
//! - `remote`: a client's side of it.
//! - `lines`: newline-delimited messages of bounded length.

mod address;
pub mod client;
mod host;
mod lines;
pub mod options;
mod remote;

pub use client::Client;
pub use options::ConnectOptions;
