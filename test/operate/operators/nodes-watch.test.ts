import assert from 'node:assert/strict';
import test from 'node:test';
import type { Node, NodeList } from '#src/contract/wire/nodes.ts';
import { NodesWatch } from '#src/operate/operators/nodes-watch.ts';
import { eventually } from '#test/support/processes.ts';

const node = (name: string, fields: Partial<Node> = {}): Node => ({
  name,
  state: 'joined',
  draining: false,
  problem: null,
  kernels: 0,
  capacity: 1,
  memoryBytes: 1,
  freeMemoryBytes: 1,
  cores: 1,
  load: 0,
  confinement: 'full',
  release: null,
  address: null,
  enrolledAt: '2026-11-01T08:00:00.000Z',
  joinedAt: null,
  ...fields,
});

async function kindsWith(list: NodeList): Promise<string[]> {
  using watch = new NodesWatch(async () => list);
  await eventually('the list is known', () => watch.latest === list);
  return watch.warnings().map(({ kind }) => kind);
}

test('warnings report a server whose kernels find no node, and a node that gets no kernels', async () => {
  const list = (items: readonly Node[], waiting = 0): NodeList => ({
    enabled: true,
    waiting,
    engine: null,
    items,
  });
  assert.deepEqual(await kindsWith(list([])), ['nodes_missing']);
  assert.deepEqual(await kindsWith(list([node('a', { state: 'away' })])), ['nodes_missing']);
  assert.deepEqual(await kindsWith(list([node('a')])), []);
  assert.deepEqual(await kindsWith(list([node('a')], 1)), ['nodes_missing']);
  const refused = node('b', { state: 'away', problem: 'Another release.' });
  assert.deepEqual(await kindsWith(list([node('a'), refused])), ['node_refused']);
});

test('a server without nodes asks for no nodes and has no warnings about nodes', () => {
  using watch = new NodesWatch(undefined);
  assert.deepEqual([watch.latest.enabled, watch.warnings()], [false, []]);
});

test('a cluster without nodes is a problem only while a kernel waits, or when the cluster cannot be asked', async () => {
  const list = (waiting: number, problem: string | null): NodeList => ({
    enabled: true,
    waiting,
    engine: { kind: 'ray', problem },
    items: [],
  });
  assert.deepEqual(await kindsWith(list(0, null)), []);
  assert.deepEqual(await kindsWith(list(1, null)), ['nodes_missing']);
  assert.deepEqual(await kindsWith(list(0, 'Ray cannot be asked.')), ['nodes_not_started']);
});
