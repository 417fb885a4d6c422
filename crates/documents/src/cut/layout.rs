//! A text laid out in units: headings, sentences, list items, rows, lines of code.

use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::pack::Weight;

/// A part of a text that is cut only if it is too long by itself.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) range: Range<usize>,
    /// What it counts; filled in later.
    pub(super) tokens: usize,
    /// What stands at its beginning.
    pub(super) begins: Begin,
    /// A heading's level, 1 to 6.
    pub(super) heading: Option<u8>,
    /// Whether the unit before it is a heading.
    pub(super) after_heading: bool,
}

/// What a unit begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Begin {
    Grapheme,
    Word,
    /// A line of code, or a row of a table.
    Line,
    Sentence,
    Item,
    Paragraph,
    /// Of this level; 1 is the strongest.
    Heading(u8),
}

impl Unit {
    fn new(range: Range<usize>, begins: Begin) -> Self {
        let heading = match begins {
            Begin::Heading(level) => Some(level),
            _ => None,
        };
        Self { range, tokens: 0, begins, heading, after_heading: false }
    }

    /// The same with another range and beginning.
    pub(super) fn part(range: Range<usize>, begins: Begin) -> Self {
        Self { range, tokens: 0, begins, heading: None, after_heading: false }
    }

    /// What it weighs when pieces are put together.
    pub(super) fn weight(&self) -> Weight {
        // A heading at the end of a piece is worse than any other end.
        let alone = if self.after_heading { 50.0 } else { 0.0 };
        let end_before = match self.begins {
            Begin::Heading(level) => 0.02 * f64::from(level),
            Begin::Paragraph => 0.3,
            Begin::Item => 0.45,
            Begin::Sentence => 0.6,
            Begin::Line => 0.8,
            Begin::Word => 1.5,
            Begin::Grapheme => 3.0,
        };
        Weight { tokens: self.tokens.max(1), end_before: end_before + alone }
    }
}

/// The units of a text, in order; together they are the whole of it. A text of white space has
/// none, otherwise each has something in it.
pub(super) fn lay_out(text: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for block in Blocks::new(text) {
        match block.kind {
            Kind::Prose => sentences(text, &block, &mut units),
            Kind::Heading(level) => units.push(Unit::new(block.range, Begin::Heading(level))),
            Kind::Whole => units.push(Unit::new(block.range, block.begins)),
        }
    }
    let mut laid: Vec<Unit> = Vec::with_capacity(units.len());
    for unit in units {
        let is_blank = text[unit.range.clone()].trim().is_empty();
        match laid.last_mut() {
            // White space belongs to what is before it, and no grapheme is cut.
            Some(last) if is_blank || !is_boundary(text, unit.range.start) => {
                last.range.end = unit.range.end;
            }
            _ => laid.push(unit),
        }
    }
    // White space at the very beginning belongs to what is after it.
    if laid.first().is_some_and(|first| text[first.range.clone()].trim().is_empty()) {
        let blank = laid.remove(0);
        if let Some(first) = laid.first_mut() {
            first.range.start = blank.range.start;
        }
    }
    for index in 1..laid.len() {
        laid[index].after_heading = laid[index - 1].heading.is_some();
    }
    laid
}

pub(super) fn is_boundary(text: &str, offset: usize) -> bool {
    GraphemeCursor::new(offset, text.len(), true).is_boundary(text, 0).unwrap_or(false)
}

struct Block {
    range: Range<usize>,
    begins: Begin,
    kind: Kind,
}

enum Kind {
    /// Sentences that may go over lines.
    Prose,
    Heading(u8),
    /// One line that is not looked into.
    Whole,
}

/// The blocks of a text: lines that belong together, with the blank lines after them.
struct Blocks<'t> {
    text: &'t str,
    at: usize,
    /// The marks that close the code block that the text is in.
    fence: Option<&'t str>,
    after_blank: bool,
}

impl<'t> Blocks<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, at: 0, fence: None, after_blank: true }
    }

    fn line_at(&self, at: usize) -> &'t str {
        let rest = &self.text[at..];
        &rest[..rest.find('\n').map_or(rest.len(), |end| end + 1)]
    }

    /// Where the blank lines at `at` end.
    fn after_blanks(&self, mut at: usize) -> usize {
        while at < self.text.len() {
            let line = self.line_at(at);
            if !line.trim().is_empty() {
                break;
            }
            at += line.len();
        }
        at
    }
}

impl Iterator for Blocks<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        if self.at >= self.text.len() {
            return None;
        }
        let start = self.at;
        let line = self.line_at(start);
        let mut end = start + line.len();
        let (mut begins, kind);
        if let Some(fence) = self.fence {
            if line.trim_start().starts_with(fence)
                && line.trim().trim_start_matches(fence).is_empty()
            {
                self.fence = None;
            }
            (begins, kind) = (Begin::Line, Kind::Whole);
        } else if let Some(level) = heading(line) {
            (begins, kind) = (Begin::Heading(level), Kind::Heading(level));
        } else if let Some(fence) = opening(line) {
            self.fence = Some(fence);
            begins = if self.after_blank { Begin::Paragraph } else { Begin::Line };
            kind = Kind::Whole;
        } else if line.trim_start().starts_with('|') {
            begins = if self.after_blank { Begin::Paragraph } else { Begin::Line };
            kind = Kind::Whole;
        } else {
            let item = is_item(line);
            begins = if item { Begin::Item } else { Begin::Sentence };
            // Lines without a mark of their own go on with the sentence before them.
            let mut lines = 1;
            let mut underline = None;
            while end < self.text.len() {
                let next = self.line_at(end);
                underline = (lines == 1 && !item).then(|| underlined(next)).flatten();
                if underline.is_some() {
                    end += next.len();
                    break;
                }
                // In the middle of a paragraph only the first number of a list begins one.
                let number = next.trim_start().starts_with(|c: char| c.is_ascii_digit());
                let goes_on = !item && number && !next.trim_start().starts_with('1');
                if next.trim().is_empty() || (is_marked(next) && !goes_on) {
                    break;
                }
                end += next.len();
                lines += 1;
            }
            match underline {
                Some(level) => (begins, kind) = (Begin::Heading(level), Kind::Heading(level)),
                None => kind = Kind::Prose,
            }
        }
        if self.after_blank
            && !matches!(begins, Begin::Heading(_))
            && self.fence_is_closed_or_opening(line)
        {
            begins = begins.max(Begin::Paragraph);
        }
        let after = self.after_blanks(end);
        self.after_blank = after > end;
        self.at = after;
        Some(Block { range: start..after, begins, kind })
    }
}

impl Blocks<'_> {
    /// Blank lines in code begin no paragraph.
    fn fence_is_closed_or_opening(&self, line: &str) -> bool {
        match self.fence {
            None => true,
            Some(_) => opening(line).is_some(),
        }
    }
}

/// The level of a heading such as `## B`.
fn heading(line: &str) -> Option<u8> {
    let line = line.strip_prefix(['\u{FEFF}']).unwrap_or(line);
    let inner = line.trim_start_matches(' ');
    let marks = inner.len() - inner.trim_start_matches('#').len();
    let after = &inner[marks..];
    let is_heading = line.len() - inner.len() < 4
        && (1..=6).contains(&marks)
        && after.starts_with([' ', '\t'])
        && !after.trim().is_empty();
    is_heading.then(|| u8::try_from(marks).unwrap_or(6))
}

/// The level of the heading whose underline this is.
fn underlined(line: &str) -> Option<u8> {
    let marks = line.trim_end();
    let all = |mark: char| marks.len() > 2 && marks.chars().all(|c| c == mark);
    match (all('='), all('-')) {
        (true, _) => Some(1),
        (_, true) => Some(2),
        _ => None,
    }
}

/// The marks that begin a block of code.
fn opening(line: &str) -> Option<&str> {
    let inner = line.trim_start();
    let mark = inner.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = inner.len() - inner.trim_start_matches(mark).len();
    (length >= 3).then(|| &inner[..length])
}

fn is_item(line: &str) -> bool {
    let inner = line.trim_start();
    let after_bullet = inner.strip_prefix(['-', '*', '+', '•', '–']);
    let digits = inner.len() - inner.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let after_number = (1..=9).contains(&digits).then(|| inner[digits..].strip_prefix(['.', ')']));
    after_bullet.or(after_number.flatten()).is_some_and(|after| after.starts_with([' ', '\t']))
}

/// Whether a line begins something of its own.
fn is_marked(line: &str) -> bool {
    heading(line).is_some()
        || opening(line).is_some()
        || is_item(line)
        || line.trim_start().starts_with('|')
}

/// Words that end in a dot in the middle of a sentence, in the languages that people here use most.
const SHORT: &[&str] = &[
    "dr", "mr", "mrs", "ms", "prof", "st", "nr", "no", "bzw", "ca", "vgl", "etc", "art", "abs",
    "bd", "pp", "vol", "fig", "tab", "inc", "ltd", "co", "jan", "feb", "mar", "apr", "jun", "jul",
    "aug", "sep", "sept", "oct", "okt", "nov", "dec", "dez", "str", "hr", "fr", "tel", "ing",
    "kap", "gem", "inkl", "zzgl", "evtl", "ggf", "usw", "approx", "dept", "est", "ed", "eds", "vs",
    "al", "av", "sr", "sra", "mme", "mlle", "chap", "dott", "sig", "pag", "dhr", "mevr", "bv",
    "nl",
];

/// The sentences of a block. Line breaks inside a paragraph are spaces to a reader.
fn sentences(text: &str, block: &Block, units: &mut Vec<Unit>) {
    let source = &text[block.range.clone()];
    let flat: String =
        source.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }).collect();
    let mut start = 0;
    let mut begins = block.begins;
    for (at, sentence) in flat.split_sentence_bound_indices() {
        let end = at + sentence.len();
        if end < flat.len() && goes_on(&flat[start..end]) {
            continue;
        }
        let range = block.range.start + start..block.range.start + end;
        units.push(Unit::new(range, begins));
        (start, begins) = (end, Begin::Sentence);
    }
    if start < flat.len() {
        units.push(Unit::new(block.range.start + start..block.range.end, begins));
    }
}

/// Whether a sentence seems to end only because of an abbreviation or a number before a name.
fn goes_on(sentence: &str) -> bool {
    let Some(before) = sentence.trim_end().strip_suffix('.') else { return false };
    let word = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_number = !word.is_empty() && word.len() < 3 && word.bytes().all(|b| b.is_ascii_digit());
    let is_letter = word.chars().count() == 1 && word != "I";
    is_number || is_letter || SHORT.contains(&word.to_lowercase().as_str())
}
