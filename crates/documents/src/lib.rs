//! Reads what people have on their disks as text that a model can be shown, and cuts what is too
//! long for it.
//!
//! # Layout
//! - [`document`]: [`read_document`], one file's bytes as text, whatever its format.
//! - [`folder`]: [`walk`], the files of a folder.
//! - [`cut`](mod@cut): [`cut()`], a long text in pieces; [`group`], short texts put together.
//!
//! Files are untrusted: every reader is bounded in time, memory and depth. What cannot be read is
//! named with its reason, never left out in silence.

mod decode;
mod docx;
mod html;
mod markdown;
mod pdf;
mod table;

pub mod cut;
pub mod document;
pub mod folder;

pub use cut::{Piece, cut, group, sentences};
pub use document::{Document, DocumentError, Format, MAX_DOCUMENT_BYTES, read_document};
pub use folder::{Found, walk};
