//! Fonts: which letters the bytes of a string stand for, and how wide they are.

use std::collections::BTreeMap;

use encoding_rs::{MACINTOSH, WINDOWS_1252};
use lopdf::{Dictionary, Document, Object, Stream};

use super::MAX_PART_BYTES;
use super::cmap::CMap;
use super::glyphs;

/// Widths that one font may name.
const MAX_WIDTHS: usize = 70_000;

/// One code of a string.
pub(super) struct Letter {
    /// Its text, if that is known.
    pub(super) text: Option<String>,
    /// How far it moves on, in units of the font size.
    pub(super) width: f32,
    /// Whether it is a space as files mean it: word spacing applies.
    pub(super) is_space: bool,
}

pub(super) struct Font {
    codes: Codes,
    /// Bytes per code.
    bytes: usize,
    widths: BTreeMap<u32, f32>,
    usual_width: f32,
    /// Glyph space to text space.
    scale: f32,
}

enum Codes {
    Map(CMap, Box<Codes>),
    Simple(Box<[Option<String>; 256]>),
    /// UTF-16 as it is.
    Unicode,
    Unknown,
}

impl Font {
    pub(super) fn read(document: &Document, font: &Dictionary) -> Self {
        let kind = font.get(b"Subtype").and_then(Object::as_name).unwrap_or_default();
        let composite = kind == b"Type0";
        let map = font
            .get_deref(b"ToUnicode", document)
            .and_then(Object::as_stream)
            .ok()
            .and_then(|stream| stream.get_plain_content_with_limit(MAX_PART_BYTES / 4).ok())
            .map(|bytes| CMap::read(&bytes));
        let encoding = font.get_deref(b"Encoding", document).ok();
        let codes = match composite {
            true => match encoding.and_then(|encoding| encoding.as_name().ok()) {
                Some(name) if ends_with_any(name, &["UCS2-H", "UCS2-V", "UTF16-H", "UTF16-V"]) => {
                    Codes::Unicode
                }
                _ => Codes::Unknown,
            },
            false => Codes::Simple(Box::new(simple(document, encoding))),
        };
        let bytes = match (composite, &map) {
            (false, _) => 1,
            (true, Some(map)) => map.width,
            (true, None) => 2,
        };
        let codes = match map {
            Some(map) => Codes::Map(map, Box::new(codes)),
            None => codes,
        };
        let (widths, usual_width) = match composite {
            true => composite_widths(document, font),
            false => simple_widths(document, font),
        };
        let scale = match font.get_deref(b"FontMatrix", document).and_then(Object::as_array) {
            Ok(matrix) if kind == b"Type3" => {
                matrix.first().and_then(|x| x.as_float().ok()).unwrap_or(0.001)
            }
            _ => 0.001,
        };
        Self { codes, bytes, widths, usual_width, scale }
    }

    pub(super) fn letters<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Letter> + 'a {
        text.chunks(self.bytes).map(|bytes| {
            let code = bytes.iter().fold(0_u32, |code, byte| code << 8 | u32::from(*byte));
            let width = self.widths.get(&code).copied().unwrap_or(self.usual_width) * self.scale;
            Letter {
                text: self.codes.text(code),
                width: if width.is_finite() { width } else { 0.0 },
                is_space: self.bytes == 1 && code == 32,
            }
        })
    }
}

impl Codes {
    fn text(&self, code: u32) -> Option<String> {
        match self {
            Self::Map(map, fallback) => map.text(code).or_else(|| fallback.text(code)),
            Self::Simple(letters) => {
                usize::try_from(code).ok().and_then(|code| letters.get(code)).cloned().flatten()
            }
            Self::Unicode => char::from_u32(code).map(String::from),
            Self::Unknown => None,
        }
    }
}

fn ends_with_any(name: &[u8], endings: &[&str]) -> bool {
    endings.iter().any(|ending| name.ends_with(ending.as_bytes()))
}

/// The letters of a font with one byte per code.
fn simple(document: &Document, encoding: Option<&Object>) -> [Option<String>; 256] {
    let dictionary = encoding.and_then(|encoding| encoding.as_dict().ok());
    let base = match (encoding, dictionary) {
        (Some(Object::Name(name)), _) => Some(name.as_slice()),
        (_, Some(dictionary)) => dictionary.get(b"BaseEncoding").and_then(Object::as_name).ok(),
        _ => None,
    };
    let mut letters = std::array::from_fn(|code| {
        let byte = u8::try_from(code).unwrap_or(0);
        let encoding = if base == Some(b"MacRomanEncoding") { MACINTOSH } else { WINDOWS_1252 };
        let (text, _) = encoding.decode_without_bom_handling(std::slice::from_ref(&byte));
        (byte >= 32 && byte != 127).then(|| text.into_owned())
    });
    let differences = dictionary
        .and_then(|dictionary| dictionary.get_deref(b"Differences", document).ok())
        .and_then(|differences| differences.as_array().ok());
    let mut code = 0_usize;
    for item in differences.into_iter().flatten().take(2048) {
        match item {
            Object::Integer(number) => code = usize::try_from(*number).unwrap_or(256),
            Object::Name(name) => {
                if let Some(place) = letters.get_mut(code) {
                    *place = glyphs::letters(name);
                }
                code += 1;
            }
            _ => {}
        }
    }
    letters
}

fn simple_widths(document: &Document, font: &Dictionary) -> (BTreeMap<u32, f32>, f32) {
    let first = font.get_deref(b"FirstChar", document).and_then(Object::as_i64).unwrap_or(0);
    let first = u32::try_from(first).unwrap_or(0);
    let widths = font.get_deref(b"Widths", document).and_then(Object::as_array);
    let mut all = BTreeMap::new();
    for (code, width) in (first..).zip(widths.into_iter().flatten().take(256)) {
        if let Some(width) = number(document, width) {
            all.insert(code, width);
        }
    }
    // Fonts that every reader has say nothing of their widths; half the size is near most letters.
    (all, 500.0)
}

fn composite_widths(document: &Document, font: &Dictionary) -> (BTreeMap<u32, f32>, f32) {
    let mut all = BTreeMap::new();
    let descendant = font
        .get_deref(b"DescendantFonts", document)
        .and_then(Object::as_array)
        .ok()
        .and_then(|fonts| fonts.first())
        .and_then(|font| document.dereference(font).ok())
        .and_then(|(_, font)| font.as_dict().ok());
    let Some(descendant) = descendant else { return (all, 1000.0) };
    let usual = descendant.get_deref(b"DW", document).and_then(Object::as_float).unwrap_or(1000.0);
    let widths = descendant.get_deref(b"W", document).and_then(Object::as_array);
    let mut items = widths.into_iter().flatten();
    while let Some(first) = items.next().and_then(|item| number(document, item)) {
        // Codes are whole numbers from 0.
        let first = first as u32;
        let Some(next) = items.next().and_then(|item| document.dereference(item).ok()) else {
            break;
        };
        match next.1 {
            Object::Array(widths) => {
                for (code, width) in (first..).zip(widths) {
                    if let Some(width) = number(document, width) {
                        all.insert(code, width);
                    }
                }
            }
            last => {
                let last = last.as_float().unwrap_or(0.0) as u32;
                let Some(width) = items.next().and_then(|item| number(document, item)) else {
                    break;
                };
                for code in first..=last.min(first.saturating_add(65_535)) {
                    all.insert(code, width);
                    if all.len() > MAX_WIDTHS {
                        break;
                    }
                }
            }
        }
        if all.len() > MAX_WIDTHS {
            break;
        }
    }
    (all, usual)
}

fn number(document: &Document, object: &Object) -> Option<f32> {
    document.dereference(object).ok().and_then(|(_, object)| object.as_float().ok())
}

/// A stream's content, unpacked, at most [`MAX_PART_BYTES`].
pub(super) fn content(stream: &Stream) -> Option<Vec<u8>> {
    stream.get_plain_content_with_limit(MAX_PART_BYTES).ok()
}
