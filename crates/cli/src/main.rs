//! The `correx` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    correx_cli::main()
}
