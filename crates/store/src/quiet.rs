//! The database library answers damaged pages by panicking. Where that is caught and becomes an
//! error, the error is what people see, and not the trace of a crash that did not happen.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::thread;

thread_local! {
    static CAUGHT: Cell<usize> = const { Cell::new(0) };
}

/// Runs `work`; a panic in it goes to the log alone, and comes back as `Err`.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> thread::Result<T> {
    let _inside = Inside::enter();
    panic::catch_unwind(AssertUnwindSafe(work))
}

/// Runs `work`, whose panics are caught further out.
pub(crate) fn caught_outside<T>(work: impl FnOnce() -> T) -> T {
    let _inside = Inside::enter();
    work()
}

struct Inside;

impl Inside {
    fn enter() -> Self {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if CAUGHT.try_with(Cell::get).unwrap_or(0) == 0 {
                    usual(info);
                } else {
                    tracing::warn!(%info, "the store's file may be damaged");
                }
            }));
        });
        CAUGHT.set(CAUGHT.get() + 1);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        CAUGHT.set(CAUGHT.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_caught_here_is_quiet() {
        assert!(catch(|| panic!("damaged")).is_err());
        assert_eq!(CAUGHT.get(), 0, "whatever comes after is loud again");
        assert_eq!(catch(|| caught_outside(|| CAUGHT.get())).unwrap(), 2);
    }
}
