/** The state of the whole server, for operators. It is read when somebody asks, and costs nothing otherwise. */
import { performance } from 'node:perf_hooks';
import type { ActorRuntime } from '#src/actors/runtime.ts';
import type { Config } from '#src/config.ts';
import { timestamp } from '#src/core/clock.ts';
import { VERSION } from '#src/core/version.ts';
import type { KernelHost } from '#src/kernel/kernel-host.ts';
import { WatchedDelay } from '#src/metrics/watched-delay.ts';
import type { ServerState } from '#src/wire/server.ts';
import type { Store } from '#storage/store.ts';
import type { KernelSampler } from './kernel-usage.ts';

export interface ServerStateOptions {
  readonly config: Config;
  readonly actors: ActorRuntime;
  readonly host: KernelHost;
  readonly store: Store;
  readonly kernels: KernelSampler;
  readonly load: () => { readonly streams: number; readonly requests: number };
}

/** Reads the state of the server. Disposing of it stops what samples. */
export class ServerStateReader implements Disposable {
  readonly #options: ServerStateOptions;
  readonly #delay = new WatchedDelay();

  constructor(options: ServerStateOptions) {
    this.#options = options;
  }

  async read(): Promise<ServerState> {
    const { actors, host, store, kernels, load } = this.#options;
    const sample = await kernels.sample();
    const { usedBytes, reusableBytes } = store.extent();
    return {
      sampledAt: sample.sampledAt,
      startedAt: timestamp(Math.round(performance.timeOrigin)),
      versions: { troupe: VERSION, node: process.version, marimo: host.marimo?.version ?? null },
      process: this.#process(),
      kernelHost: { state: host.state, confinement: host.confinement ?? null },
      kernels: sample.kernels,
      actors: actors.counts(),
      ...load(),
      store: { usedBytes, reusableBytes, isFull: store.isFull },
      limits: this.#limits(),
    };
  }

  [Symbol.dispose](): void {
    this.#delay[Symbol.dispose]();
  }

  #process(): ServerState['process'] {
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed } = process.memoryUsage();
    const inMs = ([seconds]: readonly number[]) => (seconds === undefined ? null : seconds * 1000);
    const delayP99Ms = inMs(this.#delay.read((delay) => delay.percentile(99)));
    const delayMaxMs = inMs(this.#delay.read((delay) => delay.max));
    this.#delay.restart();
    return {
      pid: process.pid,
      cpuSeconds: (user + system) / 1e6,
      memoryBytes: rss,
      heapBytes: heapUsed,
      eventLoop: { busySeconds: performance.eventLoopUtilization().active / 1000, delayP99Ms, delayMaxMs },
    };
  }

  #limits(): ServerState['limits'] {
    const { config, host } = this.#options;
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
