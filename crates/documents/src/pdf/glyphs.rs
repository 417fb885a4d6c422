//! Letters by the names that fonts give them.

use lopdf::{Dictionary, Document, Encoding, Object};

/// The letters of a glyph name: one that Adobe's list names, or of the forms `uni0041`, `u1F600`;
/// what follows a dot is a variant of the same letter.
pub(super) fn letters(name: &[u8]) -> Option<String> {
    let name = name.split(|byte| *byte == b'.').next().filter(|name| !name.is_empty())?;
    let ligature = match name {
        b"ff" => Some("ff"),
        b"fi" => Some("fi"),
        b"fl" => Some("fl"),
        b"ffi" => Some("ffi"),
        b"ffl" => Some("ffl"),
        _ => None,
    };
    if let Some(letters) = ligature {
        return Some(letters.to_owned());
    }
    listed(name).or_else(|| {
        let text = std::str::from_utf8(name).ok()?;
        let hex = text.strip_prefix("uni").filter(|hex| hex.len() >= 4);
        let hex =
            hex.map(|hex| &hex[..4]).or(text.strip_prefix('u')).filter(|hex| hex.is_ascii())?;
        char::from_u32(u32::from_str_radix(hex, 16).ok()?).map(String::from)
    })
}

/// The library knows Adobe's list but shows it only through a font's encoding.
fn listed(name: &[u8]) -> Option<String> {
    let differences = vec![Object::Integer(0), Object::Name(name.to_vec())];
    let mut encoding = Dictionary::new();
    encoding.set("Differences", differences);
    let mut font = Dictionary::new();
    font.set("Type", "Font");
    font.set("Encoding", encoding);
    let document = Document::new();
    match font.get_font_encoding(&document) {
        Ok(encoding @ Encoding::Differences(_)) => {
            encoding.bytes_to_string(&[0]).ok().filter(|letters| !letters.is_empty())
        }
        _ => None,
    }
}
