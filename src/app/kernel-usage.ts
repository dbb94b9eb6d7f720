import { readdirSync, readFileSync } from 'node:fs';
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
  /** The one with the most memory first. */
  readonly kernels: readonly KernelUsage[];
}

/** Kernels that are read in one turn of the event loop: each takes some 100 µs. */
const MAX_READ = 10;
/** Those who ask within this time share a sample. */
const MIN_FRESH_MS = 500;
/** A sample of many kernels is shared for longer, so that reading takes this share of the time at most. */
const MAX_SHARE = 1 / 20;
/** Of one kernel: one that has started more is not followed further. */
const MAX_PROCESSES = 200;
/** Linux reports processor time in hundredths of a second, whatever its own clock. */
const TICKS_PER_S = 100;
const PAGE_BYTES = 4096;

/** Reads what kernels and what they started use, when somebody asks, in slices that hold up nobody. */
export class KernelSampler {
  readonly #kernels: () => Iterable<KernelPlace>;
  #running: Promise<KernelSample> | undefined;
  #freshUntilMs = 0;
  /** The last sample that was complete. */
  latest: KernelSample = { sampledAt: timestamp(), kernels: [] };

  constructor(kernels: () => Iterable<KernelPlace>) {
    this.#kernels = kernels;
  }

  sample(): Promise<KernelSample> {
    if (this.#running === undefined || performance.now() > this.#freshUntilMs) {
      this.#freshUntilMs = Number.POSITIVE_INFINITY;
      this.#running = this.#take();
    }
    return this.#running;
  }

  async #take(): Promise<KernelSample> {
    const kernels: KernelUsage[] = [];
    const beganAtMs = performance.now();
    let workedMs = 0;
    let sliceAtMs = beganAtMs;
    let count = 0;
    for (const { workspaceId, sessionId, pid } of [...this.#kernels()]) {
      const usage = usageOf(pid);
      if (usage !== undefined) kernels.push({ workspaceId, sessionId, pid, ...usage });
      if (++count % MAX_READ !== 0) continue;
      workedMs += performance.now() - sliceAtMs;
      await nextTurn();
      sliceAtMs = performance.now();
    }
    workedMs += performance.now() - sliceAtMs;
    kernels.sort((a, b) => b.memoryBytes - a.memoryBytes);
    this.#freshUntilMs = beganAtMs + Math.max(MIN_FRESH_MS, workedMs / MAX_SHARE);
    this.latest = { sampledAt: timestamp(), kernels };
    return this.latest;
  }
}

interface Usage {
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
}

/** Returns what a process and its descendants use; undefined when it has ended. */
function usageOf(root: number): Usage | undefined {
  const own = processUsage(root);
  if (own === undefined) return undefined;
  // The first process of a namespace only waits for the kernel, and shares its pages with the process that it was forked from.
  let memoryBytes = isFirstOfNamespace(root) ? 0 : own.memoryBytes;
  let { cpuSeconds } = own;
  const open = childrenOf(root);
  let count = 1;
  for (let pid = open.pop(); pid !== undefined && count < MAX_PROCESSES; pid = open.pop()) {
    const usage = processUsage(pid);
    if (usage === undefined) continue;
    count++;
    cpuSeconds += usage.cpuSeconds;
    memoryBytes += usage.memoryBytes;
    open.push(...childrenOf(pid));
  }
  return { cpuSeconds: Math.round(cpuSeconds * TICKS_PER_S) / TICKS_PER_S, memoryBytes };
}

/** Returns what one process uses, with the processor time of its children that have ended. */
function processUsage(pid: number): Usage | undefined {
  const stat = textOf(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The name before them may hold spaces and brackets. proc(5) counts from 1: state is 3, utime to cstime 14 to 17, rss 24.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = fields.slice(14 - 3, 18 - 3).reduce((sum, text) => sum + Number(text), 0);
  return { cpuSeconds: ticks / TICKS_PER_S, memoryBytes: Number(fields[24 - 3]) * PAGE_BYTES };
}

function isFirstOfNamespace(pid: number): boolean {
  return /^NSpid:.*\t1$/m.test(textOf(`/proc/${pid}/status`) ?? '');
}

/** Returns the children of all threads of a process. */
function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      (textOf(`/proc/${pid}/task/${thread}/children`) ?? '').split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return []; // it has ended
  }
}

/** Returns undefined for what is gone. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}
