/** Whether a message can change the run, and which part of it. */
import type { OpenSession } from './app-state';
import { hasEnded } from './words';
import type { RunView, StageView, SteerTarget } from '../wire';

/** Null when steering is possible, else the reason why not. */
export function steerRefusal(session: OpenSession | null): string | null {
  const run = session?.view.run;
  if (!run) return 'This is a plain chat: there is no run to change.';
  if (hasEnded(run.status)) return 'The run has ended: a note can no longer act.';
  if (run.stages.length > 0 && !run.stages.some((stage) => isAhead(stage) && follows(stage)))
    return 'No stage that is still to run asks a model: a note would change nothing.';
  return null;
}

export interface TargetChoice {
  readonly key: string;
  readonly label: string;
  readonly target: SteerTarget;
}

export interface TargetGroup {
  readonly label: string;
  readonly choices: readonly TargetChoice[];
}

/** The kinds of stages that ask a model. */
const MODEL_KINDS: ReadonlySet<string> = new Set(['generate', 'map', 'reduce', 'choose']);

export const DEFAULT_TARGET_KEY = 'onward';

/** What a note can be aimed at. The first choice of the first group is the default. */
export function targetGroups(run: RunView): TargetGroup[] {
  const current = run.stages.find((stage) => stage.stage_id === run.current_stage);
  const first = current ?? run.stages.find(isAhead);
  const name = first?.title ?? 'the current stage';
  // A note for a stage that asks no model would have nothing to act on.
  const ahead = run.stages.filter(
    (stage) =>
      isAhead(stage) && stage.stage_id !== current?.stage_id && MODEL_KINDS.has(stage.kind),
  );
  const groups: TargetGroup[] = [
    {
      label: current ? 'Now' : 'Next',
      choices: [
        {
          key: DEFAULT_TARGET_KEY,
          label: `from ${name} on`,
          target: { stage_id: null, scope: 'onward' },
        },
        ...(first && !follows(first)
          ? []
          : [
              {
                key: 'stage',
                label: `${name} only`,
                target: { stage_id: null, scope: 'stage' } as const,
              },
            ]),
        { key: 'run', label: 'the whole run', target: { stage_id: null, scope: 'run' } },
      ],
    },
  ];
  if (ahead.length > 0) {
    groups.push({
      label: 'Later',
      choices: ahead.flatMap((stage) => [
        {
          key: `onward:${stage.stage_id}`,
          label: `from ${stage.title} on`,
          target: { stage_id: stage.stage_id, scope: 'onward' } as const,
        },
        {
          key: `stage:${stage.stage_id}`,
          label: `${stage.title} only`,
          target: { stage_id: stage.stage_id, scope: 'stage' } as const,
        },
      ]),
    });
  }
  return groups;
}

/** The choice with that key, or the default when it is gone (its stage is over). */
export function chosenTarget(groups: readonly TargetGroup[], key: string): TargetChoice | null {
  const choices = groups.flatMap((group) => group.choices);
  return choices.find((choice) => choice.key === key) ?? choices[0] ?? null;
}

/** Whether a note does anything there: a model is asked, or a person sees it. */
function follows(stage: StageView): boolean {
  return stage.kind === 'approve' || MODEL_KINDS.has(stage.kind);
}

function isAhead(stage: StageView): boolean {
  return stage.status === 'pending' || stage.status === 'running' || stage.status === 'waiting';
}
