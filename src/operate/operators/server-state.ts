/**
 * The state of the whole server, for operators. The state is read only on request, and costs nothing
 * otherwise.
 */
import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { VERSION } from '#src/base/install/version.ts';
import { ownMemory } from '#src/base/metrics/process-memory.ts';
import { WatchedDelay } from '#src/base/metrics/watched-delay.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { KernelUsage, ServerFacts, ServerLoad, ServerState } from '#src/contract/wire/server.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { KernelSample, KernelSampler } from './kernel-usage.ts';
import type { ObservedServer } from './server-gauges.ts';

type Observed = Pick<ObservedServer, 'host' | 'load' | 'warnings'>;

type Load = Omit<ServerLoad, 'kernels'>;

/**
 * Reads the state of the server for one reader, reporting activity since its previous reading. Disposing of it stops
 * the sampling.
 */
export class ServerStateReader implements Disposable {
  readonly #context: PlaneContext;
  readonly #server: Observed;
  readonly #kernels: KernelSampler;
  readonly #delay = new WatchedDelay();
  #commits = { count: 0, seconds: 0 };
  #latest: { readonly sample: KernelSample; readonly load: Load } | undefined;

  constructor(context: PlaneContext, server: Observed, kernels: KernelSampler) {
    this.#context = context;
    this.#server = server;
    this.#kernels = kernels;
  }

  async read(): Promise<ServerState> {
    const { sample, load } = await this.#sampled();
    return { ...this.facts(), ...load, kernels: sample.kernels };
  }

  /** Returns the facts that stay constant while the server runs. */
  facts(): ServerFacts {
    const { host } = this.#server;
    return {
      startedAt: timestamp(Math.round(performance.timeOrigin)),
      versions: { troupe: VERSION, node: process.version, marimo: host.marimo?.version ?? null },
      limits: this.#limits(),
    };
  }

  [Symbol.dispose](): void {
    this.#delay[Symbol.dispose]();
  }

  /**
   * Readers that share a sample of the kernels share the whole sample, so that its figures are of
   * one moment.
   */
  async #sampled(): Promise<{ readonly sample: KernelSample; readonly load: Load }> {
    const sample = await this.#kernels.sampleOrLatest();
    if (this.#latest?.sample !== sample) this.#latest = { sample, load: this.#load(sample) };
    return this.#latest;
  }

  #load({ sampledAt }: KernelSample): Load {
    const { runtime, store } = this.#context;
    const { host, load, warnings } = this.#server;
    const { usedBytes, reusableBytes } = store.extent();
    return {
      sampledAt,
      process: this.#process(),
      kernelHost: { state: host.state, confinement: host.confinement ?? null },
      actors: runtime.counts(),
      ...load(),
      warnings: warnings().map(({ text }) => text),
      store: { usedBytes, reusableBytes, isFull: store.isFull, commitMs: this.#commitMs() },
    };
  }

  #process(): Load['process'] {
    const { user, system } = process.cpuUsage();
    const inMs = ([seconds]: readonly number[]) => (seconds === undefined ? null : seconds * 1000);
    const delayP99Ms = inMs(this.#delay.read((delay) => delay.percentile(99)));
    const delayMaxMs = inMs(this.#delay.read((delay) => delay.max));
    this.#delay.restart();
    return {
      pid: process.pid,
      cpuSeconds: (user + system) / 1e6,
      memoryBytes: ownMemory().ownBytes,
      heapBytes: getHeapStatistics().used_heap_size,
      eventLoop: { busySeconds: performance.eventLoopUtilization().active / 1000, delayP99Ms, delayMaxMs },
    };
  }

  #commitMs(): number | null {
    const { counts, sum: seconds } = this.#context.metrics.commits.of();
    const count = counts.reduce((total, one) => total + one, 0);
    const before = this.#commits;
    this.#commits = { count, seconds };
    return count === before.count ? null : ((seconds - before.seconds) / (count - before.count)) * 1000;
  }

  #limits(): ServerFacts['limits'] {
    const { host } = this.#server;
    const { config } = this.#context;
    const orNone = (value: number) => (value === 0 ? null : value);
    return {
      sessions: orNone(config.maxSessions),
      sessionsPerWorkspace: orNone(config.workspaceMaxSessions),
      runsPerWorkspace: orNone(config.workspaceMaxRuns),
      streamsPerWorkspace: orNone(config.workspaceMaxSubscribers),
      connections: orNone(config.maxConnections),
      kernelMemoryBytes: host.limits.memoryBytes,
      idleTimeoutS: orNone(Math.ceil(config.idleTimeoutS)),
    };
  }
}

/** Returns the changing figures of a state, without a list of kernels. */
export function loadOf({
  startedAt: _,
  versions: _versions,
  limits: _limits,
  kernels,
  ...load
}: ServerState): ServerLoad {
  const sum = (of: (kernel: KernelUsage) => number) =>
    kernels.reduce((total, kernel) => total + of(kernel), 0);
  return {
    ...load,
    kernels: {
      count: kernels.length,
      cpuSeconds: sum(({ cpuSeconds }) => cpuSeconds),
      memoryBytes: sum(({ memoryBytes }) => memoryBytes),
    },
  };
}
