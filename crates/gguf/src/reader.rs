//! Reads a header without believing it.

use std::io::Read;

use crate::Problem;

/// The longest key or tensor name.
const LONGEST_KEY: u64 = 1 << 16;
/// The longest text in the metadata (a chat template, a vocabulary entry).
const LONGEST_TEXT: u64 = 1 << 24;

/// A reader that knows how many bytes are left, so that no declared length is allocated before
/// it is known to be there.
pub(crate) struct HeaderReader<R> {
    source: R,
    position: u64,
    size: u64,
}

impl<R: Read> HeaderReader<R> {
    /// Continues behind magic and version.
    pub(crate) fn after_version(source: R, size: u64) -> Result<Self, Problem> {
        let reader = Self { source, position: 8, size };
        reader.require(16)?;
        Ok(reader)
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Fails unless `bytes` more are there.
    pub(crate) fn require(&self, bytes: u64) -> Result<(), Problem> {
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

    /// `count` bytes; they are known to be there before they are allocated.
    pub(crate) fn bytes(&mut self, count: u64) -> Result<Vec<u8>, Problem> {
        self.require(count)?;
        let count = usize::try_from(count)
            .map_err(|_| Problem::Malformed(format!("it declares {count} bytes at once")))?;
        let mut bytes = vec![0; count];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self) -> Result<String, Problem> {
        let length = self.u64()?;
        if length > LONGEST_TEXT {
            return Err(Problem::Malformed(format!("it declares a text of {length} bytes")));
        }
        // Some files hold text that is not quite UTF-8; nothing that matters depends on it.
        Ok(match String::from_utf8(self.bytes(length)?) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    pub(crate) fn key(&mut self) -> Result<String, Problem> {
        let length = self.u64()?;
        if length == 0 || length > LONGEST_KEY {
            return Err(Problem::Malformed(format!("it declares a name of {length} bytes")));
        }
        String::from_utf8(self.bytes(length)?)
            .map_err(|_| Problem::Malformed("a name in it is not UTF-8".into()))
    }
}
