import { createContext } from 'svelte';
import {
  applyOverview,
  applyPush,
  applySession,
  initialState,
  type AppState,
  type OpenSession,
} from '../lib/app-state';
import { freshMessageId } from '../lib/ids';
import { ask, toProtocolError, type Arrival, type Transport } from '../lib/transport';
import type {
  ChatMode,
  ClientMessage,
  ContextView,
  InputValue,
  ModelChoice,
  ProtocolError,
  SteerTarget,
  SwitchTime,
  WorkflowChoice,
  WorkflowView,
} from '../wire';

/** How long a deletion can be undone, in milliseconds. Only then is the engine told. */
export const UNDO_MS = 8000;

/** Where an error belongs, so that it is shown beside what caused it until it is dismissed. */
export type Place = 'sessions' | 'chat' | 'composer' | 'run';

/** A message on its way. */
export interface Outgoing {
  readonly id: string;
  readonly sessionId: string;
  readonly text: string;
  readonly mode: ChatMode;
}

interface PendingDeletion {
  readonly sessionId: string;
  readonly title: string;
}

/** The window's state and everything a person can do in it. */
export class App {
  #state = $state.raw<AppState>(initialState());
  #transport: Transport;
  #listening = false;
  #deletionTimer: ReturnType<typeof setTimeout> | undefined;

  /** The session that is shown. */
  selectedId = $state<string | null>(null);
  /** Errors not dismissed yet, by place. */
  problems = $state.raw<Partial<Record<Place, ProtocolError>>>({});
  /** The session that is about to be deleted. */
  deletion = $state.raw<PendingDeletion | null>(null);
  /** Messages on their way that no turn shows yet: one answer is written at a time. */
  outbox = $state.raw<readonly Outgoing[]>([]);
  /** A polite word for screen readers; set when an answer is finished. */
  announcement = $state('');

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  get state(): AppState {
    return this.#state;
  }

  /** The session that is shown, once it has been read. */
  get session(): OpenSession | null {
    return this.selectedId === null ? null : (this.#state.open[this.selectedId] ?? null);
  }

  /** The sessions to list. */
  get sessions() {
    return this.#state.sessions.filter((row) => row.session_id !== this.deletion?.sessionId);
  }

  /** Connects, subscribes, reads what is there. Called again by Retry. */
  async start(): Promise<void> {
    this.#state = { ...this.#state, phase: { kind: 'starting' } };
    try {
      await this.#transport.connect();
      if (!this.#listening) {
        await this.#transport.onPush((arrival) => this.#hear(arrival));
        this.#listening = true;
      }
      await this.#readOverview();
      const first = this.#state.sessions[0];
      if (this.selectedId === null && first) await this.select(first.session_id);
    } catch (thrown) {
      this.#state = {
        ...this.#state,
        phase: { kind: 'failed', error: toProtocolError(thrown) },
      };
    }
  }

  async select(sessionId: string): Promise<void> {
    this.selectedId = sessionId;
    this.problems = {};
    if (!this.#state.open[sessionId]) await this.#try('chat', () => this.#read(sessionId));
  }

  /** Makes a session and returns its id. Throws when it cannot be made: the dialog shows why. */
  async create(
    workflow: WorkflowChoice | null,
    inputs: InputValue[],
    title: string | null = null,
  ): Promise<string> {
    const reply = await ask(
      this.#transport,
      { type: 'create_session', title, workflow, inputs },
      'session',
    );
    this.#state = applySession(this.#state, reply);
    return reply.summary.session_id;
  }

  async newChat(): Promise<void> {
    await this.#try('sessions', async () => this.select(await this.create(null, [])));
  }

  /** Reads and checks a workflow file. Throws with the line and column of its mistake. */
  async checkWorkflow(workflow: WorkflowChoice): Promise<WorkflowView> {
    return ask(this.#transport, { type: 'check_workflow', workflow }, 'workflow');
  }

  /**
   * Copies an example as the beginning of a workflow of one's own, and returns the path of its
   * file. Throws when it cannot: the dialog shows why.
   */
  async copyExample(example: string, folder: string, name: string): Promise<string> {
    const message: ClientMessage = { type: 'copy_example', example, folder, name };
    return (await ask(this.#transport, message, 'copied')).path;
  }

  async rename(sessionId: string, title: string): Promise<void> {
    await this.#try('sessions', async () => {
      const message: ClientMessage = { type: 'rename_session', session_id: sessionId, title };
      const reply = await ask(this.#transport, message, 'session');
      this.#state = applySession(this.#state, reply);
    });
  }

  /** Takes the session off the list; the engine deletes it when the time for undo is over. */
  async remove(sessionId: string): Promise<void> {
    await this.confirmDeletion();
    const row = this.#state.sessions.find((each) => each.session_id === sessionId);
    if (!row) return;
    this.deletion = { sessionId, title: row.title };
    if (this.selectedId === sessionId) {
      const next = this.sessions[0];
      this.selectedId = null;
      if (next) await this.select(next.session_id);
    }
    this.#deletionTimer = setTimeout(() => void this.confirmDeletion(), UNDO_MS);
  }

  undoDeletion(): void {
    clearTimeout(this.#deletionTimer);
    const undone = this.deletion;
    this.deletion = null;
    if (undone) void this.select(undone.sessionId);
  }

  async confirmDeletion(): Promise<void> {
    clearTimeout(this.#deletionTimer);
    const pending = this.deletion;
    if (!pending) return;
    await this.#do('sessions', { type: 'delete_session', session_id: pending.sessionId });
    this.deletion = null;
  }

  startRun = (id: string) => this.#do('run', { type: 'start_run', session_id: id });
  pauseRun = (id: string) => this.#do('run', { type: 'pause_run', session_id: id });
  resumeRun = (id: string) => this.#do('run', { type: 'resume_run', session_id: id });
  cancelRun = (id: string) => this.#do('run', { type: 'cancel_run', session_id: id });
  stopReply = (id: string) => this.#do('chat', { type: 'stop_reply', session_id: id });

  /** `edited` takes the place of the text that the stage shows. */
  approve = (id: string, stageId: string, edited: string | null = null) =>
    this.#do('run', { type: 'approve', session_id: id, stage_id: stageId, comment: null, edited });

  rerun = (id: string, stageId: string) =>
    this.#do('run', { type: 'rerun', session_id: id, stage_id: stageId });

  deny = (id: string, stageId: string, reason: string | null) =>
    this.#do('run', { type: 'deny', session_id: id, stage_id: stageId, reason });

  withdrawNote = (id: string, noteId: string) =>
    this.#do('run', { type: 'withdraw_note', session_id: id, note_id: noteId });

  /** Returns whether the note says so now. */
  async editNote(id: string, noteId: string, content: string): Promise<boolean> {
    await this.#do('run', { type: 'edit_note', session_id: id, note_id: noteId, content });
    return this.problems.run === undefined || this.problems.run === null;
  }

  /**
   * Says something to the router. Returns whether the message was taken: an answer that fails
   * later is shown with its turn, and the message is not given back to be sent twice.
   */
  async say(
    sessionId: string,
    text: string,
    mode: ChatMode,
    target: SteerTarget,
  ): Promise<'taken' | 'refused'> {
    const before = this.#userTurns(sessionId);
    const id = freshMessageId();
    this.outbox = [...this.outbox, { id, sessionId, text, mode }];
    this.dismiss('composer');
    try {
      await this.#transport.request({
        type: 'chat_input',
        session_id: sessionId,
        text,
        mode,
        target,
        client_message_id: id,
      });
      return 'taken';
    } catch (thrown) {
      if (this.#userTurns(sessionId) > before) return 'taken';
      this.#report('composer', toProtocolError(thrown));
      return 'refused';
    } finally {
      this.outbox = this.outbox.filter((each) => each.id !== id);
    }
  }

  async retryReply(sessionId: string): Promise<void> {
    this.dismiss('chat');
    try {
      await this.#transport.request({ type: 'retry_reply', session_id: sessionId });
    } catch (thrown) {
      const last = this.#state.open[sessionId]?.view.turns.at(-1);
      if (last?.status !== 'failed') this.#report('chat', toProtocolError(thrown));
    }
  }

  async listModels(): Promise<readonly ModelChoice[]> {
    return (await ask(this.#transport, { type: 'list_models' }, 'models')).models;
  }

  /** Changes the model. Throws when it is refused: the menu shows why. */
  useModel = (model: string, when: SwitchTime | null) =>
    this.#model({ type: 'use_model', model, when });
  loadModel = () => this.#model({ type: 'load_model' });
  unloadModel = () => this.#model({ type: 'unload_model' });

  async measure(sessionId: string, text: string, mode: ChatMode) {
    const message: ClientMessage = { type: 'measure_draft', session_id: sessionId, text, mode };
    return ask(this.#transport, message, 'draft');
  }

  async readBlob(sessionId: string, hash: string): Promise<string> {
    const message: ClientMessage = { type: 'read_blob', session_id: sessionId, hash };
    return (await ask(this.#transport, message, 'blob')).text;
  }

  /** The text, or null when it cannot be read; why not is shown with the run. */
  async textToEdit(sessionId: string, hash: string): Promise<string | null> {
    let text: string | null = null;
    await this.#try('run', async () => {
      text = await this.readBlob(sessionId, hash);
    });
    return text;
  }

  async readEvents(sessionId: string, from: number): Promise<string[]> {
    const message: ClientMessage = { type: 'read_events', session_id: sessionId, from };
    return (await ask(this.#transport, message, 'events')).lines;
  }

  async readTurnContext(sessionId: string, turnId: string): Promise<ContextView> {
    const message: ClientMessage = {
      type: 'read_turn_context',
      session_id: sessionId,
      turn_id: turnId,
    };
    return ask(this.#transport, message, 'context');
  }

  dismiss(place: Place): void {
    const { [place]: _dismissed, ...others } = this.problems;
    this.problems = others;
  }

  #hear(arrival: Arrival): void {
    if (arrival.kind === 'missed') {
      void this.#readAgain();
      return;
    }
    const { message } = arrival;
    if (message.type === 'turn_changed') {
      const { role, status, content } = message.turn;
      if (role === 'USER') this.#arrived(message.session_id, content);
      else if (status === 'complete' && message.session_id === this.selectedId) {
        this.announcement = content.slice(0, 2000);
      }
    }
    this.#state = applyPush(this.#state, message);
    if (message.type === 'session_deleted' && message.session_id === this.selectedId) {
      this.selectedId = null;
      const next = this.sessions[0];
      if (next) void this.select(next.session_id);
    }
  }

  /** The oldest such message is a turn now. */
  #arrived(sessionId: string, text: string): void {
    const sent = this.outbox.find((each) => each.sessionId === sessionId && each.text === text);
    if (sent) this.outbox = this.outbox.filter((each) => each !== sent);
  }

  async #readOverview(): Promise<void> {
    const overview = await ask(this.#transport, { type: 'get_overview' }, 'overview');
    this.#state = applyOverview(this.#state, overview);
  }

  async #readAgain(): Promise<void> {
    await this.#try('sessions', async () => {
      await this.#readOverview();
      for (const id of Object.keys(this.#state.open)) await this.#read(id);
    });
  }

  async #read(sessionId: string): Promise<void> {
    const message: ClientMessage = { type: 'open_session', session_id: sessionId };
    this.#state = applySession(this.#state, await ask(this.#transport, message, 'session'));
  }

  #userTurns(sessionId: string): number {
    const turns = this.#state.open[sessionId]?.view.turns ?? [];
    return turns.filter((turn) => turn.role === 'USER').length;
  }

  async #model(message: ClientMessage): Promise<void> {
    this.#state = applyPush(this.#state, await ask(this.#transport, message, 'model'));
  }

  #do(place: Place, message: ClientMessage): Promise<void> {
    return this.#try(place, () => this.#transport.request(message));
  }

  async #try(place: Place, action: () => Promise<unknown>): Promise<void> {
    this.dismiss(place);
    try {
      await action();
    } catch (thrown) {
      this.#report(place, toProtocolError(thrown));
    }
  }

  #report(place: Place, error: ProtocolError): void {
    this.problems = { ...this.problems, [place]: error };
  }
}

export const [useApp, provideApp] = createContext<App>();
