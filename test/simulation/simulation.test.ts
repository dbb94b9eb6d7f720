/** A short simulation for every change. `traces.test.ts` and `long.test.ts` simulate more. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { runSimulation } from './run-simulation.ts';

const SEEDS = 12;

test('in many short lives with crashes the server keeps what it has acknowledged', async () => {
  const { isSound, text, digests } = await runSimulation('--seeds', `1..${SEEDS}`, '--seconds', '1');
  assert.ok(isSound, text);
  assert.equal(digests.size, SEEDS);
});
