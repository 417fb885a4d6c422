//! What a front end is told.

use correx_events::{NoteId, SessionId, StageId, TurnId};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{
    BlobView, ContextView, DeletionView, DownloadView, DraftView, FoundModel, InstalledModel,
    LibraryView, ModelChoice, ModelView, Overview, ProtocolError, RunView, SessionSummary,
    SessionView, TurnView, WorkflowView,
};

/// A reply to one request, or a push to everybody.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// Reply: the sessions, the model, the examples.
    Overview(Overview),
    /// Reply: a checked workflow.
    Workflow(WorkflowView),
    /// Reply: an example was copied.
    Copied {
        /// The path of the workflow file.
        path: String,
    },
    /// Reply: a whole session.
    Session(Box<SessionView>),
    /// Reply: the router's finished (or stopped) answer.
    RouterResponse {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The answer's turn.
        #[ts(type = "string")]
        turn_id: TurnId,
        /// The answer.
        content: String,
        /// Whether a steering note was stored too.
        steering_emitted: bool,
        /// That note.
        #[ts(type = "string | null")]
        note_id: Option<NoteId>,
    },
    /// Reply: what a message would cost.
    Draft(DraftView),
    /// Reply: a text from the blob store.
    Blob(BlobView),
    /// Reply: a session's events.
    Events {
        /// One JSON object per event, verbatim, in order.
        lines: Vec<String>,
    },
    /// Reply: what the model was shown.
    Context(ContextView),
    /// Reply and push: the model's state.
    Model(ModelView),
    /// Reply: the models that can be used or got.
    Models {
        /// The default first.
        models: Vec<ModelChoice>,
    },
    /// Reply: which models there are.
    Library(LibraryView),
    /// Reply: models that other programs hold.
    FoundModels {
        /// By program and name.
        models: Vec<FoundModel>,
    },
    /// Reply and push: how a download stands.
    Download(DownloadView),
    /// Push: a download was given up, and is gone.
    DownloadGone {
        /// Which one.
        id: String,
    },
    /// Reply: a model that was imported.
    Installed(InstalledModel),
    /// Reply: what deleting a model would do.
    Deletion(DeletionView),
    /// Reply: it was done.
    Done,
    /// Reply: it was not done.
    Error(ProtocolError),

    /// Push: a row of the session list is new or different.
    SessionChanged(SessionSummary),
    /// Push: a session is gone.
    SessionDeleted {
        /// Which one.
        #[ts(type = "string")]
        session_id: SessionId,
    },
    /// Push: the run is different. Comes after the events that made it so.
    RunChanged {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The whole run as it is now.
        run: RunView,
    },
    /// Push: a turn is new or different (its status, its final text). Its text so far is whole.
    TurnChanged {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The turn.
        turn: TurnView,
    },
    /// Push: more of what the model thinks before an answer.
    ThinkingDelta {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The answer's turn.
        #[ts(type = "string")]
        turn_id: TurnId,
        /// Text to append to the turn's thinking.
        text: String,
        /// Tokens so far, all of them of the thinking.
        tokens: u32,
    },
    /// Push: more of an answer.
    ReplyDelta {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The answer's turn.
        #[ts(type = "string")]
        turn_id: TurnId,
        /// Text to append.
        text: String,
        /// Tokens so far.
        tokens: u32,
    },
    /// Push: how much of an answer's prompt has been read by the model.
    ReplyProgress {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The answer's turn.
        #[ts(type = "string")]
        turn_id: TurnId,
        /// Tokens read.
        done: u32,
        /// Tokens in all.
        total: u32,
    },
    /// Push: how far a stage is.
    StageProgress {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// Which stage.
        #[ts(type = "string")]
        stage_id: StageId,
        /// Which attempt.
        attempt: u32,
        /// Prompt tokens read.
        prompt_done: u32,
        /// Prompt tokens in all.
        prompt_total: u32,
        /// Tokens written.
        tokens: u32,
        /// The most it may write.
        max_tokens: u32,
        /// Of those, tokens of what the model thinks before it writes.
        thinking_tokens: u32,
        /// Text to append to the attempt's thinking.
        thinking: String,
        /// Text to append to the attempt's draft.
        text: String,
    },
}
