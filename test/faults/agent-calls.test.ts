import assert from 'node:assert/strict';
import test from 'node:test';
import { driveAgentFaults } from './agent-calls.ts';

test('whenever the server is killed in a tool call, the conversation goes on and nothing runs twice', async (t) => {
  // In the middle of a call in a notebook, and between a query and its result; `npm run faults -- --agents 50` plays more.
  const report = await driveAgentFaults({ seeds: [8, 2], owner: t, say: (line) => t.diagnostic(line) });
  t.diagnostic(JSON.stringify(report));
  assert.equal(report.endings.none, undefined);
});
