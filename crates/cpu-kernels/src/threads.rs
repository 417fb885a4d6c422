//! Who computes.

use rayon::{ThreadPool, ThreadPoolBuilder};
use thiserror::Error;

/// The most threads that can be asked for.
const MOST: usize = 1024;

/// Why the threads could not be started.
#[derive(Debug, Error)]
pub enum ThreadsError {
    /// None or far too many were asked for.
    #[error("{0} threads were asked for. Ask for 1 to {MOST}, at best as many as there are cores")]
    Count(usize),
    /// The system did not start them.
    #[error("{count} threads could not be started ({reason}). Ask for fewer")]
    Start {
        /// How many were asked for.
        count: usize,
        /// What the system said.
        reason: rayon::ThreadPoolBuildError,
    },
}

/// A fixed number of threads. They sleep while there is nothing to compute, and end when this is
/// dropped. One thread is the caller's own.
pub struct Threads {
    pool: Option<ThreadPool>,
    count: usize,
}

impl Threads {
    /// Starts `count` threads.
    ///
    /// # Errors
    /// `count` is zero or above 1024, or the system has no room for them.
    pub fn new(count: usize) -> Result<Self, ThreadsError> {
        let pool = match count {
            0 => return Err(ThreadsError::Count(count)),
            1 => None,
            MOST.. if count > MOST => return Err(ThreadsError::Count(count)),
            threads => Some(
                ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .thread_name(|number| format!("correx-compute-{number}"))
                    .build()
                    .map_err(|reason| ThreadsError::Start { count: threads, reason })?,
            ),
        };
        Ok(Self { pool, count })
    }

    /// The caller's thread alone.
    pub fn single() -> Self {
        Self { pool: None, count: 1 }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Runs `work` on one of the threads, from where everything below is handed on without
    /// another switch. Worth it around a series of computations.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Calls `work` once for every number below `pieces`, in no particular order.
    pub fn each(&self, pieces: usize, work: impl Fn(usize) + Sync) {
        match &self.pool {
            Some(pool) if pieces > 1 => pool.install(|| halves(0, pieces, &work)),
            _ => (0..pieces).for_each(work),
        }
    }
}

impl Threads {
    /// Calls `work` once for every part of `size` elements of `output` (the last may be shorter),
    /// with its number.
    ///
    /// # Panics
    /// `size` is zero.
    pub fn each_part<T: Send>(
        &self,
        output: &mut [T],
        size: usize,
        work: impl Fn(usize, &mut [T]) + Sync,
    ) {
        match &self.pool {
            Some(pool) if output.len() > size => {
                pool.install(|| parts(0, output, size, &work));
            }
            _ => output.chunks_mut(size).enumerate().for_each(|(number, part)| work(number, part)),
        }
    }
}

fn parts<T: Send>(
    first: usize,
    output: &mut [T],
    size: usize,
    work: &(impl Fn(usize, &mut [T]) + Sync),
) {
    let count = output.len().div_ceil(size);
    if count <= 1 {
        return work(first, output);
    }
    let middle = count / 2;
    let (front, back) = output.split_at_mut(middle * size);
    rayon::join(|| parts(first, front, size, work), || parts(first + middle, back, size, work));
}

fn halves(start: usize, end: usize, work: &(impl Fn(usize) + Sync)) {
    match end - start {
        0 => {}
        1 => work(start),
        count => {
            let middle = start + count / 2;
            rayon::join(|| halves(start, middle, work), || halves(middle, end, work));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn every_piece_is_done_once_whatever_the_number_of_threads() {
        for count in 1..4 {
            let threads = Threads::new(count).unwrap();
            for pieces in [0, 1, 2, 7, 100] {
                let done = Mutex::new(Vec::new());
                threads.enter(|| threads.each(pieces, |piece| done.lock().unwrap().push(piece)));
                let mut done = done.into_inner().unwrap();
                done.sort_unstable();
                assert_eq!(done, (0..pieces).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn every_part_is_given_out_once_with_its_number() {
        for count in 1..4 {
            let threads = Threads::new(count).unwrap();
            for length in [1, 4, 5, 37] {
                let mut output = vec![0; length];
                threads.each_part(&mut output, 5, |number, part| {
                    part.iter_mut().for_each(|element| *element += number + 1);
                });
                let expected: Vec<usize> = (0..length).map(|place| place / 5 + 1).collect();
                assert_eq!(output, expected);
            }
        }
    }

    #[test]
    fn no_threads_and_absurdly_many_are_refused() {
        for count in [0, MOST + 1, usize::MAX] {
            let error = Threads::new(count).err().unwrap().to_string();
            assert!(error.contains(&format!("{count} threads")), "{error}");
        }
    }
}
