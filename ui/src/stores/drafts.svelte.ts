import { SvelteMap } from 'svelte/reactivity';
import { DEFAULT_TARGET_KEY } from '../lib/steer';
import type { ChatMode } from '../wire';

/** A message that is not sent yet. */
export interface Draft {
  readonly text: string;
  readonly mode: ChatMode;
  /** Key of the steering target. */
  readonly target: string;
}

const EMPTY: Draft = { text: '', mode: 'CHAT', target: DEFAULT_TARGET_KEY };

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
