//! Text that remembers where it came from.

use std::ops::Range;

/// The part of the conversation that a stretch of text belongs to; `None`: the template itself.
pub type Origin = Option<usize>;

/// Text with the origin of each of its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    text: String,
    /// Where each stretch of one origin ends, and the origin. Neighbours differ.
    runs: Vec<(usize, Origin)>,
}

impl Text {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// `text` from `origin`.
    pub fn from_origin(text: impl Into<String>, origin: Origin) -> Self {
        let text = text.into();
        let runs = if text.is_empty() { Vec::new() } else { vec![(text.len(), origin)] };
        Self { text, runs }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The stretches of one origin, in order.
    pub fn runs(&self) -> impl Iterator<Item = (Range<usize>, Origin)> {
        let mut start = 0;
        self.runs.iter().map(move |(end, origin)| {
            let range = start..*end;
            start = *end;
            (range, *origin)
        })
    }

    /// The origin of the byte at `place`.
    pub fn origin(&self, place: usize) -> Origin {
        let run = self.runs.partition_point(|(end, _)| *end <= place);
        self.runs.get(run).and_then(|(_, origin)| *origin)
    }

    /// Appends `text` from `origin`.
    pub fn push(&mut self, text: &str, origin: Origin) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        self.extend_to_end(origin);
    }

    /// Appends `character` from `origin`.
    pub fn push_char(&mut self, character: char, origin: Origin) {
        self.text.push(character);
        self.extend_to_end(origin);
    }

    fn extend_to_end(&mut self, origin: Origin) {
        let end = self.text.len();
        match self.runs.last_mut() {
            Some(last) if last.1 == origin => last.0 = end,
            _ => self.runs.push((end, origin)),
        }
    }

    /// Appends another text.
    pub fn append(&mut self, other: &Self) {
        self.append_part(other, 0..other.len());
    }

    /// Appends a part of another text. The ends of `part` lie between characters.
    pub fn append_part(&mut self, other: &Self, part: Range<usize>) {
        let first = other.runs.partition_point(|(end, _)| *end <= part.start);
        let mut start = part.start;
        for (end, origin) in &other.runs[first..] {
            if start >= part.end {
                break;
            }
            let end = (*end).min(part.end);
            self.push(&other.text[start..end], *origin);
            start = end;
        }
    }

    /// A part of it. The ends of `part` lie between characters.
    pub fn part(&self, part: Range<usize>) -> Self {
        let mut text = Self::new();
        text.append_part(self, part);
        text
    }

    /// The characters, each with its place and origin.
    pub fn chars(&self) -> impl Iterator<Item = (usize, char, Origin)> {
        let mut run = 0;
        self.text.char_indices().map(move |(place, character)| {
            while self.runs.get(run).is_some_and(|(end, _)| *end <= place) {
                run += 1;
            }
            (place, character, self.runs.get(run).and_then(|(_, origin)| *origin))
        })
    }

    /// What stretches of it take beside the text, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.text.len() + self.runs.len() * size_of::<(usize, Origin)>()
    }
}

impl From<&str> for Text {
    /// The template's own text.
    fn from(text: &str) -> Self {
        Self::from_origin(text, None)
    }
}
