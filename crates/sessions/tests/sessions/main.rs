//! The folds, seen from outside the crate.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod given;
mod notes;
mod replayer;
mod run;
