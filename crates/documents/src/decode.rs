//! Bytes to text: UTF-8, UTF-16 with a byte-order mark, and Windows-1252 when that is sure.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::DocumentError;

/// Bytes outside ASCII that a guess needs to go by.
const EVIDENCE: usize = 3;

/// The text, without a byte-order mark, and what a person should know about it.
pub(crate) fn text(bytes: Vec<u8>) -> Result<(String, Vec<String>), DocumentError> {
    for (mark, encoding) in [(b"\xFF\xFE", UTF_16LE), (b"\xFE\xFF", UTF_16BE)] {
        if bytes.starts_with(mark) {
            let (text, broken) = encoding.decode_without_bom_handling(&bytes[2..]);
            return match broken || bytes.len() % 2 == 1 || text.contains('\0') {
                true => Err(DocumentError::NotText { what: "broken UTF-16", offset: 2 }),
                false => Ok((text.into_owned(), Vec::new())),
            };
        }
    }
    if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
        return Err(DocumentError::NotText { what: "a NUL byte", offset });
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text.strip_prefix('\u{FEFF}').map(str::to_owned).unwrap_or(text), vec![])),
        Err(error) => {
            let offset = error.utf8_error().valid_up_to();
            guessed(error.as_bytes(), offset)
        }
    }
}

/// Text in an encoding that a file itself declares, and so does not need to be guessed.
pub(crate) fn declared(label: &[u8], bytes: &[u8]) -> Option<(String, Vec<String>)> {
    let encoding = Encoding::for_label(label)?;
    let (text, broken) = encoding.decode_without_bom_handling(bytes);
    (!broken).then(|| (text.into_owned(), vec![format!("read as {}", encoding.name())]))
}

fn guessed(bytes: &[u8], offset: usize) -> Result<(String, Vec<String>), DocumentError> {
    let control = |byte: &u8| *byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0C);
    if let Some(offset) = bytes.iter().position(control) {
        return Err(DocumentError::NotText { what: "a control character", offset });
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let encoding = detector.guess(None, Utf8Detection::Deny);
    let outside = bytes.iter().filter(|byte| !byte.is_ascii()).count();
    let (text, broken) = encoding.decode_without_bom_handling(bytes);
    let sure = encoding == WINDOWS_1252
        && !broken
        && outside >= EVIDENCE
        // European text is mostly ASCII, and what is not stands alone among it.
        && outside * 4 <= bytes.len()
        && fitting(&text) * 10 >= outside * 8;
    if sure {
        let note = format!("not UTF-8; read as {}, which its letters fit", encoding.name());
        return Ok((text.into_owned(), vec![note]));
    }
    let guess = (outside >= EVIDENCE && !broken).then(|| encoding.name());
    Err(DocumentError::Encoding { offset, guess })
}

/// Letters outside ASCII with none beside them, and the marks that print has and typewriters lack.
fn fitting(text: &str) -> usize {
    let letters: Vec<char> = text.chars().collect();
    let foreign = |index: Option<usize>| {
        let letter = index.and_then(|index| letters.get(index));
        letter.is_some_and(|letter| !letter.is_ascii() && letter.is_alphabetic())
    };
    let alone = |index: usize| !foreign(index.checked_sub(1)) && !foreign(Some(index + 1));
    let fits = |(index, letter): (usize, &char)| match letter.is_alphabetic() {
        true => !letter.is_ascii() && alone(index),
        false => "‘’‚“”„–—…€£§°«»·•©®²³½¼¿¡\u{A0}".contains(*letter),
    };
    letters.iter().enumerate().filter(|letter| fits(*letter)).count()
}
