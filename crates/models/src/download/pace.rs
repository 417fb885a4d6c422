//! How fast a download is, and how patient. Time is an argument everywhere.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How patient a download is, and how careful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// A connection that is not there after this is tried again.
    pub connect: Duration,
    /// A connection over which nothing comes for this long is given up.
    pub stall: Duration,
    /// How often it is tried without getting further before it fails.
    pub tries: u32,
    /// Bytes that count as having got further.
    pub progress: u64,
    /// The pause before the second try; each further one is twice as long.
    pub first_wait: Duration,
    /// The longest pause by our own choice.
    pub longest_wait: Duration,
    /// The longest pause that a server may ask for.
    pub longest_asked_wait: Duration,
    /// How long another program that writes the same file is waited for without its getting further.
    pub held: Duration,
    /// How many bytes are written before they are forced to the disk and counted as safe.
    pub sync_every: u64,
    /// How much of the disk is left alone.
    pub spare_disk: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            stall: Duration::from_secs(30),
            tries: 6,
            progress: 1 << 20,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(30),
            longest_asked_wait: Duration::from_secs(300),
            held: Duration::from_secs(120),
            sync_every: 16 << 20,
            spare_disk: 64 << 20,
        }
    }
}

/// Tries without getting further.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tries {
    failed: u32,
    /// Bytes at the last failure that counted as getting further.
    reached: u64,
}

impl Tries {
    /// How often it has failed since it got further.
    pub(super) fn failed(&self) -> u32 {
        self.failed
    }

    /// A try failed at byte `at`: how long to wait before the next, or `None` when it is enough.
    pub(super) fn fail(
        &mut self,
        at: u64,
        asked: Option<Duration>,
        patience: &Patience,
    ) -> Option<Duration> {
        if at >= self.reached.saturating_add(patience.progress.max(1)) {
            self.failed = 0;
            self.reached = at;
        }
        self.failed += 1;
        if self.failed >= patience.tries || asked > Some(patience.longest_asked_wait) {
            return None;
        }
        let doubled = patience.first_wait.saturating_mul(1 << (self.failed - 1).min(20));
        Some(doubled.min(patience.longest_wait).max(asked.unwrap_or_default()))
    }
}

/// The speed over the last few seconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter {
    samples: VecDeque<(Instant, u64)>,
}

/// How far back the speed looks.
const WINDOW: Duration = Duration::from_secs(8);

impl Meter {
    /// At `now` there are `bytes`.
    pub(super) fn add(&mut self, now: Instant, bytes: u64) {
        // A sample every so often is enough.
        if let [.., (before, _), (last, _)] = *self.samples.make_contiguous()
            && last.saturating_duration_since(before) < Duration::from_millis(50)
        {
            self.samples.pop_back();
        }
        self.samples.push_back((now, bytes));
        while self.samples.len() > 2
            && self
                .samples
                .front()
                .is_some_and(|(at, _)| now.saturating_duration_since(*at) > WINDOW)
        {
            self.samples.pop_front();
        }
    }

    /// Forgets everything: the bytes do not go on from where they were.
    pub(super) fn restart(&mut self) {
        self.samples.clear();
    }

    /// Bytes per second; `None` before anything can be said.
    pub(super) fn speed(&self) -> Option<u64> {
        let ((first, from), (last, to)) = (self.samples.front()?, self.samples.back()?);
        let seconds = last.saturating_duration_since(*first).as_secs_f64();
        (seconds >= 0.2).then(|| (to.saturating_sub(*from) as f64 / seconds) as u64)
    }

    /// How long the rest takes at this speed.
    pub(super) fn remaining(&self, total: u64) -> Option<Duration> {
        let (_, done) = self.samples.back()?;
        let speed = self.speed().filter(|speed| *speed > 0)?;
        Some(Duration::from_secs(total.saturating_sub(*done).div_ceil(speed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end_and_start_again_after_progress() {
        let patience = Patience { tries: 4, progress: 100, ..Patience::default() };
        let mut tries = Tries::default();
        let seconds = |wait: Option<Duration>| wait.map(|wait| wait.as_secs());
        assert_eq!(seconds(tries.fail(0, None, &patience)), Some(1));
        assert_eq!(seconds(tries.fail(99, None, &patience)), Some(2));
        assert_eq!(seconds(tries.fail(99, Some(Duration::from_secs(9)), &patience)), Some(9));
        assert_eq!(seconds(tries.fail(99, None, &patience)), None, "four tries without progress");
        assert_eq!(seconds(tries.fail(100, None, &patience)), Some(1), "it got further");
        assert_eq!(seconds(tries.fail(100, Some(Duration::from_secs(301)), &patience)), None);
    }

    #[test]
    fn a_server_that_sends_a_byte_at_a_time_is_not_asked_for_ever() {
        let patience = Patience::default();
        let mut tries = Tries::default();
        let asked = (1..).take_while(|at| tries.fail(*at, None, &patience).is_some()).count();
        assert_eq!(asked, 5);
    }

    #[test]
    fn speed_and_rest_come_from_the_last_seconds() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut meter = Meter::default();
        meter.add(at(0), 1_000_000);
        assert_eq!((meter.speed(), meter.remaining(2_000_000)), (None, None));
        meter.add(at(1000), 2_000_000);
        assert_eq!(meter.speed(), Some(1_000_000));
        assert_eq!(meter.remaining(5_500_000), Some(Duration::from_secs(4)));
        for second in 2..=30 {
            meter.add(at(second * 1000), 2_000_000 + second * 10);
        }
        assert_eq!(meter.speed(), Some(10), "what was fast long ago counts no more");
        meter.restart();
        assert_eq!(meter.speed(), None);
    }
}
