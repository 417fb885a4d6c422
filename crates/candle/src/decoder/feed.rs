//! The feed-forward part of a layer.

use candle_core::{Result, Tensor};
use correx_cpu_kernels::Threads;

use super::config::Gate;
use super::experts::Experts;
use super::ops::Gated;
use super::weights::Linear;

/// What a layer does with every row by itself.
pub(super) enum Feed {
    /// The same for all.
    Dense(FeedForward),
    /// What a few experts say, each row its own.
    Experts(Experts),
}

impl Feed {
    /// `None`: it was stopped on the way.
    pub(super) fn apply(
        &self,
        input: &Tensor,
        gate: Gate,
        threads: &Threads,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Tensor>> {
        match self {
            Feed::Dense(feed) => feed.apply(input, gate, threads).map(Some),
            Feed::Experts(experts) => experts.apply(input, gate, threads, stop),
        }
    }
}

/// A projection that is gated, and one back.
pub(super) struct FeedForward {
    pub(super) gate: Linear,
    pub(super) up: Linear,
    pub(super) down: Linear,
}

impl FeedForward {
    pub(super) fn apply(&self, input: &Tensor, gate: Gate, threads: &Threads) -> Result<Tensor> {
        let [inner, up] = Linear::apply_all([&self.gate, &self.up], input, threads)?;
        let inner = inner.apply_op2_no_bwd(&up, &Gated { gate, threads })?;
        self.down.apply(&inner, threads)
    }
}
