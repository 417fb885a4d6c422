//! The rotations of queries and keys, by layer, position and length of the sequence.

use candle_core::{Result, Tensor};

use super::config::{RopeConfig, Rotation, Turns};
use super::ops::rotation;

/// Factors that divide the speeds, for sequences up to the context of the training and beyond.
#[derive(Default)]
pub(super) struct RopeFactors {
    pub(super) short: Option<Vec<f32>>,
    pub(super) long: Option<Vec<f32>>,
}

/// The turns of all layers.
pub(super) struct Rotations {
    original: usize,
    short: Pair,
    long: Pair,
}

/// The turns of layers that see everything, and of those with a window.
struct Pair {
    global: Turns,
    local: Turns,
}

impl Rotations {
    pub(super) fn new(config: &RopeConfig, factors: &RopeFactors) -> Self {
        let pair = |factors: &Option<Vec<f32>>| Pair {
            global: config.global.turns(config.rotated, factors.as_deref()),
            local: config.local.turns(config.rotated, factors.as_deref()),
        };
        Self { original: config.original, short: pair(&factors.short), long: pair(&factors.long) }
    }

    /// The rotations of a step, each made when a layer asks for it. A position comes with the
    /// most tokens that its sequence may have.
    pub(super) fn of<'a>(&'a self, positions: &'a [(usize, usize)]) -> Tables<'a> {
        Tables { rotations: self, positions, global: None, local: None }
    }

    fn pair(&self, window: usize) -> &Pair {
        // By what the sequence may become: its first keys are kept while it grows.
        if window > self.original { &self.long } else { &self.short }
    }
}

/// The rotations of a step.
pub(super) struct Tables<'a> {
    rotations: &'a Rotations,
    positions: &'a [(usize, usize)],
    global: Option<Tensor>,
    local: Option<Tensor>,
}

impl Tables<'_> {
    /// The rotation of every row in a layer; `None`: it does not rotate.
    pub(super) fn get(&mut self, kind: Rotation) -> Result<Option<Tensor>> {
        type Part = fn(&Pair) -> &Turns;
        let (kept, part): (_, Part) = match kind {
            Rotation::None => return Ok(None),
            Rotation::Global => (&mut self.global, |pair| &pair.global),
            Rotation::Local => (&mut self.local, |pair| &pair.local),
        };
        if let Some(table) = kept {
            return Ok(Some(table.clone()));
        }
        let turns = |window: usize| part(self.rotations.pair(window));
        let rows: Vec<(usize, &Turns)> =
            self.positions.iter().map(|(position, window)| (*position, turns(*window))).collect();
        Ok(Some(kept.insert(rotation(&rows)?).clone()))
    }
}
