//! Word files as Markdown: a package of XML parts.

mod body;
mod parts;
mod xml;

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::document::{MAX_TEXT_BYTES, broken};
use crate::{Document, DocumentError, Format};
use body::Body;
use parts::{Numbering, Relations, Styles};

/// Parts that a package may have; documents have a few dozen, and one for each picture.
const MAX_PARTS: usize = 20_000;

pub(crate) fn read(bytes: Vec<u8>) -> Result<Document, DocumentError> {
    let archive = ZipArchive::new(Cursor::new(bytes));
    let mut package = Package(archive.map_err(|error| broken("DOCX", error.to_string()))?);
    if package.0.len() > MAX_PARTS {
        return Err(DocumentError::TooMuchInside { limit: MAX_TEXT_BYTES });
    }
    let Some(main) = package.main_part()? else { return Err(package.what_else()) };
    let (folder, file) = main.rsplit_once('/').unwrap_or(("", &main));
    let part = |name: &str| format!("{folder}/{name}").trim_start_matches('/').to_owned();
    let styles = package.text(&part("styles.xml"))?.unwrap_or_default();
    let styles = Styles::read(&styles);
    let numbering = package.text(&part("numbering.xml"))?.unwrap_or_default();
    let numbering = Numbering::read(&numbering);
    let links = package.text(&part(&format!("_rels/{file}.rels")))?.unwrap_or_default();
    let links = Relations::read(&links);
    let text = package.text(&main)?.ok_or_else(|| broken("DOCX", "its text is missing"))?;
    let mut body = Body::new(&styles, &numbering, &links);
    body.read(&text)?;
    if body.has_footnotes() {
        for name in ["footnotes.xml", "endnotes.xml"] {
            if let Some(text) = package.text(&part(name))? {
                body.read_notes(&text)?;
            }
        }
    }
    let (text, notes) = body.finish();
    if text.len() > MAX_TEXT_BYTES {
        return Err(DocumentError::TooMuchInside { limit: MAX_TEXT_BYTES });
    }
    Ok(Document { text, format: Format::Docx, notes })
}

struct Package(ZipArchive<Cursor<Vec<u8>>>);

impl Package {
    /// A part's text, if there is one of that name.
    fn text(&mut self, name: &str) -> Result<Option<String>, DocumentError> {
        let part = match self.0.by_name(name) {
            Ok(part) => part,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(unpacking(&error)),
        };
        if part.encrypted() {
            return Err(DocumentError::Encrypted);
        }
        let mut bytes = Vec::new();
        // What the file says of its size is not believed.
        let most = MAX_TEXT_BYTES as u64 + 1;
        part.take(most)
            .read_to_end(&mut bytes)
            .map_err(|error| broken("DOCX", error.to_string()))?;
        if bytes.len() as u64 == most {
            return Err(DocumentError::TooMuchInside { limit: MAX_TEXT_BYTES });
        }
        xml::decoded(bytes).map(Some)
    }

    /// The name of the part that holds the document itself.
    fn main_part(&mut self) -> Result<Option<String>, DocumentError> {
        let named = self.text("_rels/.rels")?.and_then(|relations| {
            let relations = Relations::read(&relations);
            relations.of_kind("/officeDocument").map(|name| name.trim_start_matches('/').to_owned())
        });
        let main = named.unwrap_or_else(|| "word/document.xml".to_owned());
        let is_there = self.0.index_for_name(&main).is_some();
        // A spreadsheet has a main part too.
        Ok((is_there && main.starts_with("word/")).then_some(main))
    }

    /// What a package that is no Word file is.
    fn what_else(&self) -> DocumentError {
        const KINDS: [(&str, &str, &str); 4] = [
            ("xl/", "a spreadsheet", "export its sheets as CSV and try again"),
            ("ppt/", "a presentation", "save it as PDF and try again"),
            ("content.xml", "an OpenDocument file", "save it as DOCX and try again"),
            ("META-INF/container.xml", "an e-book", "save it as PDF or HTML and try again"),
        ];
        for (part, what, instead) in KINDS {
            if self.0.file_names().flatten().any(|name| name.starts_with(part)) {
                return DocumentError::Unsupported { what, instead };
            }
        }
        let instead = "unpack it and give the folder";
        DocumentError::Unsupported { what: "an archive", instead }
    }
}

fn unpacking(error: &ZipError) -> DocumentError {
    match error {
        ZipError::UnsupportedArchive(why) if why.to_lowercase().contains("password") => {
            DocumentError::Encrypted
        }
        _ => broken("DOCX", error.to_string()),
    }
}
