// tier: whole, because it kills servers and workers at random
import assert from 'node:assert/strict';
import test from 'node:test';
import { driveNodeFaults } from './node-deaths.ts';

test('after all kinds of failures of kernel nodes, acknowledged runs end once, and no session has two kernels at once', async (t) => {
  const report = await driveNodeFaults({
    rounds: 3,
    seed: 1,
    workers: 1,
    owner: t,
    say: (line) => t.diagnostic(line),
  });
  t.diagnostic(JSON.stringify(report));
  assert.equal(report.rounds, 3);
  assert.ok(report.kernels >= 3);
});
