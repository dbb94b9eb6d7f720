import assert from 'node:assert/strict';
import { setTimeout as later } from 'node:timers/promises';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';

/**
 * A session starts no kernel for five seconds after several of its kernels have died in a row. This
 * time is enough for that, even on a busy machine.
 */
const MAX_REST_MS = 15_000;
const LOOK_MS = 100;

/** Ends the running work of a session whose server lived on without its player. Resolves when the session can be used again. */
export async function settle(client: Client, sessionId: string, signal: AbortSignal): Promise<void> {
  await untilRested(client, sessionId, signal);
  for await (const { id, status, stale } of client.executions.each(sessionId, { limit: 100 })) {
    if (status !== 'running' || stale === true) continue;
    await client.runs.cancel(id).catch((error: unknown) => {
      if (!(error instanceof ApiError && error.code === 'run_finished')) throw error;
    });
    await client.waitForRun(id, { signal });
  }
}

async function untilRested(
  { notebookSessions }: Client,
  sessionId: string,
  signal: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + MAX_REST_MS;
  while ((await notebookSessions.get(sessionId)).status === 'failed') {
    assert.ok(performance.now() < deadline, 'a session that has failed is restored when it is used later');
    await later(LOOK_MS);
    await notebookSessions.waitUntilReady(sessionId, { signal });
  }
}
