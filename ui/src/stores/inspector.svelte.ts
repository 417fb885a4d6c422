/** What the pane on the right shows. */
export type Tab = 'run' | 'artifacts' | 'context' | 'log';

export type ContextChoice =
  { kind: 'next' } | { kind: 'stage'; id: string } | { kind: 'turn'; id: string };

/** A text that was opened from a list. */
export interface OpenText {
  readonly sessionId: string;
  readonly hash: string;
  readonly title: string;
  readonly mediaType: string;
}

class Inspector {
  tab = $state<Tab>('run');
  context = $state.raw<ContextChoice>({ kind: 'next' });
  text = $state.raw<OpenText | null>(null);

  show(tab: Tab): void {
    this.tab = tab;
    this.text = null;
  }

  showContext(choice: ContextChoice): void {
    this.context = choice;
    this.show('context');
  }

  open(text: OpenText): void {
    this.text = text;
  }

  /** For another session: what was chosen in the last one means nothing here. */
  reset(): void {
    this.text = null;
    this.context = { kind: 'next' };
  }
}

export const inspector = new Inspector();
