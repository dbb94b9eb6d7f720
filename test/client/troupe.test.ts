// own process: collects garbage
/** The client of programs: its memory, and that nothing stays open on a way out. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Troupe } from '#src/client/troupe.ts';
import { heapAfterCollection } from '#test/support/heap.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const access = {
  baseUrl: server.baseUrl,
  accessToken: OWNER.token,
  workspaceId: OWNER.workspaceId,
};

const LARGE = `print("x" * 2_000_000)`;

test('the client keeps no result of a run or a code call', async () => {
  const troupe = new Troupe(access);
  const notebook = await openNotebook(server, { large: LARGE });
  const session = await troupe.open(notebook.id);
  const results: WeakRef<object>[] = [];
  const collect = async (begun: Promise<object>) => {
    results.push(new WeakRef(await begun));
  };
  await collect(session.run('large').result());
  await eventually('the result of the run is collected', () => isCollected(results));
  await collect(session.code(LARGE));
  await eventually('the result of the code call is collected', () => isCollected(results));
  assert.equal((await session.code('1 + 1')).text, '2', 'the session is in use all the time');
  await notebook.close();
});

test('after a code call that its caller has left, the next call waits until the kernel is free', async () => {
  const troupe = new Troupe(access);
  const notebook = await openNotebook(server, { a: 'x = 7' });
  const session = await troupe.open(notebook.id);
  const late = 'except KeyboardInterrupt: time.sleep(1)';
  for (const next of ['code', 'run'] as const) {
    const leaving = new AbortController();
    const left = session.code(
      `import time\ntry:\n    print("begun", flush=True)\n    time.sleep(600)\n${late}`,
      { signal: leaving.signal, onStdout: () => leaving.abort(new Error('left')) },
    );
    await assert.rejects(left, /left/);
    if (next === 'code') assert.equal((await session.code('1 + 1')).text, '2');
    else assert.equal((await session.run().result()).status, 'completed');
  }
  await notebook.close();
});

/** Collects garbage, and returns whether nothing refers to these objects. */
function isCollected(references: readonly WeakRef<object>[]): boolean {
  heapAfterCollection();
  return references.every((reference) => reference.deref() === undefined);
}
