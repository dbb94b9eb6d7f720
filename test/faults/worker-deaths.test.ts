// tier: whole, because it kills servers and workers at random
// runs alone: it starts many processes, which keep both processors busy
import assert from 'node:assert/strict';
import test from 'node:test';
import { driveWorkerFaults } from './worker-deaths.ts';

test('after workers were killed or stopped at any moment, all acknowledged changes are kept and the other workers continue', async (t) => {
  // With this seed, the rounds kill, in this order: a worker that decides a turn, two workers at once, a worker that begins a run,
  // one by SIGSTOP, the home of a session, and a worker that only forwards requests.
  const report = await driveWorkerFaults({
    workers: 3,
    seed: 20_279_883,
    seconds: 15,
    rounds: 6,
    outageLimitMs: 20_000, // other tests use the machine as well; `npm run faults` requires one second
    say: (line) => t.diagnostic(line),
  });
  t.diagnostic(JSON.stringify(report));
  assert.ok(report.rounds > 0 && report.operations > 0);
});
