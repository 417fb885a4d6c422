//! Web pages as Markdown.
//!
//! Works on the tokens of the page, not on a tree: there is nothing to nest without end, and what
//! is kept is never more than the page and its Markdown.

mod page;

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

use crate::decode;
use crate::document::MAX_TEXT_BYTES;
use crate::{Document, DocumentError, Format};
use page::Page;

/// What is given to the tokenizer at a time, in bytes.
const CHUNK: usize = 64 * 1024;
/// Where a page may declare its encoding.
const DECLARATION: usize = 2048;

pub(crate) fn read(bytes: Vec<u8>) -> Result<Document, DocumentError> {
    let (text, notes) = decoded(bytes)?;
    let tokenizer = Tokenizer::new(Sink(RefCell::new(Page::default())), TokenizerOpts::default());
    let input = BufferQueue::default();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let mut end = rest.len().min(CHUNK);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (chunk, after) = rest.split_at(end);
        rest = after;
        input.push_back(StrTendril::from(chunk));
        let _ = tokenizer.feed(&input);
        if tokenizer.sink.0.borrow().size() > MAX_TEXT_BYTES {
            return Err(DocumentError::TooMuchInside { limit: MAX_TEXT_BYTES });
        }
    }
    tokenizer.end();
    let text = tokenizer.sink.0.into_inner().finish();
    Ok(Document { text, format: Format::Html, notes })
}

fn decoded(bytes: Vec<u8>) -> Result<(String, Vec<String>), DocumentError> {
    if std::str::from_utf8(&bytes).is_err()
        && let Some(label) = declared(&bytes)
        && let Some(decoded) = decode::declared(label, &bytes)
    {
        return Ok(decoded);
    }
    decode::text(bytes)
}

/// The encoding that the page's beginning names.
fn declared(bytes: &[u8]) -> Option<&[u8]> {
    let start = &bytes[..bytes.len().min(DECLARATION)];
    let at = start.windows(8).position(|window| window.eq_ignore_ascii_case(b"charset="))? + 8;
    let value = &start[at..];
    let value = value.strip_prefix(b"\"").or(value.strip_prefix(b"'")).unwrap_or(value);
    let is_end = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"-_:.".contains(byte);
    Some(&value[..value.iter().position(is_end).unwrap_or(value.len())])
}

struct Sink(RefCell<Page>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut page = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => page.text(&text),
            Token::TagToken(tag) => {
                match tag.kind {
                    TagKind::StartTag => page.start(&tag),
                    TagKind::EndTag => page.end(&tag.name),
                }
                return state_after(&tag);
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// Inside some elements a `<` is text.
fn state_after(tag: &Tag) -> TokenSinkResult<()> {
    if tag.kind != TagKind::StartTag {
        return TokenSinkResult::Continue;
    }
    match &*tag.name {
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => {
            TokenSinkResult::RawData(RawKind::Rawtext)
        }
        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
        _ => TokenSinkResult::Continue,
    }
}
