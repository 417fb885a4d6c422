//! How many threads compute.
//!
//! Every loaded model has threads of its own, whose number is part of how it is loaded. Only
//! weights of a type that candle multiplies use candle's threads, of which there is one set per
//! process; their number can be set from outside only, by [`THREADS_VARIABLE`].

use std::thread::available_parallelism;

/// The environment variable that says how many threads compute where the program does not.
pub const THREADS_VARIABLE: &str = "CANDLE_NUM_THREADS";

/// The number of threads that a model computes with when nothing is asked for: what
/// [`THREADS_VARIABLE`] says, else one per core that this process may use.
pub fn compute_threads() -> usize {
    std::env::var(THREADS_VARIABLE)
        .ok()
        .and_then(|set| set.trim().parse().ok())
        .filter(|threads| *threads > 0)
        .unwrap_or_else(|| {
            // Two threads on one core get in each other's way.
            available_parallelism().map_or(1, usize::from).min(num_cpus::get_physical().max(1))
        })
}
