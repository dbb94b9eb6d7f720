import type { Cancellation, Run } from '#src/wire/run.ts';
import { type Connection, type PostOptions, path, type RequestOptions } from './connection.ts';
import { followEvents } from './event-stream.ts';

/** Runs, of notebooks and of agents. */
export function runs(connection: Connection) {
  const get = (runId: string, options: RequestOptions = {}) =>
    connection.json<Run>({ method: 'GET', path: path`/api/v3/runs/${runId}`, ...options });
  return {
    get,
    /** Resolves when the cancellation has begun; `wait` tells when the run has ended. */
    cancel: (runId: string, options: PostOptions = {}) =>
      connection.json<Cancellation>({
        method: 'POST',
        path: path`/api/v3/runs/${runId}/cancel`,
        ...options,
      }),
    asset: (runId: string, assetId: string, options: RequestOptions = {}) =>
      connection.bytes({ method: 'GET', path: path`/api/v3/runs/${runId}/assets/${assetId}`, ...options }),
    /**
     * Resolves with the run once it has ended, or is `stale`, which only cancelling changes. It subscribes to the
     * session's events before it reads the run, so that it misses no end.
     */
    async wait(runId: string, options: RequestOptions = {}): Promise<Run> {
      const first = await get(runId, options);
      if (isOver(first)) return first;
      const kind = first.kind === 'notebook' ? 'notebook-sessions' : 'agent-sessions';
      const events = `/api/v3/${kind}/${encodeURIComponent(first.sessionId)}/events`;
      for await (const event of followEvents(connection, events, options)) {
        const mayBeOver =
          event.type === 'session.replayed' ||
          (event.type === 'run-status' && event.data.runId === runId && event.data.status !== 'running');
        if (!mayBeOver) continue;
        const run = await get(runId, options);
        if (isOver(run)) return run;
      }
      return get(runId, options);
    },
  };
}

function isOver(run: Run): boolean {
  return run.status !== 'running' || run.stale === true;
}
