//! The pack that an answer is generated from.
//!
//! A layer says what may be dropped, not where it stands: what changes least comes first (system
//! text, summaries, conversation), what changes always (status, notes, the message) last, so that
//! the prompts of one conversation share a long prefix.

use correx_context::{
    Candidate, CompressionStrategy, ContextLayer, ContextPack, ContextPackId, DropReason,
    PackError, PackRequest, PromptEncoder, Role, SourceType, TokenBudget, pack,
};
use correx_events::NoteScope;
use correx_sessions::NoteRecord;

use crate::state::Steerable;
use crate::{RouterConfig, RouterL2Entry, RouterState, RouterTurn, TurnRole, WorkflowStatus};

/// What the router is told about itself when there is a run to talk about.
pub const SYSTEM_PROMPT: &str = "You are Correx, an assistant beside a workflow that runs on this \
computer. Answer in one or two short sentences, from the facts you are given about the run; say so \
when they do not tell. You cannot start, stop or change its stages. When a steering note was just \
given, confirm that the stages will follow it.";

/// What the router is told about itself in a plain chat.
pub const PLAIN_CHAT_PROMPT: &str = "You are Correx, a helpful assistant that runs on this computer. Answer briefly and in plain words.";

/// Builds the router's packs.
pub trait RouterContextBuilder: Send + Sync {
    /// The pack for answering the last turn of `state.conversation_history` (a person's turn).
    ///
    /// # Errors
    /// [`PackError::TooLarge`] when what must not be dropped does not fit `budget`.
    fn build(
        &self,
        state: &RouterState,
        budget: TokenBudget,
        encoder: &dyn PromptEncoder,
    ) -> Result<ContextPack, PackError>;
}

/// L0: system text, status, steering notes. L1: the newest turns. L2: stage summaries. Under
/// pressure summaries go first, then whole exchanges, each oldest first; L0 and the message being
/// answered never go.
#[derive(Debug, Clone)]
pub struct DefaultRouterContextBuilder {
    config: RouterConfig,
}

impl DefaultRouterContextBuilder {
    /// Builds by `config`.
    pub fn new(config: RouterConfig) -> Self {
        Self { config }
    }
}

impl RouterContextBuilder for DefaultRouterContextBuilder {
    fn build(
        &self,
        state: &RouterState,
        budget: TokenBudget,
        encoder: &dyn PromptEncoder,
    ) -> Result<ContextPack, PackError> {
        let window = Window::of(&state.conversation_history, self.config.conversation_keep_last);
        let summaries = state.l2_memory.len();
        let status = status_entries(state);

        let mut candidates =
            vec![fixed(SourceType::SystemPrompt, Role::System, system_text(state))];
        let (status_in_system, status_in_turn) =
            if changes(state) { (Vec::new(), status) } else { (status, Vec::new()) };
        candidates.extend(
            status_in_system.into_iter().map(|(source, text)| fixed(source, Role::System, text)),
        );
        candidates
            .extend(state.l2_memory.iter().enumerate().map(|(age, entry)| summary(entry, age)));
        for (age, exchange) in window.exchanges.iter().enumerate() {
            candidates
                .extend(exchange.iter().map(|turn| conversation(turn, Some(summaries + age))));
        }
        candidates.extend(
            status_in_turn.into_iter().map(|(source, text)| fixed(source, Role::User, text)),
        );
        candidates.extend(window.message.map(message));

        let keep_last = DropReason::KeepLast(self.config.conversation_keep_last);
        let session = state.session_id.as_ref();
        pack(
            PackRequest {
                id: ContextPackId(format!(
                    "{}-router-pack",
                    session.map_or("unknown", |session| session.as_str())
                )),
                session_id: session.cloned(),
                stage_id: state.current_stage_id.clone(),
                candidates,
                already_dropped: window
                    .older
                    .iter()
                    .map(|turn| (conversation(turn, None), keep_last))
                    .collect(),
                budget,
                strategies: vec![
                    CompressionStrategy::L0Immutable,
                    CompressionStrategy::SteeringNote,
                    CompressionStrategy::StageSummary,
                    CompressionStrategy::Conversation,
                ],
            },
            encoder,
        )
    }
}

/// The newest turns, cut into exchanges (a person's turn and what answers it).
struct Window<'a> {
    older: &'a [RouterTurn],
    exchanges: Vec<&'a [RouterTurn]>,
    message: Option<&'a RouterTurn>,
}

impl<'a> Window<'a> {
    fn of(history: &'a [RouterTurn], keep_last: usize) -> Self {
        // The message being answered is in the window whatever `keep_last` says.
        let (past, message) = match history.split_last() {
            Some((last, past)) if last.role == TurnRole::User => (past, Some(last)),
            _ => (history, None),
        };
        let room = keep_last.saturating_sub(usize::from(message.is_some()));
        let mut start = past.len().saturating_sub(room);
        // A window never begins with an answer: strict templates refuse that.
        while past.get(start).is_some_and(|turn| turn.role == TurnRole::Router) {
            start += 1;
        }
        let (older, shown) = past.split_at(start);
        let exchanges = shown.chunk_by(|_, next| next.role == TurnRole::Router).collect();
        Self { older, exchanges, message }
    }
}

/// Whether the status is news at every turn; in a plain chat it never changes.
fn changes(state: &RouterState) -> bool {
    state.workflow_status != WorkflowStatus::Idle || state.notes.active().next().is_some()
}

fn system_text(state: &RouterState) -> String {
    let plain = state.steerable != Steerable::Workflow
        && state.workflow_status == WorkflowStatus::Idle
        && state.plan.is_empty();
    if plain { PLAIN_CHAT_PROMPT } else { SYSTEM_PROMPT }.to_owned()
}

fn status_entries(state: &RouterState) -> Vec<(SourceType, String)> {
    let stage = state.current_stage_id.as_ref().map_or("none", |stage| stage.as_str());
    let status = format!("Status: {}, Stage: {stage}", state.workflow_status);
    let mut entries = vec![(SourceType::WorkflowStatus, status)];
    let just_given = just_given(state).map(|record| &record.note.note_id);
    entries.extend(state.notes.active().map(|record| {
        let note = &record.note.note_id;
        let age = if just_given == Some(note) { Age::JustGiven } else { Age::Known };
        (SourceType::SteeringNote(note.clone()), note_text(state, record, age))
    }));
    entries
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    JustGiven,
    Known,
}

/// The note that the message being answered became.
fn just_given(state: &RouterState) -> Option<&NoteRecord> {
    let message = state.conversation_history.last().filter(|turn| turn.role == TurnRole::User)?;
    state.notes.active().last().filter(|record| record.note.content == message.content)
}

/// For example `Steering note from draft onward, applied in draft (attempt 2): Be brief.`
fn note_text(state: &RouterState, record: &NoteRecord, age: Age) -> String {
    let stage = record.target.as_ref().map(|stage| state.stage_title(stage));
    let reach = match (record.note.scope, stage) {
        (NoteScope::Run, _) => "for the whole run".to_owned(),
        (_, None) => "for the next stage".to_owned(),
        (NoteScope::Stage, Some(stage)) => format!("for {stage}"),
        (NoteScope::Onward, Some(stage)) => format!("from {stage} onward"),
    };
    let uses: Vec<String> = record
        .applied
        .iter()
        .map(|used| format!("{} (attempt {})", state.stage_title(&used.stage_id), used.attempt))
        .collect();
    let fate = if uses.is_empty() {
        "not applied yet".to_owned()
    } else {
        format!("applied in {}", uses.join(", "))
    };
    let age = if age == Age::JustGiven { "just given, " } else { "" };
    format!("Steering note {reach}, {age}{fate}: {}", record.note.content)
}

fn fixed(source: SourceType, role: Role, content: String) -> Candidate {
    Candidate {
        layer: ContextLayer::L0,
        source,
        role,
        content,
        separator: "\n\n",
        drop_group: None,
    }
}

fn summary(entry: &RouterL2Entry, age: usize) -> Candidate {
    Candidate {
        layer: ContextLayer::L2,
        source: SourceType::StageSummary(entry.stage_id.clone()),
        role: Role::System,
        content: format!("Stage {} ({}): {}", entry.stage_id, entry.outcome, entry.summary),
        separator: "\n",
        drop_group: Some(age),
    }
}

fn conversation(turn: &RouterTurn, drop_group: Option<usize>) -> Candidate {
    Candidate {
        layer: ContextLayer::L1,
        source: SourceType::Conversation,
        role: match turn.role {
            TurnRole::User => Role::User,
            TurnRole::Router => Role::Assistant,
        },
        content: turn.content.clone(),
        separator: "\n\n",
        drop_group,
    }
}

fn message(turn: &RouterTurn) -> Candidate {
    Candidate { source: SourceType::Message, ..conversation(turn, None) }
}
