//! From stored events to what front ends are told.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use correx_events::{EventStore, SessionId};
use correx_orchestration::{ProgressSink, StageProgress};
use correx_protocol::{ErrorCode, ProtocolError, ServerMessage};
use correx_store::Store;
use tokio::sync::broadcast::error::RecvError;

use super::{App, Inner};
use crate::pushes::{Piece, Pushes};
use crate::view;

/// How long events are collected, so that a burst is one change.
const BURST: Duration = Duration::from_millis(20);

/// Tells every change of a session until the application ends.
pub(super) async fn follow(app: Weak<Inner>, store: Store) {
    let mut feed = store.subscribe();
    drop(store);
    loop {
        let mut changed = Changed::Sessions(BTreeSet::new());
        if !changed.take(feed.recv().await) {
            return;
        }
        let burst = tokio::time::sleep(BURST);
        tokio::pin!(burst);
        loop {
            tokio::select! {
                () = &mut burst => break,
                event = feed.recv() => {
                    if !changed.take(event) {
                        break;
                    }
                }
            }
        }
        let Some(inner) = app.upgrade() else { return };
        let app = App { inner };
        match changed {
            Changed::Sessions(sessions) => {
                for session in sessions {
                    app.tell_run(&session).await;
                }
            }
            Changed::Everything => app.tell_everything().await,
        }
    }
}

enum Changed {
    Sessions(BTreeSet<SessionId>),
    /// Events were missed.
    Everything,
}

impl Changed {
    /// Notes one event; `false` when there will be no more.
    fn take(&mut self, event: Result<Arc<correx_events::StoredEvent>, RecvError>) -> bool {
        match (event, &mut *self) {
            (Ok(event), Changed::Sessions(sessions)) => {
                sessions.insert(event.metadata.session_id.clone());
            }
            (Ok(_), Changed::Everything) => {}
            (Err(RecvError::Lagged(_)), _) => *self = Changed::Everything,
            (Err(RecvError::Closed), _) => return false,
        }
        true
    }
}

impl App {
    /// Tells the session's run and its row in the list.
    pub(super) async fn tell_run(&self, session: &SessionId) {
        // What is gone or cannot be read is told when somebody asks for it.
        let Ok(Some(record)) = self.inner.store.session(session).await else { return };
        let Ok(state) = self.inner.sessions.run(session).await else { return };
        let planned = self.inner.sessions.planned(&state).await;
        let row = view::summary(&record, &state, &planned);
        if state.workflow.is_some() {
            let run = view::run(&state, &planned);
            self.inner.pushes.tell(ServerMessage::RunChanged { session_id: session.clone(), run });
        }
        self.inner.pushes.tell(ServerMessage::SessionChanged(row));
    }

    /// Tells the session's row in the list.
    pub(super) async fn tell_summary(&self, session: &SessionId) {
        if let Ok(row) = self.summary(session).await {
            self.inner.pushes.tell(ServerMessage::SessionChanged(row));
        }
    }

    /// Tells every state again: to receivers that missed something. An answer that is being
    /// written is whole again when its last state is told.
    pub async fn tell_everything(&self) {
        self.inner.pushes.tell(ServerMessage::Model(self.inner.engine.model.borrow().clone()));
        for record in self.inner.store.sessions().await.unwrap_or_default() {
            self.tell_run(&record.session_id).await;
        }
    }
}

/// Tells how far stages are.
pub(super) struct RunProgress {
    pushes: Pushes,
}

impl RunProgress {
    pub(super) fn new(pushes: Pushes) -> Self {
        Self { pushes }
    }
}

impl ProgressSink for RunProgress {
    fn progress(&self, progress: StageProgress) {
        self.pushes.stream(Piece::Stage {
            session_id: progress.session,
            stage_id: progress.stage,
            attempt: progress.attempt,
            prompt_done: view::count(progress.prompt_done),
            prompt_total: view::count(progress.prompt_total),
            tokens: view::count(progress.tokens),
            max_tokens: view::count(progress.max_tokens),
            thinking_tokens: view::count(progress.thinking_tokens),
            thinking: progress.thinking,
            text: progress.text,
        });
    }

    fn stalled(&self, session: &SessionId, message: &str) {
        let error = ProtocolError::new(
            ErrorCode::Internal,
            format!("the run of session {session} cannot go on: {message}"),
        )
        .kept("Everything that it has done is kept.")
        .hint("Put that right, then resume the run.")
        .about(session.clone());
        self.pushes.tell(ServerMessage::Error(error));
    }
}
