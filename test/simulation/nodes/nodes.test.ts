/** A short simulation of kernels on nodes for every change. `long.test.ts` simulates more. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { runSimulation } from '../run-simulation.ts';

const SEEDS = 8;

test('with kernels on nodes that are killed, cut off and silent, the server keeps what it has acknowledged', async () => {
  const options = ['--nodes', '2', '--seeds', `1..${SEEDS}`, '--seconds', '4'];
  const { isSound, text, digests } = await runSimulation(...options);
  assert.ok(isSound, text);
  assert.equal(digests.size, SEEDS);
});

test('a seed with nodes has one trace, however often it is simulated', async () => {
  const options = ['--nodes', '2', '--seeds', '3..4', '--seconds', '4', '--times', '2'];
  const { isSound, text } = await runSimulation(...options);
  assert.ok(isSound, text);
});
