//! The conversation with the router.

use std::future::Future;

use correx_events::{ClientMessageId, SessionId};
use correx_inference::InferenceCancellationToken;
use correx_protocol::{
    ChatMode, DraftView, ErrorCode, ModelState, ProtocolError, ServerMessage, SteerTarget,
};
use correx_router::{
    NoteTarget, RouterAnswer, RouterError, RouterSink, RouterStreamEvent, UserInput,
};

use super::App;
use crate::failure::{self, Failure};
use crate::pushes::{Piece, Pushes};
use crate::view;

impl App {
    /// Says something to the router; in STEERING mode it becomes a note as well. Returns when the
    /// answer is finished or stopped.
    pub async fn chat(
        &self,
        session_id: SessionId,
        text: String,
        mode: ChatMode,
        target: SteerTarget,
        client_message_id: Option<ClientMessageId>,
    ) -> Result<ServerMessage, Failure> {
        self.known(&session_id).await?;
        let target =
            NoteTarget { stage_id: target.stage_id, scope: view::note_scope(target.scope) };
        let input = UserInput {
            session_id: session_id.clone(),
            text,
            mode: view::mode(mode),
            target,
            client_message_id,
        };
        let facade = self.inner.facade.clone();
        self.write_answer(session_id, move |sink, cancel| async move {
            facade.answer(input, sink, cancel).await
        })
        .await
    }

    /// Answers the last message again.
    pub async fn retry_reply(&self, session_id: SessionId) -> Result<ServerMessage, Failure> {
        self.known(&session_id).await?;
        let facade = self.inner.facade.clone();
        let session = session_id.clone();
        self.write_answer(session_id, move |sink, cancel| async move {
            facade.retry(&session, sink, cancel).await
        })
        .await
    }

    /// Stops the answer that is being written; what is there is kept.
    pub async fn stop_reply(&self, session: &SessionId) -> Result<ServerMessage, Failure> {
        self.known(session).await?;
        match self.inner.answers.stop(session) {
            0 => Err(Failure(
                ProtocolError::new(ErrorCode::WrongState, "no answer is being written")
                    .kept("The conversation is as it was."),
            )),
            _ => Ok(ServerMessage::Done),
        }
    }

    /// What a message would cost.
    pub async fn measure_draft(
        &self,
        session: &SessionId,
        text: &str,
        mode: ChatMode,
    ) -> Result<ServerMessage, Failure> {
        self.known(session).await?;
        self.ready_to_count(text)?;
        let draft = self.inner.facade.measure(session, text, view::mode(mode)).await?;
        let refusal = match (&draft.pack, &draft.refusal) {
            (Err(error), _) => Some(failure::pack(error)),
            (Ok(_), Some(refusal)) => Some(failure::steering(refusal)),
            (Ok(_), None) => None,
        };
        match (view::context_of_draft(&draft), refusal) {
            (Some(context), refusal) => Ok(ServerMessage::Draft(DraftView { context, refusal })),
            (None, Some(refusal)) => Err(Failure(refusal)),
            (None, None) => Err(Failure(failure::storage("the prompt could not be made"))),
        }
    }

    /// Counting must not wait for a model that is being loaded. Whoever types will want one that is
    /// not in memory; looking alone does not load it.
    fn ready_to_count(&self, text: &str) -> Result<(), Failure> {
        let state = self.inner.engine.model.borrow().state.clone();
        if state == ModelState::Unloaded
            && let (false, Some(manager)) = (text.is_empty(), &self.inner.engine.manager)
        {
            manager.begin_loading();
        }
        match &state {
            ModelState::Ready => Ok(()),
            ModelState::Failed { error } => Err(Failure(error.clone())),
            ModelState::Unloaded => Err(Failure(
                ProtocolError::new(ErrorCode::Model, "the model is not in memory")
                    .hint("It is loaded when a message is typed or sent."),
            )),
            ModelState::Loading { .. } => Err(Failure(
                ProtocolError::new(ErrorCode::Model, "the model is still being loaded")
                    .hint("Messages can be sent already; they are answered when it is ready."),
            )),
        }
    }

    /// Has an answer written on a task of its own: it is finished also when whoever asked has
    /// gone.
    async fn write_answer<F>(
        &self,
        session: SessionId,
        write: impl FnOnce(RouterSink, InferenceCancellationToken) -> F + Send + 'static,
    ) -> Result<ServerMessage, Failure>
    where
        F: Future<Output = Result<RouterAnswer, RouterError>> + Send,
    {
        let live = self.inner.answers.begin(&session);
        let sink = sink(&session, self.inner.pushes.clone());
        let app = self.clone();
        let of_session = session.clone();
        let task = self.inner.tasks.spawn(async move {
            let answered = write(sink, live.cancel.clone()).await;
            drop(live);
            app.tell_summary(&of_session).await;
            answered
        });
        let answer = task.await.map_err(|_| {
            ProtocolError::new(ErrorCode::Internal, "the answer ended unexpectedly")
                .kept("Your message is kept.")
                .hint("Retry the answer.")
        })??;
        Ok(ServerMessage::RouterResponse {
            session_id: session,
            turn_id: answer.turn.turn_id,
            content: answer.response.content,
            steering_emitted: answer.response.steering_emitted,
            note_id: answer.note_id,
        })
    }
}

/// Tells front ends how an answer comes along.
fn sink(session: &SessionId, pushes: Pushes) -> RouterSink {
    let session_id = session.clone();
    RouterSink::new(move |event| match event {
        RouterStreamEvent::Turn(turn) => pushes.tell(ServerMessage::TurnChanged {
            session_id: session_id.clone(),
            turn: view::turn(&turn),
        }),
        RouterStreamEvent::Prompt { turn, done, total } => pushes.stream(Piece::Prompt {
            session_id: session_id.clone(),
            turn_id: turn,
            done: view::count(done),
            total: view::count(total),
        }),
        RouterStreamEvent::Thinking { turn, text, tokens } => pushes.stream(Piece::Thinking {
            session_id: session_id.clone(),
            turn_id: turn,
            text,
            tokens: view::count(tokens),
        }),
        RouterStreamEvent::Text { turn, text, tokens } => pushes.stream(Piece::Text {
            session_id: session_id.clone(),
            turn_id: turn,
            text,
            tokens: view::count(tokens),
        }),
    })
}
