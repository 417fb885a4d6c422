//! The disk, as far as a test has to be able to fill it up.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Where bytes go.
pub trait Disk: Send + Sync {
    /// Bytes that may still be written below `folder`, which exists.
    fn free(&self, folder: &Path) -> io::Result<u64>;

    /// Writes all of `bytes` where `file` stands, or fails; a failed write may have written some.
    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()>;
}

/// The disk of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn free(&self, folder: &Path) -> io::Result<u64> {
        fs4::available_space(folder)
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }
}
