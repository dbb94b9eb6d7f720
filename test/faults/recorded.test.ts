// tier: whole, because it kills servers and workers at random
// runs alone: it starts many processes, which keep both processors busy
import assert from 'node:assert/strict';
import test from 'node:test';
import { driveRecorded } from './recorded.ts';

test('the history of clients during a rolling reload has no violation', async (t) => {
  const report = await driveRecorded({
    workers: 3,
    seed: 20_261_124,
    disturbance: 'reload',
    steps: 1,
    seconds: 60,
    slowFlushMs: 40,
    say: (line) => t.diagnostic(line),
  });
  t.diagnostic(JSON.stringify(report));
  assert.ok(report.extent['final-run']! > 0 && report.extent['register-write']! > 0);
});
