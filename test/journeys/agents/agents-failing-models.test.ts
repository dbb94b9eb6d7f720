import assert from 'node:assert/strict';
import test from 'node:test';
import type { Run } from '#src/contract/wire/run.ts';
import { AgentLog } from '#test/support/agent-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { type Behaviour, startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const settings = {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_OPENAI_COMPATIBLE_API_KEY: 'key-that-nobody-sees',
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
  TROUPE_MODEL_SILENCE_S: '4',
  TROUPE_AGENT_MAX_STEPS: '3',
  TROUPE_AGENT_MAX_TOKENS: '30000',
  TROUPE_AGENT_TIMEOUT_S: '60',
  TROUPE_MODEL_CONTEXT_TOKENS: '2000',
};
const server = await startServer(test, settings);
const { client } = server;

interface Prompted {
  readonly run: Run;
  readonly log: AgentLog;
  /** Requests that the model got. */
  readonly requests: number;
}

/** One prompt in a conversation of its own, answered as the script says. */
async function prompted(...script: Behaviour[]): Promise<Prompted> {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await client.agentSessions.open({ environmentId });
  const log = await AgentLog.open(client, sessionId);
  const before = model.exchanges.length;
  model.script(...script);
  const { runId } = await client.agentSessions.prompt(sessionId, 'Speak.');
  await log.over(runId);
  return { run: await client.runs.get(runId), log, requests: model.exchanges.length - before };
}

const soon = { 'retry-after-ms': '5' };
const fine: Behaviour = (exchange) => exchange.text('Fine.').end();
const outcome = ({ run, requests }: Prompted) => [run.status, run.error?.code ?? null, requests];
const reasons = ({ log }: Prompted) => log.dataOf('session.status').flatMap(({ reason }) => reason ?? []);

test('a rate limit with a retry hint delays the prompt, and subscribers are notified', async () => {
  const end = await prompted((exchange) => exchange.refuse(429, {}, soon), fine);
  assert.deepEqual(outcome(end), ['completed', null, 2]);
  assert.deepEqual(reasons(end), ['model_rate_limited']);
});

test('a rate limit whose hint exceeds the longest pause ends the run at once', async () => {
  const end = await prompted((exchange) => exchange.refuse(429, {}, { 'retry-after': '600' }));
  assert.deepEqual(outcome(end), ['failed', 'model_rate_limited', 1]);
  assert.match(String(end.run.error?.message), /10 minutes/);
});

test('a prompt fails after four attempts at an overloaded model', async () => {
  const overloaded: Behaviour = (exchange) => exchange.refuse(503, {}, soon);
  const end = await prompted(overloaded, overloaded, overloaded, overloaded);
  assert.deepEqual(outcome(end), ['failed', 'model_overloaded', 4]);
  assert.deepEqual(reasons(end), ['model_overloaded', 'model_overloaded', 'model_overloaded']);
});

test('a wrong API key ends the run at once, and nobody sees the key', async () => {
  const end = await prompted((exchange) =>
    exchange.refuse(401, { error: { message: 'bad key key-that-nobody-sees' } }),
  );
  assert.deepEqual(outcome(end), ['failed', 'model_auth', 1]);
  assert.ok(!JSON.stringify([end.run, end.log.events, server.log]).includes('key-that-nobody-sees'));
});

test('the error message of a provider is passed on without the API key', async () => {
  const body = { error: { message: 'no such field near key-that-nobody-sees' } };
  const end = await prompted((exchange) => exchange.refuse(400, body));
  assert.deepEqual(end.run.error, {
    code: 'model_request_refused',
    message: 'openai-compatible/scripted refused the request: no such field near [secret]',
  });
  const unknown = await prompted((exchange) => exchange.refuse(404, { error: { message: 'no model' } }));
  assert.deepEqual(outcome(unknown), ['failed', 'model_unknown', 1]);
});

test('an answer that breaks off is requested again, and its first half never becomes an entry', async () => {
  const end = await prompted((exchange) => {
    exchange.text('The first half');
    setImmediate(() => exchange.cut());
  }, fine);
  assert.deepEqual(outcome(end), ['completed', null, 2]);
  assert.deepEqual(
    end.log.dataOf('agent-entry').map(({ content }) => content),
    [[{ type: 'text', text: 'Speak.' }], [{ type: 'text', text: 'Fine.' }]],
  );
});

test('nonsense, an answer without an end and an error in mid-stream count as failures of the model', async () => {
  for (const broken of [
    (exchange) => exchange.text('So').raw('data: {"choices": [{"del\n\n').stop(),
    (exchange) => exchange.text('So').stop(),
    (exchange) => exchange.text('So').raw('data: {"error": {"message": "out of memory"}}\n\n').stop(),
  ] satisfies Behaviour[]) {
    const end = await prompted(broken, fine);
    assert.deepEqual(outcome(end), ['completed', null, 2]);
  }
});

test('a model that falls silent before or after its first byte is asked again', async () => {
  const end = await prompted(
    () => {},
    (exchange) => void exchange.text('Well'),
    fine,
  );
  assert.deepEqual(outcome(end), ['completed', null, 3]);
  assert.deepEqual(reasons(end), ['model_silent', 'model_silent']);
  const asked = await Promise.all(model.exchanges.slice(-3).map(({ over }) => over));
  assert.deepEqual(asked, ['cut', 'cut', 'whole']);
});

test('a model with a slow first token does not count as silent while bytes arrive', async () => {
  const end = await prompted((exchange) => {
    let beats = 0;
    const timer = setInterval(() => {
      exchange.raw(': still here\n\n');
      if (++beats < 12) return;
      clearInterval(timer);
      exchange.text('At last.').end();
    }, 400);
  });
  assert.deepEqual(outcome(end), ['completed', null, 1]);
});

test('a model that never stops is cut off', async () => {
  const word = 'word '.repeat(2000);
  const end = await prompted((exchange) => {
    for (let i = 0; i < 120; i++) exchange.text(word);
  });
  assert.deepEqual(outcome(end), ['failed', 'model_answer_too_long', 1]);
  assert.equal(await model.exchanges.at(-1)!.over, 'cut');
});

test('a refusal of the model fails the run; an empty or truncated answer completes the run with a warning', async () => {
  const refused = await prompted((exchange) => exchange.text('I').end('content_filter'));
  assert.deepEqual(outcome(refused), ['failed', 'model_refused', 1]);
  const warnings = ({ run }: Prompted) =>
    (run.output?.parts ?? []).flatMap((part) => (part.type === 'warning' ? [part.code] : []));
  const empty = await prompted((exchange) => exchange.end());
  assert.deepEqual([outcome(empty), warnings(empty)], [['completed', null, 1], ['empty_answer']]);
  const cut = await prompted((exchange) => exchange.text('Too lo').end('length'));
  assert.deepEqual([outcome(cut), warnings(cut)], [['completed', null, 1], ['answer_cut']]);
});

test('a run that a limit has ended names the limit, and its open calls get results', async () => {
  const usage = { prompt_tokens: 11_000, completion_tokens: 10 };
  const call: Behaviour = (exchange) => exchange.calls(['list_datasources', {}]).end('tool_calls', usage);
  const end = await prompted(call, call, call);
  // Two steps of 11,010 tokens are below the limit of 30,000. The third exceeds it and is the last one allowed.
  assert.deepEqual(outcome(end), ['failed', 'agent_step_limit', 3]);
  const calls = (end.run.output?.parts ?? []).map((part) => part.type === 'tool-call' && part.status);
  assert.deepEqual(calls, ['completed', 'completed', 'cancelled']);
});

test('when a history is too long its oldest outputs are left out first, and the run has a warning', async () => {
  const notebook = await openNotebook(server, { long: `"""${'x'.repeat(3400)}"""` });
  const { environmentId, id } = notebook;
  await client.agentSessions.open({ environmentId, notebookSessionId: id });
  const read: Behaviour = (exchange) =>
    exchange.calls(['read_cells', { cellIds: ['long'] }]).end('tool_calls');
  const number = model.exchanges.length;
  model.script(read, fine, read, fine);
  await client.waitForRun((await client.agentSessions.prompt(id, 'Read.')).runId);
  const run = await client.waitForRun((await client.agentSessions.prompt(id, 'Again.')).runId);
  assert.equal(run.status, 'completed', JSON.stringify(run.error));
  const sizes = (await model.asked(number + 3)).body.messages
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => String(content).length > 1000);
  assert.deepEqual(sizes, [false, true]);
  assert.deepEqual(
    run.output?.parts.filter(({ type }) => type === 'warning'),
    [
      {
        type: 'warning',
        code: 'history_compacted',
        message: 'The model no longer saw 1 older tool output: the history is longer than its window.',
      },
    ],
  );
});
