//! The crate through its public edge.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test ends at the first surprise.

mod cutting;
mod docx;
mod folders;
mod hostile;
mod pages;
mod pdf;
mod texts;
mod writing;

use correx_documents::{Document, DocumentError, read_document};

/// What is read from a file of this name.
fn read(name: &str, bytes: impl Into<Vec<u8>>) -> Result<Document, DocumentError> {
    read_document(name, bytes.into())
}
