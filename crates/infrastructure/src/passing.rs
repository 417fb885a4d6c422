//! Conversations that end with the program: for people who want none on disk.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use correx_events::{SessionId, TurnId};
use correx_router::{TranscriptError, TranscriptStore, TranscriptTurn};

/// A [`TranscriptStore`] in memory.
#[derive(Default)]
pub struct PassingTranscripts {
    sessions: Mutex<HashMap<SessionId, Talk>>,
}

#[derive(Default)]
struct Talk {
    turns: Vec<TranscriptTurn>,
    head: Option<TurnId>,
}

impl PassingTranscripts {
    /// Forgets a session's conversation.
    pub fn forget(&self, session: &SessionId) {
        self.sessions().remove(session);
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Talk>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl TranscriptStore for PassingTranscripts {
    async fn append(&self, turns: Vec<TranscriptTurn>) -> Result<(), TranscriptError> {
        let mut sessions = self.sessions();
        for turn in turns {
            let talk = sessions.entry(turn.session_id.clone()).or_default();
            talk.head = Some(turn.turn_id.clone());
            talk.turns.push(turn);
        }
        Ok(())
    }

    async fn update(&self, turn: TranscriptTurn) -> Result<(), TranscriptError> {
        let mut sessions = self.sessions();
        let talk = sessions.entry(turn.session_id.clone()).or_default();
        match talk.turns.iter_mut().find(|kept| kept.turn_id == turn.turn_id) {
            Some(kept) => *kept = turn,
            None => return Err(TranscriptError("there is no such turn".into())),
        }
        Ok(())
    }

    async fn branch(&self, session: &SessionId) -> Result<Vec<TranscriptTurn>, TranscriptError> {
        let sessions = self.sessions();
        let Some(talk) = sessions.get(session) else { return Ok(Vec::new()) };
        let mut branch = Vec::new();
        let mut next = talk.head.as_ref();
        while let Some(turn) = next.and_then(|id| talk.turns.iter().find(|t| t.turn_id == *id)) {
            branch.push(turn.clone());
            next = turn.parent.as_ref();
        }
        branch.reverse();
        Ok(branch)
    }

    async fn set_head(
        &self,
        session: &SessionId,
        turn: Option<&TurnId>,
    ) -> Result<(), TranscriptError> {
        self.sessions().entry(session.clone()).or_default().head = turn.cloned();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use correx_events::Timestamp;
    use correx_router::{TurnRole, TurnStatus};

    use super::*;

    fn turn(id: &str, parent: Option<&str>) -> TranscriptTurn {
        TranscriptTurn {
            turn_id: id.into(),
            session_id: "s".into(),
            parent: parent.map(Into::into),
            role: TurnRole::User,
            thinking: None,
            content: id.into(),
            steering: false,
            note_id: None,
            status: TurnStatus::Complete,
            timestamp: Timestamp::UNIX_EPOCH,
            report: None,
        }
    }

    #[tokio::test]
    async fn the_branch_that_ends_at_the_head_is_read_from_its_first_turn() {
        let talk = PassingTranscripts::default();
        talk.append(vec![turn("a", None), turn("b", Some("a"))]).await.unwrap();
        talk.append(vec![turn("c", Some("a"))]).await.unwrap();
        let ids = |branch: Vec<TranscriptTurn>| -> Vec<String> {
            branch.into_iter().map(|turn| turn.turn_id.to_string()).collect()
        };
        assert_eq!(ids(talk.branch(&"s".into()).await.unwrap()), ["a", "c"]);
        talk.set_head(&"s".into(), Some(&"b".into())).await.unwrap();
        assert_eq!(ids(talk.branch(&"s".into()).await.unwrap()), ["a", "b"]);
        talk.forget(&"s".into());
        assert!(talk.branch(&"s".into()).await.unwrap().is_empty());
    }
}
