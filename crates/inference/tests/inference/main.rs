//! Inference as traits, seen from outside the crate.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod cancellation;
mod generation;
mod reasoning;
mod routing;
mod scripted;
