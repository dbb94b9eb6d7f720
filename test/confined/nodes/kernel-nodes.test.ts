// tier: whole, because it starts several nodes
/** Sessions whose kernels run on other machines, from the view of clients. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { slotOf } from '#src/runtime/homes/slots.ts';
import type { ChildServer } from '#test/support/child-server.ts';
import { invite, joinNode, startNode, startServerOfNodes } from '#test/support/kernel-node.ts';
import { type OpenNotebook, openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import {
  descendants,
  eventually,
  gone,
  type ProcessFact,
  processFact,
  workersOf,
} from '#test/support/processes.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

/** Returns the processes of all kernels. Fails when there is none. */
async function kernelsOf({ client }: Pick<ChildServer, 'client'>): Promise<ProcessFact[]> {
  const { items } = await client.kernels();
  const kernels = items.flatMap(({ pid }) => [processFact(pid), ...descendants(pid)]);
  assert(kernels.length > 0);
  return kernels.filter((fact) => fact !== undefined);
}

test('a kernel runs on a node as it would on the machine of the server', async (t) => {
  const server = await startServerOfNodes(t);
  const node = await joinNode(t, server, 'one');
  const notebook = await openNotebook(server, {
    a: 'import os\nx = 20\nprint("printed")\nopen("made.txt", "w").write("made")',
    b: 'x + 1',
    c: '"a" * 1_000_000',
    d: 'import time\nprint("begun", flush=True)\ntime.sleep(1000)',
  });
  const run = await notebook.run(['b', 'c']);
  assert.equal(run.status, 'completed');
  const [first] = results(run);
  assert.equal(printed(first!), 'printed\n');
  const kernels = await server.client.kernels();
  assert.deepEqual(
    kernels.items.map((kernel) => kernel.node),
    ['one'],
  );
  assert((kernels.items[0]?.memoryBytes ?? 0) > 1_000_000);
  assert(descendants(node.pid).some(({ pid }) => pid === kernels.items[0]?.pid));
  assert.equal((await server.client.files.list()).items.at(-1)?.path, 'made.txt');
  const events = await notebook.events();
  const runId = await notebook.submit(['d']);
  await events.until(({ type, data }) => type === 'console-output' && JSON.stringify(data).includes('begun'));
  await server.client.runs.cancel(runId);
  assert.equal((await server.client.waitForRun(runId)).status, 'cancelled');
  assert.equal((await notebook.run(['b'])).status, 'completed');
  const { items } = await server.client.nodes.list();
  assert.deepEqual(
    items.map(({ name, state, kernels: count }) => [name, state, count]),
    [['one', 'joined', 1]],
  );
  await server.client.notebookSessions.close(notebook.id);
  await eventually('the node has no kernel', async () => {
    const { items: left } = await server.client.nodes.list();
    return left[0]?.kernels === 0;
  });
  await events[Symbol.asyncDispose]();
});

test('with three workers, kernels connect to the worker of their session, and a worker that dies takes only its own kernels along', async (t) => {
  const server = await startServerOfNodes(t, { TROUPE_WORKERS: '3' });
  await joinNode(t, server, 'one');
  const isOfFirst = ({ id }: OpenNotebook) => slotOf(OWNER.workspaceId, id) % 3 === 0; // slots are dealt out in turn
  const notebooks: OpenNotebook[] = [];
  while (notebooks.length < 6 || notebooks.every(isOfFirst) || !notebooks.some(isOfFirst))
    notebooks.push(await openNotebook(server, { a: 'import os\nprint(os.getpid())', b: '2' }));
  const count = notebooks.length;
  for (const notebook of notebooks) assert.equal((await notebook.run(['b'])).status, 'completed');
  const before = await kernelsOf(server);
  assert.equal((await server.client.nodes.list()).items[0]?.kernels, count);
  const [worker] = workersOf(server.pid);
  process.kill(worker!.pid, 'SIGKILL');
  await gone([worker!]);
  for (const notebook of notebooks) {
    // A request on a connection of the dead worker gets no answer, and is sent again.
    const run = await eventually('a run', () => notebook.run(['b']).catch(() => undefined));
    assert.equal(run.status, 'completed');
  }
  const { items } = await server.client.kernels();
  const kept = items.filter(({ pid }) => before.some((fact) => fact.pid === pid));
  assert.equal(kept.length, notebooks.filter((notebook) => !isOfFirst(notebook)).length);
  await eventually(
    'the node has all kernels',
    async () => (await server.client.nodes.list()).items[0]?.kernels === count,
  );
  assert.equal((await server.client.nodes.drain('one', true)).state, 'draining');
  await server.client.nodes.remove('one');
  assert.deepEqual((await server.client.nodes.list()).items, []);
});

test('when the primary of three workers is killed, all kernels on the node end, and the node joins the next server', async (t) => {
  const server = await startServerOfNodes(t, {
    TROUPE_WORKERS: '3',
    TROUPE_NODES_PORT: String(21_000 + (process.pid % 10_000)),
  });
  const node = await joinNode(t, server, 'one');
  const notebooks: OpenNotebook[] = [];
  for (let count = 0; count < 3; count++) notebooks.push(await openNotebook(server, { a: '1' }));
  const kernels = await kernelsOf(server);
  await server.end('SIGKILL');
  await gone(kernels);
  const again = await server.again();
  await node.joined(2);
  for (const { id } of notebooks)
    assert.equal((await again.client.notebookSessions.waitUntilReady(id)).status, 'ready');
});

test('when a node is killed, its sessions come back on another node', async (t) => {
  const server = await startServerOfNodes(t);
  const first = await joinNode(t, server, 'first');
  const notebook = await openNotebook(server, {
    a: 'import time\nprint("begun", flush=True)\ntime.sleep(1000)',
    b: '1',
  });
  const events = await notebook.events();
  const runId = await notebook.submit(['a']);
  await events.until(({ type }) => type === 'console-output');
  await joinNode(t, server, 'second');
  const before = descendants(first.pid);
  await first.end('SIGKILL');
  const run = await server.client.waitForRun(runId);
  assert.deepEqual([run.status, run.error?.code], ['failed', 'kernel_host_lost']);
  await server.client.notebookSessions.waitUntilReady(notebook.id);
  assert.equal((await notebook.run(['b'])).status, 'completed');
  const { items } = await server.client.kernels();
  assert.equal(items[0]?.node, 'second');
  await gone(before);
  await events[Symbol.asyncDispose]();
});

test('a node that is stopped ends its kernels before the server opens their sessions elsewhere', async (t) => {
  const server = await startServerOfNodes(t);
  const first = await joinNode(t, server, 'first');
  const notebook = await openNotebook(server, { a: '1' });
  const events = await notebook.events();
  await joinNode(t, server, 'second');
  const kernels = await kernelsOf(server);
  process.kill(first.pid, 'SIGSTOP');
  await gone(kernels);
  const { items } = await server.client.nodes.list();
  assert.equal(
    items.find(({ name }) => name === 'first')?.state,
    'joined',
    'the server has not given it up yet',
  );
  await events.until(({ type, data }) => type === 'session.status' && data.reason === 'kernel_host_lost');
  await server.client.notebookSessions.waitUntilReady(notebook.id);
  assert.equal((await server.client.kernels()).items[0]?.node, 'second');
  process.kill(first.pid, 'SIGCONT');
  await first.joined(2);
  await events[Symbol.asyncDispose]();
});

test('a node joins again after a restart of its server, without its earlier kernels', async (t) => {
  const server = await startServerOfNodes(t, { TROUPE_NODES_PORT: String(21_000 + (process.pid % 10_000)) });
  const node = await joinNode(t, server, 'one');
  const notebook = await openNotebook(server, { a: '1' });
  const kernels = await kernelsOf(server);
  await server.end('SIGKILL');
  await gone(kernels);
  const again = await server.again();
  await node.joined(2);
  assert.equal((await again.client.notebookSessions.waitUntilReady(notebook.id)).status, 'ready');
});

test('an invitation works once', async (t) => {
  const server = await startServerOfNodes(t);
  const invitation = await invite(server);
  await startNode(t, { invitation, name: 'one' }).joined();
  const second = startNode(t, { invitation, name: 'two' });
  assert.equal(await second.ended, 1);
  assert.match(second.said.join(' '), /The invitation is not valid: it works once/);
});

test('a node is not enrolled at a server whose authority differs from the authority in the invitation', async (t) => {
  const [server, other] = await Promise.all([startServerOfNodes(t), startServerOfNodes(t)]);
  const { code } = await server.client.nodes.invite();
  const { port } = await other.client.nodes.invite();
  const node = startNode(t, { invitation: `127.0.0.1:${port}#${code}`, name: 'one' });
  assert.equal(await node.ended, 1);
  assert.match(node.said.join(' '), /is not the one that made the invitation/);
});

test('a removed node loses its kernels, and cannot join again', async (t) => {
  const server = await startServerOfNodes(t);
  const node = await joinNode(t, server, 'one');
  await openNotebook(server, { a: '1' });
  const kernels = await kernelsOf(server);
  await server.client.nodes.remove('one');
  await gone(kernels);
  await eventually('the node is refused', () => /was removed/.test(node.said.join(' ')));
  assert.deepEqual((await server.client.nodes.list()).items, []);
  assert.equal(await refusalOf(server.client.nodes.remove('one')), '404 not_found');
});

test('a drained node keeps its kernels and gets no new kernels', async (t) => {
  const server = await startServerOfNodes(t);
  await joinNode(t, server, 'one');
  const kept = await openNotebook(server, { a: '1' });
  assert.equal((await server.client.nodes.drain('one', true)).state, 'draining');
  await joinNode(t, server, 'two');
  await openNotebook(server, { a: '1' });
  const { items } = await server.client.kernels();
  assert.deepEqual(items.map(({ node }) => node).sort(), ['one', 'two']);
  assert.equal((await kept.run(['a'])).status, 'completed');
});

test('a server without kernel nodes makes no invitation', async (t) => {
  const { client } = await startServer(t);
  assert.equal(await refusalOf(client.nodes.invite()), '409 nodes_disabled');
  assert.deepEqual(await client.nodes.list(), { enabled: false, waiting: 0, engine: null, items: [] });
});
