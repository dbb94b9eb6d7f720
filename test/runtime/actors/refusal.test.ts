import assert from 'node:assert/strict';
import test from 'node:test';
import type { AnyStateNode } from 'xstate';
import { agentSessionMachine } from '#machines/agent-session.ts';
import { environmentMachine } from '#machines/environment.ts';
import { notebookSessionMachine } from '#machines/notebook-session.ts';
import { runMachine } from '#machines/run.ts';
import type { Refusals } from '#src/base/errors/refusals.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { refusal } from '#src/runtime/actors/refusal.ts';

const MACHINES = { agentSessionMachine, environmentMachine, notebookSessionMachine, runMachine };

test('every refusal of a statechart names the resource and gives advice', () => {
  const address = { workspaceId: 'ws' as WorkspaceId, kind: 'run', id: 'run_1' };
  for (const [name, machine] of Object.entries(MACHINES)) {
    const codes = new Set(codesOf(machine.root));
    assert.ok(codes.size > 0, name);
    for (const code of codes) {
      const snapshot = { value: 'state', getMeta: () => ({ state: { refuse: { act: code } } }) };
      const { message } = refusal(snapshot, address, 'act');
      assert.match(message, /^[A-Z].* \(run run_1\)\. [A-Z].*\.$/, `${name} ${code}`);
    }
  }
});

function codesOf(node: AnyStateNode): string[] {
  const { refuse = {} }: Refusals = node.meta ?? {};
  const codes = Object.values(refuse).filter((code) => code !== undefined);
  return [...codes, ...Object.values(node.states).flatMap(codesOf)];
}
