//! The store through its public edge, by noun.

#![allow(clippy::unwrap_used, reason = "what is missing here ends the test, as it should")]

mod blobs;
mod catalogue;
mod crash;
mod format;
mod log;
mod opening;
mod samples;
mod support;
mod transcripts;
