//! The crate through its public edge: files, inputs, prompts, and whole runs against a scripted
//! model and stores in memory.
#![allow(clippy::unwrap_used, unreachable_pub, missing_docs)]

mod checks;
mod context;
mod examples;
mod inputs;
mod interleavings;
mod judges;
mod keys;
mod kinds;
mod languages;
#[cfg(unix)]
mod outside;
mod runs;
mod steering;
mod support;
mod templates;
mod thinking;
mod trouble;
mod workflow_files;
