/** Numbers and times as people read them. */
const count = new Intl.NumberFormat('en');
const clock = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', hour12: false });
const clockSeconds = new Intl.DateTimeFormat('en', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
});
const day = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short' });

/** `1204` → `1,204`. */
export function number(value: number): string {
  return count.format(value);
}

/** `1, 'word'` → `1 word`; `2, 'word'` → `2 words`. */
export function plural(value: number, noun: string): string {
  return `${number(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** Bytes with a decimal unit: `2100` → `2.1 kB`. */
export function bytes(value: number): string {
  if (value < 1000) return plural(value, 'byte');
  const units = ['kB', 'MB', 'GB', 'TB'];
  let scaled = value / 1000;
  let unit = 0;
  while (scaled >= 1000 && unit < units.length - 1) {
    scaled /= 1000;
    unit += 1;
  }
  return `${scaled.toFixed(scaled < 10 ? 1 : 0)} ${units[unit]}`;
}

/** Milliseconds as `340 ms`, `1.9 s`, `18 s`, `2:05`, `1:02:05`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const pad = (part: number) => String(part).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes}:${pad(seconds % 60)}`
    : `${Math.floor(minutes / 60)}:${pad(minutes % 60)}:${pad(seconds % 60)}`;
}

/** Time of day today, else the day. */
export function moment(at: string, now: Date): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return '';
  return date.toDateString() === now.toDateString() ? clock.format(date) : day.format(date);
}

/** Time of day with seconds. */
export function precise(at: string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '' : clockSeconds.format(date);
}

/** Weights as `135 M` or `1.7 B`. */
export function parameters(value: number): string {
  return value >= 1e9 ? `${(value / 1e9).toFixed(1)} B` : `${Math.round(value / 1e6)} M`;
}

/** Tokens per second; null when nothing can be said. */
export function speed(tokens: number, ms: number): string | null {
  if (tokens < 2 || ms <= 0) return null;
  const perSecond = (tokens * 1000) / ms;
  return `${perSecond < 10 ? perSecond.toFixed(1) : Math.round(perSecond)} tokens/s`;
}

/** One line of at most `limit` characters. */
export function shorten(text: string, limit: number): string {
  const line = text
    .slice(0, limit * 4)
    .replace(/\s+/g, ' ')
    .trim();
  return line.length <= limit ? line : `${line.slice(0, limit - 1).trimEnd()}…`;
}
