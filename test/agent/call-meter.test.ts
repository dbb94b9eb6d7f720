/** The tokens of calls, from the bytes that providers send. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import test from 'node:test';
import { CallMeter, type CallUsage, estimatedInput } from '#src/agent/models/call-meter.ts';
import { askModel } from '#src/agent/models/model-call.ts';
import type { ProviderName } from '#src/agent/models/model-id.ts';
import { questionTo, startVendor } from '#test/support/stand-ins/model-vendor.ts';

const ESTIMATE = 77;
const NONE = { cachedInputTokens: 0, cacheWriteInputTokens: 0, reasoningTokens: 0, isEstimated: false };

/** Asks a provider that sends these events and then, unless it `ends`, breaks the connection. */
async function usageOf(
  provider: ProviderName,
  events: readonly object[],
  ends = false,
): Promise<CallUsage | undefined> {
  const answer = (_: unknown, response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const sent = events.map((event) => {
      const name = 'type' in event ? `event: ${String(event.type)}\n` : '';
      return `${name}data: ${JSON.stringify(event)}\n\n`;
    });
    if (ends) response.end(sent.join(''));
    else response.write(sent.join(''), () => response.destroy());
  };
  await using vendor = await startVendor(answer);
  const meter = new CallMeter(() => ESTIMATE);
  const question = questionTo(vendor.url);
  const target = { ...question.target, provider };
  const asked = askModel({ ...question, target, meter });
  if (ends) return (await asked).usage;
  await assert.rejects(asked, { name: 'ModelFailure' });
  return meter.soFar;
}

const messageStart = (usage: object) => ({
  type: 'message_start',
  message: { id: 'm', type: 'message', role: 'assistant', content: [], model: 'm', usage },
});
const messageText = (text: string) => [
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
];
const messageEnd = (usage: object) => [
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
  { type: 'message_stop' },
];
const CACHED = {
  input_tokens: 10,
  cache_read_input_tokens: 200,
  cache_creation_input_tokens: 30,
  output_tokens: 1,
};
const chat = (delta: object, rest: object = {}) => ({
  ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' },
  choices: [{ index: 0, delta, finish_reason: null }],
  ...rest,
});
const chatEnd = { ...chat({}), choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
const TOKENS = {
  ...{ prompt_tokens: 50, completion_tokens: 9 },
  ...{ prompt_tokens_details: { cached_tokens: 40 }, completion_tokens_details: { reasoning_tokens: 3 } },
};

test('the input tokens of Anthropic include tokens that were read from its cache or written to it', async () => {
  const events = [messageStart(CACHED), ...messageText('Fine.'), ...messageEnd({ output_tokens: 5 })];
  const whole = {
    ...NONE,
    inputTokens: 240,
    cachedInputTokens: 200,
    cacheWriteInputTokens: 30,
    outputTokens: 5,
  };
  assert.deepEqual(await usageOf('anthropic', events, true), whole);
  assert.deepEqual(await usageOf('anthropic', events.slice(0, -1)), whole, 'broken after the last figures');
});

test('an answer that breaks off before its last figures counts the reported input, and an estimate of the received output', async () => {
  const events = [messageStart(CACHED), ...messageText('x'.repeat(401))];
  assert.deepEqual(await usageOf('anthropic', events), {
    ...NONE,
    ...{ inputTokens: 240, cachedInputTokens: 200, cacheWriteInputTokens: 30 },
    ...{ outputTokens: 101, isEstimated: true },
  });
});

test('an answer of the responses API that breaks off after its last event is counted with all its figures', async () => {
  const usage = {
    ...{ input_tokens: 60, output_tokens: 7 },
    ...{ input_tokens_details: { cached_tokens: 20 }, output_tokens_details: { reasoning_tokens: 2 } },
  };
  const events = [
    { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } },
    { type: 'response.output_item.added', output_index: 0, item: { type: 'message', id: 'i' } },
    { type: 'response.output_text.delta', item_id: 'i', delta: 'Fine.' },
    { type: 'response.output_item.done', output_index: 0, item: { type: 'message', id: 'i' } },
    { type: 'response.completed', response: { usage } },
  ];
  const whole = { ...NONE, inputTokens: 60, cachedInputTokens: 20, outputTokens: 7, reasoningTokens: 2 };
  assert.deepEqual(await usageOf('openai', events, true), whole);
  assert.deepEqual(await usageOf('openai', events.slice(0, 3)), {
    ...NONE,
    ...{ inputTokens: ESTIMATE, outputTokens: 2, isEstimated: true },
  });
});

test('figures of chat completions count when they come at the end, before a break, or with every piece', async () => {
  const named = { ...chat({}), choices: [], usage: TOKENS };
  const whole = { ...NONE, inputTokens: 50, cachedInputTokens: 40, outputTokens: 9, reasoningTokens: 3 };
  assert.deepEqual(
    await usageOf('openai-compatible', [chat({ content: 'Fine.' }), chatEnd, named], true),
    whole,
  );
  assert.deepEqual(await usageOf('openai-compatible', [chat({ content: 'Fine.' }), named]), whole);
  const soFar = chat({ content: 'Fine.' }, { usage: { ...TOKENS, completion_tokens: 1 } });
  assert.deepEqual(await usageOf('openai-compatible', [soFar]), {
    ...whole,
    outputTokens: 2,
    isEstimated: true,
  });
});

test('a call is estimated by its bytes if the provider sends no figures, zeros or nonsense', async () => {
  const expected = { ...NONE, inputTokens: ESTIMATE, outputTokens: 3, isEstimated: true };
  const call = { index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } };
  for (const usage of [undefined, { prompt_tokens: 0, completion_tokens: 0 }]) {
    const events = [chat({ content: 'Fünf' }), chat({ tool_calls: [call] }), { ...chatEnd, usage }];
    assert.deepEqual(await usageOf('openai-compatible', events, true), expected, JSON.stringify(usage));
  }
  const nonsense = chat({ content: 'a' }, { usage: { prompt_tokens: -5, completion_tokens: 1e300 } });
  assert.deepEqual(await usageOf('openai-compatible', [nonsense]), { ...expected, outputTokens: 1 });
});

test('a refused request, and an answer with an empty stream, cost nothing', async () => {
  assert.equal(await usageOf('openai-compatible', [{ error: { message: 'overloaded' } }]), undefined);
  assert.equal(new CallMeter(assert.fail).soFar, undefined);
});

test('the estimate of a request counts its texts by their bytes, and each picture as a fixed number of tokens', () => {
  const request = (data: string) => ({
    system: '',
    messages: [
      {
        role: 'tool' as const,
        content: [
          {
            ...{ type: 'tool-result' as const, toolCallId: 'c', toolName: 'f' },
            output: {
              type: 'content' as const,
              value: [{ type: 'image-data' as const, data, mediaType: 'image/png' }],
            },
          },
        ],
      },
    ],
    tools: [],
  });
  const small = estimatedInput(request('a'));
  assert.equal(estimatedInput(request('a'.repeat(100_000))), small);
  assert.ok(small > 1_500 && small < 1_600, String(small));
  assert.equal(estimatedInput({ system: 'é'.repeat(4), messages: [], tools: [] }), 2);
});

test('the estimate of a request makes no JSON of its texts: a control character counts as one byte and not as its escape', () => {
  assert.equal(estimatedInput({ system: '\0'.repeat(400), messages: [], tools: [] }), 100);
});
