import { createContext } from 'svelte';
import { toProtocolError } from '../lib/transport';
import type { ChatMode, ContextView, DraftView, ProtocolError } from '../wire';

const DELAY_MS = 250;
/** A text this long (in UTF-16 units) is measured less often: counting it takes a while. */
const LONG = 50_000;
const LONG_DELAY_MS = 1000;

export type MeasureRequest = (
  sessionId: string,
  text: string,
  mode: ChatMode,
) => Promise<DraftView>;

/** What the next prompt would hold, counted while the person types. */
export class Measure {
  /** The latest count; of the text as it was a moment ago. */
  context = $state.raw<ContextView | null>(null);
  /** Why the message could not be sent as it is. */
  refusal = $state.raw<ProtocolError | null>(null);
  /** Why it could not be counted. */
  problem = $state.raw<ProtocolError | null>(null);

  #request: MeasureRequest;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #latest = 0;
  #sessionId: string | null = null;

  constructor(request: MeasureRequest) {
    this.#request = request;
  }

  /** Counts soon; a later call replaces an earlier one, and only the last answer is shown. */
  schedule(sessionId: string, text: string, mode: ChatMode): void {
    if (this.#sessionId !== sessionId) {
      this.#sessionId = sessionId;
      this.context = null;
      this.refusal = null;
      this.problem = null;
    }
    clearTimeout(this.#timer);
    const turn = ++this.#latest;
    const delay = text.length > LONG ? LONG_DELAY_MS : DELAY_MS;
    this.#timer = setTimeout(() => void this.#count(turn, sessionId, text, mode), delay);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#latest += 1;
  }

  async #count(turn: number, sessionId: string, text: string, mode: ChatMode): Promise<void> {
    try {
      const draft = await this.#request(sessionId, text, mode);
      if (turn !== this.#latest) return;
      this.context = draft.context;
      this.refusal = text === '' ? null : draft.refusal;
      this.problem = null;
    } catch (thrown) {
      if (turn !== this.#latest) return;
      const error = toProtocolError(thrown);
      const tooLong = error.code === 'input_too_long';
      this.context = null;
      this.refusal = tooLong ? error : null;
      this.problem = tooLong ? null : error;
    }
  }
}

export const [useMeasure, provideMeasure] = createContext<Measure>();
