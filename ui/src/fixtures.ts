/** Values of the wire for tests, each with only what the test cares about changed. */
import type { QuestionView, RunView, SessionView, StageView, TurnView } from './wire';

const AT = '2026-11-30T10:00:00Z';

export function aStage(stage_id: string, change: Partial<StageView> = {}): StageView {
  return {
    stage_id,
    title: stage_id.charAt(0).toUpperCase() + stage_id.slice(1),
    kind: 'generate',
    status: 'pending',
    attempt: 0,
    started_at: null,
    duration_ms: null,
    words: null,
    output_tokens: null,
    artifacts: [],
    policy: [],
    effects: [],
    pieces: null,
    drafts: [],
    thinking: null,
    question: null,
    error: null,
    context: null,
    ...change,
  };
}

export function aQuestion(change: Partial<QuestionView> = {}): QuestionView {
  return {
    prompt: 'Send it?',
    artifact: null,
    cause: 'workflow',
    action: null,
    before: null,
    ...change,
  };
}

export function aRun(change: Partial<RunView> = {}): RunView {
  return {
    status: 'RUNNING',
    waiting_for: null,
    failure: null,
    current_stage: null,
    stages: [],
    notes: [],
    inputs: [],
    last_event: 1,
    started_at: AT,
    ended_at: null,
    ...change,
  };
}

export function aTurn(change: Partial<TurnView> = {}): TurnView {
  return {
    turn_id: 't',
    role: 'USER',
    mode: 'CHAT',
    content: '',
    thinking: null,
    status: 'complete',
    error: null,
    note_id: null,
    at: AT,
    stats: null,
    ...change,
  };
}

export function aSession(change: Partial<SessionView> = {}): SessionView {
  return {
    summary: {
      session_id: 's',
      title: 'A session',
      workflow: null,
      status: 'IDLE',
      waiting_for: null,
      current_stage: null,
      stages_done: 0,
      stages_total: 0,
      updated_at: AT,
    },
    run: null,
    turns: [],
    context: null,
    ...change,
  };
}
