import assert from 'node:assert/strict';
import type { ChatMessage } from './scripted-model.ts';

/**
 * Throws when the strictest of the vendors would not take these messages: instructions first, then person and model in turn,
 * and behind an answer that calls tools exactly one result for each of its calls, before anything else.
 */
export function assertValidHistory(messages: readonly ChatMessage[]): void {
  const told = () =>
    messages.map(({ role, tool_call_id: id }) => (id === undefined ? role : `${role} ${id}`)).join(', ');
  let open: string[] = [];
  let before = 'start';
  for (const { role, tool_calls: calls = [], tool_call_id: id = '' } of messages) {
    if (role === 'tool') {
      assert.ok(open.includes(id), `the result of ${id} has no call, or is its second: ${told()}`);
      open = open.filter((other) => other !== id);
      continue;
    }
    assert.deepEqual(open, [], `calls have no result: ${told()}`);
    const may = {
      start: ['system'],
      system: ['user'],
      user: ['assistant'],
      assistant: ['user'],
      tool: ['assistant', 'user'],
    }[before];
    assert.ok(may?.includes(role), `${role} behind ${before}: ${told()}`);
    open = calls.map((call) => call.id);
    assert.equal(new Set(open).size, open.length, `two calls have one id: ${told()}`);
    before = open.length > 0 ? 'tool' : role;
  }
  assert.deepEqual(open, [], `calls have no result: ${told()}`);
  assert.ok(before === 'user' || before === 'tool', `it is nobody’s turn to be answered: ${told()}`);
}
