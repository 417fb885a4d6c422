/** What the window knows, and how it changes. Pure: every function returns a new state. */
import type {
  ModelView,
  Overview,
  ProtocolError,
  RunView,
  ServerMessage,
  SessionSummary,
  SessionView,
  TurnView,
  WorkflowView,
} from '../wire';

export type Phase =
  { kind: 'starting' } | { kind: 'ready' } | { kind: 'failed'; error: ProtocolError };

export interface AppState {
  readonly phase: Phase;
  /** Newest first. */
  readonly sessions: readonly SessionSummary[];
  readonly model: ModelView | null;
  readonly examples: readonly WorkflowView[];
  readonly dataDir: string;
  readonly version: string;
  /** Sessions that were opened since the start, by id. */
  readonly open: Readonly<Record<string, OpenSession>>;
}

export interface OpenSession {
  readonly view: SessionView;
  /** Answers being made, by turn. */
  readonly replies: Readonly<Record<string, ReplyLive>>;
  /** Attempts being made, by stage. */
  readonly attempts: Readonly<Record<string, AttemptLive>>;
}

/** How far an answer is that is being made. */
export interface ReplyLive {
  readonly promptDone: number;
  readonly promptTotal: number;
  readonly tokens: number;
}

/** How far a stage's attempt is that is being made. */
export interface AttemptLive {
  readonly attempt: number;
  readonly promptDone: number;
  readonly promptTotal: number;
  readonly tokens: number;
  readonly maxTokens: number;
  /** Of those written, tokens of the thinking. */
  readonly thinkingTokens: number;
  /** The thinking as far as this window saw it. */
  readonly thinking: string;
  /** The draft as far as this window saw it being written. */
  readonly text: string;
}

const NO_REPLY: ReplyLive = { promptDone: 0, promptTotal: 0, tokens: 0 };

export function initialState(): AppState {
  return {
    phase: { kind: 'starting' },
    sessions: [],
    model: null,
    examples: [],
    dataDir: '',
    version: '',
    open: {},
  };
}

export function applyOverview(state: AppState, overview: Overview): AppState {
  return {
    ...state,
    phase: { kind: 'ready' },
    sessions: newestFirst(overview.sessions),
    model: overview.model,
    examples: overview.examples,
    dataDir: overview.data_dir,
    version: overview.version,
  };
}

/** Puts a whole session in place of whatever was known of it. */
export function applySession(state: AppState, view: SessionView): AppState {
  const id = view.summary.session_id;
  const known = state.open[id];
  const session: OpenSession = {
    view,
    replies: known ? keepReplies(known.replies, view.turns) : {},
    attempts: known && view.run ? keepAttempts(known.attempts, view.run) : {},
  };
  return withSummary({ ...state, open: { ...state.open, [id]: session } }, view.summary);
}

/** Folds one push into the state. What belongs to a session that is not open only changes the list. */
export function applyPush(state: AppState, message: ServerMessage): AppState {
  switch (message.type) {
    case 'model': {
      const { type: _type, ...model } = message;
      return { ...state, model };
    }
    case 'session_changed': {
      const { type: _type, ...summary } = message;
      return inSession(withSummary(state, summary), summary.session_id, (session) => ({
        ...session,
        view: { ...session.view, summary },
      }));
    }
    case 'session_deleted': {
      const { [message.session_id]: _gone, ...open } = state.open;
      return {
        ...state,
        open,
        sessions: state.sessions.filter((row) => row.session_id !== message.session_id),
      };
    }
    case 'run_changed':
      return inSession(state, message.session_id, (session) => ({
        ...session,
        view: { ...session.view, run: message.run },
        attempts: keepAttempts(session.attempts, message.run),
      }));
    case 'turn_changed':
      return inSession(state, message.session_id, (session) => {
        const turns = withTurn(session.view.turns, message.turn);
        return {
          ...session,
          view: { ...session.view, turns },
          replies: keepReplies(session.replies, turns),
        };
      });
    case 'thinking_delta':
      return withPiece(state, message, (turn) => {
        const text = (turn.thinking?.text ?? '') + message.text;
        return { ...turn, thinking: { text, tokens: message.tokens } };
      });
    case 'reply_delta':
      return withPiece(state, message, (turn) => ({
        ...turn,
        content: turn.content + message.text,
      }));
    case 'reply_progress':
      return inSession(state, message.session_id, (session) => {
        const live = session.replies[message.turn_id] ?? NO_REPLY;
        const next = { ...live, promptDone: message.done, promptTotal: message.total };
        return { ...session, replies: { ...session.replies, [message.turn_id]: next } };
      });
    case 'stage_progress':
      return inSession(state, message.session_id, (session) => {
        const known = session.attempts[message.stage_id];
        if (known && known.attempt > message.attempt) return session;
        const before = known?.attempt === message.attempt ? known : null;
        const next: AttemptLive = {
          attempt: message.attempt,
          promptDone: message.prompt_done,
          promptTotal: message.prompt_total,
          tokens: message.tokens,
          maxTokens: message.max_tokens,
          thinkingTokens: message.thinking_tokens,
          thinking: (before?.thinking ?? '') + message.thinking,
          text: (before?.text ?? '') + message.text,
        };
        return { ...session, attempts: { ...session.attempts, [message.stage_id]: next } };
      });
    // The window has no page for downloads yet.
    case 'download':
    case 'download_gone':
      return state;
    // Replies are taken by whoever asked.
    case 'overview':
    case 'workflow':
    case 'copied':
    case 'session':
    case 'router_response':
    case 'draft':
    case 'blob':
    case 'models':
    case 'library':
    case 'found_models':
    case 'installed':
    case 'deletion':
    case 'events':
    case 'context':
    case 'done':
    case 'error':
      return state;
  }
}

/** Adds a piece of an answer that is being made; one that comes after its end changes nothing. */
function withPiece(
  state: AppState,
  piece: { session_id: string; turn_id: string; tokens: number },
  change: (turn: TurnView) => TurnView,
): AppState {
  return inSession(state, piece.session_id, (session) => {
    const turn = session.view.turns.find((each) => each.turn_id === piece.turn_id);
    if (!turn || turn.status !== 'pending') return session;
    const live = session.replies[piece.turn_id] ?? NO_REPLY;
    return {
      ...session,
      view: { ...session.view, turns: withTurn(session.view.turns, change(turn)) },
      replies: { ...session.replies, [turn.turn_id]: { ...live, tokens: piece.tokens } },
    };
  });
}

function inSession(
  state: AppState,
  id: string,
  change: (session: OpenSession) => OpenSession,
): AppState {
  const session = state.open[id];
  if (!session) return state;
  const next = change(session);
  return next === session ? state : { ...state, open: { ...state.open, [id]: next } };
}

function withSummary(state: AppState, summary: SessionSummary): AppState {
  const others = state.sessions.filter((row) => row.session_id !== summary.session_id);
  return { ...state, sessions: newestFirst([...others, summary]) };
}

function newestFirst(sessions: readonly SessionSummary[]): SessionSummary[] {
  return [...sessions].sort((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at));
}

/**
 * Replaces the turn with the same id, or adds it at the end. A message has one answer here: a new
 * answer that follows an answer is a retry and takes its place.
 */
function withTurn(turns: readonly TurnView[], turn: TurnView): TurnView[] {
  const at = turns.findLastIndex((each) => each.turn_id === turn.turn_id);
  if (at !== -1) return turns.with(at, turn);
  const retried = turn.role === 'ROUTER' && turns.at(-1)?.role === 'ROUTER';
  return [...(retried ? turns.slice(0, -1) : turns), turn];
}

function keepReplies(
  replies: Readonly<Record<string, ReplyLive>>,
  turns: readonly TurnView[],
): Readonly<Record<string, ReplyLive>> {
  const pending = new Set(
    turns.filter((turn) => turn.status === 'pending').map((turn) => turn.turn_id),
  );
  return Object.fromEntries(Object.entries(replies).filter(([id]) => pending.has(id)));
}

/** A draft lives as long as its stage runs the attempt that writes it. */
function keepAttempts(
  attempts: Readonly<Record<string, AttemptLive>>,
  run: RunView,
): Readonly<Record<string, AttemptLive>> {
  const running = new Map(
    run.stages
      .filter((stage) => stage.status === 'running')
      .map((stage) => [stage.stage_id, stage.attempt]),
  );
  return Object.fromEntries(
    Object.entries(attempts).filter(([id, live]) => live.attempt >= (running.get(id) ?? Infinity)),
  );
}
