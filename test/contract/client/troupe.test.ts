// own process: collects garbage
/** The client of programs: its memory, and that nothing stays open on a way out. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Session } from '#src/contract/client/session.ts';
import { Troupe } from '#src/contract/client/troupe.ts';
import { heapAfterCollection } from '#test/support/heap.ts';
import { leavingFetch, MOMENTS } from '#test/support/leaving-fetch.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventuallyAsBefore, openThings } from '#test/support/open-things.ts';
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

test('after a caller has abandoned a code call, the next call waits until the kernel is free', async () => {
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

/** A client of programs with the `fetch` of a caller that leaves. */
function leavingClient() {
  const { send, ...leaving } = leavingFetch();
  return { troupe: new Troupe({ ...access, fetch: send }), ...leaving };
}

test('a caller that leaves while a session opens, a run begins or code runs leaves nothing open', async () => {
  const { id } = await server.client.notebooks.create({ serialization: { cells: [] } });
  const open = await openNotebook(server, { endless: 'while True: pass' });
  type Call = (troupe: Troupe, session: Session, signal: AbortSignal) => Promise<unknown>;
  const submit: Call = async (_, session, signal) => {
    const run = session.run('endless', { signal });
    await run.id();
    await run.cancel();
    await run.result();
  };
  const kinds: Readonly<Record<string, readonly [requests: number, call: Call]>> = {
    open: [5, async (troupe, _, signal) => (await troupe.open(id, { signal })).close()],
    submit: [1, submit],
    code: [1, (_, session, signal) => session.code('1', { signal })],
    printing: [2, (_, session, signal) => session.code('1', { signal, onStdout: () => {} })],
  };
  const before = await openThings(server.client);
  let ways = 0;
  for (const [name, [requests, call]] of Object.entries(kinds))
    for (let at = 0; at <= requests; at++)
      for (const moment of at === 0 ? (['before'] as const) : MOMENTS) {
        const client = leavingClient();
        const session = await client.troupe.open(open.id);
        client.arm(at, moment);
        const ended = call(client.troupe, session, client.signal);
        if (at > 0) await ended.catch((error) => assert.match(String(error), /left/));
        else await ended;
        if (at === 0) assert.ok(client.requests() >= requests, name);
        await eventuallyAsBefore(server.client, before, `${name}, left ${moment} request ${at}`);
        ways++;
      }
  assert.equal(ways, 31);
});

test('a refused open closes its environment and keeps the refusal visible', async () => {
  const troupe = new Troupe(access);
  const before = await openThings(server.client);
  await assert.rejects(troupe.open('nb_none'), { code: 'not_found' });
  await eventuallyAsBefore(server.client, before, 'a refused open');
});

test('a session that has ended by itself is closed at the end of its block', async () => {
  const { id } = await server.client.notebooks.create({ serialization: { cells: [] } });
  const session = await new Troupe(access).open(id);
  await server.client.notebookSessions.close(id);
  await server.client.executionEnvironments.close(session.environmentId);
  await session[Symbol.asyncDispose]();
});

test('a session is busy in the loop over the events of its run, and ready as soon as the loop has ended', async () => {
  const waiting = 'import os, time\nwhile not os.path.exists("go"): time.sleep(0.01)';
  const notebook = await openNotebook(server, { waiting });
  const troupe = new Troupe(access);
  const session = await troupe.open(notebook.id);
  const status = async () => (await troupe.notebookSessions.get(session.id)).status;
  const states = [await status()];
  for await (const event of session.run()) {
    if (event.type !== 'run-status' || event.data.status !== 'running') continue;
    states.push(await status());
    await troupe.files.put('go', new Uint8Array());
  }
  states.push(await status());
  assert.deepEqual([...states, session.opened.status], ['ready', 'busy', 'ready', 'ready']);
  await notebook.close();
});

test('a busy session is opened at once', async () => {
  const notebook = await openNotebook(server, { endless: 'while True: pass' });
  const run = (await new Troupe(access).open(notebook.id)).run('endless');
  await run.id();
  const again = await new Troupe(access).open(notebook.id);
  assert.equal(again.opened.status, 'busy');
  await run.cancel();
  await run.result();
  await run.cancel(); // after its end, this does nothing
  await notebook.close();
});
