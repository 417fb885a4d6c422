//! The events, seen from outside the crate.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod blobs;
mod clock;
mod codec;
mod fixtures;
mod memory;
mod stored;
