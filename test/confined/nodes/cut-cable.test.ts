// tier: whole, because it cuts networks of several machines
/** Nodes on machines of their own, and the cable between them and the server. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as later } from 'node:timers/promises';
import { invite, type NodeProcess, startNode, startServerOfNodes } from '#test/support/kernel-node.ts';
import { makeMachine, whyNoMachines } from '#test/support/machine.ts';
import { type OpenNotebook, openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { descendants, eventually, processFact } from '#test/support/processes.ts';

/** How long a cable is pulled: long enough that several signs of life are late, and far less than the lease of a node. */
const FLAP_MS = 1000;

const why = whyNoMachines();
const skip = process.env.CI === 'true' ? false : (why ?? false);

test('when the cable of a node is pulled, its kernels end before its sessions open elsewhere, and it joins again later', {
  skip,
}, async (t) => {
  const server = await startServerOfNodes(t, { TROUPE_NODES_HOST: '0.0.0.0' });
  const machines = [makeMachine(t), makeMachine(t)] as const;
  const nodes: NodeProcess[] = [];
  let notebook: OpenNotebook | undefined;
  for (const [index, machine] of machines.entries()) {
    const node = startNode(t, {
      invitation: await invite(server, machine.here),
      name: `n${index}`,
      command: machine.command,
    });
    await node.joined();
    nodes.push(node);
    if (index > 0) continue;
    notebook = await openNotebook(server, { a: '1' });
  }
  const [kernel] = (await server.client.kernels()).items;
  assert.equal(kernel?.node, 'n0');
  const processes = [processFact(kernel.pid)!, ...descendants(kernel.pid)];
  machines[0].cut();
  await eventually('the server has given the node up', async () => {
    const { items } = await server.client.nodes.list();
    return items.find(({ name }) => name === 'n0')?.state === 'away';
  });
  const left = processes.filter(({ pid, startedAt }) => processFact(pid)?.startedAt === startedAt);
  assert.deepEqual(left, [], 'the kernels ended before');
  await server.client.notebookSessions.waitUntilReady(notebook!.id);
  assert.equal((await notebook!.run(['a'])).status, 'completed');
  assert.equal((await server.client.kernels()).items[0]?.node, 'n1');
  machines[0].join();
  await nodes[0]!.joined(2);
  await eventually('both nodes are there', async () => {
    const { items } = await server.client.nodes.list();
    return items.every(({ state }) => state === 'joined');
  });
});

test('a cable that is pulled for a second, again and again, costs no run and no kernel', {
  skip,
}, async (t) => {
  const server = await startServerOfNodes(t, { TROUPE_NODES_HOST: '0.0.0.0' });
  const machine = makeMachine(t);
  const node = startNode(t, { invitation: await invite(server, machine.here), command: machine.command });
  await node.joined();
  const notebook = await openNotebook(server, {
    a: 'import time\nfor n in range(30):\n    print(n, flush=True)\n    time.sleep(0.2)',
  });
  const [before] = (await server.client.kernels()).items;
  const running = notebook.run(['a']);
  for (let pull = 0; pull < 2; pull++) {
    machine.cut();
    await later(FLAP_MS); // the fault itself is a time without a cable
    machine.join();
    await later(2 * FLAP_MS); // and a time with the cable
  }
  const run = await running;
  assert.equal(run.status, 'completed');
  const lines = Array.from({ length: 30 }, (_, n) => `${n}\n`);
  assert.deepEqual(results(run).map(printed), [lines.join('')]);
  const [after] = (await server.client.kernels()).items;
  assert.equal(after?.pid, before?.pid);
  assert.equal(node.log.filter(({ msg }) => msg === 'this node has joined the server').length, 1);
});

test('a kernel cannot reach the server or the node through the network', { skip }, async (t) => {
  const server = await startServerOfNodes(t, { TROUPE_NODES_HOST: '0.0.0.0', TROUPE_HOST: '0.0.0.0' });
  const machine = makeMachine(t);
  const node = startNode(t, { invitation: await invite(server, machine.here), command: machine.command });
  await node.joined();
  const { port: nodesPort } = await server.client.nodes.invite();
  const { port } = new URL(server.baseUrl);
  const notebook = await openNotebook(server, {
    a: `
import socket
_found = []
for _host in ("${machine.here}", "127.0.0.1"):
    for _port in (${port}, ${nodesPort}):
        try:
            socket.create_connection((_host, _port), timeout=2).close()
            _found.append((_host, _port))
        except OSError:
            pass
print(_found)
`,
    b: `
import os
_found = []
for _folder in ("${node.folder}", "${server.dataDir}/nodes", "${server.dataDir}/store"):
    try:
        _found += os.listdir(_folder)
    except OSError:
        pass
print(_found)
`,
  });
  const run = await notebook.run(['a', 'b']);
  assert.equal(run.status, 'completed');
  assert.deepEqual(results(run).map(printed), ['[]\n', '[]\n']);
});
