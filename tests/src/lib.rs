//! What the tests across crates share.
//!
//! # Layout
//! - [`place`]: where the built programs, the model and the examples are.
//! - [`terminal`]: the `correx` program as a person uses it.
//! - [`window`]: the real window, driven through WebDriver.

#![allow(clippy::expect_used, clippy::panic)] // A test that cannot be set up must fail, saying why.

pub mod place;
pub mod terminal;
pub mod window;
