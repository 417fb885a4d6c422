//! Reading a marked rendering: what is a control token, what is plain text, and whose it is.

use std::collections::HashMap;

use aho_corasick::AhoCorasick;

use super::marks::{Mark, Marks, Owned, Placed};

/// A stretch of a rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// A control token of the template's, by its number in the automaton.
    Control(usize),
    /// Plain text with the owning entry of each of its bytes (`None`: the template).
    Plain { text: String, owners: Vec<Option<usize>> },
}

/// Cuts `rendered` into control tokens and plain text. `bare` is the same without the white space
/// around the parts.
pub(super) fn pieces(
    rendered: &str,
    bare: Option<&str>,
    marks: &Marks,
    placed: &Placed,
    control: &AhoCorasick,
) -> Vec<Piece> {
    let mut reading = Reading { marks, placed, pieces: Vec::new(), run: Run::default() };
    let closed = closed_parts(rendered, marks);
    let mut limits = blank_limits(rendered, bare, marks).into_iter();
    // Where the whole part that we are in ends.
    let mut inside: Option<usize> = None;
    let mut place = 0;
    let mut controls = control.find_iter(rendered).peekable();
    while let Some(character) = rendered[place..].chars().next() {
        if let Some((mark, length)) = marks.read(&rendered[place..]) {
            let limit = limits.next().unwrap_or(usize::MAX);
            match mark {
                Mark::Start(number) => {
                    let end = closed.get(&place).copied();
                    reading.start(number, limit, end.is_some());
                    inside = end;
                }
                Mark::End(number) => {
                    reading.end(number, limit);
                    inside = None;
                }
            }
            place += length;
            continue;
        }
        while controls.peek().is_some_and(|found| found.start() < place) {
            controls.next();
        }
        if let Some(found) = controls.peek().filter(|found| found.start() == place) {
            // Inside a whole part nothing is a control token, whatever the template did to it.
            if inside.is_none_or(|end| place >= end) {
                reading.control(found.pattern().as_usize());
                place = found.end();
                continue;
            }
        }
        if !marks.is_ours(character) {
            reading.text(marks.unshielded(character));
        }
        place += character.len_utf8();
    }
    reading.flush();
    reading.pieces
}

/// The parts whose start and end are both there: from the place of the start to that of the end.
fn closed_parts(rendered: &str, marks: &Marks) -> HashMap<usize, usize> {
    let mut open: HashMap<usize, usize> = HashMap::new();
    let mut closed = HashMap::new();
    for (place, character) in rendered.char_indices() {
        if !marks.is_ours(character) {
            continue;
        }
        match marks.read(&rendered[place..]) {
            Some((Mark::Start(number), _)) => {
                open.insert(number, place);
            }
            Some((Mark::End(number), _)) => {
                if let Some(start) = open.remove(&number) {
                    closed.insert(start, place);
                }
            }
            None => {}
        }
    }
    closed
}

/// The control tokens among `pieces`, in order.
pub(super) fn controls(pieces: &[Piece]) -> impl Iterator<Item = usize> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Control(pattern) => Some(*pattern),
        Piece::Plain { .. } => None,
    })
}

/// Whether some part has lost a mark: where it ends or begins cannot be told for certain then.
pub(super) fn has_torn_parts(rendered: &str, marks: &Marks) -> bool {
    let (mut starts, mut ends) = (0, 0);
    for (place, character) in rendered.char_indices() {
        if !marks.is_ours(character) {
            continue;
        }
        match marks.read(&rendered[place..]) {
            Some((Mark::Start(_), _)) => starts += 1,
            Some((Mark::End(_), _)) => ends += 1,
            None => {}
        }
    }
    let whole = closed_parts(rendered, marks).len();
    starts != whole || ends != whole
}

/// For every mark in order, how much white space beside it is the parts': what is there beyond the
/// template's own.
fn blank_limits(rendered: &str, bare: Option<&str>, marks: &Marks) -> Vec<usize> {
    let Some(bare) = bare else { return Vec::new() };
    let (with, without) = (blanks_beside(rendered, marks), blanks_beside(bare, marks));
    if !with.iter().map(|(mark, _)| mark).eq(without.iter().map(|(mark, _)| mark)) {
        return Vec::new();
    }
    with.iter().zip(&without).map(|((_, all), (_, own))| all.saturating_sub(*own)).collect()
}

/// Every mark with the white space before it (a start) or behind it (an end), in characters.
fn blanks_beside(text: &str, marks: &Marks) -> Vec<(Mark, usize)> {
    let mut found = Vec::new();
    for (place, character) in text.char_indices() {
        if !marks.is_ours(character) {
            continue;
        }
        let Some((mark, length)) = marks.read(&text[place..]) else { continue };
        let blank = |character: &char| character.is_whitespace();
        let count = match mark {
            Mark::Start(_) => text[..place].chars().rev().take_while(blank).count(),
            Mark::End(_) => text[place + length..].chars().take_while(blank).count(),
        };
        found.push((mark, count));
    }
    found
}

/// Plain text since the last control token.
#[derive(Default)]
struct Run {
    text: String,
    owners: Vec<Option<usize>>,
    /// From here on the text was taken for the template's.
    unclaimed: usize,
    owner: Option<usize>,
    /// Text that is owned if it comes next, reversed.
    expected: Vec<(char, usize)>,
}

impl Run {
    /// Gives the unclaimed characters before the current place to their owners, as far back as
    /// they are the `expected` ones.
    fn claim_back(&mut self, expected: impl Iterator<Item = (char, usize)>) {
        let mut place = self.text.len();
        for (character, entry) in expected {
            let Some(last) = self.text[self.unclaimed..place].chars().next_back() else { break };
            if last != character {
                break;
            }
            let begin = place - last.len_utf8();
            self.owners[begin..place].fill(Some(entry));
            place = begin;
        }
    }
}

struct Reading<'a> {
    marks: &'a Marks,
    placed: &'a Placed,
    pieces: Vec<Piece>,
    run: Run,
}

impl Reading<'_> {
    fn text(&mut self, character: char) {
        debug_assert!(!self.marks.is_ours(character));
        let run = &mut self.run;
        let mut owner = run.owner;
        if owner.is_none() {
            match run.expected.pop() {
                Some((expected, entry)) if expected == character => owner = Some(entry),
                _ => run.expected.clear(),
            }
        }
        run.text.push(character);
        run.owners.resize(run.text.len(), owner);
        if owner.is_some() {
            run.unclaimed = run.text.len();
        }
    }

    fn start(&mut self, number: usize, blanks: usize, closed: bool) {
        let run = &mut self.run;
        run.expected.clear();
        let Some(part) = self.placed.get(number) else { return };
        // The part's own white space stands right before the mark, unless it was trimmed away.
        run.claim_back(characters(&part.before).into_iter().rev().take(blanks));
        run.unclaimed = run.text.len();
        if closed {
            run.owner = Some(part.entry);
        } else {
            // The template cut off the part's end: what agrees with its text is its own.
            run.expected =
                part.inner.chars().rev().map(|character| (character, part.entry)).collect();
        }
    }

    fn end(&mut self, number: usize, blanks: usize) {
        let run = &mut self.run;
        let Some(part) = self.placed.get(number) else { return };
        if run.owner.take().is_none() {
            // The template cut off the part's beginning: what agrees with its text is its own.
            let inner = part.inner.chars().rev().map(|character| (character, part.entry));
            run.claim_back(inner);
        }
        run.unclaimed = run.text.len();
        run.expected = characters(&part.after);
        run.expected.truncate(blanks);
        run.expected.reverse();
    }

    fn control(&mut self, pattern: usize) {
        self.flush();
        self.pieces.push(Piece::Control(pattern));
    }

    fn flush(&mut self) {
        let run = std::mem::take(&mut self.run);
        if !run.text.is_empty() {
            self.pieces.push(Piece::Plain { text: run.text, owners: run.owners });
        }
    }
}

fn characters(owned: &[Owned]) -> Vec<(char, usize)> {
    owned
        .iter()
        .flat_map(|piece| piece.text.chars().map(|character| (character, piece.entry)))
        .collect()
}
