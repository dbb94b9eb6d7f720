import assert from 'node:assert/strict';
import test from 'node:test';
import { driveAgentFaults } from './agent-calls.ts';

test('whenever the server is killed in a tool call, the conversation goes on and nothing runs twice', async (t) => {
  // Before a call in a notebook, in the middle of one, and behind a query; `npm run faults -- --agents 50` has all.
  const report = await driveAgentFaults({ seeds: [13, 8, 2], owner: t, say: (line) => t.diagnostic(line) });
  t.diagnostic(JSON.stringify(report));
  assert.equal(report.endings.none, undefined);
});
