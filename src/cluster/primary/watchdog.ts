/**
 * Finds workers that no longer work, so that the primary can kill them. Such a worker still gets connections, and may hold the
 * store's write lock, for which all others wait.
 *
 * Time is counted in checks by the primary, not read from a clock. A pause of the primary or the machine therefore counts as one
 * check, after which the waiting heartbeats are read.
 */
import { readFileSync } from 'node:fs';

export const LOOK_MS = 100;
/** The number of checks after which a worker is killed, by its state. */
const MAX_LOOKS = {
  /**
   * The worker is stopped by a signal. A single check could come just before a terminal continues
   * its processes.
   */
  stopped: 2,
  /** The worker has sent no heartbeat, and waits for something other than its disk. */
  waiting: 7,
  /** The worker has sent no heartbeat, in any state. */
  silent: 100,
  /** The worker has not begun to serve: it loads its program and opens the store. */
  starting: 600,
} as const;

/** The system's report on a process (proc_pid_stat(5)). */
export interface ProcessState {
  /** One letter, such as `R`, `S`, `D` or `T`. */
  readonly letter: string;
  /** The processor time that the process has used, in clock ticks. */
  readonly ticks: number;
}

/** The phase of a worker's life. In `ending` it drains or exits. */
export type Duty = 'starting' | 'serving' | 'ending';

export class WorkerWatch {
  #stopped = 0;
  #waiting = 0;
  #silent = 0;
  #ticks = -1;

  /** Called when a heartbeat of the worker has arrived. */
  beat(): void {
    this.#silent = 0;
    this.#waiting = 0;
  }

  /** Makes one check. Returns the reason to kill the worker; undefined when there is none. */
  look({ letter, ticks }: ProcessState, duty: Duty): string | undefined {
    this.#stopped = letter === 'T' || letter === 't' ? this.#stopped + 1 : 0;
    // Only a sleeping process counts, not one that waits for processor time or for a disk.
    const waits = letter === 'S' && ticks === this.#ticks;
    this.#waiting = waits ? this.#waiting + 1 : 0;
    this.#ticks = ticks;
    this.#silent++;
    if (this.#stopped >= MAX_LOOKS.stopped) return 'it was stopped by a signal';
    if (duty === 'starting')
      return this.#silent >= MAX_LOOKS.starting ? 'it did not start in time' : undefined;
    // A process that exits no longer has an event loop, and may wait for the last flush of its
    // store.
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
