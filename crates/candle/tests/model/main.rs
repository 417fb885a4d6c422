//! The provider from outside, with the real default model.

mod real_model;
mod rounds;
