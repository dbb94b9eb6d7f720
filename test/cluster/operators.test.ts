/** Operators' views of a workspace whose notebooks may be at home in several workers, one of which is killed. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { ActorStreamEvent } from '#src/contract/wire/actor.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually, workersOf } from '#test/support/processes.ts';

const SIZE = 3;
/**
 * With this many notebooks, each with a home of its own, every worker has some, except in one of
 * some hundreds of runs.
 */
const NOTEBOOKS = 12;

const server = await startChildServer(test, { TROUPE_WORKERS: String(SIZE) });
const { client } = server;

/** The kernels according to the last sample of each worker, which is shared for up to five seconds. */
async function sessionsWithKernels(): Promise<string[]> {
  const { items } = await client.kernels();
  return items.map(({ sessionId }) => sessionId).sort();
}

test("the operators' views show the sessions, kernels and events of all workers, also after a worker was killed", {
  timeout: 120_000,
}, async () => {
  const seen: ActorStreamEvent[] = [];
  const stop = new AbortController();
  const following = (async () => {
    for await (const event of client.followActors({ kind: 'run', signal: stop.signal })) seen.push(event);
  })().catch(() => undefined);
  await eventually('the stream has begun', () => seen.some(({ type }) => type === 'actors.replayed'));
  const notebooks = await Promise.all(
    Array.from({ length: NOTEBOOKS }, () => openNotebook(server, { a: '1' })),
  );
  const ids = notebooks.map(({ id }) => id).sort();
  const listed: string[] = [];
  for await (const { id } of client.eachActor({ kind: 'notebook-session', limit: 5 })) listed.push(id);
  assert.deepEqual(listed, ids, 'each is on one page');
  const { counts } = await client.actors({ limit: 1 });
  const sum = counts
    .filter(({ kind }) => kind === 'notebook-session')
    .reduce((total, { count }) => total + count, 0);
  assert.equal(sum, NOTEBOOKS);
  await eventually('all kernels are listed', async () => isDeepStrictEqual(await sessionsWithKernels(), ids));
  for (const id of ids) assert.equal((await client.actor('notebook-session', id)).presence, 'live');

  const runAll = () => Promise.all(notebooks.map((notebook) => notebook.submit(['a'])));
  const hasEnded = (run: string) =>
    seen.some(({ type, data }) => type === 'actor.left' && 'id' in data && data.id === run);
  const runs = await runAll();
  await eventually('every run is seen to end', () => runs.every(hasEnded));
  assert.equal(seen.filter(({ type }) => type === 'actors.snapshot').length, 1);

  process.kill(workersOf(server.pid)[0]!.pid, 'SIGKILL');
  const snapshots = () => seen.filter((event) => event.type === 'actors.snapshot');
  await eventually('who follows looks again', () => snapshots().length >= 2);
  assert.ok(snapshots().every((event) => !('resumed' in event)));
  await eventually('all workers are there', () => workersOf(server.pid).length === SIZE);
  await Promise.all(ids.map((id) => client.notebookSessions.waitUntilReady(id)));
  const later = await runAll();
  await Promise.all(later.map((run) => client.waitForRun(run)));
  await eventually('every run is seen to end', () => later.every(hasEnded));
  const { items } = await client.actors({ kind: 'notebook-session', limit: 100 });
  assert.deepEqual(
    items.map(({ id }) => id),
    ids,
  );
  await eventually('all kernels are listed', async () => isDeepStrictEqual(await sessionsWithKernels(), ids));
  stop.abort();
  await following;
});
