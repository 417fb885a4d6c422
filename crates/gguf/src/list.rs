//! Lists in the metadata, kept as compactly as the file keeps them.
//!
//! A vocabulary is a list of a hundred thousand texts. In memory it costs no more than in the file:
//! the texts stand one after another in one text, and numbers keep the width that they were
//! stored with.

use std::fmt;
use std::ops::Index;

/// A list of texts.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Texts {
    text: String,
    /// Where every text ends in `text`. At most 4 GiB together.
    ends: Vec<u32>,
}

impl Texts {
    pub(crate) fn with_capacity(texts: usize, bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), ends: Vec::with_capacity(texts) }
    }

    /// Adds a text; `None` when all together are too large.
    pub(crate) fn push(&mut self, text: &str) -> Option<()> {
        let end = u32::try_from(self.text.len() + text.len()).ok()?;
        self.text.push_str(text);
        self.ends.push(end);
        Some(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The text at `place`.
    pub fn get(&self, place: usize) -> Option<&str> {
        let end = *self.ends.get(place)? as usize;
        let start = if place == 0 { 0 } else { self.ends[place - 1] as usize };
        self.text.get(start..end)
    }

    /// The texts in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + DoubleEndedIterator + Clone {
        (0..self.len()).map(|place| &self[place])
    }
}

impl Index<usize> for Texts {
    type Output = str;

    /// Panics when there is no such text, as a slice does.
    fn index(&self, place: usize) -> &str {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.text[start as usize..self.ends[place] as usize]
    }
}

impl<T: AsRef<str>> FromIterator<T> for Texts {
    /// Panics when the texts together are larger than 4 GiB.
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut list = Texts::default();
        for text in texts {
            assert!(list.push(text.as_ref()).is_some(), "more than 4 GiB of texts");
        }
        list
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// How the elements of a list of whole numbers or truth values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum NumberKind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    Bool,
    U64,
    I64,
}

impl NumberKind {
    /// The number that GGUF has for it.
    pub fn number(self) -> u32 {
        match self {
            NumberKind::U8 => 0,
            NumberKind::I8 => 1,
            NumberKind::U16 => 2,
            NumberKind::I16 => 3,
            NumberKind::U32 => 4,
            NumberKind::I32 => 5,
            NumberKind::Bool => 7,
            NumberKind::U64 => 10,
            NumberKind::I64 => 11,
        }
    }

    pub(crate) fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => NumberKind::U8,
            1 => NumberKind::I8,
            2 => NumberKind::U16,
            3 => NumberKind::I16,
            4 => NumberKind::U32,
            5 => NumberKind::I32,
            7 => NumberKind::Bool,
            10 => NumberKind::U64,
            11 => NumberKind::I64,
            _ => return None,
        })
    }

    /// Bytes of an element.
    pub fn width(self) -> usize {
        match self {
            NumberKind::U8 | NumberKind::I8 | NumberKind::Bool => 1,
            NumberKind::U16 | NumberKind::I16 => 2,
            NumberKind::U32 | NumberKind::I32 => 4,
            NumberKind::U64 | NumberKind::I64 => 8,
        }
    }

    /// The number that `bytes`, one element, stand for.
    fn read(self, bytes: &[u8]) -> i64 {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let unsigned = u64::from_le_bytes(wide);
        match self {
            NumberKind::I8 => i64::from(unsigned as u8 as i8),
            NumberKind::I16 => i64::from(unsigned as u16 as i16),
            NumberKind::I32 => i64::from(unsigned as u32 as i32),
            NumberKind::I64 => unsigned as i64,
            // Checked when the list was made: it fits.
            _ => i64::try_from(unsigned).unwrap_or(i64::MAX),
        }
    }
}

/// A list of whole numbers or truth values.
#[derive(Clone, PartialEq, Eq)]
pub struct Numbers {
    kind: NumberKind,
    bytes: Vec<u8>,
}

impl Numbers {
    /// The list whose elements of `kind` are stored in `bytes`, smallest byte first. `None` when
    /// there is half an element, a truth value that is neither, or a number beyond [`i64`].
    pub fn new(kind: NumberKind, bytes: Vec<u8>) -> Option<Self> {
        let sound = bytes.len().is_multiple_of(kind.width())
            && match kind {
                NumberKind::Bool => bytes.iter().all(|byte| *byte <= 1),
                NumberKind::U64 => bytes.chunks_exact(8).all(|number| number[7] < 128),
                _ => true,
            };
        sound.then_some(Self { kind, bytes })
    }

    /// How its elements are stored.
    pub fn kind(&self) -> NumberKind {
        self.kind
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.kind.width()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The number at `place`.
    pub fn get(&self, place: usize) -> Option<i64> {
        let width = self.kind.width();
        let start = place.checked_mul(width)?;
        self.bytes.get(start..start.checked_add(width)?).map(|bytes| self.kind.read(bytes))
    }

    /// The numbers in their order; a truth value is 0 or 1.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = i64> + DoubleEndedIterator + Clone {
        let kind = self.kind;
        self.bytes.chunks_exact(kind.width()).map(move |bytes| kind.read(bytes))
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl FromIterator<i64> for Numbers {
    /// As 64-bit numbers.
    fn from_iter<I: IntoIterator<Item = i64>>(numbers: I) -> Self {
        let bytes = numbers.into_iter().flat_map(i64::to_le_bytes).collect();
        Self { kind: NumberKind::I64, bytes }
    }
}

impl FromIterator<i32> for Numbers {
    fn from_iter<I: IntoIterator<Item = i32>>(numbers: I) -> Self {
        let bytes = numbers.into_iter().flat_map(i32::to_le_bytes).collect();
        Self { kind: NumberKind::I32, bytes }
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// How wide the elements of a list of numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FloatKind {
    F32,
    F64,
}

impl FloatKind {
    /// The number that GGUF has for it.
    pub fn number(self) -> u32 {
        match self {
            FloatKind::F32 => 6,
            FloatKind::F64 => 12,
        }
    }

    /// Bytes of an element.
    pub fn width(self) -> usize {
        match self {
            FloatKind::F32 => 4,
            FloatKind::F64 => 8,
        }
    }
}

/// A list of numbers that need not be whole.
#[derive(Clone, PartialEq, Eq)]
pub struct Floats {
    kind: FloatKind,
    bytes: Vec<u8>,
}

impl Floats {
    /// The list whose elements of `kind` are stored in `bytes`, smallest byte first. `None` when
    /// there is half an element.
    pub fn new(kind: FloatKind, bytes: Vec<u8>) -> Option<Self> {
        bytes.len().is_multiple_of(kind.width()).then_some(Self { kind, bytes })
    }

    /// How its elements are stored.
    pub fn kind(&self) -> FloatKind {
        self.kind
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.kind.width()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The numbers in their order, rounded to 32 bits.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = f32> + DoubleEndedIterator + Clone {
        self.bytes.chunks_exact(self.kind.width()).map(|bytes| match *bytes {
            [a, b, c, d] => f32::from_le_bytes([a, b, c, d]),
            [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32,
            // No other width exists.
            _ => 0.0,
        })
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl FromIterator<f32> for Floats {
    fn from_iter<I: IntoIterator<Item = f32>>(numbers: I) -> Self {
        let bytes = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
        Self { kind: FloatKind::F32, bytes }
    }
}

impl fmt::Debug for Floats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
