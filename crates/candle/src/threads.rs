//! How many threads compute.
//!
//! candle's pool is made once per process, at the first computation, from the environment. So the
//! number is set for a process from outside; here it is only read.

/// The environment variable that sets the number of threads, read when the first model computes.
pub const THREADS_VARIABLE: &str = "CANDLE_NUM_THREADS";

/// The number of threads that compute in this process. Fixes it, if nothing has yet.
pub fn compute_threads() -> usize {
    candle_core::utils::barrier_pool().n_workers() + 1
}
