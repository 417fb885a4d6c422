//! Marks: characters put around the parts of messages before rendering, to know them afterwards.

use std::collections::HashSet;

use aho_corasick::AhoCorasick;
use correx_context::{EncodeError, MessagePart};

/// Bits of a part's number in a mark.
const BITS: u32 = 16;

/// Characters that occur in no text of one prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marks {
    start: char,
    end: char,
    bits: [char; 2],
    breaker: char,
    /// The first characters of control tokens, each with what may stand in its place.
    shields: Vec<(char, char)>,
}

/// How control tokens in content are kept from being whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// A breaker inside each of them: a template that looks at the content sees most of it as it
    /// is, but one that takes out characters can make a token whole.
    Break,
    /// A stand-in for every character that a control token can begin with: nothing that a template
    /// does to the content makes a token of it.
    Shield,
}

/// A mark that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The part with this number begins.
    Start(usize),
    /// The part with this number has ended.
    End(usize),
}

impl Marks {
    /// Marks that occur in none of `texts`, and stand-ins for the characters `firsts`.
    pub(super) fn beside<'a>(
        texts: impl Iterator<Item = &'a str>,
        firsts: &[char],
    ) -> Result<Self, EncodeError> {
        let taken: HashSet<char> =
            texts.flat_map(str::chars).filter(|character| is_candidate(*character)).collect();
        let mut free = candidates().filter(|character| !taken.contains(character));
        let mut next = || {
            free.next().ok_or_else(|| {
                EncodeError::Template("the text uses every private character there is".into())
            })
        };
        let (start, end, bits, breaker) = (next()?, next()?, [next()?, next()?], next()?);
        let shields =
            firsts.iter().map(|first| Ok((*first, next()?))).collect::<Result<_, EncodeError>>()?;
        Ok(Self { start, end, bits, breaker, shields })
    }

    fn write(&self, into: &mut String, mark: Mark) {
        let (character, number) = match mark {
            Mark::Start(number) => (self.start, number),
            Mark::End(number) => (self.end, number),
        };
        into.push(character);
        for bit in 0..BITS {
            into.push(self.bits[number >> bit & 1]);
        }
    }

    /// Reads the mark at the front of `text` and how many bytes it takes; a torn one is `None`.
    pub(super) fn read(&self, text: &str) -> Option<(Mark, usize)> {
        let mut characters = text.chars();
        let first = characters.next()?;
        let mut number = 0usize;
        let mut length = first.len_utf8();
        for bit in 0..BITS {
            let character = characters.next()?;
            let value = self.bits.iter().position(|each| *each == character)?;
            number |= value << bit;
            length += character.len_utf8();
        }
        match first {
            found if found == self.start => Some((Mark::Start(number), length)),
            found if found == self.end => Some((Mark::End(number), length)),
            _ => None,
        }
    }

    /// The character that `character` stands for.
    pub(super) fn unshielded(&self, character: char) -> char {
        let shield = self.shields.iter().find(|(_, shield)| *shield == character);
        shield.map_or(character, |(original, _)| *original)
    }

    /// Appends `text` so that nothing in it reads as a control token.
    fn push_guarded(&self, into: &mut String, control: &AhoCorasick, text: &str, guard: Guard) {
        match guard {
            Guard::Break => push_broken(into, self, control, text),
            Guard::Shield => into.extend(text.chars().map(|character| {
                let shield = self.shields.iter().find(|(original, _)| *original == character);
                shield.map_or(character, |(_, shield)| *shield)
            })),
        }
    }

    /// Whether `character` is not a text's.
    pub(super) fn is_ours(&self, character: char) -> bool {
        [self.start, self.end, self.bits[0], self.bits[1], self.breaker].contains(&character)
    }
}

/// Noncharacters first, then the private use areas.
fn candidates() -> impl Iterator<Item = char> {
    ('\u{fdd0}'..='\u{fdef}').chain('\u{e000}'..='\u{f8ff}').chain('\u{f0000}'..='\u{ffffd}')
}

fn is_candidate(character: char) -> bool {
    matches!(character, '\u{fdd0}'..='\u{fdef}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}')
}

/// Text of a known owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) entry: usize,
    pub(super) text: String,
}

/// A part that was marked: what it owns outside its marks, where that is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlacedPart {
    pub(super) entry: usize,
    /// Its text between the marks.
    pub(super) inner: String,
    /// White space before its first mark.
    pub(super) before: Vec<Owned>,
    /// White space behind its last mark.
    pub(super) after: Vec<Owned>,
}

/// Whether white space around parts is given to the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blanks {
    Keep,
    Drop,
}

/// The marked parts by their numbers.
#[derive(Debug, Default)]
pub(super) struct Placed {
    parts: Vec<PlacedPart>,
    trimmable: bool,
}

impl Placed {
    pub(super) fn get(&self, number: usize) -> Option<&PlacedPart> {
        self.parts.get(number)
    }

    /// Whether some message begins or ends with white space, which templates like to trim.
    pub(super) fn has_trimmable(&self) -> bool {
        self.trimmable
    }

    /// The content of one message: marks just inside the white space of each part, so that a
    /// template that trims still trims it; control tokens broken up.
    pub(super) fn message(
        &mut self,
        marks: &Marks,
        control: &AhoCorasick,
        parts: &[MessagePart],
        blanks: Blanks,
        guard: Guard,
    ) -> String {
        let mut content = String::new();
        let mut blank: Vec<Owned> = Vec::new();
        let mut open: Option<usize> = None;
        for part in parts {
            let owned = |text: &str| Owned { entry: part.entry, text: text.to_owned() };
            let inner = part.text.trim();
            let number = self.parts.len();
            if inner.is_empty() || number >> BITS != 0 {
                // White space alone carries no mark. It is found again beside its neighbours.
                if blanks == Blanks::Keep || !inner.is_empty() {
                    marks.push_guarded(&mut content, control, &part.text, guard);
                }
                blank.push(owned(&part.text));
                continue;
            }
            let lead = part.text.len() - part.text.trim_start().len();
            let (before, rest) = part.text.split_at(lead);
            let after = &rest[inner.len()..];
            if blanks == Blanks::Keep {
                content.push_str(before);
            }
            marks.write(&mut content, Mark::Start(number));
            marks.push_guarded(&mut content, control, inner, guard);
            marks.write(&mut content, Mark::End(number));
            if blanks == Blanks::Keep {
                content.push_str(after);
            }
            // Between two parts the first one's mark looks forward for what is blank.
            let mut leading = Vec::new();
            match open {
                Some(previous) => self.parts[previous].after.append(&mut blank),
                None => leading.append(&mut blank),
            }
            leading.push(owned(before));
            self.trimmable |= open.is_none() && leading.iter().any(|each| !each.text.is_empty());
            self.parts.push(PlacedPart {
                entry: part.entry,
                inner: inner.to_owned(),
                before: leading,
                after: vec![owned(after)],
            });
            open = Some(number);
        }
        if let Some(previous) = open {
            let after = &mut self.parts[previous].after;
            after.append(&mut blank);
            self.trimmable |= after.iter().any(|each| !each.text.is_empty());
        }
        content
    }
}

/// Appends `text` with a breaker behind the first character of everything that reads as a control
/// token.
fn push_broken(into: &mut String, marks: &Marks, control: &AhoCorasick, text: &str) {
    let mut breaks: Vec<usize> = control
        .find_overlapping_iter(text)
        .filter_map(|found| {
            let first = text[found.range()].chars().next()?.len_utf8();
            (first < found.len()).then_some(found.start() + first)
        })
        .collect();
    breaks.sort_unstable();
    breaks.dedup();
    let mut start = 0;
    for place in breaks {
        into.push_str(&text[start..place]);
        into.push(marks.breaker);
        start = place;
    }
    into.push_str(&text[start..]);
}
