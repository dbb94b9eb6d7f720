import { readFileSync } from 'node:fs';

/**
 * Files that count the processes the machine killed for lack of memory: in this cgroup if there is one, else on the
 * whole machine.
 */
const COUNTERS = ['/sys/fs/cgroup/memory.events', '/proc/vmstat'];

/**
 * Distinguishes a SIGKILL by the machine's out-of-memory killer from any other: the counter has changed since the last look. A
 * kill of another program in between is taken for a kill of a kernel, so the counter is also read at every start of a kernel.
 */
export class OomWatch {
  readonly #counters: readonly string[];
  #seen = 0;

  constructor(counters: readonly string[] = COUNTERS) {
    this.#counters = counters;
    this.hasKilled();
  }

  /** Returns whether there was a kill since the last call. */
  hasKilled(): boolean {
    const count = this.#read();
    const isMore = count > this.#seen;
    this.#seen = count;
    return isMore;
  }

  #read(): number {
    for (const path of this.#counters) {
      try {
        const count = /^oom_kill (\d+)$/m.exec(readFileSync(path, 'latin1'))?.[1];
        if (count !== undefined) return Number(count);
      } catch {
        // This machine lacks this kind of counter.
      }
    }
    return 0;
  }
}
