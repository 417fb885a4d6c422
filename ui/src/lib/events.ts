/** Lines of the event log, as far as the list needs them. */
export interface LoggedEvent {
  readonly sequence: number;
  readonly at: string;
  readonly kind: string;
  /** The line verbatim. */
  readonly line: string;
}

/** Reads one JSON line. A line that is not understood is kept and shown as unknown. */
export function parseEvent(line: string): LoggedEvent {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return { sequence: 0, at: '', kind: 'unreadable', line };
  }
  const event = record(parsed);
  const kind = record(event['payload'])['type'];
  return {
    sequence: typeof event['sequence'] === 'number' ? event['sequence'] : 0,
    at: typeof event['timestamp'] === 'string' ? event['timestamp'] : '',
    kind: typeof kind === 'string' ? kind : 'unknown',
    line,
  };
}

/** `steering_note_added` → `Steering note added`. */
export function kindWords(kind: string): string {
  const words = kind.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The line, indented. */
export function prettyLine(line: string): string {
  try {
    return JSON.stringify(JSON.parse(line), null, 2);
  } catch {
    return line;
  }
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
