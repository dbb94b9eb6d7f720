import assert from 'node:assert/strict';
import test from 'node:test';
import { type Candidate, choose, LEAST_FREE_BYTES } from '#src/nodes/placement.ts';

const GIB = 2 ** 30;
const node = (name: string, fields: Partial<Candidate> = {}) => ({
  name,
  kernels: 0,
  capacity: 10,
  freeMemoryBytes: GIB,
  claimedBytes: 0,
  ofWorkspace: 0,
  ...fields,
});

test('kernels of one workspace are kept together while there is room', () => {
  const crowded = node('crowded', { kernels: 9, ofWorkspace: 3, freeMemoryBytes: LEAST_FREE_BYTES });
  assert.equal(choose([node('free', { freeMemoryBytes: 9 * GIB }), crowded])?.name, 'crowded');
  assert.equal(choose([node('free'), { ...crowded, kernels: 10 }])?.name, 'free');
});

test('a kernel of another workspace starts on the node with the most free memory, minus the memory that new kernels will take', () => {
  assert.equal(choose([node('a'), node('b', { freeMemoryBytes: 2 * GIB }), node('c')])?.name, 'b');
  const claimed = node('b', { freeMemoryBytes: 2 * GIB, claimedBytes: 1.5 * GIB });
  assert.equal(choose([node('a'), claimed])?.name, 'a');
});

test('a node is full at its capacity, and one kernel before that it is not', () => {
  assert.equal(choose([node('a', { kernels: 9 })])?.name, 'a');
  assert.equal(choose([node('a', { kernels: 10 })]), undefined);
});

test('a node with less than the least free memory gets no kernel', () => {
  assert.equal(choose([node('a', { freeMemoryBytes: LEAST_FREE_BYTES })])?.name, 'a');
  assert.equal(choose([node('a', { freeMemoryBytes: LEAST_FREE_BYTES - 1 })]), undefined);
  assert.equal(choose([]), undefined);
});
