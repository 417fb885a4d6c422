//! Stopping an inference.

use tokio_util::sync::CancellationToken;

/// Asked between layers, prompt chunks and tokens; once cancelled it stays so.
///
/// Clones share one state. A child is cancelled with its parent, never the other way round, so
/// that stopping one request cannot stop somebody else's.
#[derive(Debug, Clone, Default)]
pub struct InferenceCancellationToken(CancellationToken);

impl InferenceCancellationToken {
    /// A token that nobody has cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks whoever holds a clone to stop.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether stopping was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until stopping is asked for.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }

    /// A token cancelled with this one, and by itself.
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }
}
