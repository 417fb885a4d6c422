//! For tests: a hub on the loopback interface that misbehaves on demand, and small model files.

mod files;
mod hub;

pub use files::{model_of, model_with_type, small_model};
pub use hub::{Asked, TestHub, Trouble};
