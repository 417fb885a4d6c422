//! Time and ids, passed in so that every test can fix them.

use jiff::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Makes names that were not used before.
pub trait IdSource: Send + Sync {
    /// A new name, unique over this data directory.
    fn next_id(&self) -> String;
}

/// Version 7 UUIDs: unique, and sorted by the time they were made.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn next_id(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }
}
