// Generated from crates/protocol by `UPDATE_WIRE=1 cargo test -p correx-protocol`.

export type AppliedView = { 
/**
 * The stage.
 */
stage_id: string, 
/**
 * The attempt.
 */
attempt: number, };

export type ArtifactView = { 
/**
 * The name by which stages know it.
 */
name: string, 
/**
 * Its content's address.
 */
hash: string, 
/**
 * Its size.
 */
bytes: number, 
/**
 * For example `text/markdown`.
 */
media_type: string, 
/**
 * The attempt that made it.
 */
attempt: number, };

export type AttemptView = { 
/**
 * Which attempt.
 */
attempt: number, 
/**
 * Why it was put aside, for people.
 */
reason: string, 
/**
 * What it had written.
 */
draft: string | null, 
/**
 * What the model had thought before that.
 */
thinking: ThoughtView | null, };

export type BlobView = { 
/**
 * Its address.
 */
hash: string, 
/**
 * Its text.
 */
text: string, };

export type ChatMode = "CHAT" | "STEERING";

export type ClientMessage = { "type": "get_overview" } | { "type": "check_workflow", 
/**
 * Which one.
 */
workflow: WorkflowChoice, } | { "type": "copy_example", 
/**
 * Its name in the overview.
 */
example: string, 
/**
 * The whole path of the folder in which the copy is made.
 */
folder: string, 
/**
 * The copy's name there: a folder for the workflow and its samples, or, when it ends in
 * `.toml`, a file for the workflow alone.
 */
name: string, } | { "type": "create_session", 
/**
 * For people; made from the workflow's name when absent.
 */
title: string | null, 
/**
 * What it can run; a plain chat when absent.
 */
workflow: WorkflowChoice | null, 
/**
 * The run's inputs; read, hashed and kept now.
 */
inputs: Array<InputValue>, } | { "type": "open_session", 
/**
 * Which one.
 */
session_id: string, } | { "type": "rename_session", 
/**
 * Which one.
 */
session_id: string, 
/**
 * The new title.
 */
title: string, } | { "type": "delete_session", 
/**
 * Which one.
 */
session_id: string, } | { "type": "start_run", 
/**
 * Which session.
 */
session_id: string, } | { "type": "pause_run", 
/**
 * Which session.
 */
session_id: string, } | { "type": "resume_run", 
/**
 * Which session.
 */
session_id: string, } | { "type": "cancel_run", 
/**
 * Which session.
 */
session_id: string, } | { "type": "approve", 
/**
 * Which session.
 */
session_id: string, 
/**
 * The stage that asks.
 */
stage_id: string, 
/**
 * A remark to keep.
 */
comment: string | null, 
/**
 * What takes the place of the text that an approve stage shows.
 */
edited: string | null, } | { "type": "rerun", 
/**
 * Which session.
 */
session_id: string, 
/**
 * The first stage to run anew.
 */
stage_id: string, } | { "type": "deny", 
/**
 * Which session.
 */
session_id: string, 
/**
 * The stage that asks.
 */
stage_id: string, 
/**
 * The reason to keep.
 */
reason: string | null, } | { "type": "chat_input", 
/**
 * Which session.
 */
session_id: string, 
/**
 * The message.
 */
text: string, 
/**
 * Only talk, or change the run.
 */
mode: ChatMode, 
/**
 * In STEERING mode: which stages the note acts on.
 */
target: SteerTarget, 
/**
 * Makes sending twice act once.
 */
client_message_id: string | null, } | { "type": "retry_reply", 
/**
 * Which session.
 */
session_id: string, } | { "type": "stop_reply", 
/**
 * Which session.
 */
session_id: string, } | { "type": "withdraw_note", 
/**
 * Which session.
 */
session_id: string, 
/**
 * Which note.
 */
note_id: string, } | { "type": "edit_note", 
/**
 * Which session.
 */
session_id: string, 
/**
 * Which note.
 */
note_id: string, 
/**
 * What it says from now on.
 */
content: string, } | { "type": "measure_draft", 
/**
 * Which session.
 */
session_id: string, 
/**
 * The message as typed so far.
 */
text: string, 
/**
 * Only talk, or change the run.
 */
mode: ChatMode, } | { "type": "read_blob", 
/**
 * Which session it belongs to.
 */
session_id: string, 
/**
 * Its address.
 */
hash: string, } | { "type": "read_events", 
/**
 * Which session.
 */
session_id: string, 
/**
 * The first sequence number wanted; 1 is the first of all.
 */
from: number, } | { "type": "read_turn_context", 
/**
 * Which session.
 */
session_id: string, 
/**
 * The answer.
 */
turn_id: string, } | { "type": "get_model" } | { "type": "list_models" } | { "type": "use_model", 
/**
 * Its id, or the path of a GGUF file.
 */
model: string, 
/**
 * What to do while something is being generated.
 */
when: SwitchTime | null, } | { "type": "load_model" } | { "type": "unload_model" } | { "type": "read_library" } | { "type": "find_models" } | { "type": "start_download", 
/**
 * An id of the catalogue, `hf:OWNER/REPOSITORY/FILE.gguf`, or an address.
 */
model: string, 
/**
 * A branch, tag or commit; the main branch when absent.
 */
revision: string | null, } | { "type": "pause_download", 
/**
 * Which one.
 */
id: string, } | { "type": "resume_download", 
/**
 * Which one.
 */
id: string, } | { "type": "cancel_download", 
/**
 * Which one.
 */
id: string, 
/**
 * What happens to what is here.
 */
part: PartFate, } | { "type": "import_model", 
/**
 * Its path.
 */
path: string, 
/**
 * For people; made from the file's name when absent.
 */
name: string | null, } | { "type": "plan_deletion", 
/**
 * Which one.
 */
id: string, } | { "type": "delete_model", 
/**
 * Which one.
 */
id: string, };

export type ContextView = { 
/**
 * For example `Router` or `Draft, attempt 2`.
 */
title: string, 
/**
 * The entries, kept and dropped.
 */
entries: Array<EntryView>, 
/**
 * Tokens of the chat template itself.
 */
template_tokens: number, 
/**
 * All tokens of the prompt.
 */
prompt_tokens: number, 
/**
 * Tokens kept free for the reply.
 */
reply_reserve: number, 
/**
 * The most tokens the prompt may have.
 */
budget_limit: number, 
/**
 * Prompt tokens that were not evaluated again, when it ran.
 */
reused_tokens: number | null, 
/**
 * Whether the counts are the model's own tokenizer's.
 */
exact: boolean, };

export type DeletionView = { 
/**
 * Which one.
 */
id: string, 
/**
 * For people.
 */
name: string, 
/**
 * Files that are deleted.
 */
deletes: Array<string>, 
/**
 * Bytes that become free.
 */
frees: number, 
/**
 * What stays, and why.
 */
stays: Array<string>, 
/**
 * What uses it.
 */
used_by: Array<string>, };

export type DownloadPhase = { "kind": "asking" } | { "kind": "waiting" } | { "kind": "rereading" } | { "kind": "receiving" } | { "kind": "retrying", 
/**
 * Why.
 */
error: ProtocolError, 
/**
 * How many tries have failed.
 */
failed: number, 
/**
 * How many may.
 */
of: number, 
/**
 * The pause, in seconds.
 */
wait_seconds: number, } | { "kind": "verifying" } | { "kind": "paused" } | { "kind": "done", 
/**
 * Its id in the library.
 */
installed: string, 
/**
 * The file to open.
 */
path: string, } | { "kind": "failed", 
/**
 * Why, what is kept, what to do.
 */
error: ProtocolError, };

export type DownloadView = { 
/**
 * Its name.
 */
id: string, 
/**
 * The model in the catalogue, if it is one of those.
 */
model: string | null, 
/**
 * The model's name for people.
 */
name: string, 
/**
 * What it is doing.
 */
phase: DownloadPhase, 
/**
 * Bytes that are here.
 */
done: number, 
/**
 * Bytes in all, once that is known.
 */
total: number | null, 
/**
 * Bytes per second over the last seconds.
 */
speed: number | null, 
/**
 * Seconds that the rest takes at this speed.
 */
remaining_seconds: number | null, 
/**
 * Something that a person should know, and that is no error.
 */
notice: string | null, };

export type DraftView = { 
/**
 * The prompt with the message in it.
 */
context: ContextView, 
/**
 * Why it could not be sent as it is.
 */
refusal: ProtocolError | null, };

export type EffectState = "begun" | "done" | "failed";

export type EffectView = { 
/**
 * `write` or `command`.
 */
kind: string, 
/**
 * The file, or the command line.
 */
target: string, 
/**
 * The attempt that did it.
 */
attempt: number, 
/**
 * How it ended.
 */
state: EffectState, 
/**
 * What went wrong.
 */
message: string | null, 
/**
 * What a command wrote to its standard output.
 */
output: string | null, };

export type EntryView = { 
/**
 * What may happen to it.
 */
layer: Layer, 
/**
 * Where it comes from, for people.
 */
source: string, 
/**
 * Its tokens.
 */
tokens: number, 
/**
 * Its text, when it is short enough to send along.
 */
text: string | null, 
/**
 * Its text's address in the blob store, when it is kept there.
 */
hash: string | null, 
/**
 * Why it was left out; absent when it is in the prompt.
 */
dropped: string | null, };

export type ErrorCode = "bad_message" | "not_found" | "empty_input" | "input_too_long" | "cannot_steer" | "wrong_state" | "bad_workflow" | "bad_input" | "model" | "inference" | "network" | "storage" | "internal";

export type FoundModel = { 
/**
 * The program's name.
 */
holder: string, 
/**
 * Its name there.
 */
name: string, 
/**
 * The file to open.
 */
path: string, 
/**
 * Bytes of all its files.
 */
bytes: number, 
/**
 * What its header says.
 */
about: ModelAbout | null, 
/**
 * Why it cannot be used.
 */
problem: string | null, 
/**
 * The id that it has here, when it is installed or imported already.
 */
installed: string | null, };

export type InputSpecView = { 
/**
 * Its name.
 */
name: string, 
/**
 * `text`, `file`, `folder`, `choice` or `number`.
 */
kind: string, 
/**
 * What to give.
 */
description: string, 
/**
 * Whether it must be given.
 */
required: boolean, 
/**
 * A text to try it with, when it is an example.
 */
sample: string | null, 
/**
 * What it is when it is not given.
 */
default: string | null, 
/**
 * Of a choice: the texts of which one is given.
 */
choices: Array<string>, 
/**
 * Of a number: the least.
 */
min: number | null, 
/**
 * Of a number: the most.
 */
max: number | null, };

export type InputValue = { "kind": "text", 
/**
 * The input's name.
 */
name: string, 
/**
 * Its text.
 */
text: string, } | { "kind": "path", 
/**
 * The input's name; empty: the only one, or the first that is a file or folder.
 */
name: string, 
/**
 * Where it lies.
 */
path: string, };

export type InputView = { 
/**
 * Its name.
 */
name: string, 
/**
 * Where it was read from.
 */
path: string | null, 
/**
 * Its content's address.
 */
hash: string, 
/**
 * Its size.
 */
bytes: number, };

export type InstalledModel = { 
/**
 * Its stable name.
 */
id: string, 
/**
 * For people.
 */
name: string, 
/**
 * The file to open.
 */
path: string, 
/**
 * Bytes of all its files.
 */
bytes: number, 
/**
 * Where it comes from.
 */
origin: ModelOrigin, 
/**
 * Whether its files are as they were.
 */
state: ModelFileState, 
/**
 * What its header says; absent when it cannot be read.
 */
about: ModelAbout | null, };

export type KnownModel = { 
/**
 * Its stable name.
 */
id: string, 
/**
 * For people.
 */
name: string, 
/**
 * `tiny`, `small`, `medium`, `large` or `larger`.
 */
class: string, 
/**
 * The architecture that its file names.
 */
architecture: string, 
/**
 * The licence of its weights.
 */
licence: string, 
/**
 * Where it can be read, where its name does not say.
 */
licence_url: string | null, 
/**
 * Tokens that it was trained to hold.
 */
context_length: number, 
/**
 * One line that helps to choose.
 */
good_for: string, 
/**
 * The file's size in bytes, exactly or about.
 */
bytes: number | null, 
/**
 * Memory that it takes, about, in bytes.
 */
memory: number | null, 
/**
 * Where it comes from: what `start_download` takes, or the name of a package.
 */
source: string, 
/**
 * Whether it can be downloaded.
 */
downloadable: boolean, 
/**
 * Its file, when it is on this machine.
 */
path: string | null, };

export type Layer = "L0" | "L1" | "L2";

export type LeftoverView = { 
/**
 * The file.
 */
path: string, 
/**
 * Bytes that it takes.
 */
bytes: number, };

export type LibraryView = { 
/**
 * The known models, by size.
 */
catalogue: Array<KnownModel>, 
/**
 * What was downloaded or imported.
 */
installed: Array<InstalledModel>, 
/**
 * Downloads that go on, wait to be gone on with, or ended since the program started.
 */
downloads: Array<DownloadView>, 
/**
 * Parts of downloads that nobody can go on with: they can only be deleted.
 */
leftovers: Array<LeftoverView>, };

export type MemoryView = { 
/**
 * The most that the model takes, with a full context.
 */
need: number, 
/**
 * Its weights.
 */
weights: number, 
/**
 * Its tokenizer.
 */
vocabulary: number, 
/**
 * What holding replies to a form takes, from the first such reply on.
 */
forms: number, 
/**
 * Keys and values of a full context.
 */
cache: number, 
/**
 * What a step computes with.
 */
scratch: number, 
/**
 * What the whole program holds now; absent where the system does not tell.
 */
held: number | null, 
/**
 * What the machine can still give; absent where the system does not tell.
 */
available: number | null, };

export type ModelAbout = { 
/**
 * For example `llama`.
 */
architecture: string | null, 
/**
 * For example `Q4_1`.
 */
quantization: string | null, 
/**
 * The number of weights.
 */
parameters: number, 
/**
 * Tokens that it was trained to hold.
 */
context_length: number | null, };

export type ModelChoice = { 
/**
 * Its id, or the path of its file: what `use_model` takes.
 */
id: string, 
/**
 * For people.
 */
name: string, 
/**
 * Its file on this machine; absent when it has to be got first.
 */
path: string | null, 
/**
 * The file's size in bytes.
 */
bytes: number, 
/**
 * One line that helps to choose; absent when nothing is known.
 */
good_for: string | null, 
/**
 * Whether it is the one that is used now.
 */
in_use: boolean, };

export type ModelFileState = "as_recorded" | "gone" | "touched";

export type ModelOrigin = { "kind": "hub", 
/**
 * From where.
 */
source: string, 
/**
 * The commit.
 */
commit: string, 
/**
 * SHA-256 of its first file.
 */
sha256: string, } | { "kind": "imported" };

export type ModelState = { "kind": "loading", 
/**
 * From 0 to 1.
 */
fraction: number, } | { "kind": "ready" } | { "kind": "unloaded" } | { "kind": "failed", 
/**
 * Why, and what to do.
 */
error: ProtocolError, };

export type ModelView = { 
/**
 * Whether it can answer.
 */
state: ModelState, 
/**
 * For people.
 */
name: string, 
/**
 * The file.
 */
location: string, 
/**
 * For example `llama`.
 */
architecture: string | null, 
/**
 * For example `Q4_1`.
 */
quantization: string | null, 
/**
 * The device that really runs it.
 */
device: string | null, 
/**
 * The largest prompt plus reply.
 */
context_window: number | null, 
/**
 * The number of weights.
 */
parameters: number | null, 
/**
 * The file's size.
 */
file_bytes: number | null, 
/**
 * SHA-256 of the file, when known.
 */
sha256: string | null, 
/**
 * Something to know about it.
 */
notice: string | null, 
/**
 * What it needs and what is held.
 */
memory: MemoryView | null, 
/**
 * The name of the model that takes over when what runs has ended.
 */
next: string | null, };

export type NoteView = { 
/**
 * The note.
 */
note_id: string, 
/**
 * The person's words.
 */
content: string, 
/**
 * The stage from which it acts; absent until one is current.
 */
stage_id: string | null, 
/**
 * How far it reaches.
 */
scope: SteerScope, 
/**
 * Whether it was taken back.
 */
withdrawn: boolean, 
/**
 * Where it was shown to the model, oldest first.
 */
applied: Array<AppliedView>, 
/**
 * When it was given.
 */
at: string, };

export type Overview = { 
/**
 * Newest first.
 */
sessions: Array<SessionSummary>, 
/**
 * The model's state.
 */
model: ModelView, 
/**
 * Workflows that Correx brings.
 */
examples: Array<WorkflowView>, 
/**
 * Where everything is kept.
 */
data_dir: string, 
/**
 * This program's version.
 */
version: string, };

export type PartFate = "keep" | "delete";

export type PiecesView = { 
/**
 * Pieces that are done, in this round.
 */
done: number, 
/**
 * Pieces in this round; of the latest that has a finished one.
 */
total: number, 
/**
 * The round of a `reduce`, from 1.
 */
round: number, };

export type PolicyView = { 
/**
 * What was wanted, such as `write /srv/out/report.md`.
 */
action: string, 
/**
 * Whether a person had to agree first.
 */
asks: boolean, 
/**
 * The rule that said so.
 */
rule: string, };

export type ProtocolError = { 
/**
 * The class of the error.
 */
code: ErrorCode, 
/**
 * What happened.
 */
message: string, 
/**
 * What was kept or is unchanged.
 */
kept: string | null, 
/**
 * What to do.
 */
hint: string | null, 
/**
 * The session that it is about, when nobody asked: a run that cannot go on.
 */
session_id?: string, };

export type QuestionCause = "workflow" | "policy" | "existing" | "half_done";

export type QuestionView = { 
/**
 * The question.
 */
prompt: string, 
/**
 * What is to be approved.
 */
artifact: string | null, 
/**
 * Why they are asked.
 */
cause: QuestionCause, 
/**
 * What is done after a yes, when it is something outside of Correx.
 */
action: string | null, 
/**
 * What the file holds that would be replaced.
 */
before: string | null, };

export type ReplyStats = { 
/**
 * Tokens of the prompt.
 */
prompt_tokens: number, 
/**
 * Of those, not evaluated again.
 */
reused_tokens: number, 
/**
 * Tokens of the answer.
 */
output_tokens: number, 
/**
 * Time to the first token.
 */
prompt_ms: number, 
/**
 * Time from the first token to the last.
 */
reply_ms: number, 
/**
 * The device that ran it.
 */
device: string, };

export type RunView = { 
/**
 * Its status.
 */
status: WorkflowStatus, 
/**
 * Why it waits.
 */
waiting_for: WaitReason | null, 
/**
 * Why it ended, when it failed; absent when a person cancelled it.
 */
failure: string | null, 
/**
 * The stage that is current.
 */
current_stage: string | null, 
/**
 * The stages in order.
 */
stages: Array<StageView>, 
/**
 * The steering notes, oldest first.
 */
notes: Array<NoteView>, 
/**
 * The inputs as captured.
 */
inputs: Array<InputView>, 
/**
 * The sequence number of the last event.
 */
last_event: number, 
/**
 * When it started.
 */
started_at: string | null, 
/**
 * When it ended.
 */
ended_at: string | null, };

export type ServerFrame = { "frame": "reply", 
/**
 * The request's number; 0 when it could not be read.
 */
id: number, 
/**
 * The answer.
 */
message: ServerMessage, } | { "frame": "push", 
/**
 * What is new.
 */
message: ServerMessage, };

export type ServerMessage = { "type": "overview" } & Overview | { "type": "workflow" } & WorkflowView | { "type": "copied", 
/**
 * The path of the workflow file.
 */
path: string, } | { "type": "session" } & SessionView | { "type": "router_response", 
/**
 * Which session.
 */
session_id: string, 
/**
 * The answer's turn.
 */
turn_id: string, 
/**
 * The answer.
 */
content: string, 
/**
 * Whether a steering note was stored too.
 */
steering_emitted: boolean, 
/**
 * That note.
 */
note_id: string | null, } | { "type": "draft" } & DraftView | { "type": "blob" } & BlobView | { "type": "events", 
/**
 * One JSON object per event, verbatim, in order.
 */
lines: Array<string>, } | { "type": "context" } & ContextView | { "type": "model" } & ModelView | { "type": "models", 
/**
 * The default first.
 */
models: Array<ModelChoice>, } | { "type": "library" } & LibraryView | { "type": "found_models", 
/**
 * By program and name.
 */
models: Array<FoundModel>, } | { "type": "download" } & DownloadView | { "type": "download_gone", 
/**
 * Which one.
 */
id: string, } | { "type": "installed" } & InstalledModel | { "type": "deletion" } & DeletionView | { "type": "done" } | { "type": "error" } & ProtocolError | { "type": "session_changed" } & SessionSummary | { "type": "session_deleted", 
/**
 * Which one.
 */
session_id: string, } | { "type": "run_changed", 
/**
 * Which session.
 */
session_id: string, 
/**
 * The whole run as it is now.
 */
run: RunView, } | { "type": "turn_changed", 
/**
 * Which session.
 */
session_id: string, 
/**
 * The turn.
 */
turn: TurnView, } | { "type": "thinking_delta", 
/**
 * Which session.
 */
session_id: string, 
/**
 * The answer's turn.
 */
turn_id: string, 
/**
 * Text to append to the turn's thinking.
 */
text: string, 
/**
 * Tokens so far, all of them of the thinking.
 */
tokens: number, } | { "type": "reply_delta", 
/**
 * Which session.
 */
session_id: string, 
/**
 * The answer's turn.
 */
turn_id: string, 
/**
 * Text to append.
 */
text: string, 
/**
 * Tokens so far.
 */
tokens: number, } | { "type": "reply_progress", 
/**
 * Which session.
 */
session_id: string, 
/**
 * The answer's turn.
 */
turn_id: string, 
/**
 * Tokens read.
 */
done: number, 
/**
 * Tokens in all.
 */
total: number, } | { "type": "stage_progress", 
/**
 * Which session.
 */
session_id: string, 
/**
 * Which stage.
 */
stage_id: string, 
/**
 * Which attempt.
 */
attempt: number, 
/**
 * Prompt tokens read.
 */
prompt_done: number, 
/**
 * Prompt tokens in all.
 */
prompt_total: number, 
/**
 * Tokens written.
 */
tokens: number, 
/**
 * The most it may write.
 */
max_tokens: number, 
/**
 * Of those, tokens of what the model thinks before it writes.
 */
thinking_tokens: number, 
/**
 * Text to append to the attempt's thinking.
 */
thinking: string, 
/**
 * Text to append to the attempt's draft.
 */
text: string, };

export type SessionSummary = { 
/**
 * The session.
 */
session_id: string, 
/**
 * For people.
 */
title: string, 
/**
 * The workflow's name; absent for a plain chat.
 */
workflow: string | null, 
/**
 * The run's status; IDLE for a plain chat or before the start.
 */
status: WorkflowStatus, 
/**
 * Why a paused run waits.
 */
waiting_for: WaitReason | null, 
/**
 * The current stage's title.
 */
current_stage: string | null, 
/**
 * Stages done.
 */
stages_done: number, 
/**
 * Stages in all.
 */
stages_total: number, 
/**
 * When something last happened.
 */
updated_at: string, };

export type SessionView = { 
/**
 * Its row in the list.
 */
summary: SessionSummary, 
/**
 * The run; absent for a plain chat.
 */
run: RunView | null, 
/**
 * The conversation's current branch, oldest first.
 */
turns: Array<TurnView>, 
/**
 * What the next answer's prompt holds, without a new message.
 */
context: ContextView | null, };

export type StageSpecView = { 
/**
 * Its id.
 */
stage_id: string, 
/**
 * For people.
 */
title: string, 
/**
 * `generate`, `approve`, ….
 */
kind: string, };

export type StageStatus = "pending" | "running" | "waiting" | "done" | "failed" | "cancelled" | "skipped";

export type StageView = { 
/**
 * Its id.
 */
stage_id: string, 
/**
 * For people.
 */
title: string, 
/**
 * `generate`, `approve`, ….
 */
kind: string, 
/**
 * Its status.
 */
status: StageStatus, 
/**
 * The latest attempt; 0 before the first.
 */
attempt: number, 
/**
 * When the first attempt began.
 */
started_at: string | null, 
/**
 * From start to end, once it ended.
 */
duration_ms: number | null, 
/**
 * Words in what it produced.
 */
words: number | null, 
/**
 * Tokens in what it produced.
 */
output_tokens: number | null, 
/**
 * What it produced.
 */
artifacts: Array<ArtifactView>, 
/**
 * What policy said of what it wants to do, in its latest attempt.
 */
policy: Array<PolicyView>, 
/**
 * What it did outside of Correx, or began to do, oldest first.
 */
effects: Array<EffectView>, 
/**
 * Of a `map` or `reduce`, once a piece is done: how far it is.
 */
pieces: PiecesView | null, 
/**
 * Attempts that were put aside or refused.
 */
drafts: Array<AttemptView>, 
/**
 * What the model thought before it wrote what the stage produced.
 */
thinking: ThoughtView | null, 
/**
 * What a person is asked; only while they are.
 */
question: QuestionView | null, 
/**
 * Why it failed.
 */
error: string | null, 
/**
 * What the model was shown for the latest attempt.
 */
context: ContextView | null, };

export type SteerScope = "stage" | "onward" | "run";

export type SteerTarget = { 
/**
 * The stage; absent: the current one, or the next to run.
 */
stage_id: string | null, 
/**
 * How far it reaches from there.
 */
scope: SteerScope, };

export type SwitchTime = "after_run" | "now";

export type ThinkingView = { 
/**
 * Its text.
 */
text: string, 
/**
 * Its tokens.
 */
tokens: number, };

export type ThoughtView = { 
/**
 * Its text's address.
 */
hash: string, 
/**
 * Its tokens.
 */
tokens: number, };

export type TurnRole = "USER" | "ROUTER";

export type TurnStatus = "pending" | "complete" | "stopped" | "failed";

export type TurnView = { 
/**
 * The turn.
 */
turn_id: string, 
/**
 * Who speaks.
 */
role: TurnRole, 
/**
 * Of a person's turn: only talk, or also a note.
 */
mode: ChatMode, 
/**
 * The text.
 */
content: string, 
/**
 * What the model thought before it; absent when it did not.
 */
thinking: ThinkingView | null, 
/**
 * How far it is.
 */
status: TurnStatus, 
/**
 * Why it failed.
 */
error: ProtocolError | null, 
/**
 * The note that a steering turn became.
 */
note_id: string | null, 
/**
 * When it was said.
 */
at: string, 
/**
 * How the answer was made; absent for a person's turn and while it is being written.
 */
stats: ReplyStats | null, };

export type WaitReason = "person" | "approval" | "interrupted";

export type WorkflowChoice = { "kind": "example", 
/**
 * Its name in the overview.
 */
name: string, } | { "kind": "file", 
/**
 * Its path.
 */
path: string, } | { "kind": "source", 
/**
 * TOML.
 */
text: string, };

export type WorkflowStatus = "IDLE" | "RUNNING" | "PAUSED" | "COMPLETED" | "FAILED";

export type WorkflowView = { 
/**
 * The name to choose it by, when it is an example.
 */
example: string | null, 
/**
 * Its own name.
 */
name: string, 
/**
 * What it does.
 */
description: string, 
/**
 * What it needs.
 */
inputs: Array<InputSpecView>, 
/**
 * Its stages in order.
 */
stages: Array<StageSpecView>, };
