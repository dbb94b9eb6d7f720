import { readFileSync } from 'node:fs';

/** Files that count the processes killed for lack of memory: in this cgroup if there is one, otherwise on the whole machine. */
const COUNTERS = ['/sys/fs/cgroup/memory.events', '/proc/vmstat'];

/**
 * Distinguishes a SIGKILL by the machine's out-of-memory killer from any other: the kill counter
 * has changed since it was last read. A kill of another program in between would be mistaken for a kill of
 * the kernel. So the counter is also read at every start of a kernel.
 */
export class OomWatch {
  readonly #counters: readonly string[];
  #seen = 0;

  constructor(counters: readonly string[] = COUNTERS) {
    this.#counters = counters;
    this.hasKilled();
  }

  /** Returns whether the machine has killed a process since the last call. */
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
