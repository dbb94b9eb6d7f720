// tier: whole, because it kills, fills and restarts servers of several processes
/** The sessions of a workspace when a worker dies: some are lost, some sleep in slots that move, and some live elsewhere. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually, workersOf } from '#test/support/processes.ts';

const SIZE = 3;
const SESSIONS = 8;

const server = await startChildServer(test, { TROUPE_WORKERS: String(SIZE) });
const { client } = server;

/** Returns the number of the worker that has started the session's last kernel. */
function homeOf({ id }: OpenNotebook): unknown {
  return server.log.findLast(({ sessionId, msg }) => sessionId === id && msg === 'a kernel has started')
    ?.worker;
}

test('after the death of a worker all sessions of a workspace work, and sessions in other workers keep their variables', async (t) => {
  const notebooks: OpenNotebook[] = [];
  for (let n = 0; n < SESSIONS; n++) {
    const notebook = await openNotebook(server, { a: `x = ${n}` });
    await notebook.run(['a']);
    notebooks.push(notebook);
  }
  const awake = notebooks.filter((_, n) => n % 2 === 0);
  const asleep = notebooks.filter((_, n) => n % 2 === 1);
  for (const { id } of asleep) await client.notebookSessions.hibernate(id);
  const dead = homeOf(awake[0]!);
  const homes = new Map(awake.map((notebook) => [notebook, homeOf(notebook)]));
  const known = new Set(workersOf(server.pid).map(({ number }) => number));
  process.kill(workersOf(server.pid).find(({ number }) => number === dead)!.pid, 'SIGKILL');
  const replacement = await eventually('another worker serves', async () => {
    const workers = (await client.server().catch(() => undefined))?.workers ?? [];
    return workers.length === SIZE && workers.find(({ worker }) => !known.has(worker))?.worker;
  });
  for (const notebook of notebooks) {
    const isNew = homes.get(notebook) === dead || asleep.includes(notebook);
    await client.notebookSessions.waitUntilReady(notebook.id);
    // Only a newly started kernel has no variables.
    const { success } = await client.code.execute(notebook.id, 'x');
    assert.equal(success, !isNew, `${notebook.id} was at home in ${homes.get(notebook)}`);
    assert.equal((await notebook.run(['a'])).status, 'completed');
    await notebook.close();
  }
  const moved = asleep.filter((notebook) => homeOf(notebook) === replacement);
  t.diagnostic(`${moved.length} of ${asleep.length} sessions that slept woke in the new worker`);
  const errors = server.log.filter(({ level }) => level === 'error' || level === 'fatal');
  assert.deepEqual(
    errors.map(({ msg }) => msg),
    ['a worker has ended; others take over its slots'],
  );
});
