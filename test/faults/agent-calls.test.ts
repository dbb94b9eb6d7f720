// tier: whole, because it kills servers and workers at random
import assert from 'node:assert/strict';
import test from 'node:test';
import { driveAgentFaults } from './agent-calls.ts';

test('after the server was killed at any moment of a tool call, the conversation continues and no code runs twice', async (t) => {
  // Kills in the middle of a call, and between a query and its result. `npm run faults -- --agents
  // 50` tries more moments.
  const report = await driveAgentFaults({ seeds: [8, 2], owner: t, say: (line) => t.diagnostic(line) });
  t.diagnostic(JSON.stringify(report));
  assert.equal(report.endings.none, undefined);
});
