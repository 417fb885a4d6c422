//! Whether the system itself runs a file.
//!
//! The C library hands to a shell whatever the kernel refuses to run, a text or a damaged program
//! alike. There must be no shell, so what would be refused is found out before.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// How many interpreters may stand one behind the other; the kernel's own limit.
const MOST_INTERPRETERS: usize = 4;

/// Why a file is not run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unrunnable {
    /// A script whose first line names no program.
    #[error(
        "{} is a text without a first line such as #!/usr/bin/python3 that names its program, and no \
         shell is used",
        .0.display()
    )]
    NoInterpreter(PathBuf),
    /// A script whose first line names one that is not there, or depends on the working folder.
    #[error("the first line of {} names {interpreter:?}, which is no absolute path of a program", .script.display())]
    Interpreter {
        /// The script.
        script: PathBuf,
        /// What it names.
        interpreter: String,
    },
    /// Neither a script nor a program for this machine.
    #[error("{} is no program that this system can run: it is damaged or made for another machine", .0.display())]
    Foreign(PathBuf),
}

/// The programs that a file is run by (none unless it is a script), or why it is not run.
pub(crate) fn interpreters(program: &Path) -> Result<Vec<PathBuf>, Unrunnable> {
    let mut found: Vec<PathBuf> = Vec::new();
    if cfg!(not(unix)) {
        return Ok(found);
    }
    let mut next = program.to_owned();
    loop {
        let mut start = Vec::new();
        let read = File::open(&next).and_then(|file| file.take(256).read_to_end(&mut start));
        // One that may be run but not read is no script: its interpreter could not read it either.
        if read.is_err() {
            return Ok(found);
        }
        let Some(line) = start.strip_prefix(b"#!") else {
            return match () {
                () if is_native(&start) => Ok(found),
                () if start.contains(&0) => Err(Unrunnable::Foreign(next)),
                () => Err(Unrunnable::NoInterpreter(next)),
            };
        };
        let line = line.split(|byte| matches!(byte, b'\n' | 0)).next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let interpreter = line.split_ascii_whitespace().next().unwrap_or_default();
        let real = std::fs::canonicalize(interpreter)
            .ok()
            .filter(|real| Path::new(interpreter).is_absolute() && real.is_file())
            .filter(|_| found.len() < MOST_INTERPRETERS);
        let Some(real) = real else {
            return Err(Unrunnable::Interpreter {
                script: next,
                interpreter: interpreter.to_owned(),
            });
        };
        found.push(real.clone());
        next = real;
    }
}

/// Whether a file that begins like this is a program for this machine.
fn is_native(start: &[u8]) -> bool {
    if cfg!(target_os = "macos") {
        // Mach-O for one machine or several, see <mach-o/loader.h> and <mach-o/fat.h>.
        const MAGIC: [[u8; 4]; 4] = [
            [0xcf, 0xfa, 0xed, 0xfe],
            [0xce, 0xfa, 0xed, 0xfe],
            [0xca, 0xfe, 0xba, 0xbe],
            [0xca, 0xfe, 0xba, 0xbf],
        ];
        return MAGIC.iter().any(|magic| start.starts_with(magic));
    }
    is_native_elf(start).unwrap_or(false)
}

/// What Linux looks at before it maps an ELF file, see elf(5).
fn is_native_elf(start: &[u8]) -> Option<bool> {
    let number = |at: usize| {
        let bytes = [*start.get(at)?, *start.get(at + 1)?];
        Some(match cfg!(target_endian = "little") {
            true => u16::from_le_bytes(bytes),
            false => u16::from_be_bytes(bytes),
        })
    };
    let is_wide = *start.get(4)? == 2;
    let (header_size, headers) = if is_wide { (56, number(56)?) } else { (32, number(44)?) };
    let header_at = if is_wide { 54 } else { 42 };
    let machines: &[u16] = if cfg!(target_arch = "x86_64") {
        &[62, 3]
    } else if cfg!(target_arch = "aarch64") {
        &[183, 40]
    } else {
        &[]
    };
    Some(
        start.starts_with(b"\x7fELF")
            && matches!(number(16)?, 2 | 3)
            && (machines.is_empty() || machines.contains(&number(18)?))
            && number(header_at)? == header_size
            && headers > 0,
    )
}
