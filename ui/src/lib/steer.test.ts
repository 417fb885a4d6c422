import { expect, it } from 'vitest';
import { aRun, aSession, aStage } from '../fixtures';
import { chosenTarget, steerRefusal, targetGroups } from './steer';
import { noteFate, reachWords, runWords, stageNotes } from './words';
import type { NoteView } from '../wire';

const stages = [
  aStage('extract', { status: 'done', attempt: 1 }),
  aStage('draft', { status: 'running', attempt: 1 }),
  aStage('check'),
];
const run = aRun({ stages, current_stage: 'draft' });
const open = (change = {}) => ({ view: aSession(change), replies: {}, attempts: {} });
const note = (change: Partial<NoteView> = {}): NoteView => ({
  note_id: 'n',
  content: 'Shorter.',
  stage_id: 'draft',
  scope: 'onward',
  withdrawn: false,
  applied: [],
  at: '2026-11-30T10:00:00Z',
  ...change,
});

it('calls a run that a person ended cancelled, not failed', () => {
  expect(runWords(aRun({ status: 'FAILED', failure: null }))).toBe('Cancelled');
  expect(runWords(aRun({ status: 'FAILED', failure: 'No room.' }))).toBe('Failed');
});

it('cannot steer a plain chat or a run that has ended, and says why', () => {
  expect(steerRefusal(open())).toMatch(/no run/);
  expect(steerRefusal(open({ run: aRun({ status: 'COMPLETED' }) }))).toMatch(/ended/);
  expect(steerRefusal(open({ run }))).toBeNull();
  expect(steerRefusal(open({ run: aRun({ status: 'PAUSED' }) }))).toBeNull();
});

it('aims at the current stage and all after it unless told otherwise', () => {
  expect(chosenTarget(targetGroups(run), 'onward')).toMatchObject({
    label: 'from Draft on',
    target: { stage_id: null, scope: 'onward' },
  });
});

it('can aim at a later stage by name, never at one that is over', () => {
  const labels = targetGroups(run).flatMap((group) => group.choices.map((each) => each.label));
  expect(labels).toEqual([
    'from Draft on',
    'Draft only',
    'the whole run',
    'from Check on',
    'Check only',
  ]);
});

it('offers no stage that asks no model, and says when none is left', () => {
  const reading = aStage('read', { kind: 'read', status: 'running', attempt: 1 });
  const stages = [reading, aStage('draft'), aStage('save', { kind: 'write' })];
  const labels = targetGroups(aRun({ stages, current_stage: 'read' })).flatMap((group) =>
    group.choices.map((each) => each.label),
  );
  expect(labels).toEqual(['from Read on', 'the whole run', 'from Draft on', 'Draft only']);
  const late = aRun({ stages: [aStage('save', { kind: 'write', status: 'running' })] });
  expect(steerRefusal(open({ run: late }))).toMatch(/asks a model/);
});

it('falls back to the default when the chosen stage is over', () => {
  expect(chosenTarget(targetGroups(run), 'stage:extract')?.key).toBe('onward');
});

it('says where a note stands', () => {
  expect(noteFate(run, note())).toEqual(['Draft begins again with it']);
  expect(noteFate(run, note({ stage_id: 'check' }))).toEqual(['waits for Check']);
  expect(noteFate(run, note({ applied: [{ stage_id: 'draft', attempt: 2 }] }))).toEqual([
    'applied in Draft, attempt 2',
  ]);
  expect(noteFate(run, note({ withdrawn: true }))).toEqual(['withdrawn']);
  expect(noteFate({ ...run, status: 'FAILED' }, note())).toEqual([
    'did not act: the run ended first',
  ]);
});

it('says how far a note reaches', () => {
  expect(reachWords(run, note())).toBe('from Draft on');
  expect(reachWords(run, note({ scope: 'stage', stage_id: 'check' }))).toBe('Check only');
  expect(reachWords(run, note({ scope: 'run' }))).toBe('the whole run');
});

it('shows a note at every stage that it was applied to, and where it waits', () => {
  const applied = note({ applied: [{ stage_id: 'draft', attempt: 2 }] });
  const [, draft, check] = stages;
  const noted = { ...run, notes: [applied, note({ note_id: 'm', stage_id: 'check' })] };
  expect(draft && stageNotes(noted, draft).map((each) => each.fate)).toEqual(['attempt 2']);
  expect(check && stageNotes(noted, check).map((each) => each.fate)).toEqual(['waits']);
});
