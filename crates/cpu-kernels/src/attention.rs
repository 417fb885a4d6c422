//! Grouped-query attention: queries against keys and values.

#![allow(clippy::needless_range_loop, reason = "the same place is meant in several arrays")]

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use crate::arithmetic::Avx2;
use crate::arithmetic::{Arithmetic, LANES, Plain};
use crate::columns::Columns;
use crate::exponential::{exp, tanh};
use crate::instructions::Instructions;
use crate::multiply::ShapeError;
use crate::remembered::{PART, Remembered, TOKENS};
use crate::threads::Threads;

/// Rows of queries that share a look at the keys.
const ROWS: usize = 16;
/// Tokens whose values are summed before those of the next ones, so that they stay near.
const VALUES: usize = 64;
const _: () = assert!(PART.is_multiple_of(VALUES));
/// Queries that are computed side by side.
const QUERIES: usize = 4;
/// Elements of a head that are summed at once.
const WIDTH: usize = 16;
/// Products up to which one thread does everything.
const INLINE: usize = 1 << 16;

/// How queries, keys and values are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// Numbers of a head.
    pub width: usize,
    /// Heads of keys, and of values, in a row.
    pub kv: usize,
    /// Heads of queries per head of keys.
    pub group: usize,
}

impl Heads {
    fn kv_width(self) -> usize {
        self.width * self.kv
    }

    fn query_width(self) -> usize {
        self.kv_width() * self.group
    }
}

/// Which tokens queries see, and what becomes of their products with the keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// Tokens before the first query's own.
    pub before: usize,
    /// The most tokens that a query sees, its own included; `None`: all up to its own.
    pub window: Option<usize>,
    /// What a product is multiplied by to become a score.
    pub scale: f32,
    /// Scores are kept below it: `cap * tanh(score / cap)`.
    pub cap: Option<f32>,
}

impl View {
    /// The first token that a query sees whose own is the last of `seen` tokens.
    fn first(&self, seen: usize) -> usize {
        self.window.map_or(0, |window| seen.saturating_sub(window))
    }
}

/// Rows of queries against what a layer remembers. Row `i` of `queries` sees the tokens up to
/// `view.before + i`. `output` has the form of `queries`.
///
/// Every sum goes over a head's elements or over the tokens in ascending order, in one go (the
/// shares' own sum: in eight strands), so that neither threads nor how rows come together
/// changes a bit.
///
/// # Errors
/// The lengths do not fit; nothing is written then.
pub fn attend(
    heads: Heads,
    view: View,
    queries: &[f32],
    remembered: &Remembered,
    output: &mut [f32],
    threads: &Threads,
) -> Result<(), ShapeError> {
    attend_with(Instructions::detect(), heads, view, queries, remembered, output, threads)
}

fn attend_with(
    instructions: Instructions,
    heads: Heads,
    view: View,
    queries: &[f32],
    remembered: &Remembered,
    output: &mut [f32],
    threads: &Threads,
) -> Result<(), ShapeError> {
    let (width, kv_width) = (heads.query_width(), heads.kv_width());
    if width == 0 || !queries.len().is_multiple_of(width) {
        return Err(ShapeError::Activations { length: queries.len(), columns: width });
    }
    let rows = queries.len() / width;
    let before = view.before;
    if remembered.width() != kv_width || remembered.capacity() < before + rows {
        let length = remembered.capacity() * remembered.width();
        return Err(ShapeError::Activations { length, columns: kv_width });
    }
    if output.len() != queries.len() {
        return Err(ShapeError::Output { expected: queries.len(), found: output.len() });
    }
    let work = Work { heads, view, queries, remembered, output: Columns::new(output, width) };
    let piece = |number: usize| {
        let (block, head) = (number / heads.kv, number % heads.kv);
        let range = block * ROWS..((block + 1) * ROWS).min(rows);
        match instructions {
            // SAFETY: plain code needs nothing.
            Instructions::Portable => unsafe { work.piece::<Plain>(range, head) },
            // SAFETY: the processor has these instructions.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { work.piece_avx2(range, head) },
        }
    };
    let pieces = rows.div_ceil(ROWS) * heads.kv;
    // Waking threads costs more than little work does.
    if rows * (before + rows) * width < INLINE {
        (0..pieces).for_each(piece);
    } else {
        threads.each(pieces, piece);
    }
    Ok(())
}

struct Work<'a> {
    heads: Heads,
    view: View,
    queries: &'a [f32],
    remembered: &'a Remembered,
    output: Columns<'a>,
}

/// A query, and which tokens it sees.
struct Query<'a> {
    numbers: &'a [f32],
    first: usize,
    /// Behind the last one.
    seen: usize,
    row: usize,
    column: usize,
}

impl Work<'_> {
    /// The same code, for wider registers.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn piece_avx2(&self, rows: Range<usize>, head: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.piece::<Avx2>(rows, head) };
    }

    /// Everything for `rows` and one head of keys.
    ///
    /// # Safety
    /// The processor has the instructions of `A`.
    #[inline(always)]
    unsafe fn piece<A: Arithmetic>(&self, rows: Range<usize>, head: usize) {
        let Heads { width, group, .. } = self.heads;
        let queries: Vec<Query<'_>> = rows
            .flat_map(|row| (0..group).map(move |member| (row, member)))
            .map(|(row, member)| {
                let column = (head * group + member) * width;
                let start = row * self.heads.query_width() + column;
                let numbers = &self.queries[start..start + width];
                let seen = self.view.before + row + 1;
                Query { numbers, first: self.view.first(seen), seen, row, column }
            })
            .collect();
        let Some(most) = queries.last().map(|query| query.seen) else { return };
        // What no query sees any more is left out, in whole blocks.
        let start = queries[0].first / VALUES * VALUES;
        let padded = most.next_multiple_of(TOKENS) - start;
        let mut scores = vec![0.0; queries.len() * padded];
        for first in (start..most).step_by(TOKENS) {
            let keys = &self.remembered.keys(first / TOKENS, head * width)[..width];
            let first = first - start;
            for (queries, scores) in
                queries.chunks(QUERIES).zip(scores.chunks_mut(QUERIES * padded))
            {
                // SAFETY: the caller's promise.
                unsafe {
                    match queries.len() {
                        4 => products::<4, A>(queries, keys, scores, padded, first),
                        3 => products::<3, A>(queries, keys, scores, padded, first),
                        2 => products::<2, A>(queries, keys, scores, padded, first),
                        _ => products::<1, A>(queries, keys, scores, padded, first),
                    }
                }
            }
        }
        for (query, scores) in queries.iter().zip(scores.chunks_exact_mut(padded)) {
            let (forgotten, seen) = scores[..query.seen - start].split_at_mut(query.first - start);
            // A share of nothing, for the sake of those that still see them.
            forgotten.fill(0.0);
            let mut scale = self.view.scale;
            if let Some(cap) = self.view.cap {
                // SAFETY: the caller's promise.
                unsafe { keep_below::<A>(seen, scale, cap) };
                scale = 1.0;
            }
            // SAFETY: the caller's promise.
            unsafe { softmax::<A>(seen, scale) };
        }
        let mut sums = vec![0.0; queries.len() * width];
        for first in (start..most).step_by(VALUES) {
            let tokens = first..(first + VALUES).min(most);
            for ((queries, scores), sums) in queries
                .chunks(QUERIES)
                .zip(scores.chunks(QUERIES * padded))
                .zip(sums.chunks_mut(QUERIES * width))
            {
                let (tokens, mix) = (tokens.clone(), Mix { start, padded, head });
                // SAFETY: the caller's promise.
                unsafe {
                    match queries.len() {
                        4 => self.mix::<4, A>(queries, scores, tokens, mix, sums),
                        3 => self.mix::<3, A>(queries, scores, tokens, mix, sums),
                        2 => self.mix::<2, A>(queries, scores, tokens, mix, sums),
                        _ => self.mix::<1, A>(queries, scores, tokens, mix, sums),
                    }
                }
            }
        }
        for (query, sums) in queries.iter().zip(sums.chunks_exact(width)) {
            // SAFETY: this row and head of the output belongs to this piece alone.
            unsafe { self.output.write(query.row, query.column, sums) };
        }
    }

    /// Adds the values of those of `tokens` that each query sees, by its shares, to its sums.
    ///
    /// # Safety
    /// The processor has the instructions of `A`.
    #[inline(always)]
    unsafe fn mix<const Q: usize, A: Arithmetic>(
        &self,
        queries: &[Query<'_>],
        scores: &[f32],
        tokens: Range<usize>,
        Mix { start, padded, head }: Mix,
        sums: &mut [f32],
    ) {
        let (width, stride) = (self.heads.width, self.heads.kv_width());
        // They lie together: no chunk of tokens goes beyond a part.
        let rows = self.remembered.values(tokens.start);
        let values =
            |token: usize| &rows[(token - tokens.start) * stride + head * width..][..width];
        // What all of them see; what later ones see beyond that comes after, so that the order
        // is the same for each.
        let common = tokens.start..tokens.end.min(queries[0].seen).max(tokens.start);
        let shares: [&[f32]; Q] = std::array::from_fn(|query| &scores[query * padded..][..padded]);
        let whole = width / WIDTH * WIDTH;
        for column in (0..whole).step_by(WIDTH) {
            let at = |query: usize| query * width + column..query * width + column + WIDTH;
            // SAFETY: the caller's promise.
            unsafe {
                let mut parts = [[A::splat(0.0); WIDTH / LANES]; Q];
                for query in 0..Q {
                    let (before, _) = sums[at(query)].as_chunks();
                    parts[query] = [A::load(&before[0]), A::load(&before[1])];
                }
                for token in common.clone() {
                    let (values, _) = values(token)[column..column + WIDTH].as_chunks();
                    let values = [A::load(&values[0]), A::load(&values[1])];
                    for query in 0..Q {
                        let share = A::splat(shares[query][token - start]);
                        for part in 0..WIDTH / LANES {
                            parts[query][part] =
                                A::multiply_add(share, values[part], parts[query][part]);
                        }
                    }
                }
                for query in 0..Q {
                    let (after, _) = sums[at(query)].as_chunks_mut();
                    for part in 0..WIDTH / LANES {
                        A::store(parts[query][part], &mut after[part]);
                    }
                }
            }
        }
        for (number, query) in queries.iter().enumerate() {
            let sums = &mut sums[number * width..][..width];
            let beyond = common.end..tokens.end.min(query.seen);
            for (tokens, first) in [(common.clone(), whole), (beyond, 0)] {
                if first == width {
                    continue;
                }
                for token in tokens {
                    let share = shares[number][token - start];
                    for (sum, value) in sums[first..].iter_mut().zip(&values(token)[first..]) {
                        // SAFETY: the caller's promise.
                        *sum = unsafe { A::multiply_add_one(share, *value, *sum) };
                    }
                }
            }
        }
    }
}

/// Where a mixture's scores and values lie.
#[derive(Clone, Copy)]
struct Mix {
    /// The token of the first score.
    start: usize,
    /// Scores per query.
    padded: usize,
    /// The head of values.
    head: usize,
}

/// The products of `Q` queries with the keys of a block, into their scores from `first` on.
///
/// # Safety
/// The processor has the instructions of `A`.
#[inline(always)]
unsafe fn products<const Q: usize, A: Arithmetic>(
    queries: &[Query<'_>],
    keys: &[[f32; TOKENS]],
    scores: &mut [f32],
    padded: usize,
    first: usize,
) {
    let queries: [&[f32]; Q] = std::array::from_fn(|query| &queries[query].numbers[..keys.len()]);
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[A::splat(0.0); TOKENS / LANES]; Q];
        for (element, keys) in keys.iter().enumerate() {
            let (keys, _) = keys.as_chunks();
            let keys = [A::load(&keys[0]), A::load(&keys[1])];
            for query in 0..Q {
                let number = A::splat(queries[query][element]);
                for part in 0..TOKENS / LANES {
                    sums[query][part] = A::multiply_add(number, keys[part], sums[query][part]);
                }
            }
        }
        for query in 0..Q {
            let (scores, _) = scores[query * padded + first..][..TOKENS].as_chunks_mut();
            for part in 0..TOKENS / LANES {
                A::store(sums[query][part], &mut scores[part]);
            }
        }
    }
}

/// Makes products to scores below `cap` and above its opposite: `cap * tanh(scale * score / cap)`.
///
/// # Safety
/// The processor has the instructions of `A`.
#[inline(always)]
unsafe fn keep_below<A: Arithmetic>(scores: &mut [f32], scale: f32, cap: f32) {
    for score in scores {
        // SAFETY: the caller's promise.
        *score = cap * unsafe { tanh::<A>(*score * scale / cap) };
    }
}

/// Makes scores to shares of one.
///
/// # Safety
/// The processor has the instructions of `A`.
#[inline(always)]
unsafe fn softmax<A: Arithmetic>(scores: &mut [f32], scale: f32) {
    // SAFETY: the caller's promise.
    let most = unsafe {
        strands::<A>(scores, f32::NEG_INFINITY, |score, most| A::greater(score, most))
            .into_iter()
            .fold(f32::NEG_INFINITY, f32::max)
    };
    for score in scores.iter_mut() {
        // SAFETY: the caller's promise.
        *score = unsafe { exp::<A>((*score - most) * scale) };
    }
    // SAFETY: the caller's promise.
    let sums = unsafe { strands::<A>(scores, 0.0, |score, sum| A::add(score, sum)) };
    let inverse = 1.0 / sums.iter().sum::<f32>();
    for score in scores.iter_mut() {
        *score *= inverse;
    }
}

/// Folds numbers in eight strands: the first, ninth, … the second, tenth, …. `neutral` fills up.
///
/// # Safety
/// The processor has the instructions of `A`.
#[inline(always)]
unsafe fn strands<A: Arithmetic>(
    numbers: &[f32],
    neutral: f32,
    fold: impl Fn(A::Eight, A::Eight) -> A::Eight,
) -> [f32; LANES] {
    let (whole, rest) = numbers.as_chunks();
    let mut last = [neutral; LANES];
    last[..rest.len()].copy_from_slice(rest);
    let mut strands = [neutral; LANES];
    // SAFETY: the caller's promise.
    unsafe {
        let mut folded = A::splat(neutral);
        for numbers in whole.iter().chain([&last]) {
            folded = fold(A::load(numbers), folded);
        }
        A::store(folded, &mut strands);
    }
    strands
}

#[cfg(test)]
mod tests;
