/** The figures of a server of several workers, for operators. One of the workers collects them from all. */
import { setTimeout as pause } from 'node:timers/promises';
import { RecentLines } from '#src/base/log/recent-lines.ts';
import { mergeMetrics } from '#src/base/metrics/merged-metrics.ts';
import type { ServerLog, ServerState } from '#src/contract/wire/server.ts';
import type { Cluster, Topic } from '#src/runtime/homes/cluster.ts';
import { MAX_WAIT_MS } from './ask-workers.ts';
import { mergeStates } from './cluster-state.ts';

/** One worker's observation of itself. `watched` is only read for subscribers of the load. */
export interface OwnObservation {
  readonly metrics: () => Promise<string>;
  readonly state: () => Promise<ServerState>;
  readonly watched: () => Promise<ServerState>;
  readonly log: () => readonly string[];
}

/** The observation of the whole server, in the same form. */
export interface ClusterObservation extends Omit<OwnObservation, 'log'> {
  readonly log: () => Promise<ServerLog>;
}

/**
 * Returns the observation of the whole server. `own` is the observation of this worker, and
 * `primaryLog` reads the lines of the primary.
 */
export function observeCluster(
  own: OwnObservation,
  cluster: Cluster,
  primaryLog: () => Promise<readonly string[]>,
): ClusterObservation {
  const { worker, size } = cluster;
  if (size === 1) return { ...own, log: async () => ({ items: own.log() }) };
  /**
   * Returns a function that asks every worker, including this one. Its result also has the number of workers that did
   * not answer.
   */
  const everywhere = <T>(topic: Topic, read: () => T | Promise<T>) => {
    cluster.onAsked(topic, read);
    return async () => {
      const [mine, others] = await Promise.all([read(), cluster.askOthers(topic, null, MAX_WAIT_MS)]);
      const answers = [mine, ...(others as readonly T[])];
      return { answers, silent: Math.max(0, size - answers.length) };
    };
  };
  const allMetrics = everywhere('metrics', async () => ({ worker, text: await own.metrics() }));
  const allStates = everywhere('server-state', async () => ({ worker, state: await own.state() }));
  const allWatched = everywhere('server-load', async () => ({ worker, state: await own.watched() }));
  const allLogs = everywhere('log', () => own.log());
  const merged = async (ask: typeof allStates) => {
    const { answers, silent } = await ask();
    return mergeStates(answers, silent);
  };
  return {
    async metrics() {
      const { answers, silent } = await allMetrics();
      const inOrder = answers.sort((a, b) => a.worker - b.worker);
      return mergeMetrics(inOrder, silent);
    },
    state: () => merged(allStates),
    watched: () => merged(allWatched),
    async log() {
      const [{ answers, silent }, lines] = await Promise.all([allLogs(), withinWait(primaryLog())]);
      return { items: mergeLines([lines ?? [], ...answers]), silentWorkers: silent };
    },
  };
}

/** Resolves with undefined when the answer takes longer than the time limit for workers. */
async function withinWait<T>(answer: Promise<T>): Promise<T | undefined> {
  const over = new AbortController();
  const { signal } = over;
  const limit = pause(MAX_WAIT_MS, undefined, { signal }).catch(() => undefined);
  return Promise.race([answer, limit]).finally(() => over.abort());
}

/** Merges the lines of all logs by time, oldest first. Returns at most as many lines as one log keeps. */
export function mergeLines(logs: readonly (readonly string[])[]): string[] {
  const timed = logs.flatMap((lines) => {
    let time = '';
    return lines.map((line) => {
      time = /"time":"([^"]+)"/.exec(line)?.[1] ?? time;
      return { time, line };
    });
  });
  timed.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  const recent = new RecentLines();
  for (const { line } of timed) recent.add(line);
  return recent.list();
}
