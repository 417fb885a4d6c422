//! The provider from outside, with the real default model.

mod forms;
mod real_model;
mod rounds;
