import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { RequestFailure } from '../lib/transport';
import type { DraftView } from '../wire';
import { Measure } from './measure.svelte';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const draft = (prompt_tokens: number): DraftView => ({
  context: {
    title: 'Router',
    entries: [],
    template_tokens: 0,
    prompt_tokens,
    reply_reserve: 0,
    budget_limit: 100,
    reused_tokens: null,
    exact: true,
  },
  refusal: null,
});

it('counts once for a burst of typing, and counts what was typed last', async () => {
  const request = vi.fn(() => Promise.resolve(draft(3)));
  const measure = new Measure(request);
  for (const text of ['a', 'ab', 'abc']) measure.schedule('s', text, 'CHAT');
  await vi.runAllTimersAsync();
  expect(request.mock.calls).toEqual([['s', 'abc', 'CHAT']]);
  expect(measure.context?.prompt_tokens).toBe(3);
});

it('never lets a slow answer overwrite a later one', async () => {
  const answers: ((view: DraftView) => void)[] = [];
  const measure = new Measure(() => new Promise((resolve) => answers.push(resolve)));
  measure.schedule('s', 'long', 'CHAT');
  await vi.runAllTimersAsync();
  measure.schedule('s', 'short', 'CHAT');
  await vi.runAllTimersAsync();
  answers[1]?.(draft(1));
  answers[0]?.(draft(99));
  await vi.runAllTimersAsync();
  expect(measure.context?.prompt_tokens).toBe(1);
});

it('shows nothing of another session', async () => {
  const measure = new Measure(() => Promise.resolve(draft(3)));
  measure.schedule('s', 'a', 'CHAT');
  await vi.runAllTimersAsync();
  measure.schedule('t', 'a', 'CHAT');
  expect(measure.context).toBeNull();
});

it('takes a text that is too long to be counted as refused', async () => {
  const error = new RequestFailure({
    code: 'input_too_long',
    message: 'Too long.',
    kept: null,
    hint: null,
  });
  const measure = new Measure(() => Promise.reject(error));
  measure.schedule('s', 'a', 'CHAT');
  await vi.runAllTimersAsync();
  expect(measure.refusal?.message).toBe('Too long.');
  expect(measure.problem).toBeNull();
});

it('keeps the reason when it could not be counted', async () => {
  const measure = new Measure(() => Promise.reject(new Error('no model')));
  measure.schedule('s', 'a', 'CHAT');
  await vi.runAllTimersAsync();
  expect(measure.problem?.message).toBe('no model');
});
