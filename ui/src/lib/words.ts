/** States in words. A person never has to read a colour. */
import { moment } from './format';
import type {
  AppliedView,
  NoteView,
  RunView,
  SessionSummary,
  StageView,
  WaitReason,
  WorkflowStatus,
} from '../wire';

export type Tone = 'run' | 'ok' | 'wait' | 'bad' | 'idle';

export function sessionTone(summary: SessionSummary): Tone {
  switch (summary.status) {
    case 'RUNNING':
      return 'run';
    case 'COMPLETED':
      return 'ok';
    case 'FAILED':
      return 'bad';
    case 'PAUSED':
      return summary.waiting_for === 'approval' ? 'wait' : 'idle';
    case 'IDLE':
      return 'idle';
  }
}

export function sessionWords(summary: SessionSummary, now: Date): string {
  const when = moment(summary.updated_at, now);
  const place = summary.current_stage
    ? `${summary.current_stage} · ${summary.stages_done} of ${summary.stages_total} done`
    : `${summary.stages_done} of ${summary.stages_total} done`;
  switch (summary.status) {
    case 'RUNNING':
      return place;
    case 'PAUSED':
      return waitWords(summary.waiting_for);
    case 'COMPLETED':
      return `finished ${when}`;
    case 'FAILED':
      return `ended unfinished ${when}`;
    case 'IDLE':
      return summary.workflow === null ? `chat · ${when}` : 'not started';
  }
}

export function waitWords(reason: WaitReason | null): string {
  switch (reason) {
    case 'approval':
      return 'waits for your approval';
    case 'interrupted':
      return 'interrupted · can resume';
    case 'person':
    case null:
      return 'paused';
  }
}

/** Whether a session belongs in the group of those that go on. */
export function isGoingOn(summary: SessionSummary): boolean {
  return summary.status === 'RUNNING' || summary.status === 'PAUSED';
}

export function hasEnded(status: WorkflowStatus): boolean {
  return status === 'COMPLETED' || status === 'FAILED';
}

export function runWords(run: RunView): string {
  switch (run.status) {
    case 'IDLE':
      return 'Not started';
    case 'RUNNING':
      return 'Running';
    case 'PAUSED':
      return capital(waitWords(run.waiting_for));
    case 'COMPLETED':
      return 'Finished';
    case 'FAILED':
      return run.failure === null ? 'Cancelled' : 'Failed';
  }
}

export function stageTitle(run: RunView, stageId: string): string {
  return run.stages.find((stage) => stage.stage_id === stageId)?.title ?? stageId;
}

export function appliedWords(run: RunView, applied: AppliedView): string {
  return `applied in ${stageTitle(run, applied.stage_id)}, attempt ${applied.attempt}`;
}

/** What a note reaches, as the tag beside it. */
export function reachWords(run: RunView, note: NoteView): string {
  if (note.scope === 'run') return 'the whole run';
  const title = note.stage_id ? stageTitle(run, note.stage_id) : 'the first stage';
  return note.scope === 'stage' ? `${title} only` : `from ${title} on`;
}

/** What has become of a note, one fact each. */
export function noteFate(run: RunView, note: NoteView): string[] {
  const facts = note.applied.map((applied) => appliedWords(run, applied));
  if (note.withdrawn) return [...facts, 'withdrawn'];
  if (facts.length > 0) return facts;
  if (hasEnded(run.status)) return ['did not act: the run ended first'];
  const stage = run.stages.find((each) => each.stage_id === note.stage_id);
  if (!stage) return ['waits for the first stage'];
  return [
    stage.status === 'running' ? `${stage.title} begins again with it` : `waits for ${stage.title}`,
  ];
}

/** The notes that a stage was shown, or will be shown when it begins. */
export function stageNotes(run: RunView, stage: StageView): { note: NoteView; fate: string }[] {
  return run.notes.flatMap((note) => {
    const here = note.applied.filter((applied) => applied.stage_id === stage.stage_id);
    const last = here.at(-1);
    if (last) return [{ note, fate: `attempt ${last.attempt}` }];
    const waits =
      !note.withdrawn &&
      note.stage_id === stage.stage_id &&
      note.applied.length === 0 &&
      !hasEnded(run.status);
    return waits ? [{ note, fate: stage.status === 'running' ? 'restarting' : 'waits' }] : [];
  });
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A message as a sentence: names, quotations and commands at its beginning stay as they are. */
export function sentence(text: string): string {
  return /^[a-z]+[ ,']/.test(text) ? capital(text) : text;
}
