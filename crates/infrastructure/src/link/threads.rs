//! How many threads compute: fixed for a process when it starts.

use std::env;
use std::io;
use std::process::Command;

use correx_candle::THREADS_VARIABLE;

/// Makes this process compute with `wanted` threads, by starting the same program again with the
/// same arguments and the number in its environment. Does nothing when it is so already, or when
/// nothing is wanted. To be called first of all: nothing that was done before it remains.
///
/// Returns an error when the program could not be started again.
pub fn compute_with(wanted: Option<usize>) -> io::Result<()> {
    let Some(wanted) = wanted.map(|threads| threads.to_string()) else { return Ok(()) };
    if env::var(THREADS_VARIABLE).is_ok_and(|set| set == wanted) {
        return Ok(());
    }
    let mut again = Command::new(env::current_exe()?);
    again.args(env::args_os().skip(1)).env(THREADS_VARIABLE, wanted);
    replace(again)
}

#[cfg(unix)]
fn replace(mut program: Command) -> io::Result<()> {
    use std::os::unix::process::CommandExt;
    Err(program.exec())
}

#[cfg(not(unix))]
fn replace(mut program: Command) -> io::Result<()> {
    let status = program.status()?;
    std::process::exit(status.code().unwrap_or(1));
}
