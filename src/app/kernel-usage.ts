import { readFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { timestamp } from '#src/core/clock.ts';
import type { KernelUsage } from '#src/wire/server.ts';

/** A kernel that has a process. */
export interface KernelPlace {
  readonly workspaceId: string;
  readonly sessionId: string;
  readonly pid: number;
}

export interface KernelSample {
  readonly sampledAt: string;
  readonly kernels: readonly KernelUsage[];
}

/** Processes that are read in one turn of the event loop: a read takes some 15 µs. */
const MAX_READ = 50;
/** Those who ask within this time share a sample. */
const FRESH_MS = 500;
/** Linux reports processor time in hundredths of a second, whatever its own clock. */
const TICKS_PER_S = 100;
const PAGE_BYTES = 4096;

/** Reads what kernels use, when somebody asks, in slices that hold up nobody. */
export class KernelSampler {
  readonly #kernels: () => Iterable<KernelPlace>;
  #latest: Promise<KernelSample> | undefined;
  #takenAtMs = 0;

  constructor(kernels: () => Iterable<KernelPlace>) {
    this.#kernels = kernels;
  }

  sample(): Promise<KernelSample> {
    const nowMs = performance.now();
    if (this.#latest === undefined || nowMs - this.#takenAtMs > FRESH_MS) {
      this.#takenAtMs = nowMs;
      this.#latest = this.#take();
    }
    return this.#latest;
  }

  async #take(): Promise<KernelSample> {
    const kernels: KernelUsage[] = [];
    let count = 0;
    for (const { workspaceId, sessionId, pid } of [...this.#kernels()]) {
      const usage = usageOf(pid);
      if (usage !== undefined) kernels.push({ workspaceId, sessionId, pid, ...usage });
      if (++count % MAX_READ === 0) await nextTurn();
    }
    return { sampledAt: timestamp(), kernels };
  }
}

/** Returns undefined for a process that has ended. */
function usageOf(pid: number): { readonly cpuSeconds: number; readonly memoryBytes: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name before them may hold spaces and brackets. proc(5) counts from 1: state is 3, utime 14, rss 24.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [utime, stime, rss] = [fields[14 - 3], fields[15 - 3], fields[24 - 3]].map(Number);
    return { cpuSeconds: (utime! + stime!) / TICKS_PER_S, memoryBytes: rss! * PAGE_BYTES };
  } catch {
    return undefined;
  }
}
