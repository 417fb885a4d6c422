/** A prompt's tokens, added up by layer. */
import type { ContextView } from '../wire';

export type SegmentKind = 'l0' | 'l1' | 'l2' | 'template' | 'reply';

export interface Segment {
  readonly kind: SegmentKind;
  readonly label: string;
  readonly tokens: number;
  /** Part of the whole bar, 0 to 1. */
  readonly share: number;
}

export interface Meter {
  readonly segments: readonly Segment[];
  readonly used: number;
  readonly limit: number;
  /** How many tokens the prompt is over its limit. */
  readonly over: number;
  readonly dropped: number;
  readonly exact: boolean;
}

/** The bar is as long as the largest prompt plus the reply's reserve, or as what is really there. */
export function meter(context: ContextView): Meter {
  const sum = (layer: 'L0' | 'L1' | 'L2') =>
    context.entries
      .filter((entry) => entry.layer === layer && entry.dropped === null)
      .reduce((total, entry) => total + entry.tokens, 0);
  const whole = Math.max(context.budget_limit, context.prompt_tokens) + context.reply_reserve;
  const segment = (kind: SegmentKind, label: string, tokens: number): Segment => ({
    kind,
    label,
    tokens,
    share: whole > 0 ? tokens / whole : 0,
  });
  return {
    segments: [
      segment('l0', 'rules, message', sum('L0')),
      segment('l1', 'conversation', sum('L1')),
      segment('l2', 'stages', sum('L2')),
      segment('template', 'template', context.template_tokens),
      segment('reply', 'reply', context.reply_reserve),
    ],
    used: context.prompt_tokens,
    limit: context.budget_limit,
    over: Math.max(0, context.prompt_tokens - context.budget_limit),
    dropped: context.entries.filter((entry) => entry.dropped !== null).length,
    exact: context.exact,
  };
}
