/** Adds up the states of the workers of one server. */
import { invariant } from '#src/base/errors/invariant.ts';
import type { ServerState, WorkerState } from '#src/contract/wire/server.ts';

/** One worker's share of the server's state. */
export interface StateOfWorker {
  readonly worker: number;
  readonly state: ServerState;
}

/** Returns the state of the server. The first of `parts` comes from the worker that was asked. */
export function mergeStates(parts: readonly StateOfWorker[], silentWorkers: number): ServerState {
  const [own] = parts;
  invariant(own !== undefined, 'A server has at least one worker.');
  const states = parts.map(({ state }) => state);
  const sum = (of: (state: ServerState) => number) => states.reduce((total, state) => total + of(state), 0);
  return {
    ...own.state,
    startedAt: states.map(({ startedAt }) => startedAt).sort()[0]!,
    process: {
      pid: process.ppid,
      cpuSeconds: sum((state) => state.process.cpuSeconds),
      memoryBytes: sum((state) => state.process.memoryBytes),
      heapBytes: sum((state) => state.process.heapBytes),
      eventLoop: {
        busySeconds: sum((state) => state.process.eventLoop.busySeconds),
        delayP99Ms: largest(states.map((state) => state.process.eventLoop.delayP99Ms)),
        delayMaxMs: largest(states.map((state) => state.process.eventLoop.delayMaxMs)),
      },
    },
    kernels: states.flatMap(({ kernels }) => kernels),
    actors: mergeCounts(states),
    requests: sum(({ requests }) => requests),
    streams: sum(({ streams }) => streams),
    warnings: [...new Set(states.flatMap(({ warnings }) => warnings))],
    store: {
      ...own.state.store,
      isFull: states.some(({ store }) => store.isFull),
      commitMs: largest(states.map(({ store }) => store.commitMs)),
    },
    workers: parts.map(workerOf).sort((a, b) => a.worker - b.worker),
    silentWorkers,
  };
}

function workerOf({ worker, state }: StateOfWorker): WorkerState {
  const { startedAt, process, kernels, requests, streams } = state;
  return { worker, startedAt, ...process, kernels: kernels.length, requests, streams };
}

function largest(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
}

function mergeCounts(states: readonly ServerState[]): ServerState['actors'] {
  const counts = new Map<string, { kind: string; state: string; count: number }>();
  for (const { kind, state, count } of states.flatMap(({ actors }) => actors)) {
    const key = `${kind} ${state}`;
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { kind, state, count });
    else known.count += count;
  }
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, count]) => count);
}
