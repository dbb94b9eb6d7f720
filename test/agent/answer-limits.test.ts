import assert from 'node:assert/strict';
import test from 'node:test';
import { ANSWER_LIMITS, type AnswerLimits, askModel } from '#src/agent/models/model-call.ts';
import { testModel } from '#src/agent/models/model-test.ts';
import type { Models } from '#src/agent/models/models.ts';
import { questionTo, startVendor } from '#test/support/stand-ins/model-vendor.ts';

const chat = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: '1', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const END = `${chat({}, 'stop')}data: [DONE]\n\n`;
const call = (index: number, input = '{}') =>
  chat({
    tool_calls: [{ index, id: `c${index}`, type: 'function', function: { name: 'read', arguments: input } }],
  });
const calls = (count: number) => Array.from({ length: count }, (_, index) => call(index)).join('');

/**
 * Sends a prompt to a model server that answers with `body`. Returns how many parts the answer has, or the code of the failure.
 */
async function asked(body: string, limits: Partial<AnswerLimits> = {}): Promise<unknown> {
  await using vendor = await startVendor((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(body);
  });
  return await askModel({ ...questionTo(vendor.url), limits: { ...ANSWER_LIMITS, ...limits } }).then(
    ({ parts }) => parts.length,
    ({ failure }) => failure.code,
  );
}

test('an answer with too many bytes in its stream fails', async () => {
  const body = `: ${'x'.repeat(100_000)}\n\n${chat({ content: 'Yes.' })}${END}`;
  assert.equal(await asked(body, { bytes: body.length }), 1);
  assert.equal(await asked(body, { bytes: body.length - 1 }), 'model_answer_too_long');
});

test('an answer of a thousand calls is accepted, and an answer with one more call fails', async () => {
  assert.equal(await asked(calls(ANSWER_LIMITS.blocks) + END), 1_000);
  assert.equal(await asked(calls(ANSWER_LIMITS.blocks + 1) + END), 'model_answer_too_long');
});

test('blocks of text count towards the limit of calls', async () => {
  const body = `${chat({ reasoning_content: 'Hm.' })}${chat({ content: 'Yes.' })}${calls(1)}${END}`;
  assert.equal(await asked(body, { blocks: 3 }), 3);
  assert.equal(await asked(body, { blocks: 2 }), 'model_answer_too_long');
});

test('text and the arguments of calls share one limit of characters', async () => {
  const body = `${chat({ content: 'Yes.' })}${call(0, '{"a":1}')}${call(1, '{"b":2}')}${END}`;
  assert.equal(await asked(body, { chars: 18 }), 3);
  assert.equal(await asked(body, { chars: 17 }), 'model_answer_too_long');
});

test('a test of a model ends when the model sends much more text than one word', async () => {
  const answered = async (bytes: number) => {
    await using vendor = await startVendor((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const rest = chat({ content: 'ready' }) + END;
      response.end(`: ${'x'.repeat(bytes - rest.length - 4)}\n\n${rest}`);
    });
    const { id, target } = questionTo(vendor.url);
    const models = { choose: () => ({ id, target: async () => target }) } as unknown as Models;
    const { ok, message } = await testModel(models, 'ws_1', null, new AbortController().signal, () => {});
    return [ok, message];
  };
  const most = 8 * 1024 * 1024;
  assert.deepEqual(await answered(most), [true, 'The model answered.']);
  assert.deepEqual(await answered(most + 1), [false, 'openai-compatible/m did not come to an end.']);
});

test('a test of a model that sends a byte at a time ends at its deadline', async () => {
  await using vendor = await startVendor((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const drip = setInterval(() => response.write(':'), 20);
    response.on('close', () => clearInterval(drip));
  });
  const { id, target } = questionTo(vendor.url);
  const models = { choose: () => ({ id, target: async () => target }) } as unknown as Models;
  const { ok, message } = await testModel(models, 'ws_1', null, new AbortController().signal, () => {}, 300);
  assert.deepEqual([ok, message], [false, 'openai-compatible/m did not answer within 0.3 s.']);
});

test('a character whose halves arrive in two pieces is passed on whole, and half a character at the end is replaced', async () => {
  const body = ['a\ud83d', '\ude00b', '\ud83d'].map((content) => chat({ content })).join('') + END;
  await using vendor = await startVendor((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(body);
  });
  const told: string[] = [];
  const answer = await askModel({ ...questionTo(vendor.url), onText: (text) => told.push(text) });
  assert.equal(told.join(''), 'a😀b');
  assert.deepEqual(
    told.map((text) => text.isWellFormed()),
    told.map(() => true),
  );
  assert.deepEqual(
    answer.parts.map((part) => part.type === 'text' && part.text),
    ['a😀b\ufffd'],
  );
});
