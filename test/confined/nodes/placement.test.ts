import assert from 'node:assert/strict';
import test from 'node:test';
import { type Candidate, choose, LEAST_FREE_BYTES } from '#src/confined/nodes/placement.ts';

const GIB = 2 ** 30;
const node = (name: string, fields: Partial<Candidate> = {}) => ({
  name,
  kernels: 0,
  capacity: 10,
  freeMemoryBytes: GIB,
  claimedBytes: 0,
  loadPerCore: 0,
  ofWorkspace: 0,
  ...fields,
});

test('with the placement workspace, kernels of one workspace are kept together while there is room', () => {
  const crowded = node('crowded', { kernels: 9, ofWorkspace: 3, freeMemoryBytes: LEAST_FREE_BYTES });
  const free = node('free', { freeMemoryBytes: 9 * GIB });
  assert.equal(choose([free, crowded], 'workspace')?.name, 'crowded');
  assert.equal(choose([free, { ...crowded, kernels: 10 }], 'workspace')?.name, 'free');
  assert.equal(choose([free, crowded], 'spread')?.name, 'free');
});

test('kernels of one workspace are spread over idle nodes, in proportion to their memory', () => {
  const nodes = [
    node('a', { freeMemoryBytes: 4 * GIB }),
    node('b', { freeMemoryBytes: 4 * GIB }),
    node('c', { freeMemoryBytes: 2 * GIB }),
  ];
  for (let n = 0; n < 10; n++) {
    const chosen = choose(nodes, 'spread')!;
    nodes[nodes.indexOf(chosen)] = {
      ...chosen,
      kernels: chosen.kernels + 1,
      ofWorkspace: chosen.ofWorkspace + 1,
    };
  }
  assert.deepEqual(
    nodes.map(({ kernels }) => kernels),
    [4, 4, 2],
  );
});

test('a busy node gets fewer kernels than an idle node', () => {
  assert.equal(choose([node('busy', { loadPerCore: 2 }), node('idle')], 'spread')?.name, 'idle');
  assert.equal(
    choose([node('busy', { loadPerCore: 2 }), node('idle', { kernels: 3 })], 'spread')?.name,
    'busy',
  );
});

test('a kernel starts on the node with the most free memory, minus the memory that new kernels will take', () => {
  assert.equal(choose([node('a'), node('b', { freeMemoryBytes: 2 * GIB }), node('c')], 'spread')?.name, 'b');
  const claimed = node('b', { freeMemoryBytes: 2 * GIB, claimedBytes: 1.5 * GIB });
  assert.equal(choose([node('a'), claimed], 'spread')?.name, 'a');
});

test('a node is full at its capacity, and not yet full with one kernel less', () => {
  assert.equal(choose([node('a', { kernels: 9 })], 'spread')?.name, 'a');
  assert.equal(choose([node('a', { kernels: 10 })], 'spread'), undefined);
});

test('a node with less than the least free memory gets no kernel', () => {
  assert.equal(choose([node('a', { freeMemoryBytes: LEAST_FREE_BYTES })], 'spread')?.name, 'a');
  assert.equal(choose([node('a', { freeMemoryBytes: LEAST_FREE_BYTES - 1 })], 'spread'), undefined);
  assert.equal(choose([], 'spread'), undefined);
});
