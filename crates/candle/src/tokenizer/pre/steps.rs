//! One step of a rule: it splits every piece that the steps before it left.
//!
//! A step sees one byte for each character ([`Alphabet`]) and matches a pattern over these bytes.
//! Every match is a piece, and so is what lies between two matches.

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, PatternID};

use super::super::VocabularyError;
use super::super::classes;

/// What a step does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Takes matches of a pattern apart.
    Match(Pattern),
    /// Cuts runs of numbers so that groups of three are counted from their ends.
    Thousands(Digits),
}

/// A pattern over the bytes of an alphabet.
///
/// `\p{L}`, `\p{N}`, `\p{P}`, `\p{M}` and `\p{S}` stand for the categories, also inside brackets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pattern {
    pub(super) alphabet: Alphabet,
    pub(super) pattern: &'static str,
    pub(super) blanks: Blanks,
}

/// How white space is taken that the pattern itself does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blanks {
    /// As part of what lies between matches.
    Between,
    /// As one piece, less the last character when something follows.
    LeaveOne,
    /// In pieces of 512, 256, …, 4, then two or one characters, with one left when something
    /// follows.
    Powers,
}

/// A range of characters, from the first to the last.
pub(super) type Span = (char, char);

/// How characters are seen.
#[derive(Debug, Clone, Copy)]
pub(super) enum Alphabet {
    /// ASCII as it is, others by their category.
    Categories,
    /// The same with the Han characters apart: letters are `\xd6`, the rest `\xd7`.
    Han,
    /// ASCII as it is, white space as such, the members of the first set as `\x80`, of the second
    /// as `\x81`, and so on.
    Sets(&'static [&'static [Span]]),
}

/// Which characters are digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Digits {
    /// All numbers. What stands before a number stays with its first group.
    Numbers,
    /// `0` to `9`. What stands before a number is a piece of its own when the number has whole
    /// groups only.
    Ascii,
}

const HAN: &[Span] = &[
    ('\u{3400}', '\u{4dbf}'),
    ('\u{4e00}', '\u{9fff}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{20000}', '\u{2a6df}'),
    ('\u{2a700}', '\u{2ebef}'),
    ('\u{2f800}', '\u{2fa1f}'),
];
const HAN_LETTER: u8 = 0xd6;
const HAN_OTHER: u8 = 0xd7;

/// Categories with what they have in ASCII, as members of a bracket.
const CATEGORIES: &[(&str, &str)] = &[
    (r"\p{L}", r"[A-Za-z\xd2]"),
    (r"\p{N}", r"[0-9\xd1]"),
    (r"\p{P}", r##"[!-#%-*,-/:;?@\[-\]_{}\xd3]"##),
    (r"\p{M}", r"[\xd4]"),
    (r"\p{S}", r"[$+<->^`|~\xd5]"),
];

impl Alphabet {
    fn byte(self, character: char) -> u8 {
        let class = classes::class(character);
        match self {
            Self::Categories => class,
            Self::Han if within(HAN, character) => match class {
                classes::LETTER => HAN_LETTER,
                _ => HAN_OTHER,
            },
            Self::Han => class,
            Self::Sets(_) if class < 0x80 => class,
            Self::Sets(sets) => sets
                .iter()
                .position(|set| within(set, character))
                .map_or(classes::OTHER, |set| 0x80 + set as u8),
        }
    }

    fn bytes(self, text: &str) -> Vec<u8> {
        text.chars().map(|character| self.byte(character)).collect()
    }
}

/// Whether `set`, which is sorted, has `character`.
fn within(set: &[Span], character: char) -> bool {
    let after = set.partition_point(|(first, _)| *first <= character);
    after > 0 && character <= set[after - 1].1
}

/// A step that is ready.
#[derive(Debug)]
pub(super) enum CompiledStep {
    Match { alphabet: Alphabet, regex: Regex, blanks: Blanks },
    Thousands(Digits),
}

impl CompiledStep {
    pub(super) fn new(step: &Step) -> Result<Self, VocabularyError> {
        let Pattern { alphabet, pattern, blanks } = match step {
            Step::Match(pattern) => pattern,
            Step::Thousands(digits) => return Ok(Self::Thousands(*digits)),
        };
        let mut body = (*pattern).to_owned();
        for (category, members) in CATEGORIES {
            body = body.replace(category, members);
        }
        let patterns = match blanks {
            Blanks::Between => vec![body.as_str()],
            Blanks::LeaveOne | Blanks::Powers => vec![body.as_str(), r"\s+"],
        };
        let regex = Regex::builder()
            .syntax(syntax::Config::new().unicode(false).utf8(false))
            .configure(Regex::config().utf8_empty(false))
            .build_many(&patterns)
            .map_err(|error| VocabularyError::Damaged(format!("its splitting rule: {error}")))?;
        Ok(Self::Match { alphabet: *alphabet, regex, blanks: *blanks })
    }

    /// Splits the pieces with `lengths` characters.
    fn split(&self, text: &str, lengths: &[usize]) -> Vec<usize> {
        let alphabet = match self {
            Self::Match { alphabet, .. } => *alphabet,
            Self::Thousands(_) => Alphabet::Categories,
        };
        let bytes = alphabet.bytes(text);
        let mut cut = Vec::with_capacity(lengths.len());
        let mut start = 0;
        for length in lengths {
            let piece = &bytes[start..start + length];
            match self {
                Self::Match { regex, blanks, .. } => take_matches(regex, *blanks, piece, &mut cut),
                Self::Thousands(digits) => cut_numbers(*digits, piece, &mut cut),
            }
            start += length;
        }
        cut
    }
}

/// Where each piece of `text` ends, in bytes, when `steps` have split it.
pub(super) fn ends(steps: &[CompiledStep], text: &str) -> Vec<usize> {
    let mut lengths = match text.chars().count() {
        0 => return Vec::new(),
        count => vec![count],
    };
    for step in steps {
        lengths = step.split(text, &lengths);
    }
    let mut characters = text.chars();
    let mut end = 0;
    lengths
        .into_iter()
        .map(|length| {
            end += characters.by_ref().take(length).map(char::len_utf8).sum::<usize>();
            end
        })
        .collect()
}

fn take_matches(regex: &Regex, blanks: Blanks, piece: &[u8], cut: &mut Vec<usize>) {
    let mut done = 0;
    while done < piece.len() {
        let input = Input::new(piece).range(done..).anchored(Anchored::No);
        let Some(found) = regex.search(&input) else { break };
        let range = found.range();
        if range.start > done {
            cut.push(range.start - done);
        }
        done = range.end.max(range.start + 1);
        if blanks != Blanks::Between && found.pattern() == PatternID::must(1) {
            done = range.start + blanks_taken(blanks, range.len(), range.end == piece.len());
        }
        cut.push(done - range.start);
    }
    if done < piece.len() {
        cut.push(piece.len() - done);
    }
}

/// How many of `run` blanks are taken at once; `last`: whether they end the piece.
fn blanks_taken(blanks: Blanks, run: usize, last: bool) -> usize {
    let most = if last || run == 1 { run } else { run - 1 };
    match blanks {
        Blanks::Between | Blanks::LeaveOne => most,
        Blanks::Powers => match most {
            1..=3 => most.min(2),
            _ => [512, 256, 128, 64, 32, 16, 8, 4].into_iter().find(|n| *n <= most).unwrap_or(1),
        },
    }
}

fn cut_numbers(digits: Digits, piece: &[u8], cut: &mut Vec<usize>) {
    let is_digit = |byte: &u8| match digits {
        Digits::Numbers => byte.is_ascii_digit() || *byte == classes::NUMBER,
        Digits::Ascii => byte.is_ascii_digit(),
    };
    let mut done = 0;
    let mut place = 0;
    while place < piece.len() {
        let run = piece[place..].iter().take_while(|byte| is_digit(byte)).count();
        if run == 0 {
            place += 1;
            continue;
        }
        let end = place + run;
        // Groups begin here, and end at each of these and at the end of the number.
        let mut groups: Vec<usize> = (place + run % 3..end).step_by(3).collect();
        match digits {
            Digits::Numbers => {
                groups.retain(|group| *group > place);
                groups.push(end);
            }
            Digits::Ascii => {}
        }
        for group in groups {
            if group > done {
                cut.push(group - done);
                done = group;
            }
        }
        place = end;
    }
    if done < piece.len() {
        cut.push(piece.len() - done);
    }
}
