// tier: whole, because it kills, fills and restarts servers of several processes
/** Subscribers of a server with several workers, each of which is killed in turn while a run is in progress. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually, workersOf } from '#test/support/processes.ts';

const SIZE = 3;
/** This many connections reach all workers, except in one of some thousands of runs. */
const FOLLOWERS = 24;
const ENDED = ['completed', 'failed', 'cancelled'];

const server = await startChildServer(test, { TROUPE_WORKERS: String(SIZE) });

test('after the death of any worker, every subscriber learns how each run has ended', {
  timeout: 120_000,
}, async (t) => {
  const notebook = await openNotebook(server, { a: '' });
  const logs = await Promise.all(
    Array.from({ length: FOLLOWERS }, () => EventLog.open(server.client, notebook.id)),
  );
  t.after(() => Promise.all(logs.map((log) => log[Symbol.asyncDispose]())));
  const endings: string[] = [];
  for (let round = 0; round < SIZE; round++) {
    await eventually('all workers are there', () => workersOf(server.pid).length === SIZE);
    await eventually('the session is ready', async () => {
      const session = await server.client.notebookSessions.get(notebook.id).catch(() => undefined);
      return session?.status === 'ready';
    });
    // The run ends when the file is there, so not before a worker was killed.
    const go = `go-${round}`;
    const code = `import os, time\nwhile not os.path.exists("${go}"): time.sleep(0.01)\nprint("done")`;
    const runId = await notebook.submit({ type: 'cells', cells: [{ cellId: 'a', code }] });
    await Promise.all(logs.map((log) => log.until((event) => isRunning(event, runId))));
    // The worker that has lived longest, so that each of the first three workers is killed.
    process.kill(workersOf(server.pid)[0]!.pid, 'SIGKILL');
    await eventually('the file is there', () =>
      server.client.files.put(go, Buffer.from('go')).then(
        () => true,
        () => false,
      ),
    );
    const ends = await Promise.all(
      logs.map((log) => log.until((event) => endOf(event, runId) !== undefined)),
    );
    const { status, stale } = await server.client.runs.get(runId);
    const end = stale === true ? 'stale' : status;
    assert.deepEqual([...new Set(ends.map((event) => endOf(event, runId)))], [end]);
    endings.push(end);
  }
  assert.ok(endings.includes('stale'), 'one of them was the home of the session');
});

/** Returns how the run has ended by this event: `stale` when its worker was killed. */
function endOf(event: NotebookStreamEvent, runId: string): string | undefined {
  if (event.type !== 'run-status' || event.data.runId !== runId) return undefined;
  if (event.data.stale === true) return 'stale';
  return ENDED.includes(event.data.status) ? event.data.status : undefined;
}

function isRunning(event: NotebookStreamEvent, runId: string): boolean {
  return event.type === 'run-status' && event.data.runId === runId && event.data.status === 'running';
}
