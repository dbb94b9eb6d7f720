/** Jobs and their occurrences in words. */
import type { Job, Occurrence } from '#src/contract/wire/job.ts';
import type { Tone } from '../../parts/words.ts';

const WORDS: Readonly<Record<string, readonly [text: string, tone: Tone]>> = {
  waiting: ['waiting', 'good'],
  due: ['starting', 'busy'],
  queued: ['waits for the run before', 'warn'],
  running: ['running', 'busy'],
  cancelling: ['is cancelled', 'warn'],
  'backing-off': ['tries again soon', 'warn'],
  paused: ['paused', 'warn'],
  ended: ['ended', 'over'],
  completed: ['completed', 'good'],
  failed: ['failed', 'bad'],
  cancelled: ['cancelled', 'over'],
  skipped: ['skipped', 'warn'],
};

/** Returns the properties of the badge for a status. */
export function badgeOf(status: Job['status'] | Occurrence['status']): {
  readonly state: string;
  readonly tone: Tone;
} {
  const [state, tone] = WORDS[status] ?? [status, 'over'];
  return { state, tone };
}

/** Returns the name of a job, or a text for a job without a name. */
export function nameOf({ name }: Job): string {
  return name ?? 'Job without a name';
}

/** Whether an occurrence of the job is in progress. */
export function isActive({ currentOccurrenceId }: Job): boolean {
  return currentOccurrenceId !== null;
}

/**
 * Returns a name for a sentence in plain text. The name is isolated (U+2068, U+2069), so that letters of another direction do not
 * reorder the sentence.
 */
export function isolated(name: string): string {
  return `\u2068${name}\u2069`;
}
