import assert from 'node:assert/strict';
import type { ChatMessage } from './scripted-model.ts';

/**
 * Throws when the strictest provider would reject these messages: instructions come first, then user and model in turn,
 * and directly after an answer with tool calls exactly one result for each of them.
 */
export function assertValidHistory(messages: readonly ChatMessage[]): void {
  const shown = () =>
    messages.map(({ role, tool_call_id: id }) => (id === undefined ? role : `${role} ${id}`)).join(', ');
  let open: string[] = [];
  let before = 'start';
  for (const { role, tool_calls: calls = [], tool_call_id: id = '' } of messages) {
    if (role === 'tool') {
      assert.ok(open.includes(id), `the result of ${id} has no call, or is its second: ${shown()}`);
      open = open.filter((other) => other !== id);
      continue;
    }
    assert.deepEqual(open, [], `calls have no result: ${shown()}`);
    const may = {
      start: ['system'],
      system: ['user'],
      user: ['assistant'],
      assistant: ['user'],
      tool: ['assistant', 'user'],
    }[before];
    assert.ok(may?.includes(role), `${role} after ${before}: ${shown()}`);
    open = calls.map((call) => call.id);
    assert.equal(new Set(open).size, open.length, `two calls have one id: ${shown()}`);
    before = open.length > 0 ? 'tool' : role;
  }
  assert.deepEqual(open, [], `calls have no result: ${shown()}`);
  assert.ok(
    before === 'user' || before === 'tool',
    `the last message is neither a prompt nor a tool result: ${shown()}`,
  );
}
