//! Packing and its words, seen from outside the crate.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod encoders;
mod given;
mod packing;
mod packing_properties;
mod words;
