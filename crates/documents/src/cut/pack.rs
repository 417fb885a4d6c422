//! Which units are put together: the cheapest ends under a limit.

use std::ops::Range;

/// What putting a unit into a piece, or ending a piece before it, costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight {
    /// What it counts.
    pub(super) tokens: usize,
    /// What an end before it costs, where one more piece costs 1.
    pub(super) end_before: f64,
}

impl Weight {
    /// A unit before which a piece may end at no cost.
    pub(super) fn plain(tokens: usize) -> Self {
        Self { tokens, end_before: 0.0 }
    }
}

/// What emptiness costs: a piece that is half empty costs a quarter of this.
const EMPTINESS: f64 = 0.8;

/// Ranges of units, in order, that `count` to at most `limit` each, with what they count. A unit
/// that alone counts more is a range by itself.
pub(super) fn pack(
    weights: &[Weight],
    limit: usize,
    count: &mut dyn FnMut(Range<usize>) -> usize,
) -> Vec<(Range<usize>, usize)> {
    let mut packed = Vec::new();
    pack_range(weights, 0..weights.len(), limit, limit, count, &mut packed);
    packed
}

/// Packs `range` so that what its parts add up to is at most `bound`, and again with a lower bound
/// where a part as a whole counts more than `limit`.
fn pack_range(
    weights: &[Weight],
    range: Range<usize>,
    bound: usize,
    limit: usize,
    count: &mut dyn FnMut(Range<usize>) -> usize,
    packed: &mut Vec<(Range<usize>, usize)>,
) {
    for part in ranges(&weights[range.clone()], bound) {
        let part = range.start + part.start..range.start + part.end;
        let tokens = count(part.clone());
        if tokens <= limit || part.len() == 1 {
            packed.push((part, tokens));
        } else {
            let sum: usize = weights[part.clone()].iter().map(|weight| weight.tokens).sum();
            // As much less as it counts more, and less in any case, so that this ends.
            let less = (sum.min(bound) as f64 * limit as f64 / tokens as f64) as usize;
            pack_range(weights, part, less.min(bound / 10 * 9), limit, count, packed);
        }
    }
}

/// The cheapest way to cut these units into ranges that add up to at most `bound`.
fn ranges(weights: &[Weight], bound: usize) -> Vec<Range<usize>> {
    // Of the first `n` units: the least cost, and where the last range of it begins.
    let mut best: Vec<(f64, usize)> = vec![(0.0, 0)];
    for end in 1..=weights.len() {
        let end_cost = weights.get(end).map_or(0.0, |weight| weight.end_before);
        let (mut sum, mut cheapest) = (0_usize, (f64::INFINITY, end - 1));
        for start in (0..end).rev() {
            sum = sum.saturating_add(weights[start].tokens);
            // At a bound of nothing every unit is by itself.
            if start + 1 < end && (sum > bound || bound == 0) {
                break;
            }
            let empty = 1.0 - (sum.min(bound) as f64 / bound.max(1) as f64);
            let cost = best[start].0 + 1.0 + EMPTINESS * empty * empty + end_cost;
            if cost < cheapest.0 {
                cheapest = (cost, start);
            }
        }
        best.push(cheapest);
    }
    let mut ranges = Vec::new();
    let mut end = weights.len();
    while end > 0 {
        let start = best[end].1;
        ranges.push(start..end);
        end = start;
    }
    ranges.reverse();
    ranges
}
