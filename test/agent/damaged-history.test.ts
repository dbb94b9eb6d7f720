import assert from 'node:assert/strict';
import test from 'node:test';
import { openCalls, type StoredEntry } from '#src/agent/entry.ts';
import { messagesOf } from '#src/agent/messages.ts';
import { askModel } from '#src/agent/models/model-call.ts';
import { turnParts } from '#src/agent/turn-output.ts';
import { assertLinear } from '#test/support/growth.ts';
import { questionTo, startVendor } from '#test/support/stand-ins/model-vendor.ts';
import { callPart as call, entry, resultPart as result, answer as said, user } from './stored-entries.ts';

/** Returns the messages in short: texts, calls as `call id`, results as `id: output`. */
function sent(...entries: readonly StoredEntry[]) {
  const messages = messagesOf(entries, { modelId: 'm', seesImages: false, image: () => undefined });
  return messages.map((message) => {
    assert.ok(message.role !== 'system');
    return message.content.map((part) => {
      if (part.type === 'text') return part.text;
      if (part.type === 'tool-call') return `call ${part.toolCallId}`;
      assert.ok(part.type === 'tool-result' && 'value' in part.output);
      return `${part.toolCallId}: ${String(part.output.value).split('\n')[1]}`;
    });
  });
}

test('a call without a result gets a result that reports the loss', () => {
  assert.deepEqual(
    sent(
      user('a'),
      entry('assistant', call('c1'), call('c2')),
      entry('tool', result('c2', 'two')),
      said('b'),
      user('c'),
    ),
    [['a'], ['call c1', 'call c2'], ['c1: The result of this call is lost.', 'c2: two'], ['b'], ['c']],
  );
});

test('a result without a call is not sent', () => {
  assert.deepEqual(
    sent(
      user('a'),
      entry('assistant', call('c1')),
      entry('tool', result('c1', 'one')),
      entry('tool', result('c2', 'two')),
      said('b'),
      entry('tool', result('c3', 'three')),
      user('c'),
    ),
    [['a'], ['call c1'], ['c1: one'], ['b'], ['c']],
  );
});

test('a note replaces a lost prompt', () => {
  const lost = ['[The prompt that was here is lost.]'];
  assert.deepEqual(sent(said('a'), user('b'), said('c'), said('d'), user('e')), [
    ...[lost, ['a'], ['b'], ['c'], lost, ['d'], ['e']],
  ]);
});

test('calls of one answer have distinct ids, and each keeps its result', () => {
  const entries = [
    user('a'),
    entry('assistant', call('c'), call('c'), call('c_2'), call('')),
    entry('tool', result('c', 'one')),
    entry('tool', result('c', 'two')),
    entry('tool', result('c_2', 'three')),
  ];
  assert.deepEqual(openCalls(entries), [call('')]);
  assert.deepEqual(sent(...entries, entry('tool', result('', 'four'))), [
    ['a'],
    ['call c', 'call c_2', 'call c_2_3', 'call _4'],
    ['c: one', 'c_2: two', 'c_2_3: three', '_4: four'],
  ]);
});

test('when two messages have the same tool call id, each call keeps its own result', () => {
  const step = (output: string) => [entry('assistant', call('c')), entry('tool', result('c', output))];
  assert.deepEqual(sent(user('a'), ...step('one'), ...step('two')), [
    ...[['a'], ['call c'], ['c: one'], ['call c'], ['c: two']],
  ]);
});

test('calls with the same id from a model are stored with distinct ids', async () => {
  const block = (index: number, input: string) => [
    {
      type: 'content_block_start',
      index,
      content_block: { type: 'tool_use', id: 'c', name: 'read', input: {} },
    },
    { type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: input } },
    { type: 'content_block_stop', index },
  ];
  const usage = { input_tokens: 1, output_tokens: 1 };
  const events = [
    {
      type: 'message_start',
      message: { id: 'm', type: 'message', role: 'assistant', content: [], model: 'm', usage },
    },
    ...block(0, '{}'),
    ...block(1, 'no'),
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage },
    { type: 'message_stop' },
  ];
  await using vendor = await startVendor((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''));
  });
  const question = questionTo(vendor.url);
  const target = { ...question.target, provider: 'anthropic' } as const;
  const { parts, invalid } = await askModel({ ...question, target });
  assert.deepEqual(
    parts.map((part) => 'callId' in part && part.callId),
    ['c', 'c_2'],
  );
  assert.deepEqual([...invalid.keys()], ['c_2']);
});

test('the time to make the output of a run grows with the number of its calls, not with the square of it', () => {
  const ids = Array.from({ length: 20_000 }, (_, i) => `c${i}`);
  const calls = ids.map(call);
  const results = ids.map((id) => entry('tool', result(id, id)).entry);
  // When each call looked through all results, twenty thousand took many seconds.
  assertLinear('the output of a run', ids.length, (count) => {
    const entries = [entry('assistant', ...calls.slice(0, count)).entry, ...results.slice(0, count)];
    assert.deepEqual(turnParts(entries, false, [], []).at(-1), {
      type: 'tool-call',
      name: 'read',
      input: {},
      output: ids[count - 1],
      status: 'completed',
    });
  });
});
