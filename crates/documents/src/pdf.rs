//! PDF files: the text that their pages draw, line by line.
//!
//! The file format is read by lopdf; what it would take on trust is checked as the file is loaded
//! (`guard`). What draws text on a page is followed here (`page`), with fonts that say which
//! letters their codes stand for (`font`, `cmap`).

mod cmap;
mod font;
mod glyphs;
mod guard;
mod page;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use lopdf::{DecompressError, Error, LoadOptions};

use crate::document::{MAX_TEXT_BYTES, broken};
use crate::{Document, DocumentError, Format};
use page::Pages;

/// A file that takes longer is given up. What still runs then ends by its own limits.
const SECONDS: u64 = 60;
/// The reader follows nested objects by calling itself.
const STACK_BYTES: usize = 32 * 1024 * 1024;
/// The most that one packed part may unpack to, in bytes.
const MAX_PART_BYTES: usize = 16 * 1024 * 1024;

pub(crate) fn read(bytes: Vec<u8>) -> Result<Document, DocumentError> {
    let (sender, receiver) = mpsc::channel();
    let reader = thread::Builder::new().name("pdf".to_owned()).stack_size(STACK_BYTES);
    let started = reader.spawn(move || {
        // A panic of the library is a damaged file, and nothing of it is kept.
        let result = catch_unwind(AssertUnwindSafe(|| read_here(&bytes)))
            .unwrap_or_else(|_| Err(broken("PDF", "its parts contradict one another")));
        let _ = sender.send(result);
    });
    started.map_err(|error| broken("PDF", format!("it was not read: {error}")))?;
    match receiver.recv_timeout(Duration::from_secs(SECONDS)) {
        Ok(result) => result,
        Err(_) => Err(DocumentError::TookTooLong { seconds: SECONDS }),
    }
}

fn read_here(bytes: &[u8]) -> Result<Document, DocumentError> {
    if guard::is_encrypted(bytes) {
        return Err(DocumentError::Encrypted);
    }
    guard::begin();
    let options = LoadOptions {
        filter: Some(guard::admit),
        max_decompressed_size: Some(MAX_PART_BYTES),
        ..LoadOptions::default()
    };
    let loaded = lopdf::Document::load_mem_with_options(bytes, options);
    if guard::is_exceeded() {
        return Err(DocumentError::TooMuchInside { limit: MAX_TEXT_BYTES });
    }
    let document = loaded.map_err(refusal)?;
    if document.is_encrypted() {
        return Err(DocumentError::Encrypted);
    }
    let pages = document.get_pages();
    if pages.is_empty() {
        return Err(broken("PDF", "it has no pages"));
    }
    let mut reading = Pages::new(&document);
    let mut texts = Vec::new();
    for (number, id) in &pages {
        texts.push((*number, reading.page(*id)?));
    }
    result(texts, reading)
}

fn result(texts: Vec<(u32, String)>, reading: Pages<'_>) -> Result<Document, DocumentError> {
    let empty: Vec<u32> = texts.iter().filter(|(_, t)| t.is_empty()).map(|(n, _)| *n).collect();
    if empty.len() == texts.len() {
        return Err(DocumentError::OnlyPictures { pages: texts.len() });
    }
    if reading.unknown_letters * 3 > reading.letters {
        return Err(DocumentError::Unsupported {
            what: "a PDF whose fonts do not say which letters they draw",
            instead: "run text recognition (OCR) on it and try again",
        });
    }
    let mut notes = Vec::new();
    if !empty.is_empty() {
        let shown: Vec<String> = empty.iter().take(10).map(u32::to_string).collect();
        let more = if empty.len() > 10 { ", …" } else { "" };
        let s = if empty.len() == 1 { "" } else { "s" };
        notes.push(format!("no text on page{s} {}{more}", shown.join(", ")));
    }
    if reading.unknown_letters > 0 {
        notes.push(format!("{} letters could not be told", reading.unknown_letters));
    }
    if reading.cut_short > 0 {
        notes.push(format!("{} damaged parts were left out", reading.cut_short));
    }
    let texts: Vec<String> =
        texts.into_iter().map(|(_, text)| text).filter(|text| !text.is_empty()).collect();
    let text = texts.join("\n\n") + "\n";
    Ok(Document { text, format: Format::Pdf, notes })
}

fn refusal(error: Error) -> DocumentError {
    match error {
        Error::InvalidPassword
        | Error::Decryption(_)
        | Error::AlreadyEncrypted
        | Error::UnsupportedSecurityHandler(_) => DocumentError::Encrypted,
        Error::Decompress(DecompressError::MemoryLimitExceeded { limit }) => {
            DocumentError::TooMuchInside { limit }
        }
        error => broken("PDF", error.to_string()),
    }
}
