/**
 * Finds workers that do not work any more, so that the primary can kill them: connections go to a worker as long as it
 * listens, and a stopped one may hold the store's write lock, for which all others wait.
 *
 * Time is counted in looks of the primary, not read from a clock: a primary that was held up itself, or a machine that slept,
 * counts one look, however long that took, and then hears the beats that have come meanwhile.
 */
import { readFileSync } from 'node:fs';

export const LOOK_MS = 100;
/** Looks after which a worker is given up. */
const MAX_LOOKS = {
  /** It is stopped by a signal. One look could coincide with a terminal that is about to continue all processes. */
  stopped: 2,
  /** It has sent no heartbeat, and it waits for something other than its disk. */
  waiting: 7,
  /** It has sent no heartbeat, in any state. */
  silent: 100,
  /** It has not begun to serve: it loads its program and opens the store. */
  starting: 600,
} as const;

/** The system's report on a process (proc_pid_stat(5)). */
export interface ProcessState {
  /** One letter, such as `R`, `S`, `D` or `T`. */
  readonly letter: string;
  /** The processor time that it has used, in clock ticks. */
  readonly ticks: number;
}

/** The part of its life in which a worker is. One that is `ending` drains or exits. */
export type Duty = 'starting' | 'serving' | 'ending';

export class WorkerWatch {
  #stopped = 0;
  #waiting = 0;
  #silent = 0;
  #ticks = -1;

  /** Called when the worker has beaten. */
  beat(): void {
    this.#silent = 0;
    this.#waiting = 0;
  }

  /** One look. Returns the reason to kill the worker; undefined when there is none. */
  look({ letter, ticks }: ProcessState, duty: Duty): string | undefined {
    this.#stopped = letter === 'T' || letter === 't' ? this.#stopped + 1 : 0;
    // A process that is runnable but gets no processor time is not at fault, and neither is one that waits for a disk.
    const waits = letter === 'S' && ticks === this.#ticks;
    this.#waiting = waits ? this.#waiting + 1 : 0;
    this.#ticks = ticks;
    this.#silent++;
    if (this.#stopped >= MAX_LOOKS.stopped) return 'it was stopped by a signal';
    if (duty === 'starting')
      return this.#silent >= MAX_LOOKS.starting ? 'it did not start in time' : undefined;
    // A process that exits has no event loop any more, and may wait for the last flush of its store.
    if (duty === 'serving' && this.#waiting >= MAX_LOOKS.waiting) return 'it does nothing';
    if (this.#silent >= MAX_LOOKS.silent) return 'it did not respond for too long';
    return undefined;
  }
}

const USER_TIME = 11;
const SYSTEM_TIME = 12;

/** Returns the state of a process; undefined when it has ended, and where there is no /proc. */
export function processState(pid: number): ProcessState | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { letter: fields[0] ?? '', ticks: Number(fields[USER_TIME]) + Number(fields[SYSTEM_TIME]) };
  } catch {
    return undefined;
  }
}
