import assert from 'node:assert/strict';
import test from 'node:test';
import { DELTA_FORMATS } from '#src/agent/models/delta-format.ts';
import { DeltaTap } from '#src/agent/models/delta-tap.ts';
import type { ProviderName } from '#src/agent/models/model-id.ts';
import { assertLinear } from '#test/support/growth.ts';

function tapped(provider: ProviderName) {
  const told: [string, string][] = [];
  const tap = new DeltaTap(DELTA_FORMATS[provider], ({ kind, text }) => told.push([kind, text]));
  return { told, tap };
}

const sse = (event: object) => `data: ${JSON.stringify(event)}\n\n`;
const chat = (delta: object, rest: object = {}) =>
  sse({ choices: [{ index: 0, delta, finish_reason: null }], ...rest });
const chatEnd = sse({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });

test('pieces of text are published as they arrive, and passed to the SDK as one piece before the next event of another kind', () => {
  const { told, tap } = tapped('openai-compatible');
  const pieces = [
    chat({ role: 'assistant', content: 'A' }),
    chat({ content: 'B', tool_calls: [] }),
    chat({ content: 'C' }),
  ];
  assert.equal(tap.push(Buffer.from(pieces.join(''))), '');
  assert.deepEqual(told, [
    ['text', 'A'],
    ['text', 'B'],
    ['text', 'C'],
  ]);
  assert.equal(tap.push(Buffer.from(chatEnd)), `${chat({ content: 'ABC' })}${chatEnd}`);
  assert.equal(tap.end(), '');
});

test('reasoning and text stay in their order', () => {
  const { told, tap } = tapped('local');
  const out = tap.push(
    Buffer.from(
      chat({ reasoning_content: 'Hm' }) + chat({ reasoning_content: '.' }) + chat({ content: 'Yes' }),
    ),
  );
  assert.equal(out, chat({ reasoning_content: 'Hm.' }));
  assert.equal(tap.end(), chat({ content: 'Yes' }));
  assert.deepEqual(told, [
    ['reasoning', 'Hm'],
    ['reasoning', '.'],
    ['text', 'Yes'],
  ]);
});

test('unknown events, and events that contain more than a piece of text, pass unchanged', () => {
  const { told, tap } = tapped('openai-compatible');
  const events = [
    ': a comment\n\n',
    'data: [DONE]\n\n',
    'data: {"choices": [{"del\n\n',
    'data: {"choices":\ndata: []}\n\n',
    sse({ error: { message: 'out of memory' } }),
    sse({ choices: [{ index: 0, delta: { content: 'the end' }, finish_reason: 'stop' }] }),
    chat({ content: 'both', reasoning_content: 'at once' }),
    chat({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '' } }] }),
    sse({ choices: [], usage: { prompt_tokens: 1 } }),
  ].join('');
  assert.equal(tap.push(Buffer.from(events)), events);
  assert.deepEqual(told, []);
});

test('the result does not depend on where the bytes are split, or on the line ends', () => {
  const { told, tap } = tapped('openai-compatible');
  const bytes = Buffer.from((chat({ content: 'Grüße 🌍' }) + chatEnd).replaceAll('\n', '\r\n'));
  let out = '';
  for (const byte of bytes) out += tap.push(Uint8Array.of(byte));
  assert.deepEqual(told, [['text', 'Grüße 🌍']]);
  assert.equal(out + tap.end(), chat({ content: 'Grüße 🌍' }) + chatEnd);
});

test('pieces of text are recognised in the stream of each vendor', () => {
  const anthropic = tapped('anthropic');
  const block = (index: number, delta: object) =>
    `event: content_block_delta\n${sse({ type: 'content_block_delta', index, delta })}`;
  const thinking = (text: string) => block(0, { type: 'thinking_delta', thinking: text });
  const signature = block(0, { type: 'signature_delta', signature: 's' });
  const text = (piece: string) => block(1, { type: 'text_delta', text: piece });
  const sent = thinking('Let ') + thinking('me.') + signature + text('So') + text(' it is');
  assert.equal(
    anthropic.tap.push(Buffer.from(sent)) + anthropic.tap.end(),
    thinking('Let me.') + signature + text('So it is'),
  );
  assert.deepEqual(
    anthropic.told.map(([kind]) => kind),
    ['reasoning', 'reasoning', 'text', 'text'],
  );

  const openai = tapped('openai');
  const output = (delta: string, index = 0) =>
    sse({ type: 'response.output_text.delta', item_id: 'm', output_index: 0, content_index: index, delta });
  assert.equal(
    openai.tap.push(Buffer.from(output('A') + output('B') + output('C', 1))) + openai.tap.end(),
    output('AB') + output('C', 1),
  );
  assert.deepEqual(
    openai.told.map(([, piece]) => piece),
    ['A', 'B', 'C'],
  );
});

test('only a little text is held back, so that an endless answer is noticed', () => {
  const { tap } = tapped('openai-compatible');
  let passed = 0;
  for (let i = 0; i < 100; i++) passed += tap.push(Buffer.from(chat({ content: 'x'.repeat(1_000) }))).length;
  assert.ok(passed > 70_000, `${passed} characters have passed`);
});

test('a long event that arrives in small pieces is searched once', () => {
  // When each piece caused a search of the whole event, three million characters took half a minute.
  assertLinear('a long event', 3_000_000, (length) => {
    const { told, tap } = tapped('openai-compatible');
    const long = 'x'.repeat(length);
    const bytes = Buffer.from(chat({ content: long }));
    for (let at = 0; at < bytes.length; at += 256) tap.push(bytes.subarray(at, at + 256));
    assert.deepEqual(told, [['text', long]]);
  });
});

test('an event of up to four million characters is read whole, and a longer event is passed on unread', () => {
  const frame = chat({ content: '' }).length - 2;
  const told = (length: number) => {
    const { told, tap } = tapped('openai-compatible');
    const event = chat({ content: 'x'.repeat(length - frame) });
    const passed = tap.push(Buffer.from(event.slice(0, -2)));
    const rest = tap.push(Buffer.from('\n\n')) + tap.end();
    assert.equal(passed + rest, event);
    return told.length;
  };
  assert.equal(told(4 * 1024 * 1024), 1);
  assert.equal(told(4 * 1024 * 1024 + 1), 0);
});

test('a character that is split when a long event is passed on stays whole', () => {
  const { tap } = tapped('openai-compatible');
  const event = Buffer.from(`data: ${'x'.repeat(4 * 1024 * 1024)}é\n\n`);
  const cut = event.length - 3;
  assert.ok(
    `${tap.push(event.subarray(0, cut))}${tap.push(event.subarray(cut))}${tap.end()}`.endsWith('xé\n\n'),
  );
});
