/** A made-up engine: answers every request from fixtures, and streams one answer. */
import type { ClientMessage, ContextView, ServerMessage, TurnView } from '../src/wire';
import {
  contextView,
  examples,
  failedModel,
  model,
  overview,
  sessionView,
  texts,
} from './fixtures';

export type Scene =
  'running' | 'thinking' | 'approval' | 'chat' | 'empty' | 'no-model' | 'no-engine' | 'loading';

export interface PreviewEngine {
  connect(): Promise<null>;
  request(message: ClientMessage): Promise<ServerMessage>;
  onPush(callback: (message: ServerMessage) => void): void;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export function makeEngine(scene: string): PreviewEngine {
  const listeners: ((message: ServerMessage) => void)[] = [];
  const push = (message: ServerMessage) => listeners.forEach((listener) => listener(message));
  const sessions = new Map(
    overview(scene).sessions.map((summary) => [summary.session_id, sessionView(summary)]),
  );
  /** Workflow files that were made from examples. */
  const copies = new Set(['/home/ada/workflows/brief/workflow.toml']);
  let stopped = false;

  async function answer(sessionId: string, asked: string, mode: TurnView['mode']) {
    stopped = false;
    const at = new Date().toISOString();
    const noteId = mode === 'STEERING' ? `note-${Date.now()}` : null;
    const user: TurnView = {
      turn_id: `u-${Date.now()}`,
      role: 'USER',
      mode,
      content: asked,
      thinking: null,
      status: 'complete',
      error: null,
      note_id: noteId,
      at,
      stats: null,
    };
    const session = sessions.get(sessionId);
    if (noteId && session?.run) {
      const note = {
        note_id: noteId,
        content: asked,
        stage_id: session.run.current_stage,
        scope: 'onward' as const,
        withdrawn: false,
        applied: [],
        at,
      };
      session.run = { ...session.run, notes: [...session.run.notes, note] };
      push({ type: 'run_changed', session_id: sessionId, run: session.run });
    }
    push({ type: 'turn_changed', session_id: sessionId, turn: user });
    const turn: TurnView = {
      ...user,
      turn_id: `r-${Date.now()}`,
      role: 'ROUTER',
      mode: 'CHAT',
      content: '',
      status: 'pending',
      note_id: null,
    };
    push({ type: 'turn_changed', session_id: sessionId, turn });
    for (let done = 0; done <= 1204 && !stopped; done += 172) {
      push({
        type: 'reply_progress',
        session_id: sessionId,
        turn_id: turn.turn_id,
        done,
        total: 1204,
      });
      await pause(60);
    }
    let thinking: TurnView['thinking'] = null;
    if (scene === 'thinking') {
      let thought = '';
      for (const [index, text] of texts.thinking.split(/(?<=\s)/).entries()) {
        if (stopped) break;
        const tokens = index + 1;
        thought += text;
        thinking = { text: thought, tokens };
        const turn_id = turn.turn_id;
        push({ type: 'thinking_delta', session_id: sessionId, turn_id, text, tokens });
        await pause(60);
      }
    }
    const words = texts.reply.split(/(?<=\s)/);
    let content = '';
    for (const [index, text] of words.entries()) {
      if (stopped) break;
      content += text;
      push({
        type: 'reply_delta',
        session_id: sessionId,
        turn_id: turn.turn_id,
        text,
        tokens: index + 1,
      });
      await pause(30);
    }
    const stats = {
      prompt_tokens: 1204,
      reused_tokens: 1102,
      output_tokens: words.length,
      prompt_ms: 420,
      reply_ms: words.length * 30,
      device: 'CPU',
    };
    const status = stopped ? ('stopped' as const) : ('complete' as const);
    push({
      type: 'turn_changed',
      session_id: sessionId,
      turn: { ...turn, content, thinking, status, stats },
    });
    return { turn, content, noteId };
  }

  return {
    async connect() {
      if (scene === 'no-engine') {
        await pause(50);
        throw {
          code: 'storage',
          message: 'The data directory /home/ada/.local/share/correx cannot be written.',
          kept: 'Nothing was changed.',
          hint: 'Give yourself write access to it, or start Correx with CORREX_DATA_DIR set to another folder.',
        };
      }
      return null;
    },
    onPush(callback) {
      listeners.push(callback);
      if (scene === 'running') void draftAlong(push);
      if (scene === 'thinking') void thinkAlong(push);
    },
    async request(message): Promise<ServerMessage> {
      switch (message.type) {
        case 'get_overview':
          return { type: 'overview', ...overview(scene) };
        case 'open_session': {
          const view = sessions.get(message.session_id);
          if (!view) break;
          return { type: 'session', ...view };
        }
        case 'create_session': {
          const summary = {
            session_id: `new-${Date.now()}`,
            title: message.title ?? 'New chat',
            workflow: null,
            status: 'IDLE' as const,
            waiting_for: null,
            current_stage: null,
            stages_done: 0,
            stages_total: 0,
            updated_at: new Date().toISOString(),
          };
          const view = sessionView(summary);
          sessions.set(summary.session_id, view);
          return { type: 'session', ...view };
        }
        case 'check_workflow':
          if (message.workflow.kind === 'file' && copies.has(message.workflow.path)) {
            return { type: 'workflow', ...examples[0]!, example: null };
          }
          if (message.workflow.kind === 'file') {
            return {
              type: 'error',
              code: 'bad_workflow',
              message:
                'brief.toml, line 12, column 1: the key `promt` is not known here.\n  12 | promt = "Write a brief"',
              kept: null,
              hint: 'Did you mean `prompt`?',
            };
          }
          return { type: 'workflow', ...examples[0]! };
        case 'copy_example': {
          const path = `${message.folder}/${message.name}/workflow.toml`;
          if (copies.has(path)) {
            return {
              type: 'error',
              code: 'bad_input',
              message: `${path} is there already, and nothing is overwritten; give another place`,
              kept: 'Everything that was there is unchanged.',
              hint: null,
            };
          }
          copies.add(path);
          return { type: 'copied', path };
        }
        case 'chat_input': {
          const { turn, content, noteId } = await answer(
            message.session_id,
            message.text,
            message.mode,
          );
          return {
            type: 'router_response',
            session_id: message.session_id,
            turn_id: turn.turn_id,
            content,
            steering_emitted: noteId !== null,
            note_id: noteId,
          };
        }
        case 'stop_reply':
          stopped = true;
          return { type: 'done' };
        case 'measure_draft':
          return { type: 'draft', ...measured(message.text) };
        case 'read_blob':
          return { type: 'blob', hash: message.hash, text: texts.artifact };
        case 'read_events':
          return { type: 'events', lines: message.from === 1 ? texts.events : [] };
        case 'read_turn_context':
          return { type: 'context', ...contextView('Router') };
        case 'get_model':
          return { type: 'model', ...(scene === 'no-model' ? failedModel : model) };
        default:
          return { type: 'done' };
      }
      return {
        type: 'error',
        code: 'not_found',
        message: 'There is no such session.',
        kept: null,
        hint: null,
      };
    },
  };
}

function measured(text: string) {
  const context: ContextView = contextView('Router');
  const tokens = Math.ceil(text.length / 4);
  const message = {
    layer: 'L0' as const,
    source: 'message',
    tokens,
    text,
    hash: null,
    dropped: null,
  };
  const grown = {
    ...context,
    entries: [...context.entries, message],
    prompt_tokens: context.prompt_tokens + tokens,
  };
  const over = grown.prompt_tokens - grown.budget_limit;
  return {
    context: grown,
    refusal:
      over > 0
        ? {
            code: 'input_too_long' as const,
            message: `The message is ${over} tokens too long.`,
            kept: null,
            hint: 'Shorten it, or give the text to a workflow as an input.',
          }
        : null,
  };
}

async function thinkAlong(push: (message: ServerMessage) => void) {
  for (const [index, thinking] of texts.thinking.split(/(?<=\s)/).entries()) {
    push({
      type: 'stage_progress',
      session_id: 's-launch',
      stage_id: 'draft',
      attempt: 2,
      prompt_done: 921,
      prompt_total: 921,
      tokens: index + 1,
      max_tokens: 256,
      thinking_tokens: index + 1,
      thinking,
      text: '',
    });
    await pause(index < 20 ? 0 : 200);
  }
}

async function draftAlong(push: (message: ServerMessage) => void) {
  const words = texts.draft.split(/(?<=\s)/);
  for (const [index, text] of words.entries()) {
    push({
      type: 'stage_progress',
      session_id: 's-launch',
      stage_id: 'draft',
      attempt: 2,
      prompt_done: 921,
      prompt_total: 921,
      tokens: index + 1,
      max_tokens: 256,
      thinking_tokens: 0,
      thinking: '',
      text,
    });
    await pause(index < 60 ? 0 : 400);
  }
}
