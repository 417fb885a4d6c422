//! Answers that are being written, by session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use correx_events::SessionId;
use correx_inference::InferenceCancellationToken;
use tokio::sync::Notify;

/// Which answers are being written. Clones share it.
#[derive(Clone, Default)]
pub(super) struct LiveAnswers {
    live: Arc<Mutex<Live>>,
    ended: Arc<Notify>,
}

#[derive(Default)]
struct Live {
    last: u64,
    answers: HashMap<u64, (SessionId, InferenceCancellationToken)>,
}

/// One answer, as long as it is being written.
pub(super) struct LiveAnswer {
    number: u64,
    answers: LiveAnswers,
    /// Stops this answer and no other.
    pub(super) cancel: InferenceCancellationToken,
}

impl LiveAnswers {
    /// Enters an answer of `session`.
    pub(super) fn begin(&self, session: &SessionId) -> LiveAnswer {
        let cancel = InferenceCancellationToken::new();
        let mut live = self.live();
        live.last += 1;
        let number = live.last;
        live.answers.insert(number, (session.clone(), cancel.clone()));
        LiveAnswer { number, answers: self.clone(), cancel }
    }

    /// Stops the answers of `session`; the number of them.
    pub(super) fn stop(&self, session: &SessionId) -> usize {
        let live = self.live();
        let of_session = live.answers.values().filter(|(owner, _)| owner == session);
        of_session.map(|(_, cancel)| cancel.cancel()).count()
    }

    /// Stops every answer.
    pub(super) fn stop_all(&self) {
        for (_, cancel) in self.live().answers.values() {
            cancel.cancel();
        }
    }

    /// Sessions in which an answer is being written.
    pub(super) fn sessions(&self) -> Vec<SessionId> {
        let live = self.live();
        let mut sessions: Vec<SessionId> =
            live.answers.values().map(|(session, _)| session.clone()).collect();
        sessions.sort();
        sessions.dedup();
        sessions
    }

    /// Waits until no answer of `session` is being written.
    pub(super) async fn ended(&self, session: &SessionId) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // Registered before looking, so that no end is missed.
            ended.as_mut().enable();
            if !self.live().answers.values().any(|(owner, _)| owner == session) {
                return;
            }
            ended.await;
        }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LiveAnswer {
    fn drop(&mut self) {
        self.answers.live().answers.remove(&self.number);
        self.answers.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stopping_one_session_leaves_the_others_alone() {
        let answers = LiveAnswers::default();
        let (a, b) = (answers.begin(&"a".into()), answers.begin(&"b".into()));
        assert_eq!(answers.stop(&"a".into()), 1);
        assert!(a.cancel.is_cancelled());
        assert!(!b.cancel.is_cancelled());
        assert_eq!(answers.sessions(), ["a".into(), "b".into()]);
        drop(a);
        answers.ended(&"a".into()).await;
        assert_eq!(answers.sessions(), ["b".into()]);
    }

    #[tokio::test]
    async fn the_end_of_an_answer_is_waited_for() {
        let answers = LiveAnswers::default();
        let answer = answers.begin(&"a".into());
        let waiting = answers.clone();
        let waiter = tokio::spawn(async move { waiting.ended(&"a".into()).await });
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        drop(answer);
        waiter.await.unwrap();
    }
}
