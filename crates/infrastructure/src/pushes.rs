//! What front ends are told without asking: state at once, streams in bundles.
//!
//! Text and progress of one answer (or one stage's attempt) are joined for [`BUNDLE_TIME`], so
//! that no front end gets more than about thirty messages a second of each. Nothing is left out:
//! pieces are joined, and whatever is waiting for a session goes out before its state does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use correx_events::{SessionId, StageId, TurnId};
use correx_protocol::ServerMessage;
use tokio::sync::{Notify, broadcast};

/// How long pieces of one stream are collected.
pub const BUNDLE_TIME: Duration = Duration::from_millis(34);

/// How many messages a receiver may be behind before it has to be told everything again.
const RECEIVER_BUFFER: usize = 4096;

/// The way out to every front end. Clones share it.
#[derive(Clone)]
pub struct Pushes {
    sender: broadcast::Sender<ServerMessage>,
    waiting: Arc<Mutex<Vec<Piece>>>,
    filled: Arc<Notify>,
}

/// A piece of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// More of an answer.
    Text {
        /// Its session.
        session_id: SessionId,
        /// Its turn.
        turn_id: TurnId,
        /// What is new.
        text: String,
        /// Tokens so far.
        tokens: u32,
    },
    /// More of what the model thinks before an answer.
    Thinking {
        /// Its session.
        session_id: SessionId,
        /// Its turn.
        turn_id: TurnId,
        /// What is new.
        text: String,
        /// Tokens so far.
        tokens: u32,
    },
    /// How much of an answer's prompt has been read.
    Prompt {
        /// Its session.
        session_id: SessionId,
        /// Its turn.
        turn_id: TurnId,
        /// Tokens read.
        done: u32,
        /// Tokens in all.
        total: u32,
    },
    /// How far a stage's attempt is.
    Stage {
        /// Its session.
        session_id: SessionId,
        /// The stage.
        stage_id: StageId,
        /// The attempt.
        attempt: u32,
        /// Prompt tokens read.
        prompt_done: u32,
        /// Prompt tokens in all.
        prompt_total: u32,
        /// Tokens written.
        tokens: u32,
        /// The most it may write.
        max_tokens: u32,
        /// Of those written, tokens of the thinking.
        thinking_tokens: u32,
        /// What is new of the thinking.
        thinking: String,
        /// What is new.
        text: String,
    },
}

impl Piece {
    fn session(&self) -> &SessionId {
        match self {
            Piece::Text { session_id, .. }
            | Piece::Thinking { session_id, .. }
            | Piece::Prompt { session_id, .. }
            | Piece::Stage { session_id, .. } => session_id,
        }
    }

    /// Takes `later` in, if it belongs to the same stream; else gives it back.
    fn join(&mut self, later: Piece) -> Option<Piece> {
        match (&mut *self, later) {
            (
                Piece::Text { turn_id, text, tokens, .. },
                Piece::Text { turn_id: other, text: more, tokens: count, .. },
            )
            | (
                Piece::Thinking { turn_id, text, tokens, .. },
                Piece::Thinking { turn_id: other, text: more, tokens: count, .. },
            ) if *turn_id == other => {
                text.push_str(&more);
                *tokens = count;
                None
            }
            (
                Piece::Prompt { turn_id, done, total, .. },
                Piece::Prompt { turn_id: other, done: now, total: all, .. },
            ) if *turn_id == other => {
                (*done, *total) = (now, all);
                None
            }
            (
                Piece::Stage { session_id, stage_id, attempt, thinking, text, .. },
                Piece::Stage {
                    session_id: other_session,
                    stage_id: other_stage,
                    attempt: other_attempt,
                    prompt_done,
                    prompt_total,
                    tokens,
                    max_tokens,
                    thinking_tokens,
                    thinking: thought,
                    text: more,
                },
            ) if (&*session_id, &*stage_id, *attempt)
                == (&other_session, &other_stage, other_attempt) =>
            {
                let thinking = std::mem::take(thinking) + &thought;
                let text = std::mem::take(text) + &more;
                *self = Piece::Stage {
                    session_id: other_session,
                    stage_id: other_stage,
                    attempt: other_attempt,
                    prompt_done,
                    prompt_total,
                    tokens,
                    max_tokens,
                    thinking_tokens,
                    thinking,
                    text,
                };
                None
            }
            (_, later) => Some(later),
        }
    }

    fn into_message(self) -> ServerMessage {
        match self {
            Piece::Text { session_id, turn_id, text, tokens } => {
                ServerMessage::ReplyDelta { session_id, turn_id, text, tokens }
            }
            Piece::Thinking { session_id, turn_id, text, tokens } => {
                ServerMessage::ThinkingDelta { session_id, turn_id, text, tokens }
            }
            Piece::Prompt { session_id, turn_id, done, total } => {
                ServerMessage::ReplyProgress { session_id, turn_id, done, total }
            }
            Piece::Stage {
                session_id,
                stage_id,
                attempt,
                prompt_done,
                prompt_total,
                tokens,
                max_tokens,
                thinking_tokens,
                thinking,
                text,
            } => ServerMessage::StageProgress {
                session_id,
                stage_id,
                attempt,
                prompt_done,
                prompt_total,
                tokens,
                max_tokens,
                thinking_tokens,
                thinking,
                text,
            },
        }
    }
}

impl Default for Pushes {
    fn default() -> Self {
        let (sender, _) = broadcast::channel(RECEIVER_BUFFER);
        Self { sender, waiting: Arc::default(), filled: Arc::default() }
    }
}

impl Pushes {
    /// Everything from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<ServerMessage> {
        self.sender.subscribe()
    }

    /// How many listen.
    pub fn listeners(&self) -> usize {
        self.sender.receiver_count()
    }

    /// Tells `message` at once, after whatever is waiting.
    pub fn tell(&self, message: ServerMessage) {
        let mut waiting = self.waiting();
        self.send_all(&mut waiting);
        // Fails only when nobody listens.
        let _ = self.sender.send(message);
    }

    /// Tells a piece of a stream with the next bundle. Never blocks.
    pub fn stream(&self, piece: Piece) {
        let mut waiting = self.waiting();
        let mut left = Some(piece);
        for earlier in waiting.iter_mut() {
            let Some(piece) = left.take() else { break };
            left = earlier.join(piece);
        }
        waiting.extend(left);
        self.filled.notify_one();
    }

    /// Leaves out what is waiting for a session that is gone.
    pub fn forget(&self, session: &SessionId) {
        self.waiting().retain(|piece| piece.session() != session);
    }

    /// Sends the bundles, for ever.
    pub async fn run(&self) {
        loop {
            self.filled.notified().await;
            tokio::time::sleep(BUNDLE_TIME).await;
            self.send_all(&mut self.waiting());
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Piece>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_all(&self, waiting: &mut Vec<Piece>) {
        for piece in waiting.drain(..) {
            let _ = self.sender.send(piece.into_message());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(turn: &str, text: &str, tokens: u32) -> Piece {
        let (session_id, turn_id) = (SessionId::new("s"), TurnId::new(turn));
        Piece::Text { session_id, turn_id, text: text.into(), tokens }
    }

    fn stage(attempt: u32, text: &str, tokens: u32) -> Piece {
        Piece::Stage {
            session_id: "s".into(),
            stage_id: "draft".into(),
            attempt,
            prompt_done: 10,
            prompt_total: 10,
            tokens,
            max_tokens: 80,
            thinking_tokens: 0,
            thinking: String::new(),
            text: text.into(),
        }
    }

    fn drain(receiver: &mut broadcast::Receiver<ServerMessage>) -> Vec<ServerMessage> {
        std::iter::from_fn(|| receiver.try_recv().ok()).collect()
    }

    #[tokio::test]
    async fn a_fast_answer_comes_in_few_messages_and_loses_nothing() {
        let pushes = Pushes::default();
        let mut receiver = pushes.subscribe();
        let sender = pushes.clone();
        tokio::spawn(async move { sender.run().await });
        let begun = tokio::time::Instant::now();
        let mut said = String::new();
        for token in 0..1000 {
            let word = format!("w{token} ");
            said.push_str(&word);
            pushes.stream(text("t", &word, token + 1));
            if token % 10 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        tokio::time::sleep(BUNDLE_TIME * 3).await;
        let messages = drain(&mut receiver);
        let bundles = begun.elapsed().as_millis() / BUNDLE_TIME.as_millis() + 1;
        assert!(messages.len() as u128 <= bundles, "{} of {bundles}", messages.len());
        let heard: String = messages
            .iter()
            .map(|message| match message {
                ServerMessage::ReplyDelta { text, .. } => text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(heard, said);
        let Some(ServerMessage::ReplyDelta { tokens, .. }) = messages.last() else { panic!() };
        assert_eq!(*tokens, 1000);
    }

    #[tokio::test]
    async fn what_is_waiting_goes_out_before_the_state_that_ends_it() {
        let pushes = Pushes::default();
        let mut receiver = pushes.subscribe();
        pushes.stream(text("t", "half", 1));
        pushes.tell(ServerMessage::Done);
        let messages = drain(&mut receiver);
        assert!(matches!(&messages[0], ServerMessage::ReplyDelta { text, .. } if text == "half"));
        assert_eq!(messages[1], ServerMessage::Done);
    }

    #[tokio::test]
    async fn streams_are_not_mixed_up() {
        let pushes = Pushes::default();
        let mut receiver = pushes.subscribe();
        for piece in [
            text("a", "1", 1),
            stage(1, "x", 1),
            text("b", "2", 1),
            text("a", "3", 2),
            stage(1, "y", 2),
            stage(2, "z", 1),
        ] {
            pushes.stream(piece);
        }
        pushes.tell(ServerMessage::Done);
        let texts: Vec<String> = drain(&mut receiver)
            .into_iter()
            .filter_map(|message| match message {
                ServerMessage::ReplyDelta { turn_id, text, tokens, .. } => {
                    Some(format!("{turn_id}:{text}:{tokens}"))
                }
                ServerMessage::StageProgress { attempt, text, tokens, .. } => {
                    Some(format!("{attempt}:{text}:{tokens}"))
                }
                _ => None,
            })
            .collect();
        assert_eq!(texts, ["a:13:2", "1:xy:2", "b:2:1", "2:z:1"]);
    }

    #[tokio::test]
    async fn what_is_thought_is_bundled_apart_and_comes_before_the_answer() {
        let pushes = Pushes::default();
        let mut receiver = pushes.subscribe();
        let thought = |text: &str, tokens| {
            let (session_id, turn_id) = ("s".into(), "t".into());
            Piece::Thinking { session_id, turn_id, text: text.into(), tokens }
        };
        for piece in
            [thought("two", 1), thought(" and", 2), text("t", "Four", 3), text("t", ".", 4)]
        {
            pushes.stream(piece);
        }
        pushes.tell(ServerMessage::Done);
        let messages = drain(&mut receiver);
        let [
            ServerMessage::ThinkingDelta { text: thought, tokens: 2, .. },
            ServerMessage::ReplyDelta { text: said, tokens: 4, .. },
            ServerMessage::Done,
        ] = messages.as_slice()
        else {
            panic!("{messages:?}");
        };
        assert_eq!((thought.as_str(), said.as_str()), ("two and", "Four."));
    }

    #[tokio::test]
    async fn nothing_more_is_heard_of_a_forgotten_session() {
        let pushes = Pushes::default();
        let mut receiver = pushes.subscribe();
        pushes.stream(text("t", "late", 1));
        pushes.forget(&"s".into());
        pushes.tell(ServerMessage::Done);
        assert_eq!(drain(&mut receiver), [ServerMessage::Done]);
    }
}
