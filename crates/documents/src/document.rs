//! One file's bytes as text.

use thiserror::Error;

use crate::{decode, docx, html, pdf, table};

/// The largest file that is read, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;
/// The most text that is taken out of one file, in bytes: packed formats can hold far more than
/// their size says.
pub(crate) const MAX_TEXT_BYTES: usize = 32 * 1024 * 1024;

/// A file as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its text; Markdown where the format has headings, lists, links or tables.
    pub text: String,
    /// What it was.
    pub format: Format,
    /// What a person should know about how it was read: a guessed encoding, pictures left out.
    pub notes: Vec<String>,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text as it is.
    Text,
    /// Markdown, as it is.
    Markdown,
    /// A table with one record a line, as it is.
    Csv {
        /// What stands between the fields.
        delimiter: char,
    },
    /// A web page.
    Html,
    /// A PDF file.
    Pdf,
    /// A Word file.
    Docx,
}

/// Why a file could not be read, in words that follow "NAME could not be read: ".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DocumentError {
    /// More than [`MAX_DOCUMENT_BYTES`].
    #[error("it has {bytes} bytes and the most is {limit}; give a part of it")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The most.
        limit: usize,
    },
    /// Neither text nor a format that is known.
    #[error("not text: {what} at byte {offset}; save it as plain text (UTF-8) and try again")]
    NotText {
        /// What was found.
        what: &'static str,
        /// Where, in bytes from 0.
        offset: usize,
    },
    /// Text in an encoding that was not told and cannot be told for sure.
    #[error(
        "not UTF-8 text (byte {offset}){}; save it as plain text (UTF-8) and try again",
        maybe(guess)
    )]
    Encoding {
        /// The first byte that is not UTF-8, from 0.
        offset: usize,
        /// The likeliest encoding.
        guess: Option<&'static str>,
    },
    /// A format that is known and not read.
    #[error("{what} cannot be read; {instead}")]
    Unsupported {
        /// What it is.
        what: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// It opens with a password only.
    #[error("it is encrypted; save a copy without a password and try again")]
    Encrypted,
    /// A PDF whose pages hold no text.
    #[error(
        "its {pages} page{} no text, only pictures; run text recognition (OCR) on it and try again",
        if *pages == 1 { " holds" } else { "s hold" }
    )]
    OnlyPictures {
        /// How many pages it has.
        pages: usize,
    },
    /// Damaged, or not what its name says.
    #[error("it is damaged or no {format} file: {why}")]
    Broken {
        /// What it should be.
        format: &'static str,
        /// What is wrong.
        why: String,
    },
    /// Unpacked it would be far larger than a document.
    #[error("it holds more than {limit} bytes of text when unpacked; give a part of it")]
    TooMuchInside {
        /// The most.
        limit: usize,
    },
    /// It takes longer than a document should.
    #[error("it was not read in {seconds} seconds and was given up; save it as plain text")]
    TookTooLong {
        /// The limit.
        seconds: u64,
    },
}

fn maybe(guess: &Option<&'static str>) -> String {
    guess.map(|name| format!(", perhaps {name}")).unwrap_or_default()
}

/// The text in a file of this name with these bytes. Reads nothing else and keeps nothing; a PDF
/// is read on a thread of its own.
pub fn read_document(name: &str, bytes: Vec<u8>) -> Result<Document, DocumentError> {
    if bytes.len() > MAX_DOCUMENT_BYTES {
        return Err(DocumentError::TooLarge { bytes: bytes.len(), limit: MAX_DOCUMENT_BYTES });
    }
    if is_pdf(&bytes) {
        return pdf::read(bytes);
    }
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return docx::read(bytes);
    }
    if let Some(error) = known_and_not_read(&bytes) {
        return Err(error);
    }
    match Kind::of(name, &bytes) {
        Kind::Html => html::read(bytes),
        Kind::Csv(expected) => {
            let (text, notes) = decode::text(bytes)?;
            Ok(table::read(text, expected, notes))
        }
        Kind::Pdf => Err(broken("PDF", "it does not begin like one")),
        Kind::Docx => Err(broken("DOCX", "it does not begin like one")),
        Kind::Markdown => plain(bytes, Format::Markdown),
        Kind::Text => plain(bytes, Format::Text),
    }
}

fn plain(bytes: Vec<u8>, format: Format) -> Result<Document, DocumentError> {
    let (text, notes) = decode::text(bytes)?;
    Ok(Document { text, format, notes })
}

pub(crate) fn broken(format: &'static str, why: impl Into<String>) -> DocumentError {
    DocumentError::Broken { format, why: why.into() }
}

/// What a text file's name says it is.
enum Kind {
    Text,
    Markdown,
    Csv(Option<char>),
    Html,
    Pdf,
    Docx,
}

impl Kind {
    fn of(name: &str, bytes: &[u8]) -> Self {
        let extension = name.rsplit_once('.').map(|(_, after)| after.to_lowercase());
        match extension.as_deref() {
            Some("md" | "markdown") => Self::Markdown,
            Some("csv") => Self::Csv(None),
            Some("tsv") => Self::Csv(Some('\t')),
            Some("html" | "htm" | "xhtml") => Self::Html,
            Some("pdf") => Self::Pdf,
            Some("docx" | "docm") => Self::Docx,
            None if is_page(bytes) => Self::Html,
            _ => Self::Text,
        }
    }
}

/// Some programs write a few bytes before a PDF file's own beginning.
fn is_pdf(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(1024)];
    // A text about PDF files is none.
    let at = start.windows(5).position(|window| window == b"%PDF-");
    at.is_some_and(|at| at == 0 || (!start[..at].is_ascii() || start[..at].trim_ascii().is_empty()))
}

fn is_page(bytes: &[u8]) -> bool {
    let start = bytes[..bytes.len().min(64)].trim_ascii_start().to_ascii_lowercase();
    start.starts_with(b"<!doctype html") || start.starts_with(b"<html")
}

fn known_and_not_read(bytes: &[u8]) -> Option<DocumentError> {
    const PICTURE: (&str, &str) = ("a picture", "give its text, or a text about it");
    const SOUND: (&str, &str) = ("sound or video", "give a transcript");
    const ARCHIVE: (&str, &str) = ("an archive", "unpack it and give the folder");
    const PROGRAM: (&str, &str) = ("a program", "give a text");
    const KNOWN: &[(&[u8], (&str, &str))] = &[
        (b"\x89PNG", PICTURE),
        (b"\xFF\xD8\xFF", PICTURE),
        (b"GIF8", PICTURE),
        (b"II*\0", PICTURE),
        (b"MM\0*", PICTURE),
        (b"RIFF", SOUND),
        (b"OggS", SOUND),
        (b"fLaC", SOUND),
        (b"ID3", SOUND),
        (b"\x1F\x8B", ARCHIVE),
        (b"BZh", ARCHIVE),
        (b"7z\xBC\xAF", ARCHIVE),
        (b"\xFD7zXZ", ARCHIVE),
        (b"Rar!", ARCHIVE),
        (b"\x7FELF", PROGRAM),
        (b"MZ\x90\0", PROGRAM),
        (b"{\\rtf", ("an RTF file", "save it as DOCX or plain text and try again")),
        (
            b"\xD0\xCF\x11\xE0",
            (
                "an old Office file (.doc, .xls, .ppt) or an encrypted one",
                "save it as DOCX, CSV or plain text without a password and try again",
            ),
        ),
        (b"SQLite format 3", ("a database", "export what matters as CSV")),
    ];
    let (_, (what, instead)) = KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic))?;
    Some(DocumentError::Unsupported { what, instead })
}
