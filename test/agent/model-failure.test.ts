import assert from 'node:assert/strict';
import test from 'node:test';
import { APICallError } from '@ai-sdk/provider';
import { MAX_HINT_MS, modelFailureOf } from '#src/agent/models/model-failure.ts';

/** Returns the pause before another attempt, and the message, after a refusal that asks for a pause of `hintMs`. */
function failed(statusCode: number, hintMs: number) {
  const error = new APICallError({
    message: '',
    url: '',
    requestBodyValues: {},
    statusCode,
    responseHeaders: { 'retry-after': String(hintMs / 1000) },
  });
  const { retryMs, failure } = modelFailureOf(error, { id: 'openai/gpt', secrets: [] });
  return [retryMs, failure.message];
}

test('a provider is asked again after the pause that it names, if the pause is at most a minute', () => {
  const later = MAX_HINT_MS + 1_000;
  const limited = 'The model accepts no more requests at present';
  assert.deepEqual(failed(429, MAX_HINT_MS), [MAX_HINT_MS, `${limited} for now.`]);
  assert.deepEqual(failed(429, later), [null, `${limited} for 2 minutes.`]);
  const overloaded = 'The model’s server is overloaded or fails';
  for (const status of [503, 500, 408]) {
    assert.deepEqual(failed(status, MAX_HINT_MS), [MAX_HINT_MS, `${overloaded}.`]);
    assert.deepEqual(failed(status, later), [null, `${overloaded}, and asks for no requests for 2 minutes.`]);
  }
});
