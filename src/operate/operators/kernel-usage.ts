import { timestamp } from '#src/base/time/clock.ts';
import type { KernelUsage } from '#src/contract/wire/server.ts';
import { beginningOf, type ProcessFact, type ProcessTable, readProcesses } from './process-table.ts';

/** A kernel that has a process. */
export interface KernelWithProcess {
  readonly workspaceId: string;
  readonly sessionId: string;
  readonly pid: number;
  /** The kernel node on which the process is; null: this machine. */
  readonly node: string | null;
}

/** The use of the kernels on each node, by process id there. */
export type UseOnNodes = ReadonlyMap<
  string,
  readonly Pick<KernelUsage, 'pid' | 'cpuSeconds' | 'memoryBytes'>[]
>;

export interface KernelSample {
  readonly sampledAt: string;
  /** Kernels, the one with the most memory first. */
  readonly kernels: readonly KernelUsage[];
}

/** Readers that ask within this time of each other share a sample. */
const MIN_FRESH_MS = 500;
/**
 * A sample of many processes is shared for longer, so that reading takes at most this share of the
 * time: fewer than one in a hundred requests may have to wait for it.
 */
const MAX_SHARE = 1 / 150;
/** The longest time for which a sample is shared, even when reading takes long, as it does on a busy machine. */
const MAX_FRESH_MS = 5_000;
const OTHERS_FOR_MS = 10_000;
/** The most processes of one kernel. Further processes are not followed. */
const MAX_PROCESSES = 200;
const TICKS_PER_S = 100;

/** Reads the use of kernels and their child processes, on demand. */
export class KernelSampler {
  readonly #kernels: () => Iterable<KernelWithProcess>;
  readonly #askNodes: (() => Promise<UseOnNodes>) | undefined;
  #running: Promise<KernelSample> | undefined;
  #freshUntilMs = 0;
  /**
   * For each process of the kernels in the last sample, by pid and start: whether it is the first process of a
   * namespace.
   */
  #firsts = new Map<string, boolean>();
  /** Processes that are not part of a kernel: they are not read again for a while. */
  readonly #others = new Set<number>();
  #othersUntilMs = 0;
  /** The last sample that was complete. */
  latest: KernelSample = { sampledAt: timestamp(), kernels: [] };

  /** `askNodes` resolves with the use on kernel nodes; absent: there are none. */
  constructor(kernels: () => Iterable<KernelWithProcess>, askNodes?: () => Promise<UseOnNodes>) {
    this.#kernels = kernels;
    this.#askNodes = askNodes;
  }

  /** Rejects with the system's error when the processes cannot be read; the next call reads them again. */
  sample(): Promise<KernelSample> {
    if (this.#running !== undefined && performance.now() <= this.#freshUntilMs) return this.#running;
    this.#freshUntilMs = Number.POSITIVE_INFINITY;
    const running = this.#take();
    this.#running = running;
    // No other sample begins while this one is taken, so `#running` is still this one.
    running.catch(() => {
      this.#running = undefined;
    });
    return running;
  }

  /**
   * Resolves with the last complete sample when the processes cannot be read, for example because no file descriptor
   * is left.
   */
  sampleOrLatest(): Promise<KernelSample> {
    return this.sample().catch(() => this.latest);
  }

  async #take(): Promise<KernelSample> {
    const beganAtMs = performance.now();
    const all = [...this.#kernels()];
    const places = all.filter(({ node }) => node === null);
    const remote = await this.#onNodes(all.filter(({ node }) => node !== null));
    // A process number may be used again, and a process that was forked in advance may become a kernel.
    if (beganAtMs > this.#othersUntilMs || places.some(({ pid }) => this.#others.has(pid))) {
      this.#others.clear();
      this.#othersUntilMs = beganAtMs + OTHERS_FOR_MS;
    }
    const table = places.length === 0 ? NO_PROCESSES : await readProcesses(this.#others);
    for (const pid of table.processes.keys()) this.#others.add(pid);
    const firsts = new Map<string, boolean>();
    const kernels = places.flatMap(({ workspaceId, sessionId, pid }): KernelUsage[] => {
      const root = table.processes.get(pid);
      if (root === undefined) return [];
      const key = `${pid} ${root.startedAtTicks}`;
      const isFirst = this.#firsts.get(key) ?? isAboveKernel(pid);
      firsts.set(key, isFirst);
      const usage = usageOf(pid, root, table, isFirst, (part) => this.#others.delete(part));
      return [{ workspaceId, sessionId, node: null, pid, ...usage }];
    });
    kernels.push(...remote);
    this.#firsts = firsts;
    kernels.sort((a, b) => b.memoryBytes - a.memoryBytes);
    this.#freshUntilMs = beganAtMs + freshForMs(table.workedMs);
    this.latest = { sampledAt: timestamp(), kernels };
    return this.latest;
  }

  async #onNodes(places: readonly KernelWithProcess[]): Promise<KernelUsage[]> {
    if (places.length === 0 || this.#askNodes === undefined) return [];
    const use = await this.#askNodes();
    return places.flatMap((place): KernelUsage[] => {
      const found = use.get(place.node ?? '')?.find(({ pid }) => pid === place.pid);
      return found === undefined ? [] : [{ ...place, ...found }];
    });
  }
}

/** Returns the milliseconds for which a sample is shared if reading it took `workedMs`. */
export function freshForMs(workedMs: number): number {
  return Math.min(Math.max(MIN_FRESH_MS, workedMs / MAX_SHARE), MAX_FRESH_MS);
}

const NO_PROCESSES: ProcessTable = { processes: new Map(), children: new Map(), workedMs: 0 };

/** Returns the use of a process and its descendants. */
function usageOf(
  pid: number,
  root: ProcessFact,
  { processes, children }: ProcessTable,
  isFirst: boolean,
  onPart: (pid: number) => void,
): Pick<KernelUsage, 'cpuSeconds' | 'memoryBytes'> {
  // The first process of a namespace and a supervisor share their pages with the process that they were forked from.
  let memoryBytes = isFirst ? 0 : root.memoryBytes;
  let { cpuSeconds } = root;
  onPart(pid);
  const open = [...(children.get(pid) ?? [])];
  let count = 1;
  for (let one = open.pop(); one !== undefined && count < MAX_PROCESSES; one = open.pop()) {
    const usage = processes.get(one);
    if (usage === undefined) continue;
    count++;
    onPart(one);
    cpuSeconds += usage.cpuSeconds;
    memoryBytes += usage.memoryBytes;
    open.push(...(children.get(one) ?? []));
  }
  return { cpuSeconds: Math.round(cpuSeconds * TICKS_PER_S) / TICKS_PER_S, memoryBytes };
}

function isAboveKernel(pid: number): boolean {
  return /^NSpid:.*\t1$|^Name:\ttroupe-modes$/m.test(beginningOf(`/proc/${pid}/status`) ?? '');
}
