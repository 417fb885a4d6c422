//! Reads a header without believing it.

use std::io::{Read, Seek, SeekFrom};

use crate::list::Texts;
use crate::problem::Problem;

/// The longest key or tensor name.
const LONGEST_KEY: u64 = 1 << 16;
/// The longest text in the metadata (a chat template, a vocabulary entry).
const LONGEST_TEXT: u64 = 1 << 24;

/// A reader that knows how many bytes are left, so that no declared length is allocated before
/// it is known to be there.
pub(crate) struct HeaderReader<R> {
    source: R,
    version: u32,
    position: u64,
    size: u64,
}

impl<R: Read + Seek> HeaderReader<R> {
    /// Continues behind magic and `version`.
    pub(crate) fn after_version(source: R, version: u32, size: u64) -> Result<Self, Problem> {
        let reader = Self { source, version, position: 8, size };
        reader.require(2 * reader.length_width())?;
        Ok(reader)
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Fails unless `bytes` more are there.
    fn require(&self, bytes: u64) -> Result<(), Problem> {
        let needed = self.position.saturating_add(bytes);
        if needed > self.size {
            return Err(Problem::Truncated { size: self.size, needed });
        }
        Ok(())
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Problem> {
        self.require(buffer.len() as u64)?;
        self.source.read_exact(buffer).map_err(Problem::Unreadable)?;
        self.position += buffer.len() as u64;
        Ok(())
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Problem> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Problem> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A count, a length or a dimension: 32 bits in version 1, 64 from version 2 on.
    pub(crate) fn length(&mut self) -> Result<u64, Problem> {
        match self.version {
            1 => self.u32().map(u64::from),
            _ => self.u64(),
        }
    }

    /// Bytes that [`HeaderReader::length`] reads.
    fn length_width(&self) -> u64 {
        if self.version == 1 { 4 } else { 8 }
    }

    /// `count` bytes; they are known to be there before they are allocated.
    pub(crate) fn bytes(&mut self, count: u64) -> Result<Vec<u8>, Problem> {
        self.require(count)?;
        let count = usize::try_from(count)
            .map_err(|_| Problem::malformed(format!("it declares {count} bytes at once")))?;
        let mut bytes = vec![0; count];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self) -> Result<String, Problem> {
        let length = self.text_length()?;
        self.text_of(length)
    }

    fn text_length(&mut self) -> Result<u64, Problem> {
        let length = self.length()?;
        if length > LONGEST_TEXT {
            return Err(Problem::malformed(format!("it declares a text of {length} bytes")));
        }
        self.require(length)?;
        Ok(length)
    }

    fn text_of(&mut self, length: u64) -> Result<String, Problem> {
        Ok(text_from(self.bytes(length)?))
    }

    /// `count` texts. They are measured first, so that exactly what they need is allocated.
    pub(crate) fn texts(&mut self, count: u64) -> Result<Texts, Problem> {
        let too_large = || Problem::malformed(format!("it declares {count} texts at once"));
        self.require(count * self.length_width())?;
        let start = self.position;
        let mut total = 0;
        for _ in 0..count {
            let length = self.text_length()?;
            self.skip(length)?;
            total += length;
        }
        self.skip_back_to(start)?;
        let (count, total) = (usize::try_from(count), u32::try_from(total));
        let (Ok(count), Ok(total)) = (count, total) else { return Err(too_large()) };
        let mut texts = Texts::with_capacity(count, total as usize);
        for _ in 0..count {
            let text = self.text()?;
            texts.push(&text).ok_or_else(too_large)?;
        }
        Ok(texts)
    }

    /// Passes over bytes that are known to be there.
    fn skip(&mut self, bytes: u64) -> Result<(), Problem> {
        let forward = i64::try_from(bytes)
            .map_err(|_| Problem::malformed(format!("it declares {bytes} bytes at once")))?;
        self.source.seek_relative(forward).map_err(Problem::Unreadable)?;
        self.position += bytes;
        Ok(())
    }

    fn skip_back_to(&mut self, position: u64) -> Result<(), Problem> {
        self.source.seek(SeekFrom::Start(position)).map_err(Problem::Unreadable)?;
        self.position = position;
        Ok(())
    }

    pub(crate) fn key(&mut self) -> Result<String, Problem> {
        let length = self.length()?;
        if length == 0 || length > LONGEST_KEY {
            return Err(Problem::malformed(format!("it declares a name of {length} bytes")));
        }
        String::from_utf8(self.bytes(length)?)
            .map_err(|_| Problem::malformed("a name in it is not UTF-8"))
    }
}

/// The text that `bytes` hold. Some files hold text that is not quite UTF-8; nothing that matters
/// depends on it: every byte that belongs to no character becomes a question mark, so that the
/// text is as long as it was.
fn text_from(bytes: Vec<u8>) -> String {
    let mut bytes = match String::from_utf8(bytes) {
        Ok(text) => return text,
        Err(error) => error.into_bytes(),
    };
    let mut from = 0;
    while let Err(error) = std::str::from_utf8(&bytes[from..]) {
        let wrong = from + error.valid_up_to();
        let length = error.error_len().unwrap_or(bytes.len() - wrong);
        bytes[wrong..wrong + length].fill(b'?');
        from = wrong + length;
    }
    String::from_utf8(bytes).unwrap_or_default()
}
