import { expect, it } from 'vitest';
import type { ContextView, EntryView } from '../wire';
import { meter } from './meter';

const entry = (layer: EntryView['layer'], tokens: number, dropped: string | null = null) => ({
  layer,
  tokens,
  dropped,
  source: 'x',
  text: null,
  hash: null,
});
const context: ContextView = {
  title: 'Router',
  entries: [entry('L0', 300), entry('L1', 100), entry('L1', 900, 'no room'), entry('L2', 50)],
  template_tokens: 30,
  prompt_tokens: 480,
  reply_reserve: 520,
  budget_limit: 1480,
  reused_tokens: null,
  exact: true,
};

it('adds up what is in the prompt by layer and leaves out what was dropped', () => {
  const { segments, used, limit, dropped } = meter(context);
  expect(segments.map((each) => [each.kind, each.tokens])).toEqual([
    ['l0', 300],
    ['l1', 100],
    ['l2', 50],
    ['template', 30],
    ['reply', 520],
  ]);
  expect([used, limit, dropped]).toEqual([480, 1480, 1]);
});

it('draws every part to the same scale: the largest prompt plus the reply', () => {
  const { segments } = meter(context);
  expect(segments[0]?.share).toBeCloseTo(300 / 2000);
  expect(segments[4]?.share).toBeCloseTo(520 / 2000);
});

it('says by how much a prompt is too long, and still fits its bar', () => {
  const long = meter({ ...context, prompt_tokens: 1600, entries: [entry('L0', 1570)] });
  expect(long.over).toBe(120);
  const whole = long.segments.reduce((sum, segment) => sum + segment.share, 0);
  expect(whole).toBeCloseTo(1);
});
