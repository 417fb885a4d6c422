import { describe, expect, it } from 'vitest';
import { aRun, aSession, aStage, aTurn } from '../fixtures';
import { applyPush, applySession, initialState, type AppState } from './app-state';
import type { ServerMessage } from '../wire';

const opened = (change = {}): AppState => applySession(initialState(), aSession(change));
const fold = (state: AppState, ...messages: ServerMessage[]) => messages.reduce(applyPush, state);
const turns = (state: AppState) => state.open['s']?.view.turns ?? [];

describe('an answer', () => {
  const pending = aTurn({ turn_id: 'r', role: 'ROUTER', status: 'pending' });
  const delta = (text: string, tokens: number): ServerMessage => ({
    type: 'reply_delta',
    session_id: 's',
    turn_id: 'r',
    text,
    tokens,
  });
  const changed = (turn = pending): ServerMessage => ({
    type: 'turn_changed',
    session_id: 's',
    turn,
  });

  it('grows by its deltas', () => {
    const state = fold(opened(), changed(), delta('Hel', 1), delta('lo', 2));
    expect(turns(state).at(-1)?.content).toBe('Hello');
    expect(state.open['s']?.replies['r']?.tokens).toBe(2);
  });

  it('is the whole text of its turn when that changes, whatever was streamed', () => {
    const whole = { ...pending, content: 'Hello there', status: 'complete' as const };
    const state = fold(opened(), changed(), delta('Hel', 1), changed(whole));
    expect(turns(state)).toHaveLength(1);
    expect(turns(state)[0]?.content).toBe('Hello there');
    expect(state.open['s']?.replies).toEqual({});
  });

  it('is not touched by a delta that comes after its end', () => {
    const whole = { ...pending, content: 'Hello', status: 'complete' as const };
    const state = fold(opened(), changed(whole), delta('Hello', 3));
    expect(turns(state)[0]?.content).toBe('Hello');
  });

  it('thinks first, apart from its text', () => {
    const thought = (text: string, tokens: number): ServerMessage => ({
      type: 'thinking_delta',
      session_id: 's',
      turn_id: 'r',
      text,
      tokens,
    });
    const state = fold(
      opened(),
      changed(),
      thought('Two', 1),
      thought(' and', 2),
      delta('Four', 3),
    );
    expect(turns(state).at(-1)).toMatchObject({
      content: 'Four',
      thinking: { text: 'Two and', tokens: 2 },
    });
    expect(state.open['s']?.replies['r']?.tokens).toBe(3);
    const whole = { ...pending, content: 'Four', status: 'complete' as const };
    const ended = fold(state, changed(whole), thought('late', 4));
    expect(turns(ended).at(-1)?.thinking).toBeNull();
  });

  it('shows how much of the prompt was read', () => {
    const state = fold(opened(), changed(), {
      type: 'reply_progress',
      session_id: 's',
      turn_id: 'r',
      done: 320,
      total: 1204,
    });
    expect(state.open['s']?.replies['r']).toMatchObject({ promptDone: 320, promptTotal: 1204 });
  });

  it('takes the place of the answer that was retried', () => {
    const failed = aTurn({ turn_id: 'r', role: 'ROUTER', status: 'failed' });
    const state = fold(
      opened({ turns: [aTurn({ turn_id: 'u' }), failed] }),
      changed({ ...pending, turn_id: 'again' }),
    );
    expect(turns(state).map((turn) => turn.turn_id)).toEqual(['u', 'again']);
  });

  it('leaves every other turn the very same object', () => {
    const before = fold(opened({ turns: [aTurn({ turn_id: 'u' })] }), changed());
    const after = applyPush(before, delta('x', 1));
    expect(turns(after)[0]).toBe(turns(before)[0]);
  });
});

describe('a stage’s draft', () => {
  const progress = (attempt: number, text: string, thinking = ''): ServerMessage => ({
    type: 'stage_progress',
    session_id: 's',
    stage_id: 'draft',
    attempt,
    prompt_done: 10,
    prompt_total: 10,
    tokens: thinking.length + text.length,
    max_tokens: 256,
    thinking_tokens: thinking.length,
    thinking,
    text,
  });
  const running = aRun({ stages: [aStage('draft', { status: 'running', attempt: 1 })] });
  const draft = (state: AppState) => state.open['s']?.attempts['draft'];

  it('is appended to while the attempt goes on', () => {
    expect(draft(fold(opened({ run: running }), progress(1, 'a'), progress(1, 'b')))?.text).toBe(
      'ab',
    );
  });

  it('has its thinking apart', () => {
    const state = fold(opened({ run: running }), progress(1, '', 'hm'), progress(1, 'a'));
    expect(draft(state)).toMatchObject({ thinking: 'hm', text: 'a', tokens: 1 });
    expect(draft(fold(state, progress(2, '', 'again')))).toMatchObject({
      thinking: 'again',
      text: '',
    });
  });

  it('begins anew with the next attempt, and late words of the old one are ignored', () => {
    const state = fold(
      opened({ run: running }),
      progress(1, 'old'),
      progress(2, 'new'),
      progress(1, 'late'),
    );
    expect(draft(state)).toMatchObject({ attempt: 2, text: 'new' });
  });

  it('goes when the stage is over', () => {
    const over = aRun({ stages: [aStage('draft', { status: 'done', attempt: 1 })] });
    const state = fold(opened({ run: running }), progress(1, 'a'), {
      type: 'run_changed',
      session_id: 's',
      run: over,
    });
    expect(draft(state)).toBeUndefined();
    expect(state.open['s']?.view.run).toEqual(over);
  });
});

describe('the list of sessions', () => {
  const row = (session_id: string, updated_at: string): ServerMessage => ({
    type: 'session_changed',
    ...aSession().summary,
    session_id,
    updated_at,
  });

  it('has the one that changed last first', () => {
    const state = fold(
      initialState(),
      row('a', '2026-11-30T10:00:00Z'),
      row('b', '2026-11-30T11:00:00Z'),
      row('a', '2026-11-30T12:00:00Z'),
    );
    expect(state.sessions.map((each) => each.session_id)).toEqual(['a', 'b']);
  });

  it('loses a deleted session, open or not', () => {
    const state = fold(opened(), { type: 'session_deleted', session_id: 's' });
    expect(state.sessions).toEqual([]);
    expect(state.open).toEqual({});
  });
});

it('ignores what belongs to a session that is not open', () => {
  const state = opened();
  const next = applyPush(state, { type: 'run_changed', session_id: 'other', run: aRun() });
  expect(next).toBe(state);
});
