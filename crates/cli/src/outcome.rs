//! How a command ends.

use correx_protocol::{ErrorCode, ProtocolError};

/// How a command ended, for whoever called the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As wanted.
    Done,
    /// Not as wanted; that was said already.
    Failed,
}

/// What a command returns. An error is still to be reported.
pub type Outcome = Result<Ending, ProtocolError>;

impl Ending {
    /// The program's exit code.
    pub fn code(self) -> u8 {
        match self {
            Ending::Done => 0,
            Ending::Failed => 1,
        }
    }
}

/// An answer that does not belong to the question.
pub fn unexpected() -> ProtocolError {
    ProtocolError::new(ErrorCode::Internal, "the answer does not belong to the question")
        .hint("Both programs on this data directory should be of one version.")
}

/// Something about files, or the terminal.
pub fn input(message: impl Into<String>) -> ProtocolError {
    ProtocolError::new(ErrorCode::BadInput, message)
}
