//! What a front end can ask for.

use correx_events::{BlobHash, ClientMessageId, NoteId, SessionId, StageId, TurnId};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::PartFate;

/// A request. Every request gets exactly one reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    /// The sessions, the model, the examples. Reply: `overview`.
    GetOverview,
    /// Reads and checks a workflow file without running it. Reply: `workflow`.
    CheckWorkflow {
        /// Which one.
        workflow: WorkflowChoice,
    },
    /// Copies an example as the beginning of a workflow of one's own; overwrites nothing. Reply:
    /// `copied`.
    CopyExample {
        /// Its name in the overview.
        example: String,
        /// The whole path of the folder in which the copy is made.
        folder: String,
        /// The copy's name there: a folder for the workflow and its samples, or, when it ends in
        /// `.toml`, a file for the workflow alone.
        name: String,
    },
    /// Makes a session: a plain chat, or one that can run a workflow. Reply: `session`.
    CreateSession {
        /// For people; made from the workflow's name when absent.
        #[serde(default)]
        title: Option<String>,
        /// What it can run; a plain chat when absent.
        #[serde(default)]
        workflow: Option<WorkflowChoice>,
        /// The run's inputs; read, hashed and kept now.
        #[serde(default)]
        inputs: Vec<InputValue>,
    },
    /// Everything about one session. Reply: `session`.
    OpenSession {
        /// Which one.
        #[ts(type = "string")]
        session_id: SessionId,
    },
    /// Gives a session another title. Reply: `session`.
    RenameSession {
        /// Which one.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The new title.
        title: String,
    },
    /// Deletes everything about a session; a run in it is cancelled first. Reply: `done`.
    DeleteSession {
        /// Which one.
        #[ts(type = "string")]
        session_id: SessionId,
    },
    /// Starts the session's workflow. Reply: `done`.
    StartRun {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
    },
    /// Stops generating until resumed; the running stage begins again then. Reply: `done`.
    PauseRun {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
    },
    /// Goes on with a paused or interrupted run. Reply: `done`.
    ResumeRun {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
    },
    /// Ends a run for good. Reply: `done`.
    CancelRun {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
    },
    /// Agrees to what a stage asks. Reply: `done`.
    Approve {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The stage that asks.
        #[ts(type = "string")]
        stage_id: StageId,
        /// A remark to keep.
        #[serde(default)]
        comment: Option<String>,
        /// What takes the place of the text that an approve stage shows.
        #[serde(default)]
        edited: Option<String>,
    },
    /// Begins an ended run again from a stage: it runs anew, with those that need it. Reply: `done`.
    Rerun {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The first stage to run anew.
        #[ts(type = "string")]
        stage_id: StageId,
    },
    /// Refuses what a stage asks; the run ends. Reply: `done`.
    Deny {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The stage that asks.
        #[ts(type = "string")]
        stage_id: StageId,
        /// The reason to keep.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Says something to the router. Reply: `router_response`, when the answer is finished;
    /// until then the answer streams as pushes.
    ChatInput {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The message.
        text: String,
        /// Only talk, or change the run.
        mode: ChatMode,
        /// In STEERING mode: which stages the note acts on.
        #[serde(default)]
        target: SteerTarget,
        /// Makes sending twice act once.
        #[serde(default)]
        #[ts(type = "string | null")]
        client_message_id: Option<ClientMessageId>,
    },
    /// Answers the last message again, in place of its failed, stopped or finished answer. Emits
    /// no note. Reply: `router_response`.
    RetryReply {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
    },
    /// Stops the answer that is being written; what is there is kept. Reply: `done`.
    StopReply {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
    },
    /// Takes a steering note back. Reply: `done`.
    WithdrawNote {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// Which note.
        #[ts(type = "string")]
        note_id: NoteId,
    },
    /// Puts another text in the place of a steering note that no stage was shown yet. Reply: `done`.
    EditNote {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// Which note.
        #[ts(type = "string")]
        note_id: NoteId,
        /// What it says from now on.
        content: String,
    },
    /// What a message would cost, without sending it. Reply: `draft`.
    MeasureDraft {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The message as typed so far.
        text: String,
        /// Only talk, or change the run.
        mode: ChatMode,
    },
    /// The text of an artifact, a draft or a context entry. Reply: `blob`.
    ReadBlob {
        /// Which session it belongs to.
        #[ts(type = "string")]
        session_id: SessionId,
        /// Its address.
        #[ts(type = "string")]
        hash: BlobHash,
    },
    /// The session's events as JSON Lines, from a sequence number on. Reply: `events`.
    ReadEvents {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The first sequence number wanted; 1 is the first of all.
        from: u32,
    },
    /// What the model was shown for an answer of the router. Reply: `context`.
    ReadTurnContext {
        /// Which session.
        #[ts(type = "string")]
        session_id: SessionId,
        /// The answer.
        #[ts(type = "string")]
        turn_id: TurnId,
    },
    /// What is loaded, where it runs. Reply: `model`.
    GetModel,
    /// The models that can be used, and those that can be got. Reply: `models`.
    ListModels,
    /// Uses another model from now on, and remembers it. One that cannot be loaded or does not
    /// fit leaves the present one as it is. Refused while something is being generated, unless
    /// `when` says what to do. Reply: `model`, once it is loaded (or waits for the end of what runs).
    UseModel {
        /// Its id, or the path of a GGUF file.
        model: String,
        /// What to do while something is being generated.
        #[serde(default)]
        when: Option<SwitchTime>,
    },
    /// Loads the model, when it is not. Reply: `model`, once it is loaded.
    LoadModel,
    /// Frees the model's memory, or stops its loading; the next use loads it again. Refused while
    /// something is being generated. Reply: `model`.
    UnloadModel,
    /// Which models there are: known, installed, being downloaded. Opens no connection. Reply:
    /// `library`.
    ReadLibrary,
    /// Looks for models that other programs hold on this machine. Reply: `found_models`.
    FindModels,
    /// Downloads a model, or goes on with it. The only request that opens a connection to another
    /// machine, beside `resume_download`. Reply: `download`; pushes tell how it goes on.
    StartDownload {
        /// An id of the catalogue, `hf:OWNER/REPOSITORY/FILE.gguf`, or an address.
        model: String,
        /// A branch, tag or commit; the main branch when absent.
        #[serde(default)]
        revision: Option<String>,
    },
    /// Stops a download for now; what is here is kept. Reply: `done`.
    PauseDownload {
        /// Which one.
        id: String,
    },
    /// Goes on with a download that was paused, failed, or left by an earlier program. Reply:
    /// `download`.
    ResumeDownload {
        /// Which one.
        id: String,
    },
    /// Gives a download up. Reply: `done`.
    CancelDownload {
        /// Which one.
        id: String,
        /// What happens to what is here.
        #[serde(default)]
        part: PartFate,
    },
    /// Makes a file on this machine a model, where it lies; it is read once. Reply: `installed`.
    ImportModel {
        /// Its path.
        path: String,
        /// For people; made from the file's name when absent.
        #[serde(default)]
        name: Option<String>,
    },
    /// What deleting a model, or a leftover of a download by its path, would do. Reply: `deletion`.
    PlanDeletion {
        /// Which one.
        id: String,
    },
    /// Deletes a model: its files when Correx downloaded them, else only what is known of it.
    /// Reply: `done`.
    DeleteModel {
        /// Which one.
        id: String,
    },
}

/// When another model takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum SwitchTime {
    /// When every run and every answer that goes on has ended.
    AfterRun,
    /// At once: a running stage begins again with the new model (no retry is used up), an answer
    /// that is being written ends as stopped.
    Now,
}

/// Only talk, or change the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ChatMode {
    /// Talks about the run.
    #[default]
    Chat,
    /// Becomes a steering note as well.
    Steering,
}

/// Which stages a steering note acts on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct SteerTarget {
    /// The stage; absent: the current one, or the next to run.
    #[serde(default)]
    #[ts(type = "string | null")]
    pub stage_id: Option<StageId>,
    /// How far it reaches from there.
    #[serde(default)]
    pub scope: SteerScope,
}

/// How far a steering note reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum SteerScope {
    /// That stage only.
    Stage,
    /// That stage and all after it.
    #[default]
    Onward,
    /// The whole run.
    Run,
}

/// A workflow file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WorkflowChoice {
    /// One that Correx brings.
    Example {
        /// Its name in the overview.
        name: String,
    },
    /// A file on this machine.
    File {
        /// Its path.
        path: String,
    },
    /// The file's text itself.
    Source {
        /// TOML.
        text: String,
    },
}

/// An input's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InputValue {
    /// Text as it is.
    Text {
        /// The input's name.
        name: String,
        /// Its text.
        text: String,
    },
    /// A file or folder to read.
    Path {
        /// The input's name; empty: the only one, or the first that is a file or folder.
        name: String,
        /// Where it lies.
        path: String,
    },
}
