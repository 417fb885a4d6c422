//! What is checked of a file while it is loaded, because the library takes it on trust.
//!
//! An object stream says where its objects begin, and nothing keeps it from giving the same place
//! a thousand times, or places inside one another: a few kilobytes would become gigabytes.

use std::cell::Cell;

use lopdf::{Dictionary, Object, ObjectId};

use super::MAX_PART_BYTES;

/// The most that the objects of a file may take in memory, in bytes.
const MAX_OBJECT_BYTES: usize = 768 * 1024 * 1024;
/// Objects in one object stream; programs write a few hundred.
const MAX_OBJECTS: usize = 50_000;
/// Ends whatever an object of the stream left open: strings (nested at most 100 deep), comments,
/// lists.
const END: &[u8] = b"\n))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))\
))))))))))))))))))))))))))))))))))))))))))))))))))))))))))) endobj ";

thread_local! {
    /// Bytes that the file being loaded by this thread may still take.
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Before a file is loaded by this thread.
pub(super) fn begin() {
    LEFT.set(MAX_OBJECT_BYTES);
}

pub(super) fn is_exceeded() -> bool {
    LEFT.get() == 0
}

/// Called with every object as it is loaded: takes it in, or leaves it out once it is too much.
pub(super) fn admit(id: ObjectId, object: &mut Object) -> Option<(ObjectId, Object)> {
    // What is returned is not used by the library; only whether it is there.
    let admitted = || Some((id, Object::Null));
    if let Object::Stream(stream) = object
        && stream.dict.get(b"Type").and_then(Object::as_name).is_ok_and(|kind| kind == b"ObjStm")
    {
        let content = stream.get_plain_content_with_limit(MAX_PART_BYTES).ok()?;
        charge(content.len())?;
        let first = stream.dict.get(b"First").and_then(Object::as_i64).ok()?;
        let (first, content) = separated(&content, usize::try_from(first).ok()?)?;
        stream.dict.remove(b"Filter");
        stream.dict.remove(b"DecodeParms");
        stream.dict.set("First", i64::try_from(first).ok()?);
        stream.content = content;
        return admitted();
    }
    charge(size(object))?;
    admitted()
}

fn charge(bytes: usize) -> Option<()> {
    let left = LEFT.get().saturating_sub(bytes);
    LEFT.set(left);
    (left > 0).then_some(())
}

/// An object stream's content in which every object ends where the next one begins.
fn separated(content: &[u8], first: usize) -> Option<(usize, Vec<u8>)> {
    let index = std::str::from_utf8(content.get(..first)?).ok()?;
    let mut numbers = index
        .split(['\r', '\n'])
        .flat_map(|line| line.split('%').next().unwrap_or_default().split_whitespace())
        .map_while(|number| number.parse::<usize>().ok());
    let mut places = Vec::new();
    while let (Some(number), Some(offset)) = (numbers.next(), numbers.next()) {
        places.push((offset, number));
        if places.len() > MAX_OBJECTS {
            return None;
        }
    }
    places.sort_unstable();
    places.dedup_by_key(|(offset, _)| *offset);
    let (mut index, mut objects) = (String::new(), Vec::new());
    for (at, (offset, number)) in places.iter().enumerate() {
        let start = first.saturating_add(*offset);
        let next =
            places.get(at + 1).map_or(content.len(), |(next, _)| first.saturating_add(*next));
        let Some(object) = content.get(start..next.min(content.len())) else { break };
        index.push_str(&format!("{number} {} ", objects.len()));
        objects.extend_from_slice(object);
        objects.extend_from_slice(END);
    }
    let first = index.len();
    Some((first, [index.into_bytes(), objects].concat()))
}

/// About what an object takes in memory, in bytes.
fn size(object: &Object) -> usize {
    let inside = match object {
        Object::Name(bytes) | Object::String(bytes, _) => bytes.len(),
        Object::Array(items) => items.iter().map(size).sum(),
        Object::Dictionary(dictionary) => size_of_dictionary(dictionary),
        Object::Stream(stream) => stream.content.len() + size_of_dictionary(&stream.dict),
        _ => 0,
    };
    size_of::<Object>() + inside
}

fn size_of_dictionary(dictionary: &Dictionary) -> usize {
    dictionary.iter().map(|(key, value)| 64 + key.len() + size(value)).sum()
}

/// Whether a trailer names an encryption. It stands unpacked in every file that has one.
pub(super) fn is_encrypted(bytes: &[u8]) -> bool {
    let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.map(|(at, _)| &bytes[at + 1..]).any(|after| {
        let Some(value) = after_name(after, b"Encrypt") else { return false };
        let value = value.trim_ascii_start();
        value.starts_with(b"<<") || value.first().is_some_and(u8::is_ascii_digit)
    })
}

/// What follows a name, whose letters can be written as `#` and two digits.
fn after_name<'b>(mut bytes: &'b [u8], name: &[u8]) -> Option<&'b [u8]> {
    for letter in name {
        bytes = match bytes {
            [b'#', high, low, rest @ ..] => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let code = digit(high)? * 16 + digit(low)?;
                (code == u32::from(*letter)).then_some(rest)?
            }
            [first, rest @ ..] => (first == letter).then_some(rest)?,
            [] => return None,
        };
    }
    Some(bytes)
}
