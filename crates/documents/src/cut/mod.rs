//! Long texts in pieces that a model can be shown, and short texts put together.
//!
//! A text is laid out in units (`layout`): headings, sentences, list items, lines of code; a unit
//! that alone is too long is divided further (`divide`). Neighbouring units are then put together
//! to pieces (`pack`), as few and as even as can be, with the ends where they hurt least. Every
//! unit is counted once and every piece is counted as a whole, because the counts of parts do not
//! add up to the count of the whole.

mod divide;
mod headings;
mod layout;
mod pack;

use std::ops::Range;

use headings::Path;
use layout::{Unit, lay_out};
use pack::{Weight, pack};

/// Units put together beforehand are at most this share of a piece, so that the search for the
/// best ends stays short.
const GRAIN: usize = 100;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where it stands in the text, in bytes. Each piece begins where the one before it ends.
    pub range: Range<usize>,
    /// What stands there, without blank lines around it and white space after it.
    pub text: String,
    /// What `text` counts.
    pub tokens: usize,
    /// The headings that it stands under and does not begin with, such as `# A > ## B`; empty
    /// where there are none.
    pub headings: String,
}

/// Cuts `text` into pieces that `count` to at most `limit` (in tokens, or whatever `count` counts).
/// Together the pieces cover the whole text in order; none is empty; a text of white space has
/// none. A piece ends before a heading if it can, else after a paragraph, a sentence, a word, a
/// character, never inside a grapheme: one that alone counts more than `limit` is a piece by
/// itself, which [`Piece::tokens`] shows.
pub fn cut(text: &str, limit: usize, count: &dyn Fn(&str) -> usize) -> Vec<Piece> {
    let limit = limit.max(1);
    let mut units = lay_out(text);
    for unit in &mut units {
        unit.tokens = count(shown(text, &unit.range));
    }
    let units: Vec<Unit> =
        units.into_iter().flat_map(|unit| divide::divide(text, unit, limit, count)).collect();
    let units = coarse(units, limit / GRAIN, |range| count(shown(text, &range)));
    let weights: Vec<Weight> = units.iter().map(Unit::weight).collect();
    let place = |units_of: Range<usize>| {
        let start = units.get(units_of.start).map_or(0, |unit| unit.range.start);
        let end = units_of.end.checked_sub(1).and_then(|last| units.get(last));
        start..end.map_or(start, |unit| unit.range.end)
    };
    let packed = pack(&weights, limit, &mut |range| count(shown(text, &place(range))));
    let mut path = Path::default();
    let mut pieces = Vec::with_capacity(packed.len());
    for (range, tokens) in packed {
        let headings = path.above(units.get(range.start));
        for unit in &units[range.clone()] {
            path.enter(text, unit);
        }
        let range = place(range);
        pieces.push(Piece { text: shown(text, &range).to_owned(), range, tokens, headings });
    }
    pieces
}

/// Puts neighbouring texts together, as few and as even groups as can be whose texts with `joint`
/// between them count at most `limit`; each group is a range of indices. A text that alone counts
/// more is a group by itself.
pub fn group(
    texts: &[&str],
    joint: &str,
    limit: usize,
    count: &dyn Fn(&str) -> usize,
) -> Vec<Range<usize>> {
    let between = count(joint);
    let weights: Vec<Weight> =
        texts.iter().map(|text| Weight::plain(count(text) + between)).collect();
    let packed = pack(&weights, limit.max(1), &mut |range| count(&texts[range].join(joint)));
    packed.into_iter().map(|(range, _)| range).collect()
}

/// What a piece shows of its range: indentation matters, blank lines around it do not.
fn shown<'t>(text: &'t str, range: &Range<usize>) -> &'t str {
    let text = text[range.clone()].trim_end();
    let words = text.len() - text.trim_start().len();
    let line = text[..words].rfind(['\n', '\r', '\u{2028}', '\u{2029}', '\u{85}']);
    let start = line.map_or(0, |line| line + text[line..].chars().next().map_or(0, char::len_utf8));
    &text[start..]
}

/// Puts neighbouring units together that are at most `grain`, but never a heading to anything: it
/// is the best place for a piece to begin.
fn coarse(units: Vec<Unit>, grain: usize, count: impl Fn(Range<usize>) -> usize) -> Vec<Unit> {
    let mut coarse: Vec<Unit> = Vec::with_capacity(units.len());
    let mut open: Vec<Unit> = Vec::new();
    let mut sum = 0_usize;
    for unit in units {
        let joins = unit.heading.is_none()
            && open.last().is_some_and(|last| last.heading.is_none())
            && sum.saturating_add(unit.tokens) <= grain;
        if !joins {
            close(&mut open, &mut coarse, grain, &count);
            sum = 0;
        }
        sum += unit.tokens;
        open.push(unit);
    }
    close(&mut open, &mut coarse, grain, &count);
    coarse
}

/// Joins the open units, unless together they count far more than they add up to.
fn close(
    open: &mut Vec<Unit>,
    coarse: &mut Vec<Unit>,
    grain: usize,
    count: &impl Fn(Range<usize>) -> usize,
) {
    if let [first, .., last] = open.as_slice() {
        let range = first.range.start..last.range.end;
        let tokens = count(range.clone());
        if tokens <= grain.saturating_mul(2) {
            let mut joined = first.clone();
            (joined.range, joined.tokens) = (range, tokens);
            open.clear();
            coarse.push(joined);
            return;
        }
    }
    coarse.append(open);
}

/// The sentences, list items, table rows and lines of code of a text, in order, without its
/// headings.
pub fn sentences(text: &str) -> Vec<&str> {
    let units = lay_out(text).into_iter().filter(|unit| unit.heading.is_none());
    let words = |sentence: &&str| sentence.contains(char::is_alphanumeric);
    units.map(|unit| text[unit.range].trim()).filter(words).collect()
}
