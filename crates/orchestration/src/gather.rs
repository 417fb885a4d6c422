//! The files of a folder, or several files, as one text under headings.

use correx_documents::read_document;

/// Texts put together.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) text: String,
    /// What a person should know about how files were read.
    pub(crate) notes: Vec<String>,
    /// What could not be read, and why.
    pub(crate) not_read: Vec<String>,
}

impl Gathered {
    /// Adds a file under a heading with its name; names it if it cannot be read.
    pub(crate) fn add(&mut self, name: &str, content: Result<Vec<u8>, String>) {
        let document =
            content.and_then(|bytes| read_document(name, bytes).map_err(|error| error.to_string()));
        match document {
            Ok(document) => {
                self.text.push_str(&format!("# {name}\n\n{}\n\n", document.text.trim_end()));
                self.notes.extend(document.notes.into_iter().map(|note| format!("{name}: {note}")));
            }
            Err(why) => self.not_read.push(format!("{name} ({why})")),
        }
    }

    /// The text, with a list of what could not be read at its end.
    pub(crate) fn finish(mut self) -> Self {
        self.not_read.sort();
        if !self.not_read.is_empty() {
            let list = self.not_read.join("\n- ");
            self.text.push_str(&format!("# Files that could not be read\n\n- {list}\n"));
        }
        self
    }
}
