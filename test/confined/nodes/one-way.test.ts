// tier: whole, because a network is silent for many seconds
/** A network between a node and the server that fails in one direction first. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import test from 'node:test';
import { setTimeout as later } from 'node:timers/promises';
import { startNode, startServerOfNodes } from '#test/support/kernel-node.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { descendants, eventually, processFact } from '#test/support/processes.ts';

/** The address at which the node reaches the server through the network of this test. */
const FAR = '127.0.0.2';
/** Longer than the lease, and less than the patience of the server. */
const BETWEEN_MS = 6000;

test('a node whose words do not arrive ends its kernels before the server gives it up, although it hears the server', async (t) => {
  const server = await startServerOfNodes(t);
  const { code, port } = await server.client.nodes.invite();
  const [fromNode, fromServer]: [Socket[], Socket[]] = [[], []];
  let isSilent = false;
  const network = createServer((near) => {
    near.on('error', () => undefined);
    fromNode.push(near);
    if (isSilent) return;
    const far = connect(port, '127.0.0.1');
    far.on('error', () => undefined);
    fromServer.push(far);
    near.pipe(far);
    far.pipe(near);
  }).listen(port, FAR);
  await once(network, 'listening');
  t.after(() => {
    for (const socket of [...fromNode, ...fromServer]) socket.destroy();
    network.close();
  });
  const node = startNode(t, { invitation: `${FAR}:${port}#${code}`, name: 'one' });
  await node.joined();
  await openNotebook(server, { a: '1' });
  const [kernel] = (await server.client.kernels()).items;
  const processes = [processFact(kernel!.pid)!, ...descendants(kernel!.pid)];
  isSilent = true;
  for (const socket of fromNode) socket.unpipe().pause();
  await later(BETWEEN_MS); // the fault itself is a time in which only one direction fails
  for (const socket of fromServer) socket.unpipe().pause();
  await eventually('the server has given the node up', async () => {
    const { items } = await server.client.nodes.list();
    return items[0]?.state === 'away';
  });
  const left = processes.filter(({ pid, startedAt }) => processFact(pid)?.startedAt === startedAt);
  assert.deepEqual(left, [], 'the kernels ended before');
});
