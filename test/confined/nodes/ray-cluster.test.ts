// tier: whole, because it needs a cluster of Ray
/** Kernels on a real Ray cluster. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { startServerOfNodes } from '#test/support/kernel-node.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { descendants, eventually, gone, processFact } from '#test/support/processes.ts';
import { noRay, startRayCluster } from '#test/support/ray-cluster.ts';

test('a notebook opens on a machine of a Ray cluster, which the server asks for, and nodes that die or are drained are replaced', {
  skip: noRay,
}, async (t) => {
  const ray = await startRayCluster(t);
  const server = await startServerOfNodes(t, {
    TROUPE_KERNEL_NODES: `ray:${ray.url}`,
    TROUPE_RAY_TOKEN_FILE: ray.tokenFile,
    TROUPE_NODES_ADDRESS: '127.0.0.1',
    TROUPE_NODES_MAX: '1',
  });
  const joined = async (other = '') => {
    const { items, engine } = await server.client.nodes.list();
    assert.equal(engine?.kind, 'ray');
    if (engine.problem !== null) return undefined; // a busy Ray may not answer in time, and is asked again
    return items.find(({ name, state }) => name !== other && state === 'joined');
  };
  const node = await eventually('a node has joined', () => joined());
  const notebook = await openNotebook(server, {
    a: 'import os\nassert not [name for name in os.environ if "RAY" in name or "INVITATION" in name]',
  });
  assert.equal((await notebook.run(['a'])).status, 'completed');
  const [kernel] = (await server.client.kernels()).items;
  assert.equal(kernel?.node, node.name);
  const kernels = [processFact(kernel!.pid), ...descendants(kernel!.pid)].filter((one) => one !== undefined);
  await server.client.nodes.remove(node.name); // the program of the node ends, and Ray's job with it
  await gone(kernels);
  const next = await eventually('another node has joined', () => joined(node.name));
  assert.notEqual(next.name, node.name);
  assert.equal((await server.client.notebookSessions.waitUntilReady(notebook.id)).status, 'ready');
  await server.client.notebookSessions.close(notebook.id);
  await server.client.nodes.drain(next.name, true);
  const third = await eventually('a node in place of the drained one', () => joined(next.name));
  await eventually('the job of the drained node has ended', async () => {
    const statuses = await ray.statuses();
    const status = [...statuses].find(([id]) => id.endsWith(next.name.slice('ray-'.length)))?.[1];
    // Ray may notice the end of the program first, or the request to stop it.
    return status === 'STOPPED' || status === 'FAILED' || status === 'SUCCEEDED';
  });
  const supervisor = descendants(ray.pid).find(({ name }) => name.startsWith('ray::JobSuper'));
  const program = descendants(supervisor!.pid);
  process.kill(supervisor!.pid, 'SIGKILL');
  await gone(program); // Ray's shell kills the command once its parent is gone
  await eventually('a node in place of the killed one', () => joined(third.name));
});
