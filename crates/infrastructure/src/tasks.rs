//! Tasks whose end can be waited for.

use std::future::Future;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Counts the tasks that it spawned. Clones share the count.
#[derive(Clone)]
pub(crate) struct Tasks(watch::Sender<usize>);

struct Counted(watch::Sender<usize>);

impl Tasks {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// Runs `task` to its end, whoever drops the handle.
    pub(crate) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.0.send_modify(|count| *count += 1);
        let counted = Counted(self.0.clone());
        tokio::spawn(async move {
            let _counted = counted;
            task.await
        })
    }

    /// Waits until none is left.
    pub(crate) async fn ended(&self) {
        // Fails never: the sender is here.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
