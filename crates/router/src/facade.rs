//! The way of one message.
//!
//! A steering note is decided on and stored first, before any inference, so that a slow, stopped
//! or failed answer cannot lose the person's instruction. Then the message is kept, the pack is
//! built, the model answers. Answers of one session are given one after another; notes are not
//! held up by that.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use correx_context::{ContextEntry, ContextPack, PackError, ReplyStart, TokenBudget, TokenCounter};
use correx_events::{
    Append, AppendError, Clock, EventPayload, EventStore, ExpectedVersion, IdSource, NoteId,
    SessionId, SteeringNoteAdded, StoredEvent, TurnId,
};
use correx_inference::{
    FinishReason, GenerationConfig, InferenceCancellationToken, InferenceError, InferenceProvider,
    InferenceRequest, InferenceResponse, InferenceRouter, ModelCapability, RoutingError,
    StreamEvent, StreamSink,
};
use correx_sessions::{Reducer, Versioned};
use tokio::sync::Mutex;

use crate::conversation::Conversation;
use crate::{
    ChatMode, DefaultRouterReducer, Draft, NoteOutcome, NoteTarget, ReplyReport, ReportedEntry,
    RouterAnswer, RouterConfig, RouterContextBuilder, RouterError, RouterRepository,
    RouterResponse, RouterSink, RouterState, RouterStreamEvent, RouterTurn, TranscriptError,
    TranscriptStore, TranscriptTurn, TurnRole, TurnStatus, UserInput, steering,
};

/// The single entry point for talking with the router.
#[async_trait]
pub trait RouterFacade: Send + Sync {
    /// Answers a message; in STEERING mode stores it as a note first.
    async fn on_user_input(
        &self,
        session_id: &SessionId,
        input: &str,
        mode: ChatMode,
    ) -> Result<RouterResponse, RouterError>;

    /// The same with a target, a stream, and a way to stop. Stopping is no error: the answer then
    /// holds what was generated.
    async fn answer(
        &self,
        input: UserInput,
        sink: RouterSink,
        cancel: InferenceCancellationToken,
    ) -> Result<RouterAnswer, RouterError>;

    /// Answers the last message again, in place of its answer. Stores no note.
    async fn retry(
        &self,
        session_id: &SessionId,
        sink: RouterSink,
        cancel: InferenceCancellationToken,
    ) -> Result<RouterAnswer, RouterError>;

    /// What a message would cost. Stores nothing. With an empty text: the prompt without it.
    async fn measure(
        &self,
        session_id: &SessionId,
        text: &str,
        mode: ChatMode,
    ) -> Result<Draft, RouterError>;

    /// The history that the next prompt is made from, oldest first.
    async fn history(&self, session_id: &SessionId) -> Result<Vec<RouterTurn>, RouterError>;

    /// Puts `text` in the place of a steering note that no stage has been shown yet; it acts where
    /// the old one would have. Asks no model for an answer. Refused like a new note, and when a
    /// stage was shown the old one; then nothing changes.
    async fn edit_note(
        &self,
        session_id: &SessionId,
        note: &NoteId,
        text: &str,
    ) -> Result<NoteId, RouterError>;

    /// Forgets a session's history (it was deleted).
    async fn forget(&self, session_id: &SessionId);
}

/// What a facade is made of.
#[derive(Clone)]
pub struct RouterParts {
    /// The router's state by session.
    pub repository: Arc<dyn RouterRepository>,
    /// Makes the packs.
    pub context_builder: Arc<dyn RouterContextBuilder>,
    /// Finds a model.
    pub inference: Arc<dyn InferenceRouter>,
    /// Where notes go.
    pub event_store: Arc<dyn EventStore>,
    /// Where conversations are kept; `None` keeps them in memory only.
    pub transcripts: Option<Arc<dyn TranscriptStore>>,
    /// Tells the time of turns.
    pub clock: Arc<dyn Clock>,
    /// Names turns and notes.
    pub ids: Arc<dyn IdSource>,
}

/// The facade over those parts.
pub struct DefaultRouterFacade {
    parts: RouterParts,
    config: RouterConfig,
    talks: Mutex<HashMap<SessionId, Arc<Talk>>>,
}

/// One session's talk: answers are given one after another, while its history can be read.
#[derive(Default)]
struct Talk {
    answering: Mutex<()>,
    conversation: Mutex<Option<Conversation>>,
}

/// How often a note's append is tried again when the run moves on meanwhile.
const NOTE_ATTEMPTS: usize = 16;

enum Unroutable {
    Cancelled,
    Failed(RoutingError),
}

type Routed = Result<Arc<dyn InferenceProvider>, Unroutable>;

/// A message that is kept and is to be answered now.
struct Question {
    message: TranscriptTurn,
    state: RouterState,
    routed: Routed,
    note: NoteOutcome,
    /// Whether the message's turn is new, or is being answered again.
    kind: QuestionKind,
}

#[derive(PartialEq, Eq)]
enum QuestionKind {
    New,
    Again,
}

impl DefaultRouterFacade {
    /// A facade over `parts`.
    pub fn new(parts: RouterParts, config: RouterConfig) -> Self {
        Self { parts, config, talks: Mutex::default() }
    }

    async fn talk(&self, session: &SessionId) -> Arc<Talk> {
        self.talks.lock().await.entry(session.clone()).or_default().clone()
    }

    /// Looks at the conversation, filled from the transcript when it is seen for the first time.
    async fn with_conversation<T>(
        &self,
        session: &SessionId,
        talk: &Talk,
        look: impl FnOnce(&mut Conversation) -> T + Send,
    ) -> Result<T, TranscriptError> {
        let mut slot = talk.conversation.lock().await;
        if slot.is_none() {
            let transcripts = self.parts.transcripts.as_deref();
            *slot = Some(Conversation::load(session, transcripts, self.history_cap()).await?);
        }
        Ok(look(slot.get_or_insert_default()))
    }

    fn history_cap(&self) -> usize {
        self.config.conversation_keep_last * 2
    }

    async fn route(&self, cancel: &InferenceCancellationToken) -> Routed {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Unroutable::Cancelled),
            routed = self.parts.inference.route(None, &[ModelCapability::Chat]) => {
                routed.map_err(Unroutable::Failed)
            }
        }
    }

    fn reply_reserve(&self, window: usize) -> usize {
        self.config.reply_reserve.min(window / 2)
    }

    fn budget(&self, window: usize) -> TokenBudget {
        TokenBudget::for_window(self.config.token_budget, window, self.reply_reserve(window))
    }

    /// The pack for answering `text` after `history`; with an empty text, the pack without it.
    fn pack(
        &self,
        state: &RouterState,
        session: &SessionId,
        history: Vec<RouterTurn>,
        text: &str,
        provider: &dyn InferenceProvider,
    ) -> Result<ContextPack, PackError> {
        let mut state = state.clone();
        state.session_id.get_or_insert_with(|| session.clone());
        state.conversation_history = history;
        if !text.is_empty() {
            state.conversation_history.push(RouterTurn {
                role: TurnRole::User,
                content: text.to_owned(),
                timestamp: self.parts.clock.now(),
            });
        }
        let budget = self.budget(provider.context_window());
        let encoder = provider.encoder_for(self.config.thinking);
        self.parts.context_builder.build(&state, budget, encoder.as_ref())
    }

    /// Refuses what can be refused without a model.
    fn accept<'a>(&self, text: &'a str) -> Result<&'a str, RouterError> {
        if text.len() > self.config.max_input_bytes {
            let limit = self.config.max_input_bytes;
            return Err(RouterError::InputTooLong { bytes: text.len(), limit });
        }
        match text.trim() {
            "" => Err(RouterError::EmptyInput),
            text => Ok(text),
        }
    }

    /// A message that does not fit beside what must not be dropped is refused before anything is
    /// stored. The history can be dropped, so it does not matter here.
    fn refuse_what_cannot_fit(
        &self,
        state: &RouterState,
        session: &SessionId,
        text: &str,
        routed: &Routed,
    ) -> Result<(), RouterError> {
        let Ok(provider) = routed else { return Ok(()) };
        self.pack(state, session, Vec::new(), text, provider.as_ref())
            .map(|_| ())
            .map_err(RouterError::DoesNotFit)
    }

    /// Decides whether the note can act, and stores it. The decision and the append see the same
    /// log: when the run moves on in between, it is made again.
    async fn emit(
        &self,
        input: &UserInput,
        text: &str,
        replaced: Option<&NoteId>,
        mut seen: Versioned<RouterState>,
        routed: &Routed,
    ) -> Result<(NoteId, RouterState), RouterError> {
        let encoder = routed.as_ref().ok().map(|provider| provider.encoder());
        let counter = encoder.as_deref().map(|encoder| encoder as &dyn TokenCounter);
        let payload = SteeringNoteAdded {
            session_id: input.session_id.clone(),
            note_id: NoteId::new(self.parts.ids.next_id()),
            content: text.to_owned(),
            stage_id: input.target.stage_id.clone(),
            scope: input.target.scope,
            replaces: replaced.cloned(),
        };
        let mut attempts = 0;
        let allowance = self.config.note_allowance;
        loop {
            if let Some(replaced) = replaced {
                steering::can_be_edited(&seen.state, replaced)?;
            }
            steering::check(&seen.state, text, &input.target, replaced, allowance, counter)?;
            attempts += 1;
            let append = Append {
                session: input.session_id.clone(),
                expected: ExpectedVersion::Exactly(seen.version),
                payloads: vec![payload.clone().into()],
                client_message_id: input.client_message_id.clone(),
            };
            match self.parts.event_store.append(append).await {
                Ok(stored) => return Ok(after_note(payload.note_id, seen.state, &stored)),
                Err(AppendError::VersionConflict { .. }) if attempts < NOTE_ATTEMPTS => {
                    seen = self.parts.repository.get_router_state(&input.session_id).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn new_turn(
        &self,
        session: &SessionId,
        parent: Option<TurnId>,
        role: TurnRole,
        status: TurnStatus,
    ) -> TranscriptTurn {
        TranscriptTurn {
            turn_id: TurnId::new(self.parts.ids.next_id()),
            session_id: session.clone(),
            parent,
            role,
            content: String::new(),
            thinking: None,
            steering: false,
            note_id: None,
            status,
            timestamp: self.parts.clock.now(),
            report: None,
        }
    }

    /// Keeps the message, asks the model, keeps the answer. The caller holds `talk.answering`.
    async fn respond(
        &self,
        talk: &Talk,
        question: Question,
        sink: &RouterSink,
        cancel: &InferenceCancellationToken,
    ) -> Result<RouterAnswer, RouterError> {
        let Question { message, state, routed, note, kind } = question;
        let session = message.session_id.clone();
        let transcript = |source| RouterError::Transcript { source, note: note.clone() };

        let parent = Some(message.turn_id.clone());
        let mut answer = self.new_turn(&session, parent, TurnRole::Router, TurnStatus::Pending);
        let mut turns = Vec::new();
        if kind == QuestionKind::New {
            turns.push(message.clone());
        }
        turns.push(answer.clone());
        if let Some(transcripts) = &self.parts.transcripts {
            transcripts.append(turns.clone()).await.map_err(transcript)?;
        }
        for turn in turns {
            sink.send(RouterStreamEvent::Turn(Box::new(turn)));
        }
        let (history, asked) = self
            .with_conversation(&session, talk, |conversation| {
                conversation.begin(message.clone(), answer.turn_id.clone());
                (conversation.turns().to_vec(), conversation.asked())
            })
            .await
            .map_err(transcript)?;

        let outcome = match routed {
            Err(Unroutable::Cancelled) => Ok(None),
            Err(Unroutable::Failed(source)) => {
                Err(RouterError::Routing { source, note: note.clone() })
            }
            Ok(provider) => self
                .generate(
                    &state,
                    history,
                    &message,
                    &answer.turn_id,
                    asked,
                    &provider,
                    sink,
                    cancel,
                )
                .await
                .map(Some)
                .map_err(|source| RouterError::Inference { source, note: note.clone() }),
        };
        let failure = match outcome {
            Ok(reply) => {
                answer.status = TurnStatus::Stopped;
                let mut failure = None;
                if let Some((response, report)) = reply {
                    if response.finish_reason != FinishReason::Cancelled {
                        answer.status = TurnStatus::Complete;
                        failure = response.only_thought().then(|| RouterError::NoAnswer {
                            reason: no_answer(&response),
                            note: note.clone(),
                        });
                    }
                    answer.content = response.text;
                    answer.thinking = response.thinking;
                    answer.report = Some(report);
                }
                failure
            }
            Err(error) => Some(error),
        };
        if let Some(error) = &failure {
            answer.status = TurnStatus::Failed { message: error.to_string() };
        }
        let cap = self.history_cap();
        self.with_conversation(&session, talk, |conversation| {
            conversation.record(&message, &answer, cap);
        })
        .await
        .map_err(transcript)?;
        if let Some(transcripts) = &self.parts.transcripts {
            transcripts.update(answer.clone()).await.map_err(transcript)?;
        }
        sink.send(RouterStreamEvent::Turn(Box::new(answer.clone())));
        if let Some(error) = failure {
            return Err(error);
        }
        let note_id = match note {
            NoteOutcome::Emitted(note_id) => Some(note_id),
            NoteOutcome::NotEmitted => None,
        };
        let response =
            RouterResponse { content: answer.content.clone(), steering_emitted: note_id.is_some() };
        Ok(RouterAnswer { response, note_id, turn: answer })
    }

    #[allow(clippy::too_many_arguments)] // One call site; a struct would only rename them.
    async fn generate(
        &self,
        state: &RouterState,
        history: Vec<RouterTurn>,
        message: &TranscriptTurn,
        answer: &TurnId,
        asked: u64,
        provider: &Arc<dyn InferenceProvider>,
        sink: &RouterSink,
        cancel: &InferenceCancellationToken,
    ) -> Result<(InferenceResponse, ReplyReport), InferenceError> {
        let session = &message.session_id;
        let window = provider.context_window();
        let pack = self
            .pack(state, session, history, &message.content, provider.as_ref())
            .map_err(|error| match error {
                PackError::Encode(error) => InferenceError::Encode(error),
                PackError::TooLarge { needed, .. } => {
                    InferenceError::TooLong { prompt: needed, window }
                }
            })?;
        let reserve = self.reply_reserve(window);
        let generation = GenerationConfig {
            // A reply that begins by thinking needs room for that, however short its answer.
            max_tokens: match message.steering && pack.prompt.reply_start != ReplyStart::Thinking {
                true => reserve.min(self.config.note_reply_tokens),
                false => reserve,
            },
            // A retry must be able to differ; the same turn of the same talk must not.
            seed: self.config.generation.seed.wrapping_add(asked),
            ..self.config.generation.clone()
        };
        let stream = {
            let (sink, turn) = (sink.clone(), answer.clone());
            StreamSink::new(move |event| {
                let turn = turn.clone();
                sink.send(match event {
                    StreamEvent::Prompt { done, total } => {
                        RouterStreamEvent::Prompt { turn, done, total }
                    }
                    StreamEvent::Thinking { text, tokens } => {
                        RouterStreamEvent::Thinking { turn, text, tokens }
                    }
                    StreamEvent::Text { text, tokens } => {
                        RouterStreamEvent::Text { turn, text, tokens }
                    }
                });
            })
        };
        let request = InferenceRequest {
            context_pack: pack.clone(),
            generation,
            cache_key: format!("router:{session}"),
        };
        let response = provider.infer(request, cancel.clone(), stream).await?;
        let exact = provider.encoder().is_exact();
        let report = report(&pack, &response, self.reply_reserve(window), exact);
        Ok((response, report))
    }
}

#[async_trait]
impl RouterFacade for DefaultRouterFacade {
    async fn on_user_input(
        &self,
        session_id: &SessionId,
        input: &str,
        mode: ChatMode,
    ) -> Result<RouterResponse, RouterError> {
        let input = UserInput {
            session_id: session_id.clone(),
            text: input.to_owned(),
            mode,
            target: NoteTarget::default(),
            client_message_id: None,
        };
        let cancel = InferenceCancellationToken::new();
        Ok(self.answer(input, RouterSink::none(), cancel).await?.response)
    }

    async fn answer(
        &self,
        input: UserInput,
        sink: RouterSink,
        cancel: InferenceCancellationToken,
    ) -> Result<RouterAnswer, RouterError> {
        let text = self.accept(&input.text)?;
        let session = &input.session_id;
        let talk = self.talk(session).await;
        let unkept = |source| RouterError::Transcript { source, note: NoteOutcome::NotEmitted };

        // The same message sent twice is answered again, not stored again.
        let turn_id = input.client_message_id.as_ref().map(|id| TurnId::new(id.as_str()));
        let sent_before = self
            .with_conversation(session, &talk, |conversation| {
                turn_id.is_some()
                    && conversation.last_message().map(|message| &message.turn_id)
                        == turn_id.as_ref()
            })
            .await
            .map_err(unkept)?;
        if sent_before {
            return self.retry(session, sink, cancel).await;
        }

        let (state, routed, note, _answering);
        match input.mode {
            ChatMode::Steering => {
                let seen = self.parts.repository.get_router_state(session).await?;
                routed = self.route(&cancel).await;
                self.refuse_what_cannot_fit(&seen.state, session, text, &routed)?;
                let (note_id, folded) = self.emit(&input, text, None, seen, &routed).await?;
                (state, note) = (folded, NoteOutcome::Emitted(note_id));
                _answering = talk.answering.lock().await;
            }
            ChatMode::Chat => {
                _answering = talk.answering.lock().await;
                state = self.parts.repository.get_router_state(session).await?.state;
                routed = self.route(&cancel).await;
                self.refuse_what_cannot_fit(&state, session, text, &routed)?;
                note = NoteOutcome::NotEmitted;
            }
        }

        let head = self
            .with_conversation(session, &talk, |conversation| conversation.head().cloned())
            .await
            .map_err(|source| RouterError::Transcript { source, note: note.clone() })?;
        let mut message = self.new_turn(session, head, TurnRole::User, TurnStatus::Complete);
        message.content = text.to_owned();
        message.steering = input.mode == ChatMode::Steering;
        if let NoteOutcome::Emitted(note_id) = &note {
            message.note_id = Some(note_id.clone());
        }
        if let Some(turn_id) = turn_id {
            message.turn_id = turn_id;
        }
        let question = Question { message, state, routed, note, kind: QuestionKind::New };
        self.respond(&talk, question, &sink, &cancel).await
    }

    async fn retry(
        &self,
        session_id: &SessionId,
        sink: RouterSink,
        cancel: InferenceCancellationToken,
    ) -> Result<RouterAnswer, RouterError> {
        let talk = self.talk(session_id).await;
        let _answering = talk.answering.lock().await;
        let message = self
            .with_conversation(session_id, &talk, |talk| talk.last_message().cloned())
            .await
            .map_err(|source| RouterError::Transcript { source, note: NoteOutcome::NotEmitted })?
            .ok_or(RouterError::NothingToRetry)?;
        let state = self.parts.repository.get_router_state(session_id).await?.state;
        let routed = self.route(&cancel).await;
        let note = message.note_id.clone().map_or(NoteOutcome::NotEmitted, NoteOutcome::Emitted);
        let question = Question { message, state, routed, note, kind: QuestionKind::Again };
        self.respond(&talk, question, &sink, &cancel).await
    }

    async fn measure(
        &self,
        session_id: &SessionId,
        text: &str,
        mode: ChatMode,
    ) -> Result<Draft, RouterError> {
        let text = match self.accept(text) {
            Ok(text) => text,
            Err(RouterError::EmptyInput) => "",
            Err(error) => return Err(error),
        };
        let talk = self.talk(session_id).await;
        let history = self
            .with_conversation(session_id, &talk, |talk| talk.turns().to_vec())
            .await
            .map_err(|source| RouterError::Transcript { source, note: NoteOutcome::NotEmitted })?;
        let state = self.parts.repository.get_router_state(session_id).await?.state;
        let provider = self
            .parts
            .inference
            .route(None, &[ModelCapability::Chat])
            .await
            .map_err(|source| RouterError::Routing { source, note: NoteOutcome::NotEmitted })?;
        let pack = |text| self.pack(&state, session_id, history.clone(), text, provider.as_ref());
        let with = pack(text);
        let without = if with.is_err() { pack("").ok() } else { None };
        let encoder = provider.encoder();
        let refusal = match mode {
            ChatMode::Chat => None,
            ChatMode::Steering => steering::check(
                &state,
                text,
                &NoteTarget::default(),
                None,
                self.config.note_allowance,
                Some(encoder.as_ref()),
            )
            .err(),
        };
        Ok(Draft {
            pack: with,
            without,
            refusal,
            reply_reserve: self.reply_reserve(provider.context_window()),
            exact: encoder.is_exact(),
        })
    }

    async fn edit_note(
        &self,
        session_id: &SessionId,
        note: &NoteId,
        text: &str,
    ) -> Result<NoteId, RouterError> {
        let text = self.accept(text)?;
        let seen = self.parts.repository.get_router_state(session_id).await?;
        steering::can_be_edited(&seen.state, note)?;
        let target = steering::target_of(&seen.state, note);
        let routed = self.route(&InferenceCancellationToken::new()).await;
        let input = UserInput {
            session_id: session_id.clone(),
            text: text.to_owned(),
            mode: ChatMode::Steering,
            target,
            client_message_id: None,
        };
        let (note_id, _) = self.emit(&input, text, Some(note), seen, &routed).await?;
        Ok(note_id)
    }

    async fn history(&self, session_id: &SessionId) -> Result<Vec<RouterTurn>, RouterError> {
        let talk = self.talk(session_id).await;
        self.with_conversation(session_id, &talk, |talk| talk.turns().to_vec())
            .await
            .map_err(|source| RouterError::Transcript { source, note: NoteOutcome::NotEmitted })
    }

    async fn forget(&self, session_id: &SessionId) {
        self.talks.lock().await.remove(session_id);
    }
}

/// Folds what was stored into the state that it was decided on, so that the answer knows of it.
/// What a resent message stored the first time is in that state already.
fn after_note(fresh: NoteId, state: RouterState, stored: &[StoredEvent]) -> (NoteId, RouterState) {
    let note_id = stored
        .iter()
        .find_map(|event| match &event.payload {
            EventPayload::SteeringNoteAdded(note) => Some(note.note_id.clone()),
            _ => None,
        })
        .unwrap_or(fresh);
    if state.notes.get(&note_id).is_some() {
        return (note_id, state);
    }
    let state = stored.iter().fold(state, |state, event| DefaultRouterReducer.reduce(state, event));
    (note_id, state)
}

/// Why a reply that only thought is no answer, and what to do.
fn no_answer(response: &InferenceResponse) -> String {
    let tokens = response.output_tokens;
    match response.finish_reason {
        FinishReason::Length => format!(
            "the model used its whole reply of {tokens} tokens thinking and came to no answer; \
             raise `reply_reserve` in settings.toml, ask for less, or use a model that answers at once"
        ),
        _ => format!("the model thought for {tokens} tokens and ended without an answer"),
    }
}

fn report(
    pack: &ContextPack,
    response: &InferenceResponse,
    reply_reserve: usize,
    exact: bool,
) -> ReplyReport {
    let entry = |entry: &ContextEntry, dropped| ReportedEntry {
        layer: entry.layer,
        source: entry.source.clone(),
        content: entry.content.clone(),
        tokens: entry.tokens,
        dropped,
    };
    let kept = pack.entries().map(|kept| entry(kept, None));
    let dropped = pack.dropped.iter().map(|left| entry(&left.entry, Some(left.reason.to_string())));
    ReplyReport {
        entries: kept.chain(dropped).collect(),
        template_tokens: pack.prompt.template_tokens,
        prompt_tokens: response.prompt_ids.len(),
        budget_limit: pack.budget_limit,
        reply_reserve,
        exact,
        reused_tokens: response.reused_tokens,
        output_tokens: response.output_tokens,
        prompt_ms: response.prompt_ms,
        reply_ms: response.reply_ms,
        device: response.device.clone(),
    }
}
