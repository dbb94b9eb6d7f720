// tier: whole, because it kills servers and workers at random
// runs alone: it starts many processes, which keep both processors busy
import assert from 'node:assert/strict';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { driveFaults } from './drive.ts';

test('production builds have no fault points', async (t) => {
  const server = await startChildServer(t, { FAULT_POINT: 'turn.decided:1' });
  await server.client.notebooks.create();
  assert.deepEqual(await server.end('SIGTERM'), { code: 0, signal: null });
});

test('after the server was killed at any moment, all acknowledged changes are kept and no process outlives the server', async (t) => {
  const report = await driveFaults({
    seed: 20_251_121,
    seconds: 25,
    rounds: 12,
    restartLimitMs: 20_000, // other tests use the machine as well; `npm run faults` requires two seconds
    say: (line) => t.diagnostic(line),
  });
  t.diagnostic(JSON.stringify(report));
  assert.ok(report.rounds > 2 && report.operations > 0);
});
