import type { KernelUsage, ServerState, WorkerState } from '#src/contract/wire/server.ts';

/** A kernel and the share of a processor that it used between two samples. */
export interface TopKernel extends KernelUsage {
  /** 1 is one whole processor. */
  readonly cpuShare: number;
}

/** A worker and its use of resources between two samples. */
export interface TopWorker extends WorkerState {
  readonly cpuShare: number;
  readonly busyShare: number;
}

/** The state of the server, with the changes since the sample before. */
export interface TopSample extends Omit<ServerState, 'kernels' | 'workers'> {
  /** Processor time of the server's process; 1 is one whole processor. */
  readonly cpuShare: number;
  /** The share of time in which the event loop was busy. With several workers, the share of the busiest worker. */
  readonly busyShare: number;
  /** The workers of a server of several workers. */
  readonly workers?: readonly TopWorker[];
  /** Kernels by processor time, then by memory, the greatest first. */
  readonly kernels: readonly TopKernel[];
}

/** Returns the sample for the time between two states of the server. `now` is the later state. */
export function topSample(before: ServerState, now: ServerState): TopSample {
  const seconds = Math.max(0.001, (Date.parse(now.sampledAt) - Date.parse(before.sampledAt)) / 1000);
  const share = (later: number, earlier: number) => Math.max(0, (later - earlier) / seconds);
  const known = new Map(before.kernels.map((kernel) => [kernel.pid, kernel.cpuSeconds]));
  const kernels = now.kernels.map((kernel) => ({
    ...kernel,
    // A kernel that is not in the earlier sample began after it, so all its processor time counts.
    cpuShare: share(kernel.cpuSeconds, known.get(kernel.pid) ?? 0),
  }));
  kernels.sort((a, b) => b.cpuShare - a.cpuShare || b.memoryBytes - a.memoryBytes);
  const workers = now.workers?.map((worker) => {
    const earlier = before.workers?.find((one) => one.worker === worker.worker);
    const busyShare = share(worker.eventLoop.busySeconds, earlier?.eventLoop.busySeconds ?? 0);
    return {
      ...worker,
      cpuShare: share(worker.cpuSeconds, earlier?.cpuSeconds ?? 0),
      busyShare: Math.min(1, busyShare),
    };
  });
  const busyShares = workers?.map(({ busyShare }) => busyShare) ?? [
    share(now.process.eventLoop.busySeconds, before.process.eventLoop.busySeconds),
  ];
  const { workers: _, ...state } = now;
  return {
    ...state,
    ...(workers !== undefined && { workers }),
    cpuShare: share(now.process.cpuSeconds, before.process.cpuSeconds),
    busyShare: Math.min(1, Math.max(...busyShares)),
    kernels,
  };
}
