//! The history of one session in memory: the view of the transcript's current branch from which
//! prompts are made. Without a transcript store it is all there is.

use correx_events::{SessionId, TurnId};

use crate::{RouterTurn, TranscriptError, TranscriptStore, TranscriptTurn, TurnRole, TurnStatus};

/// One session's history.
#[derive(Debug, Default)]
pub struct Conversation {
    turns: Vec<RouterTurn>,
    /// The end of the branch: the parent of the next turn.
    head: Option<TurnId>,
    last: Option<LastExchange>,
    /// How many answers were asked for: it varies the seed, so that a retry differs.
    asked: u64,
}

#[derive(Debug, Clone)]
struct LastExchange {
    message: TranscriptTurn,
    /// Whether its two turns are in `turns`.
    recorded: bool,
}

impl Conversation {
    /// Fills the history from what was kept. An answer that was being written when the process
    /// ended is closed as stopped.
    pub async fn load(
        session: &SessionId,
        transcripts: Option<&dyn TranscriptStore>,
        cap: usize,
    ) -> Result<Self, TranscriptError> {
        let mut conversation = Self::default();
        let Some(transcripts) = transcripts else { return Ok(conversation) };
        let mut message: Option<TranscriptTurn> = None;
        for mut turn in transcripts.branch(session).await? {
            if turn.status == TurnStatus::Pending {
                turn.status = TurnStatus::Stopped;
                transcripts.update(turn.clone()).await?;
            }
            conversation.head = Some(turn.turn_id.clone());
            match turn.role {
                TurnRole::User => {
                    conversation.last =
                        Some(LastExchange { message: turn.clone(), recorded: false });
                    message = Some(turn);
                }
                TurnRole::Router => {
                    if let Some(message) = message.take() {
                        conversation.asked += 1;
                        conversation.record(&message, &turn, cap);
                    }
                }
            }
        }
        Ok(conversation)
    }

    /// The turns that prompts are made from, oldest first.
    pub fn turns(&self) -> &[RouterTurn] {
        &self.turns
    }

    /// The parent of the next turn.
    pub fn head(&self) -> Option<&TurnId> {
        self.head.as_ref()
    }

    /// How many answers were asked for.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// The last message, for answering it again.
    pub fn last_message(&self) -> Option<&TranscriptTurn> {
        self.last.as_ref().map(|last| &last.message)
    }

    /// The history as it was before the last message.
    fn before_last_message(&self) -> &[RouterTurn] {
        let recorded = self.last.as_ref().is_some_and(|last| last.recorded);
        let end = if recorded { self.turns.len().saturating_sub(2) } else { self.turns.len() };
        &self.turns[..end]
    }

    /// A message was said and is being answered by the turn `answer`.
    pub fn begin(&mut self, message: TranscriptTurn, answer: TurnId) {
        let again = self.last.as_ref().is_some_and(|last| last.message.turn_id == message.turn_id);
        if again {
            self.turns.truncate(self.before_last_message().len());
        }
        self.last = Some(LastExchange { message, recorded: false });
        self.head = Some(answer);
        self.asked += 1;
    }

    /// The answer is there (whole or stopped): both turns enter the history, which keeps at most
    /// `cap` turns. An answer without text leaves the history as it was.
    pub fn record(&mut self, message: &TranscriptTurn, answer: &TranscriptTurn, cap: usize) {
        let answered = matches!(answer.status, TurnStatus::Complete | TurnStatus::Stopped);
        if !answered || answer.content.trim().is_empty() {
            return;
        }
        for turn in [message, answer] {
            self.turns.push(RouterTurn {
                role: turn.role,
                content: turn.content.clone(),
                timestamp: turn.timestamp,
            });
        }
        let excess = self.turns.len().saturating_sub(cap);
        self.turns.drain(..excess);
        if let Some(last) =
            self.last.as_mut().filter(|last| last.message.turn_id == message.turn_id)
        {
            last.recorded = true;
        }
    }
}
