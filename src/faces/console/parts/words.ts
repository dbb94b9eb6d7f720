/** Numbers, times and states in words. */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Returns a size such as `12.3 MiB`. */
export function bytes(count: number): string {
  let unit = 0;
  let value = count;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** Returns a duration such as `350 ms`, `4.2 s`, `3 min 20 s` or `2 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  return ago(ms);
}

/** Returns a duration in seconds or longer units: `12 s`, `3 min 20 s`, `2 d 4 h`. */
export function ago(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return pair(minutes, 'min', seconds % 60, 's');
  const hours = Math.floor(minutes / 60);
  return hours < 48
    ? pair(hours, 'h', minutes % 60, 'min')
    : pair(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

const COUNT = new Intl.NumberFormat('en');

/** Returns a number with separators: `10,000`. */
export function count(value: number): string {
  return COUNT.format(value);
}

/** Returns `1 run`, `2 runs`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** Returns a time as the user's clock shows it, with the date if it is not today. */
export function clock(timestamp: string): string {
  const time = new Date(timestamp);
  const isToday = time.toDateString() === new Date().toDateString();
  return isToday ? time.toLocaleTimeString('en-GB') : dateTime(timestamp);
}

/** Returns date and time. */
export function dateTime(timestamp: string): string {
  return new Date(timestamp).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
}

/** Returns any value as text. */
export function valueText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/**
 * Returns the text as one quoted word of a shell command. Any text must be safe here, because ids
 * come from links that anybody can make.
 */
export function shellWord(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * The colour of a state. `good`: works. `busy`: is doing something. `warn`: is changing. `bad`: has failed. `calm`: sleeps.
 * `over`: has ended.
 */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'calm' | 'over';

const TONES: readonly (readonly [RegExp, Tone])[] = [
  [/fail|error|refused/, 'bad'],
  [/cancelling|killing|closing|starting|restoring|waiting|stale|interrupted|stopped|paused/, 'warn'],
  [/busy|running|active|thinking|acting|queued/, 'busy'],
  [/dormant/, 'calm'],
  [/closed|cancelled|disabled|vacant|ended|stored/, 'over'],
  [/./, 'good'],
];

/** Returns the tone of a state, a status or a path of states. */
export function toneOf(state: string): Tone {
  return TONES.find(([pattern]) => pattern.test(state))?.[1] ?? 'over';
}
