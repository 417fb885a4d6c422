//! What a front end shows. Times are RFC 3339 text, durations milliseconds, sizes bytes.

use correx_events::{BlobHash, NoteId, SessionId, StageId, TurnId};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{ChatMode, ProtocolError, SteerScope};

/// What a front end shows first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Overview {
    /// Newest first.
    pub sessions: Vec<SessionSummary>,
    /// The model's state.
    pub model: ModelView,
    /// Workflows that Correx brings.
    pub examples: Vec<WorkflowView>,
    /// Where everything is kept.
    pub data_dir: String,
    /// This program's version.
    pub version: String,
}

/// A row of the session list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct SessionSummary {
    /// The session.
    #[ts(type = "string")]
    pub session_id: SessionId,
    /// For people.
    pub title: String,
    /// The workflow's name; absent for a plain chat.
    pub workflow: Option<String>,
    /// The run's status; IDLE for a plain chat or before the start.
    pub status: WorkflowStatus,
    /// Why a paused run waits.
    pub waiting_for: Option<WaitReason>,
    /// The current stage's title.
    pub current_stage: Option<String>,
    /// Stages done.
    pub stages_done: u32,
    /// Stages in all.
    pub stages_total: u32,
    /// When something last happened.
    pub updated_at: String,
}

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WorkflowStatus {
    /// No run yet.
    Idle,
    /// Stages are running.
    Running,
    /// It waits.
    Paused,
    /// Every stage is done.
    Completed,
    /// It ended without finishing.
    Failed,
}

/// Why a paused run waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// A person paused it.
    Person,
    /// A person is asked to approve something.
    Approval,
    /// The process ended while it ran; it can be resumed.
    Interrupted,
}

/// Everything about one session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct SessionView {
    /// Its row in the list.
    pub summary: SessionSummary,
    /// The run; absent for a plain chat.
    pub run: Option<RunView>,
    /// The conversation's current branch, oldest first.
    pub turns: Vec<TurnView>,
    /// What the next answer's prompt holds, without a new message.
    pub context: Option<ContextView>,
}

/// A run as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct RunView {
    /// Its status.
    pub status: WorkflowStatus,
    /// Why it waits.
    pub waiting_for: Option<WaitReason>,
    /// Why it ended, when it failed; absent when a person cancelled it.
    pub failure: Option<String>,
    /// The stage that is current.
    #[ts(type = "string | null")]
    pub current_stage: Option<StageId>,
    /// The stages in order.
    pub stages: Vec<StageView>,
    /// The steering notes, oldest first.
    pub notes: Vec<NoteView>,
    /// The inputs as captured.
    pub inputs: Vec<InputView>,
    /// The sequence number of the last event.
    pub last_event: u32,
    /// When it started.
    pub started_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
}

/// A captured input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct InputView {
    /// Its name.
    pub name: String,
    /// Where it was read from.
    pub path: Option<String>,
    /// Its content's address.
    #[ts(type = "string")]
    pub hash: BlobHash,
    /// Its size.
    #[ts(type = "number")]
    pub bytes: u64,
}

/// A stage as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct StageView {
    /// Its id.
    #[ts(type = "string")]
    pub stage_id: StageId,
    /// For people.
    pub title: String,
    /// `generate`, `approve`, ….
    pub kind: String,
    /// Its status.
    pub status: StageStatus,
    /// The latest attempt; 0 before the first.
    pub attempt: u32,
    /// When the first attempt began.
    pub started_at: Option<String>,
    /// From start to end, once it ended.
    #[ts(type = "number | null")]
    pub duration_ms: Option<u64>,
    /// Words in what it produced.
    #[ts(type = "number | null")]
    pub words: Option<u64>,
    /// Tokens in what it produced.
    #[ts(type = "number | null")]
    pub output_tokens: Option<u64>,
    /// What it produced.
    pub artifacts: Vec<ArtifactView>,
    /// What policy said of what it wants to do, in its latest attempt.
    #[serde(default)]
    pub policy: Vec<PolicyView>,
    /// What it did outside of Correx, or began to do, oldest first.
    #[serde(default)]
    pub effects: Vec<EffectView>,
    /// Of a `map` or `reduce`, once a piece is done: how far it is.
    pub pieces: Option<PiecesView>,
    /// Attempts that were put aside or refused.
    pub drafts: Vec<AttemptView>,
    /// What the model thought before it wrote what the stage produced.
    pub thinking: Option<ThoughtView>,
    /// What a person is asked; only while they are.
    pub question: Option<QuestionView>,
    /// Why it failed.
    pub error: Option<String>,
    /// What the model was shown for the latest attempt.
    pub context: Option<ContextView>,
}

/// The status of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    /// Not begun.
    Pending,
    /// Running.
    Running,
    /// Waits for a person.
    Waiting,
    /// Done.
    Done,
    /// Gave up.
    Failed,
    /// Cancelled with its run.
    Cancelled,
    /// Passed over: its condition did not hold.
    Skipped,
}

/// How far a stage is that goes piece by piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct PiecesView {
    /// Pieces that are done, in this round.
    pub done: u32,
    /// Pieces in this round; of the latest that has a finished one.
    pub total: u32,
    /// The round of a `reduce`, from 1.
    pub round: u32,
}

/// An artifact, without its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ArtifactView {
    /// The name by which stages know it.
    pub name: String,
    /// Its content's address.
    #[ts(type = "string")]
    pub hash: BlobHash,
    /// Its size.
    #[ts(type = "number")]
    pub bytes: u64,
    /// For example `text/markdown`.
    pub media_type: String,
    /// The attempt that made it.
    pub attempt: u32,
}

/// An attempt that did not become the artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct AttemptView {
    /// Which attempt.
    pub attempt: u32,
    /// Why it was put aside, for people.
    pub reason: String,
    /// What it had written.
    #[ts(type = "string | null")]
    pub draft: Option<BlobHash>,
    /// What the model had thought before that.
    pub thinking: Option<ThoughtView>,
}

/// What a model thought in a stage's attempt: kept beside the log, so its text is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ThoughtView {
    /// Its text's address.
    #[ts(type = "string")]
    pub hash: BlobHash,
    /// Its tokens.
    pub tokens: u32,
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct QuestionView {
    /// The question.
    pub prompt: String,
    /// What is to be approved.
    #[ts(type = "string | null")]
    pub artifact: Option<BlobHash>,
    /// Why they are asked.
    #[serde(default)]
    pub cause: QuestionCause,
    /// What is done after a yes, when it is something outside of Correx.
    #[serde(default)]
    pub action: Option<String>,
    /// What the file holds that would be replaced.
    #[ts(type = "string | null")]
    #[serde(default)]
    pub before: Option<BlobHash>,
}

/// Why a person is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum QuestionCause {
    /// The workflow says so.
    #[default]
    Workflow,
    /// Policy says so.
    Policy,
    /// A file would be replaced.
    Existing,
    /// It was begun when the last process ended, and nobody knows how far it came.
    HalfDone,
}

/// What policy said of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct PolicyView {
    /// What was wanted, such as `write /srv/out/report.md`.
    pub action: String,
    /// Whether a person had to agree first.
    pub asks: bool,
    /// The rule that said so.
    pub rule: String,
}

/// Something that a stage did outside of Correx.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct EffectView {
    /// `write` or `command`.
    pub kind: String,
    /// The file, or the command line.
    pub target: String,
    /// The attempt that did it.
    pub attempt: u32,
    /// How it ended.
    pub state: EffectState,
    /// What went wrong.
    pub message: Option<String>,
    /// What a command wrote to its standard output.
    #[ts(type = "string | null")]
    pub output: Option<BlobHash>,
}

/// How an effect ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum EffectState {
    /// It is under way, or was when the last process ended.
    Begun,
    /// As intended.
    Done,
    /// Not as intended.
    Failed,
}

/// A steering note and its fate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct NoteView {
    /// The note.
    #[ts(type = "string")]
    pub note_id: NoteId,
    /// The person's words.
    pub content: String,
    /// The stage from which it acts; absent until one is current.
    #[ts(type = "string | null")]
    pub stage_id: Option<StageId>,
    /// How far it reaches.
    pub scope: SteerScope,
    /// Whether it was taken back.
    pub withdrawn: bool,
    /// Where it was shown to the model, oldest first.
    pub applied: Vec<AppliedView>,
    /// When it was given.
    pub at: String,
}

/// One use of a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct AppliedView {
    /// The stage.
    #[ts(type = "string")]
    pub stage_id: StageId,
    /// The attempt.
    pub attempt: u32,
}

/// One turn of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TurnView {
    /// The turn.
    #[ts(type = "string")]
    pub turn_id: TurnId,
    /// Who speaks.
    pub role: TurnRole,
    /// Of a person's turn: only talk, or also a note.
    pub mode: ChatMode,
    /// The text.
    pub content: String,
    /// What the model thought before it; absent when it did not.
    pub thinking: Option<ThinkingView>,
    /// How far it is.
    pub status: TurnStatus,
    /// Why it failed.
    pub error: Option<ProtocolError>,
    /// The note that a steering turn became.
    #[ts(type = "string | null")]
    pub note_id: Option<NoteId>,
    /// When it was said.
    pub at: String,
    /// How the answer was made; absent for a person's turn and while it is being written.
    pub stats: Option<ReplyStats>,
}

/// What a model thought before it answered. No model is shown it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ThinkingView {
    /// Its text.
    pub text: String,
    /// Its tokens.
    pub tokens: u32,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TurnRole {
    /// The person.
    User,
    /// The router.
    Router,
}

/// How far a turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// Being written (an answer), or not answered yet (a message).
    Pending,
    /// Whole.
    Complete,
    /// Stopped; what is there was kept.
    Stopped,
    /// Failed; the error says why.
    Failed,
}

/// How an answer was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ReplyStats {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Of those, not evaluated again.
    pub reused_tokens: u32,
    /// Tokens of the answer.
    pub output_tokens: u32,
    /// Time to the first token.
    pub prompt_ms: u32,
    /// Time from the first token to the last.
    pub reply_ms: u32,
    /// The device that ran it.
    pub device: String,
}

/// What a model was shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ContextView {
    /// For example `Router` or `Draft, attempt 2`.
    pub title: String,
    /// The entries, kept and dropped.
    pub entries: Vec<EntryView>,
    /// Tokens of the chat template itself.
    pub template_tokens: u32,
    /// All tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens kept free for the reply.
    pub reply_reserve: u32,
    /// The most tokens the prompt may have.
    pub budget_limit: u32,
    /// Prompt tokens that were not evaluated again, when it ran.
    pub reused_tokens: Option<u32>,
    /// Whether the counts are the model's own tokenizer's.
    pub exact: bool,
}

/// One entry of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct EntryView {
    /// What may happen to it.
    pub layer: Layer,
    /// Where it comes from, for people.
    pub source: String,
    /// Its tokens.
    pub tokens: u32,
    /// Its text, when it is short enough to send along.
    pub text: Option<String>,
    /// Its text's address in the blob store, when it is kept there.
    #[ts(type = "string | null")]
    pub hash: Option<BlobHash>,
    /// Why it was left out; absent when it is in the prompt.
    pub dropped: Option<String>,
}

/// Context layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
pub enum Layer {
    /// Never dropped.
    L0,
    /// Recent conversation.
    L1,
    /// Stage summaries.
    L2,
}

/// What a message would cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct DraftView {
    /// The prompt with the message in it.
    pub context: ContextView,
    /// Why it could not be sent as it is.
    pub refusal: Option<ProtocolError>,
}

/// A text from the blob store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct BlobView {
    /// Its address.
    #[ts(type = "string")]
    pub hash: BlobHash,
    /// Its text.
    pub text: String,
}

/// A workflow, described.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct WorkflowView {
    /// The name to choose it by, when it is an example.
    pub example: Option<String>,
    /// Its own name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it needs.
    pub inputs: Vec<InputSpecView>,
    /// Its stages in order.
    pub stages: Vec<StageSpecView>,
}

/// An input that a workflow declares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct InputSpecView {
    /// Its name.
    pub name: String,
    /// `text`, `file`, `folder`, `choice` or `number`.
    pub kind: String,
    /// What to give.
    pub description: String,
    /// Whether it must be given.
    pub required: bool,
    /// A text to try it with, when it is an example.
    pub sample: Option<String>,
    /// What it is when it is not given.
    pub default: Option<String>,
    /// Of a choice: the texts of which one is given.
    pub choices: Vec<String>,
    /// Of a number: the least.
    pub min: Option<f64>,
    /// Of a number: the most.
    pub max: Option<f64>,
}

/// A stage that a workflow declares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct StageSpecView {
    /// Its id.
    #[ts(type = "string")]
    pub stage_id: StageId,
    /// For people.
    pub title: String,
    /// `generate`, `approve`, ….
    pub kind: String,
}

/// The model's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelView {
    /// Whether it can answer.
    pub state: ModelState,
    /// For people.
    pub name: String,
    /// The file.
    pub location: String,
    /// For example `llama`.
    pub architecture: Option<String>,
    /// For example `Q4_1`.
    pub quantization: Option<String>,
    /// The device that really runs it.
    pub device: Option<String>,
    /// The largest prompt plus reply.
    pub context_window: Option<u32>,
    /// The number of weights.
    #[ts(type = "number | null")]
    pub parameters: Option<u64>,
    /// The file's size.
    #[ts(type = "number | null")]
    pub file_bytes: Option<u64>,
    /// SHA-256 of the file, when known.
    pub sha256: Option<String>,
    /// Something to know about it.
    pub notice: Option<String>,
    /// What it needs and what is held.
    #[serde(default)]
    pub memory: Option<MemoryView>,
    /// The name of the model that takes over when what runs has ended.
    #[serde(default)]
    pub next: Option<String>,
}

/// Memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct MemoryView {
    /// The most that the model takes, with a full context.
    #[ts(type = "number")]
    pub need: u64,
    /// Its weights.
    #[ts(type = "number")]
    pub weights: u64,
    /// Its tokenizer.
    #[ts(type = "number")]
    pub vocabulary: u64,
    /// What holding replies to a form takes, from the first such reply on.
    #[serde(default)]
    #[ts(type = "number")]
    pub forms: u64,
    /// Keys and values of a full context.
    #[ts(type = "number")]
    pub cache: u64,
    /// What a step computes with.
    #[ts(type = "number")]
    pub scratch: u64,
    /// What the whole program holds now; absent where the system does not tell.
    #[ts(type = "number | null")]
    pub held: Option<u64>,
    /// What the machine can still give; absent where the system does not tell.
    #[ts(type = "number | null")]
    pub available: Option<u64>,
}

/// A model that can be used or got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ModelChoice {
    /// Its id, or the path of its file: what `use_model` takes.
    pub id: String,
    /// For people.
    pub name: String,
    /// Its file on this machine; absent when it has to be got first.
    pub path: Option<String>,
    /// The file's size in bytes.
    #[ts(type = "number")]
    pub bytes: u64,
    /// One line that helps to choose; absent when nothing is known.
    pub good_for: Option<String>,
    /// Whether it is the one that is used now.
    pub in_use: bool,
}

/// Whether the model can answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ModelState {
    /// Being loaded.
    Loading {
        /// From 0 to 1.
        fraction: f32,
    },
    /// Ready.
    Ready,
    /// Not in memory; the next use loads it.
    Unloaded,
    /// Not to be had.
    Failed {
        /// Why, and what to do.
        error: ProtocolError,
    },
}
