//! A unit that is too long by itself, in parts: between words, or else between graphemes.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::layout::{Begin, Unit, is_boundary};
use super::shown;

/// A unit that is too long is cut into parts of about this share of a piece, so that its parts can
/// be put together to full pieces.
const SHARE: usize = 8;

/// The unit, or its parts in order.
pub(super) fn divide(
    text: &str,
    unit: Unit,
    limit: usize,
    count: &dyn Fn(&str) -> usize,
) -> Vec<Unit> {
    let mut done = Vec::new();
    let mut open = vec![unit];
    while let Some(unit) = open.pop() {
        let parts = match unit.tokens <= limit {
            true => 1,
            false => (unit.tokens / (limit / SHARE).max(1)).max(2),
        };
        let cuts = if parts > 1 { cuts(text, &unit.range, parts) } else { Vec::new() };
        if cuts.is_empty() {
            done.push(unit);
            continue;
        }
        let (mut parts, mut rest) = (Vec::new(), unit);
        for (at, begins) in cuts {
            let end = rest.range.end;
            let before = Unit { range: rest.range.start..at, ..rest };
            parts.push(before);
            rest = Unit::part(at..end, begins);
        }
        parts.push(rest);
        for part in parts.iter_mut() {
            part.tokens = count(shown(text, &part.range));
        }
        open.extend(parts.into_iter().rev());
    }
    done
}

/// Up to `parts - 1` places inside `range`, evenly spread, at words where there are some near and
/// else at graphemes. None only when what is visible in `range` is a single grapheme.
fn cuts(text: &str, range: &Range<usize>, parts: usize) -> Vec<(usize, Begin)> {
    let words = &text[range.clone()];
    let visible = words.trim_end().len();
    let first = words.len() - words.trim_start().len();
    let inside = |at: &usize| *at > first && *at < visible;
    let blank = |text: &str| text.chars().all(char::is_whitespace);
    let bounds = words.split_word_bound_indices();
    let places: Vec<usize> = bounds
        .filter(|(at, word)| !blank(word) && words[..*at].ends_with(char::is_whitespace))
        .map(|(at, _)| at)
        .filter(inside)
        .filter(|at| is_boundary(text, range.start + at))
        .collect();
    let step = (visible - first) / parts;
    let near = spread(&places, first..visible, parts, step / 2);
    if !near.is_empty() {
        return near.into_iter().map(|at| (range.start + at, Begin::Word)).collect();
    }
    let graphemes = words.grapheme_indices(true).filter(|(_, grapheme)| !blank(grapheme));
    let places: Vec<usize> = graphemes.map(|(at, _)| at).filter(inside).collect();
    let any = spread(&places, first..visible, parts, usize::MAX);
    any.into_iter().map(|at| (range.start + at, Begin::Grapheme)).collect()
}

/// Of `places`, in order, those nearest to the ends of equal parts and not farther from them than
/// `far`.
fn spread(places: &[usize], range: Range<usize>, parts: usize, far: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    for part in 1..parts {
        let ideal = range.start + (range.len() as u128 * part as u128 / parts as u128) as usize;
        let after = places.partition_point(|place| *place < ideal);
        let around = after.saturating_sub(1)..(after + 1).min(places.len());
        let nearest = places[around].iter().min_by_key(|place| place.abs_diff(ideal));
        if let Some(place) = nearest.filter(|place| place.abs_diff(ideal) <= far)
            && chosen.last().is_none_or(|last| last < place)
        {
            chosen.push(*place);
        }
    }
    chosen
}
