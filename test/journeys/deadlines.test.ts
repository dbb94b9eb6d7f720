/** Deadlines of executions, prompts and code calls: `timeoutS`. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { ExecutionRequest } from '#src/contract/wire/run.ts';
import { openNotebook, printed, results, statuses } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client } = server;

const LOOP = 'print("begun", flush=True)\nwhile True: pass';
const STUBBORN =
  'todo = ["begun"]\nwhile True:\n    try:\n        while True:\n            if todo: print(todo.pop(), flush=True)\n    except BaseException: pass';

/**
 * Makes an attempt with a deadline of one second, and with a longer one while the deadline was reached too early, because the machine
 * was busy: until `attempt` resolves with a result.
 */
async function withDeadline<T>(attempt: (timeoutS: number) => Promise<T | undefined>): Promise<T> {
  for (let timeoutS = 1; timeoutS <= 64; timeoutS *= 2) {
    const result = await attempt(timeoutS);
    if (result !== undefined) return result;
  }
  return assert.fail('even after a minute the work had not come as far as the test needs');
}

function only(cellId: string, timeoutS: number): ExecutionRequest {
  return { type: 'cells', cells: [{ cellId }], timeoutS };
}

test('a run that reaches its deadline is interrupted and fails with timed_out, and the variables stay', async () => {
  const notebook = await openNotebook(server, { a: 'x = 41', loop: LOOP, after: 'print(x + 1)' });
  await notebook.run(['a']);
  const events = await notebook.events();
  const run = await withDeadline(async (timeoutS) => {
    const run = await notebook.run(only('loop', timeoutS));
    assert.deepEqual([run.status, run.error?.code], ['failed', 'timed_out']);
    assert.deepEqual(run.input, only('loop', timeoutS), 'the record shows the deadline');
    const [result] = results(run);
    return result !== undefined && printed(result).startsWith('begun\n') ? run : undefined;
  });
  assert.deepEqual(statuses(run), { loop: 'interrupted' });
  const end = await events.until(
    (event) => event.type === 'run-status' && event.runId === run.id && event.data.status !== 'running',
  );
  assert.ok(end.type === 'run-status');
  assert.deepEqual([end.data.status, end.data.error?.code], ['failed', 'timed_out']);
  await events[Symbol.asyncDispose]();
  assert.equal(printed(results(await notebook.run(['after']))[0]!), '42\n');
  await notebook.close();
});

test('a code call that reaches its deadline returns timed_out, and the session is ready again', async () => {
  const notebook = await openNotebook(server, { a: 'x = 7' });
  await notebook.run(['a']);
  const { late, events } = await withDeadline(async (timeoutS) => {
    const events = await notebook.events();
    const late = await client.code.execute(notebook.id, LOOP, { timeoutS });
    assert.deepEqual([late.success, late.output], [false, null]);
    if (late.stdout === 'begun\n') return { late, events };
    await events[Symbol.asyncDispose]();
    return undefined;
  });
  assert.deepEqual(late.errors.at(-1), {
    type: 'timed_out',
    message: 'This took longer than the `timeoutS` of its request, and was interrupted.',
    cellId: null,
  });
  const event = await events.until(({ type }) => type === 'execution-completed');
  assert.ok(event.type === 'execution-completed');
  assert.deepEqual(event.data.errors, late.errors);
  await events[Symbol.asyncDispose]();
  const next = await client.code.execute(notebook.id, 'print(x)', { timeoutS: 60 });
  assert.deepEqual([next.success, next.stdout], [true, '7\n']);
  const killed = await client.code.execute(notebook.id, STUBBORN, { timeoutS: 1 });
  assert.deepEqual([killed.success, killed.errors.at(-1)?.type], [false, 'timed_out']);
  await client.notebookSessions.waitUntilReady(notebook.id);
  await notebook.close();
});

test('a prompt that reaches its deadline while its model answers fails with timed_out, and the next prompt is answered', async () => {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await client.agentSessions.open({ environmentId });
  model.always((exchange) => exchange.text('I begin '));
  await withDeadline(async (timeoutS) => {
    const asked = model.exchanges.length;
    const run = await client.agentSessions.ask(sessionId, 'Take your time.', { timeoutS });
    assert.ok('input' in run);
    assert.deepEqual([run.status, run.error?.code], ['failed', 'timed_out']);
    assert.deepEqual(run.input, { prompt: 'Take your time.', timeoutS });
    return model.exchanges.length > asked || undefined;
  });
  assert.equal((await client.agentSessions.get(sessionId)).entries[0]?.outcome, 'limit');
  model.always((exchange) => exchange.text('Done.').end());
  const next = await client.agentSessions.ask(sessionId, 'And now?');
  assert.equal(next.status, 'completed');
  await client.agentSessions.close(sessionId);
});

test('a prompt that reaches its deadline while a tool runs a cell interrupts the cell', async () => {
  const notebook = await openNotebook(server, { loop: LOOP });
  const { sessionId } = await client.agentSessions.open({
    environmentId: notebook.environmentId,
    notebookSessionId: notebook.id,
  });
  model.always((exchange) => exchange.calls(['run_cells', { cellIds: ['loop'] }]).end());
  await using events = await notebook.events();
  await withDeadline(async (timeoutS) => {
    const run = await client.agentSessions.ask(sessionId, 'Run it.', { timeoutS });
    assert.deepEqual([run.status, 'error' in run && run.error?.code], ['failed', 'timed_out']);
    return events.printed('loop').includes('begun') || undefined;
  });
  await client.notebookSessions.waitUntilReady(notebook.id);
  await notebook.close();
});

test('a deadline is 1 to 86400 whole seconds', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const { sessionId } = await client.agentSessions.open({ environmentId: notebook.environmentId });
  const tries = (timeoutS: number) => ({
    execution: () => client.executions.run(notebook.id, { type: 'all', timeoutS }),
    selection: () => client.executions.run(notebook.id, only('a', timeoutS)),
    code: () => client.code.execute(notebook.id, '1', { timeoutS }),
    prompt: () => {
      model.always((exchange) => exchange.text('Yes.').end());
      return client.agentSessions.ask(sessionId, 'Fine?', { timeoutS });
    },
  });
  for (const timeoutS of [86_400, 1])
    for (const [what, attempt] of Object.entries(tries(timeoutS))) {
      const done = await attempt();
      const isDone = 'success' in done ? done.success : done.status === 'completed';
      // On a busy machine a second may pass before the end.
      const isLate = timeoutS === 1 && JSON.stringify(done).includes('timed_out');
      assert.ok(isDone || isLate, `${what} within ${timeoutS}`);
    }
  for (const timeoutS of [86_401, 0, -1, 1.5])
    for (const [what, attempt] of Object.entries(tries(timeoutS)))
      assert.equal(await refusalOf(attempt()), '400 invalid_request', `${what} within ${timeoutS}`);
  await notebook.close();
});

test('a retry with the same key returns the run with its deadline, and a retry with another deadline is refused', async () => {
  const notebook = await openNotebook(server, { loop: LOOP });
  const idempotencyKey = 'deadline';
  const first = await client.executions.submit(notebook.id, only('loop', 2), { idempotencyKey });
  const again = await client.executions.submit(notebook.id, only('loop', 2), { idempotencyKey });
  assert.equal(again.runId, first.runId);
  const other = client.executions.submit(notebook.id, only('loop', 3), { idempotencyKey });
  assert.equal(await refusalOf(other), '409 idempotency_key_reused');
  const run = await client.waitForRun(first.runId);
  assert.equal(run.error?.code, 'timed_out');
  const later = await client.executions.submit(notebook.id, only('loop', 2), { idempotencyKey });
  assert.equal(later.runId, first.runId);
  await notebook.close();
});
