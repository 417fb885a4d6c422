//! Tests of the header check and of what it says about a model.

mod corpus;
mod info;
mod memory;
mod round_trip;
mod split;
mod types;
