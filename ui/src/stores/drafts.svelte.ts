import { SvelteMap } from 'svelte/reactivity';
import { DEFAULT_TARGET_KEY } from '../lib/steer';
import type { ChatMode } from '../wire';

/** A message that is not sent yet. */
export interface Draft {
  readonly text: string;
  /** A long text that was pasted; sent after `text`. Laying it out in the input would freeze it. */
  readonly pasted: string;
  readonly mode: ChatMode;
  /** Key of the steering target. */
  readonly target: string;
}

const EMPTY: Draft = { text: '', pasted: '', mode: 'CHAT', target: DEFAULT_TARGET_KEY };

/** A pasted text longer than this (in UTF-16 units) stays out of the input. */
export const LONG_PASTE = 30_000;

/** The message as it will be sent. */
export function draftMessage(draft: Draft): string {
  return [draft.text, draft.pasted].filter((part) => part !== '').join('\n\n');
}

/** Drafts by session, kept while the window is open. */
export class Drafts {
  #bySession = new SvelteMap<string, Draft>();

  get(sessionId: string): Draft {
    return this.#bySession.get(sessionId) ?? EMPTY;
  }

  change(sessionId: string, change: Partial<Draft>): void {
    this.#bySession.set(sessionId, { ...this.get(sessionId), ...change });
  }
}

export const drafts = new Drafts();
